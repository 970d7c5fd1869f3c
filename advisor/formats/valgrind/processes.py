"""Which outputs of valgrind are of one process and thread, and which rank that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from advisor.formats import rank_numbers
from advisor.model.errors import InputError
from advisor.model.records import Processor

if TYPE_CHECKING:
    from advisor.formats.valgrind.dump import ValgrindDump

#: A thread that executes less than this share of the instructions of its process's busiest thread only helps.
HELPER: Final = 0.01


@dataclass(frozen=True, slots=True)
class ProgramProcesses:
    """The processors of a run, and the outputs of each (all its parts), in the same order.

    ``ranks_guessed`` says that the order of the ranks is that of the process ids. ``other_programs`` counts the
    processes of other programs, by program; ``helper_threads`` are the threads left out, ``helper_instructions`` the
    instructions they executed.
    """

    program: str
    processors: tuple[Processor, ...]
    dumps: tuple[tuple[ValgrindDump, ...], ...]
    ranks_guessed: bool
    ranks_expected: int | None
    other_programs: dict[str, int]
    helper_threads: int
    helper_instructions: float


def find_processes(dumps: Sequence[ValgrindDump]) -> ProgramProcesses:
    """Return the processes of the program that executed most; raises ``InputError`` where files contradict."""
    groups: dict[tuple[str, int | None], list[ValgrindDump]] = {}
    for dump in dumps:
        groups.setdefault((find_program(dump), _find_pid(dump)), []).append(dump)
    weight: Counter[str] = Counter()
    for (name, _), group in groups.items():
        weight[name] += int(sum(dump.counts[:, 0].sum() for dump in group))
    program = max(weight, key=lambda name: weight[name])
    chosen = {pid: group for (name, pid), group in groups.items() if name == program}
    named = _find_stated_ranks(chosen)
    order = sorted(chosen, key=lambda pid: (pid is None, pid or 0))
    ranks = named or {pid: rank for rank, pid in enumerate(order)}
    lanes = [
        lane for pid in sorted(chosen, key=lambda one: ranks[one]) for lane in _select_threads(ranks[pid], chosen[pid])
    ]
    everything = sum(len(_group_by_thread(group)) for group in chosen.values())
    counted = sum(_count_instructions(group) for _, group in lanes)
    return ProgramProcesses(
        program=program,
        processors=tuple(processor for processor, _ in lanes),
        dumps=tuple(tuple(group) for _, group in lanes),
        ranks_guessed=named is None and len(chosen) > 1,
        ranks_expected=None if named is None else max(named.values()) + 1,
        other_programs=dict(Counter(name for name, _ in groups if name != program)),
        helper_threads=everything - len(lanes),
        helper_instructions=sum(map(_count_instructions, chosen.values())) - counted,
    )


def find_program(dump: ValgrindDump) -> str:
    """Return the name of the program: its arguments may hold what nobody should read in a report."""
    words = dump.command.split(maxsplit=1)
    return PurePath(words[0]).name if words else ""


def _find_pid(dump: ValgrindDump) -> int | None:
    return dump.pid if dump.pid is not None else rank_numbers.parse_trailing_number(dump.path.name)


def _find_stated_ranks(chosen: dict[int | None, list[ValgrindDump]]) -> dict[int | None, int] | None:
    """Return the ranks that the names of the files state, None where they do not."""
    firsts = {pid: min(group, key=lambda dump: (dump.part, dump.thread or 0)) for pid, group in chosen.items()}
    several = any(len(group) > 1 for group in chosen.values())
    names = [dump.path.name for dump in firsts.values()]
    if several:  # what ends the name tells parts and threads apart
        names = [name.rsplit(".", 1)[0] if "rank" in name.lower() else "" for name in names]
    ranks = rank_numbers.find_ranks_by_name(names, [dump.pid for dump in firsts.values()])
    return None if ranks is None else dict(zip(firsts, ranks, strict=True))


def _group_by_thread(group: list[ValgrindDump]) -> dict[int, list[ValgrindDump]]:
    found: dict[int, list[ValgrindDump]] = {}
    for dump in sorted(group, key=lambda one: (one.thread or 0, one.part)):
        earlier = found.setdefault(dump.thread or 0, [])
        if earlier and earlier[-1].part == dump.part:
            raise InputError(dump.path, f"is the same part of the same process as {earlier[-1].path.name}")
        earlier.append(dump)
    return found


def _select_threads(rank: int, group: list[ValgrindDump]) -> list[tuple[Processor, list[ValgrindDump]]]:
    """Return the threads of a process that work, the first one first, with their files."""
    threads = _group_by_thread(group)
    busiest = max(map(_count_instructions, threads.values()))
    working = [some for number, some in threads.items() if _count_instructions(some) >= HELPER * busiest or number <= 1]
    return [(Processor(rank, thread), some) for thread, some in enumerate(working)]


def _count_instructions(group: list[ValgrindDump]) -> float:
    return float(sum(dump.counts[:, 0].sum() for dump in group))
