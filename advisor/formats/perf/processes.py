"""Which sampled threads are the program's, and which rank and thread each of them is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.formats import rank_numbers
from advisor.formats.perf.sites import has_communication
from advisor.model.records import Processor
from advisor.support.managed_runtimes import find_language, is_of_runtime

if TYPE_CHECKING:
    from advisor.formats.perf.samples import PerfScript, SampledThread

#: A thread with less than this share of the samples of its process's busiest thread only helps, and so does one with
#: this few of them where the busiest has four times as many.
HELPER: Final = 0.02
FEW: Final = 5
#: A program is written in a language of which this share of its samples tells.
SPOKEN: Final = 0.3


@dataclass(frozen=True, slots=True)
class ThreadLane:
    """A thread, the file it was sampled in, and the processor that it is."""

    script: PerfScript
    thread: SampledThread
    processor: Processor


@dataclass(frozen=True, slots=True)
class ProgramThreads:
    """The threads of the program; ``other_programs`` and ``helper_samples`` count samples of others and of helpers.

    ``ranks_guessed`` says that the order of ranks is that of process ids, ``processes_unknown`` that threads of one
    process can't be told from processes.
    """

    program: str
    lanes: tuple[ThreadLane, ...]
    ranks_guessed: bool
    processes_unknown: bool
    ranks_expected: int | None
    other_programs: dict[str, int]
    helper_threads: int
    helper_samples: int


@dataclass(slots=True)
class _SampledProcess:
    script: PerfScript
    threads: list[SampledThread]
    pid: int

    @property
    def comm(self) -> str:
        """The name that most of its samples have: a process has another one until it starts the program."""
        names: Counter[str] = Counter()
        for thread in self.threads:
            names.update(thread.comms)
        return max(names, key=lambda name: names[name])

    @property
    def sample_count(self) -> int:
        """How often it was sampled."""
        return sum(map(count_samples, self.threads))


def count_samples(thread: SampledThread) -> int:
    """Return the number of samples of a thread."""
    return int(sum(number for number, _ in thread.weight.values()))


def find_processes(scripts: Sequence[PerfScript]) -> ProgramThreads:
    """Return the threads of the program with the most samples, by rank and thread."""
    found = [process for script in scripts for process in _find_file_processes(script)]
    names: Counter[str] = Counter()
    for process in found:
        names[process.comm] += process.sample_count
    program = names.most_common(1)[0][0]
    chosen = sorted((process for process in found if process.comm == program), key=lambda one: one.pid)
    named = _find_stated_ranks(chosen)
    ranks = named or list(range(len(chosen)))
    lanes = [
        lane
        for rank, process in sorted(zip(ranks, chosen, strict=True), key=_pair_rank)
        for lane in _build_lanes(rank, process)
    ]
    taken = {id(lane.thread) for lane in lanes}
    helpers = [thread for process in chosen for thread in process.threads if id(thread) not in taken]
    return ProgramThreads(
        program=program,
        lanes=tuple(lanes),
        ranks_guessed=named is None and len(chosen) > 1,
        processes_unknown=any(not script.has_processes and len(script.threads) > 1 for script in scripts)
        and len(lanes) > len(scripts),
        ranks_expected=None if named is None else max(named) + 1,
        other_programs={name: count for name, count in names.items() if name != program},
        helper_threads=len(helpers),
        helper_samples=sum(map(count_samples, helpers)),
    )


def _pair_rank(pair: tuple[int, _SampledProcess]) -> int:
    return pair[0]


def _find_file_processes(script: PerfScript) -> list[_SampledProcess]:
    """Return the processes in a file.

    Without process ids, threads that communicate are taken for processes, unless the file names a rank; others are
    threads of one process, by name.
    """
    groups: dict[object, list[SampledThread]] = {}
    one_rank = rank_numbers.find_ranks_by_name([script.path.name], [None]) is not None
    apart = not script.has_processes and not one_rank and has_communication(script.frames)
    busiest = max(map(count_samples, script.threads.values()))
    for thread in sorted(script.threads.values(), key=count_samples, reverse=True):
        helps = apart and count_samples(thread) < _compute_threshold(busiest)
        key: object = thread.pid if script.has_processes else (_main_comm(thread), thread.tid if apart else 0)
        if helps:
            key = next((known for known in groups if isinstance(known, tuple) and known[0] == _main_comm(thread)), key)
        groups.setdefault(key, []).append(thread)
    return [
        _SampledProcess(script, threads, threads[0].pid if script.has_processes else threads[0].tid)
        for threads in groups.values()
    ]


def _compute_threshold(busiest: int) -> float:
    """Return how many samples a thread that works has."""
    return max(HELPER * busiest, min(FEW, busiest / 4))


def _main_comm(thread: SampledThread) -> str:
    return max(thread.comms, key=lambda name: thread.comms[name])


def _serves_runtime(script: PerfScript, thread: SampledThread) -> bool:
    """Return whether a thread runs nothing but a runtime, such as that of Java, and the system.

    What runs nothing but Python may be the program: its interpreter has no threads of its own.
    """
    places = {place for _, stack in thread.weight for place in stack}
    frames = [frame for frame in (script.frames[place] for place in places) if not frame.kernel]
    return any(find_language(None, frame.object) not in {None, "python"} for frame in frames) and all(
        is_of_runtime(frame.object) for frame in frames if frame.object is not None
    )


def find_spoken_language(processes: ProgramThreads) -> str | None:
    """Return the language that a good part of the samples tells of; None where it is none with a runtime."""
    spoken: Counter[str] = Counter()
    for lane in processes.lanes:
        told = [find_language(frame.symbol, frame.object) for frame in lane.script.frames]
        for (_, stack), (number, _) in lane.thread.weight.items():
            spoken.update({name: int(number) for name in {told[place] for place in stack} if name is not None})
    language, count = spoken.most_common(1)[0] if spoken else (None, 0)
    return language if count >= SPOKEN * sum(count_samples(lane.thread) for lane in processes.lanes) else None


def find_main_program(script: PerfScript) -> str:
    """Return the program of which a file holds most samples."""
    names: Counter[str] = Counter()
    for thread in script.threads.values():
        names.update(thread.comms)
    return names.most_common(1)[0][0]


def _find_stated_ranks(chosen: Sequence[_SampledProcess]) -> list[int] | None:
    """Return the ranks that the files name; None where they do not, or hold several processes."""
    names = [process.script.path.name for process in chosen]
    if len(set(names)) < len(names):
        return None
    return rank_numbers.find_ranks_by_name(names, [None] * len(names))


def _build_lanes(rank: int, process: _SampledProcess) -> list[ThreadLane]:
    """Return the threads of a process that work, the first one first: collectors and compilers of a runtime do not."""
    own = [thread for thread in process.threads if not _serves_runtime(process.script, thread)]
    threads = sorted(own or process.threads, key=lambda thread: thread.tid)
    busiest = max(map(count_samples, threads))
    working = [
        thread for n, thread in enumerate(threads) if n == 0 or count_samples(thread) >= _compute_threshold(busiest)
    ]
    return [ThreadLane(process.script, thread, Processor(rank, n)) for n, thread in enumerate(working)]
