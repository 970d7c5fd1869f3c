"""The program of ``halo_exchange`` as files of other simulators: a Dimemas trace, and a schedule of LogGOPSim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor_simulation.replay.program import Op

if TYPE_CHECKING:
    from pathlib import Path

    from advisor_simulation.replay.program import Program

_ALLREDUCE = 11


def write_dimemas(path: Path, program: Program) -> None:
    """Write a Dimemas trace that holds nothing but computation, messages and collective operations."""
    records = [_dimemas_records(program, rank) for rank in range(program.ranks)]
    ranks = range(program.ranks)
    members = f"d:1:1:{program.ranks}:{':'.join(map(str, ranks))}\n"
    head = f'#DIMEMAS:"halo":1,%015d:{program.ranks}({",".join("1" for _ in ranks)}),1\n'
    place = len(head % 0) + len(members)
    places = []
    for text in records:
        places.append(place)
        place += len(text)
    tasks = "".join(f"s:{rank}:{begin}\n" for rank, begin in enumerate(places))
    path.write_text(head % place + members + "".join(records) + tasks)


def _dimemas_records(program: Program, rank: int) -> str:
    part = slice(int(program.first[rank]), int(program.first[rank + 1]))
    lines = []
    for op, value, link in zip(
        program.op[part].tolist(), program.value[part].tolist(), program.link[part].tolist(), strict=True
    ):
        if op == Op.BURST:
            lines.append(f"1:{rank}:0:{value:.9f}\n")
        elif op == Op.SEND:
            lines.append(f"2:{rank}:0:{program.target[link]}:-1:{value:.0f}:{link % 4}:1:0\n")
        elif op == Op.RECV:
            size = program.value[0] if not len(program.source) else 8192
            lines.append(f"3:{rank}:0:{program.source[link]}:-1:{size}:{link % 4}:1:0\n")
        elif op == Op.JOIN:
            lines.append(f"10:{rank}:0:{_ALLREDUCE}:1:0:0:{value:.0f}:{value:.0f}:1\n")
    return "".join(lines)


def write_goal(path: Path, program: Program) -> None:
    """Write the schedule; an allreduce is recursive doubling, so the ranks have to be a power of two."""
    rounds = program.ranks.bit_length() - 1
    with path.open("w") as file:
        file.write(f"num_ranks {program.ranks}\n")
        for rank in range(program.ranks):
            file.write(f"rank {rank} {{\n{_goal_lines(program, rank, rounds)}}}\n")


def _goal_lines(program: Program, rank: int, rounds: int) -> str:
    part = slice(int(program.first[rank]), int(program.first[rank + 1]))
    lines: list[str] = []

    def add(text: str) -> None:
        number = len(lines)
        lines.append(f"l{number}: {text}\n" + (f"l{number} requires l{number - 1}\n" if number else ""))

    for op, value, link in zip(
        program.op[part].tolist(), program.value[part].tolist(), program.link[part].tolist(), strict=True
    ):
        if op == Op.BURST:
            add(f"calc {round(value * 1e9)}")
        elif op == Op.SEND:
            add(f"send {value:.0f}b to {program.target[link]} tag {link % 4}")
        elif op == Op.RECV:
            add(f"recv 8192b from {program.source[link]} tag {link % 4}")
        else:
            for turn in range(rounds):
                add(f"send {value:.0f}b to {rank ^ (1 << turn)} tag {100 + turn}")
                add(f"recv {value:.0f}b from {rank ^ (1 << turn)} tag {100 + turn}")
    return "".join(lines)
