"""Which outputs of valgrind are of one process and thread, and which rank that is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from advisor.formats import rank_numbers
from advisor.model.errors import InputError
from advisor.model.records import Processor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.formats.valgrind.dump import Dump

#: A thread that executes less than this share of the instructions of its process's busiest thread only helps.
HELPER: Final = 0.01


@dataclass(frozen=True, slots=True)
class Processes:
    """The processors of a run, and the outputs of each (all its parts), in the same order.

    ``guessed`` says that the order of the ranks is that of the process ids. ``others`` counts the processes of other
    programs, by program; ``helpers`` are the threads left out, ``helping`` the instructions they executed.
    """

    program: str
    processors: tuple[Processor, ...]
    dumps: tuple[tuple[Dump, ...], ...]
    guessed: bool
    expected: int | None
    others: dict[str, int]
    helpers: int
    helping: float


def processes_of(dumps: Sequence[Dump]) -> Processes:
    """Return the processes of the program that executed most; raises ``InputError`` where files contradict."""
    groups: dict[tuple[str, int | None], list[Dump]] = {}
    for dump in dumps:
        groups.setdefault((program_of(dump), _pid(dump)), []).append(dump)
    weight: Counter[str] = Counter()
    for (name, _), group in groups.items():
        weight[name] += int(sum(dump.counts[:, 0].sum() for dump in group))
    program = max(weight, key=lambda name: weight[name])
    chosen = {pid: group for (name, pid), group in groups.items() if name == program}
    named = _stated_ranks(chosen)
    order = sorted(chosen, key=lambda pid: (pid is None, pid or 0))
    ranks = named or {pid: rank for rank, pid in enumerate(order)}
    lanes = [lane for pid in sorted(chosen, key=lambda one: ranks[one]) for lane in _threads(ranks[pid], chosen[pid])]
    everything = sum(len(_by_thread(group)) for group in chosen.values())
    counted = sum(_executed(group) for _, group in lanes)
    return Processes(
        program=program,
        processors=tuple(processor for processor, _ in lanes),
        dumps=tuple(tuple(group) for _, group in lanes),
        guessed=named is None and len(chosen) > 1,
        expected=None if named is None else max(named.values()) + 1,
        others=dict(Counter(name for name, _ in groups if name != program)),
        helpers=everything - len(lanes),
        helping=sum(map(_executed, chosen.values())) - counted,
    )


def program_of(dump: Dump) -> str:
    """Return the name of the program: its arguments may hold what nobody should read in a report."""
    words = dump.command.split(maxsplit=1)
    return PurePath(words[0]).name if words else ""


def _pid(dump: Dump) -> int | None:
    return dump.pid if dump.pid is not None else rank_numbers.number_in(dump.path.name)


def _stated_ranks(chosen: dict[int | None, list[Dump]]) -> dict[int | None, int] | None:
    """Return the ranks that the names of the files state, None where they do not."""
    firsts = {pid: min(group, key=lambda dump: (dump.part, dump.thread or 0)) for pid, group in chosen.items()}
    several = any(len(group) > 1 for group in chosen.values())
    names = [dump.path.name for dump in firsts.values()]
    if several:  # what ends the name tells parts and threads apart
        names = [name.rsplit(".", 1)[0] if "rank" in name.lower() else "" for name in names]
    ranks = rank_numbers.by_name(names, [dump.pid for dump in firsts.values()])
    return None if ranks is None else dict(zip(firsts, ranks, strict=True))


def _by_thread(group: list[Dump]) -> dict[int, list[Dump]]:
    found: dict[int, list[Dump]] = {}
    for dump in sorted(group, key=lambda one: (one.thread or 0, one.part)):
        earlier = found.setdefault(dump.thread or 0, [])
        if earlier and earlier[-1].part == dump.part:
            raise InputError(dump.path, f"is the same part of the same process as {earlier[-1].path.name}")
        earlier.append(dump)
    return found


def _threads(rank: int, group: list[Dump]) -> list[tuple[Processor, list[Dump]]]:
    """Return the threads of a process that work, the first one first, with their files."""
    threads = _by_thread(group)
    busiest = max(map(_executed, threads.values()))
    working = [some for number, some in threads.items() if _executed(some) >= HELPER * busiest or number <= 1]
    return [(Processor(rank, thread), some) for thread, some in enumerate(working)]


def _executed(group: list[Dump]) -> float:
    return float(sum(dump.counts[:, 0].sum() for dump in group))
