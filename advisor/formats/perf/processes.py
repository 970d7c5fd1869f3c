"""Which sampled threads are the program's, and which rank and thread each of them is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.formats import rank_numbers
from advisor.formats.perf.sites import communicates
from advisor.model.records import Processor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.formats.perf.samples import Script, Thread

#: A thread with less than this share of the samples of its process's busiest thread only helps, and so does one with
#: this few of them where the busiest has four times as many.
HELPER: Final = 0.02
FEW: Final = 5


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread, the file it was sampled in, and the processor that it is."""

    script: Script
    thread: Thread
    processor: Processor


@dataclass(frozen=True, slots=True)
class Processes:
    """The threads of the program; ``others`` counts the samples of other programs, ``helping`` those of helpers.

    ``guessed`` says that the order of ranks is that of process ids, ``undivided`` that threads of one process can't be
    told from processes.
    """

    program: str
    lanes: tuple[Lane, ...]
    guessed: bool
    undivided: bool
    expected: int | None
    others: dict[str, int]
    helpers: int
    helping: int


@dataclass(slots=True)
class _Process:
    script: Script
    threads: list[Thread]
    pid: int

    @property
    def comm(self) -> str:
        """The name that most of its samples have: a process has another one until it starts the program."""
        names: Counter[str] = Counter()
        for thread in self.threads:
            names.update(thread.comms)
        return max(names, key=lambda name: names[name])

    @property
    def samples(self) -> int:
        """How often it was sampled."""
        return sum(map(samples_of, self.threads))


def samples_of(thread: Thread) -> int:
    """Return the number of samples of a thread."""
    return int(sum(number for number, _ in thread.weight.values()))


def processes_of(scripts: Sequence[Script]) -> Processes:
    """Return the threads of the program with the most samples, by rank and thread."""
    found = [process for script in scripts for process in _in_file(script)]
    names: Counter[str] = Counter()
    for process in found:
        names[process.comm] += process.samples
    program = names.most_common(1)[0][0]
    chosen = sorted((process for process in found if process.comm == program), key=lambda one: one.pid)
    named = _stated_ranks(chosen)
    ranks = named or list(range(len(chosen)))
    lanes = [
        lane for rank, process in sorted(zip(ranks, chosen, strict=True), key=_rank) for lane in _lanes(rank, process)
    ]
    taken = {id(lane.thread) for lane in lanes}
    helpers = [thread for process in chosen for thread in process.threads if id(thread) not in taken]
    return Processes(
        program=program,
        lanes=tuple(lanes),
        guessed=named is None and len(chosen) > 1,
        undivided=any(not script.has_processes and len(script.threads) > 1 for script in scripts)
        and len(lanes) > len(scripts),
        expected=None if named is None else max(named) + 1,
        others={name: count for name, count in names.items() if name != program},
        helpers=len(helpers),
        helping=sum(map(samples_of, helpers)),
    )


def _rank(pair: tuple[int, _Process]) -> int:
    return pair[0]


def _in_file(script: Script) -> list[_Process]:
    """Return the processes in a file.

    Without process ids, threads that communicate are taken for processes, unless the file names a rank; others are
    threads of one process, by name.
    """
    groups: dict[object, list[Thread]] = {}
    one_rank = rank_numbers.by_name([script.path.name], [None]) is not None
    apart = not script.has_processes and not one_rank and communicates(script.frames)
    busiest = max(map(samples_of, script.threads.values()))
    for thread in sorted(script.threads.values(), key=samples_of, reverse=True):
        helps = apart and samples_of(thread) < _enough(busiest)
        key: object = thread.pid if script.has_processes else (_comm(thread), thread.tid if apart else 0)
        if helps:
            key = next((known for known in groups if isinstance(known, tuple) and known[0] == _comm(thread)), key)
        groups.setdefault(key, []).append(thread)
    return [
        _Process(script, threads, threads[0].pid if script.has_processes else threads[0].tid)
        for threads in groups.values()
    ]


def _enough(busiest: int) -> float:
    """Return how many samples a thread that works has."""
    return max(HELPER * busiest, min(FEW, busiest / 4))


def _comm(thread: Thread) -> str:
    return max(thread.comms, key=lambda name: thread.comms[name])


def _stated_ranks(chosen: Sequence[_Process]) -> list[int] | None:
    """Return the ranks that the files name; None where they do not, or hold several processes."""
    names = [process.script.path.name for process in chosen]
    if len(set(names)) < len(names):
        return None
    return rank_numbers.by_name(names, [None] * len(names))


def _lanes(rank: int, process: _Process) -> list[Lane]:
    """Return the threads of a process that work, the first one first."""
    threads = sorted(process.threads, key=lambda thread: thread.tid)
    busiest = max(map(samples_of, threads))
    working = [thread for n, thread in enumerate(threads) if n == 0 or samples_of(thread) >= _enough(busiest)]
    return [Lane(process.script, thread, Processor(rank, n)) for n, thread in enumerate(working)]
