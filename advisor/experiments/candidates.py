"""Which settings are worth a try: those that may shrink a gap of the run, the largest first; no blind search."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.analysis.disturbance import disturbance_seconds
from advisor.collect.binaries.executables import find_program
from advisor.experiments import settings
from advisor.experiments.mpi_settings import iterate_bindings, iterate_mpi_variables
from advisor.experiments.settings import Kind, Launcher, Setting, count_cores, identify_launcher
from advisor.support.launchers import count_ranks, find_launcher_place, find_rank_option

if TYPE_CHECKING:
    from advisor.model.records import Advice, Profile

#: Grades of a recording whose seconds are too rough to leave anything out, and of one that tells nothing at all.
_WEAK, _NO_EVIDENCE = "DF", "F"
#: Gaps below this share of the run are worth no run.
LEAST_SHARE: Final = 0.02
#: The gaps that each kind of setting may shrink; ``I`` stands for the computation itself.
_STAKES: Final[Mapping[str, tuple[str, ...]]] = {
    "flags": ("I", "$", "S", "C", "host"),
    "threads": ("P", "L", "M'", "D", "S'", "W", "O"),
    "waiting": ("S'", "W", "O", "L", "M'", "D"),
    "schedule": ("L", "M'", "D"),
    "binding": ("O", "L", "M'", "D", "S'", "W"),
    "ranks": ("O", "S'", "W", "C'"),
    "mpi": ("C'", "S'", "W"),
    "memory": ("O", "$"),
    "io": ("O",),
    "device": ("launches", "synchronizations", "startup"),
}
#: Sets of flags in the order in which they are tried; the one that changes results is tried only on request.
_FLAGS: Final = ("-O3 -march=native", "-O2", "-O3 -march=native -funroll-loops -flto")
#: Beginnings of the names of OpenMP's regions and calls, in lower case.
_OPENMP: Final = ("!$omp", "omp ", "omp_", "gomp_", "__kmpc", "openmp")
_FAST_MATH: Final = "-O3 -march=native -ffast-math"
#: Actions of the rules that each kind carries out.
_ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "flags": ("A-20", "G-29", "G-30", "G-31", "G-39"),
    "schedule": ("A-29",),
    "binding": ("G-25",),
    "ranks": ("G-24",),
}
#: Allocators that are looked for, by the beginnings of their file names.
_ALLOCATORS: Final = ("libjemalloc.so", "libtcmalloc_minimal.so", "libmimalloc.so")
_LIBRARIES: Final = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib",
)


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """What decides which settings make sense: the command, whether it can be rebuilt, and what it uses.

    ``checked`` says whether results are checked: with another number of ranks, some programs solve another problem.
    ``threads`` are those of a rank in the recorded run, None without one.
    """

    words: tuple[str, ...]
    rebuilds: bool
    openmp: bool
    mpi: bool
    cores: int
    checked: bool = False
    threads: int | None = None
    chooses_schedule: bool = True
    fortran_files: bool = False
    mpi_files: bool = False
    devices: bool = False

    @property
    def ranks(self) -> int:
        """How many ranks the command starts."""
        return count_ranks(self.words)

    @property
    def is_threaded(self) -> bool:
        """Whether a rank has, or may have, more than one thread."""
        return self.openmp and self.threads != 1

    @property
    def is_crowded(self) -> bool:
        """Whether there are more ranks than cores."""
        return self.ranks > self.cores

    @property
    def launcher(self) -> Launcher | None:
        """Which launcher starts the ranks, None for none or another one."""
        place = find_launcher_place(self.words) if self.mpi else None
        return None if place is None else identify_launcher(self.words[place])


def describe_program(
    words: Sequence[str], folder: Path, advice: Advice | None, *, rebuilds: bool, checked: bool
) -> ProgramFacts:
    """Return the facts of a command run in ``folder``, from its file, and from its recorded run where there is one."""
    paradigms = {one.lower() for one in advice.profile.paradigms} if advice else {"openmp", "mpi"}
    mpi = find_launcher_place(words) is not None and "mpi" in paradigms
    threads = "OMP_NUM_THREADS" in os.environ or advice is None or uses_openmp(advice.profile)
    program = find_program(words, folder)
    used = max(1, len(advice.profile.processors) // advice.profile.ranks) if advice and advice.profile.ranks else None
    return ProgramFacts(
        tuple(words), rebuilds, threads, mpi, count_cores(), checked, used, settings.can_choose_schedule(program),
        settings.uses_fortran_files(program), settings.uses_mpi_files(program),
        advice is not None and advice.profile.devices is not None,
    )  # fmt: skip


def uses_openmp(profile: Profile) -> bool:
    """Return whether the threads of a run are OpenMP's, as far as its regions tell: variables reach no others."""
    names = [region.name.lower() for region in profile.regions]
    of_posix = any(name.startswith(("pthread_", "thrd_")) for name in names)
    threaded = any("openmp" in one.lower() or "thread" in one.lower() for one in profile.paradigms)
    return threaded and (not of_posix or any(name.startswith(_OPENMP) for name in names))


def propose_settings(facts: ProgramFacts, advice: Advice | None, *, fast_math: bool, most: int) -> list[Setting]:
    """Return at most so many settings to try, those with the most seconds at stake first.

    Without advice, or where a recording is too weak for any, nothing is known of the stakes, and the order is that of
    their usual gain. Of a weak recording they give the order, and nothing is left out.
    """
    every = [
        *_propose_flags(facts, fast_math), *_propose_threads(facts), *_propose_ranks(facts), *_propose_binding(facts),
        *_propose_waiting(facts), *_propose_schedules(facts), *_propose_mpi(facts, advice), *_propose_devices(facts),
        *_propose_io(facts), *_propose_memory(),
    ]  # fmt: skip
    every = [replace(one, actions=_ACTIONS.get(one.kinds[0], ())) for one in every if not _is_set(one)]
    if advice is None or not advice.profile.has_run_time or advice.grade.letter == _NO_EVIDENCE:
        return _spread_kinds(every)[:most]
    staked = [replace(one, stake_share=sum_stake(advice, one)) for one in every]
    least = 0.0 if advice.grade.letter in _WEAK else LEAST_SHARE
    worth = [one for one in staked if (one.stake_share or 0.0) >= least]
    return _spread_kinds(sorted(worth, key=lambda one: -(one.stake_share or 0.0)))[:most]


def _spread_kinds(settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings in rounds of one of each kind, so that a cut leaves something of all that matters."""
    taken: dict[str, int] = {}
    keyed = []
    for place, one in enumerate(settings):
        number = taken[one.kinds[0]] = taken.get(one.kinds[0], 0) + 1
        keyed.append((number, place, one))
    return [one for *_, one in sorted(keyed, key=lambda key: key[:2])]


def sum_stake(advice: Advice, setting: Setting) -> float:
    """Return the share of a run that a setting may shrink: its gaps, and the computation where flags change it.

    What other programs took is no part of the run: no setting wins it. Where computation is not known by itself, it is
    at most the lowest known bound that holds it.
    """
    gaps = {name for kind in setting.kinds for name in _STAKES[kind]}
    total = sum(gap.seconds for gap in advice.gaps if gaps & set(gap.members or (gap.name,)))
    fills_cores = bool({"threads", "ranks"} & set(setting.kinds)) and _leaves_cores_idle(advice)
    needs_computation = "I" in gaps or fills_cores
    with_computation = (bound for bound in advice.bounds if bound.name.startswith("I"))
    computation = next((bound.seconds for bound in with_computation if bound.seconds is not None), None)
    stake_s = max(0.0, total) + (computation or 0.0) * needs_computation
    own_s = advice.profile.actual_s - disturbance_seconds(advice.profile)
    return min(1.0, stake_s / own_s) if own_s > 0 else 1.0


def _leaves_cores_idle(advice: Advice) -> bool:
    """Return whether there are more cores than processors of the run: all of its computation is at stake then."""
    return len(advice.profile.processors) < (advice.profile.cores or count_cores())


def _is_set(setting: Setting) -> bool:
    """Return whether the environment says the same already."""
    return bool(setting.variables) and all(os.environ.get(name) == value for name, value in setting.variables.items())


def _propose_flags(facts: ProgramFacts, fast_math: bool) -> Iterable[Setting]:
    if facts.rebuilds:
        for flags in (*_FLAGS, *([_FAST_MATH] if fast_math else [])):
            yield Setting(flags, ("flags",), "computation is most of the run", flags=flags)


def _propose_threads(facts: ProgramFacts) -> Iterable[Setting]:
    if not facts.openmp:
        return
    fair = max(1, facts.cores // facts.ranks)
    given = os.environ.get("OMP_NUM_THREADS")
    for threads in dict.fromkeys((fair, max(1, fair // 2))):
        if given != str(threads) and not (given is None and facts.ranks == 1 and threads == facts.cores):
            yield _of_variables("threads", "threads that fit the cores", OMP_NUM_THREADS=str(threads))


def _propose_ranks(facts: ProgramFacts) -> Iterable[Setting]:
    """Yield other numbers of ranks, for a program with threads with as many of these as fill the cores.

    Only where results are checked: a program that deals out work by ranks does less of it with fewer.
    """
    if not (facts.mpi and facts.checked and find_rank_option(facts.words)):
        return
    if not facts.openmp:
        if facts.ranks != facts.cores:
            why = "there are more ranks than cores" if facts.is_crowded else "cores are idle"
            yield Setting(f"{facts.cores} ranks", ("ranks",), why, ranks=facts.cores)
        return
    for ranks in dict.fromkeys((min(facts.ranks, facts.cores), 2 * facts.ranks, facts.ranks // 2, facts.cores)):
        if 1 <= ranks <= facts.cores and ranks != facts.ranks:
            threads = facts.cores // ranks
            variables = {"OMP_NUM_THREADS": str(threads)}
            yield Setting(f"{ranks} ranks x {threads} threads", ("ranks", "threads"), "ranks and threads that fill "
                          "the cores", variables, ranks=ranks)  # fmt: skip


def _propose_binding(facts: ProgramFacts) -> Iterable[Setting]:
    if facts.mpi:
        for words in iterate_bindings(facts.launcher, crowded=facts.is_crowded, threaded=facts.is_threaded):
            yield Setting(" ".join(words), ("binding",), "ranks that move, or share a core", launch=words)
    if facts.is_threaded:
        yield _of_variables("binding", "threads that move", OMP_PROC_BIND="close", OMP_PLACES="cores")
        yield _of_variables("binding", "threads that share a place", OMP_PROC_BIND="false")


def _propose_waiting(facts: ProgramFacts) -> Iterable[Setting]:
    """Yield how threads wait at barriers: asleep where others want the cores, awake where they have them alone."""
    if facts.is_threaded:
        yield _of_variables("waiting", "threads that wait keep others off the cores", OMP_WAIT_POLICY="passive")
        yield _of_variables("waiting", "threads that wait have to be woken", OMP_WAIT_POLICY="active")


def _propose_schedules(facts: ProgramFacts) -> Iterable[Setting]:
    if facts.is_threaded and facts.chooses_schedule:  # takes effect in loops with schedule(runtime) only
        yield _of_variables("schedule", "uneven iterations", OMP_SCHEDULE="dynamic,8")
        yield _of_variables("schedule", "uneven iterations", OMP_SCHEDULE="guided")


def _propose_mpi(facts: ProgramFacts, advice: Advice | None) -> Iterable[Setting]:
    if facts.mpi:
        for why, variables in iterate_mpi_variables(facts.launcher, advice, crowded=facts.is_crowded):
            yield _of_variables("mpi", why, **variables)


def _propose_devices(facts: ProgramFacts) -> Iterable[Setting]:
    if facts.devices:
        if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") != "0":
            yield _of_variables("device", "each launch waits for its kernel", CUDA_LAUNCH_BLOCKING="0")
        yield _of_variables("device", "streams share a queue", CUDA_DEVICE_MAX_CONNECTIONS="32", GPU_MAX_HW_QUEUES="8")
        yield _of_variables("device", "kernels that never run are loaded", CUDA_MODULE_LOADING="LAZY")


def _propose_io(facts: ProgramFacts) -> Iterable[Setting]:
    if facts.fortran_files:
        yield _of_variables("io", "small writes of the Fortran library", GFORTRAN_FORMATTED_BUFFER_SIZE="1048576",
                            GFORTRAN_UNFORMATTED_BUFFER_SIZE="1048576", GFORTRAN_UNBUFFERED_ALL="n")  # fmt: skip
    if facts.mpi_files and facts.launcher == "openmpi":
        yield _of_variables("io", "another library of MPI-IO", OMPI_MCA_io="romio321")
        yield _of_variables("io", "how writes are collected", OMPI_MCA_fcoll="two_phase")


def _propose_memory() -> Iterable[Setting]:
    yield _of_variables("memory", "page faults", GLIBC_TUNABLES="glibc.malloc.hugetlb=1")
    yield _of_variables(
        "memory", "memory that goes back to the system and comes again", MALLOC_MMAP_THRESHOLD_="1073741824",
        MALLOC_TRIM_THRESHOLD_="1073741824", MALLOC_TOP_PAD_="67108864",
    )  # fmt: skip
    for library in find_allocators():
        yield _of_variables("memory", "allocation", LD_PRELOAD=str(library))


def find_allocators() -> list[Path]:
    """Return the shared libraries of other allocators that this system has."""
    folders = [Path(folder) for folder in _LIBRARIES if Path(folder).is_dir()]
    found = (next(iter(sorted(folder.glob(f"{name}*"))), None) for folder in folders for name in _ALLOCATORS)
    return [library for library in found if library is not None]


def _of_variables(kind: Kind, why: str, **variables: str) -> Setting:
    name = " ".join(f"{name}={value}" for name, value in variables.items())
    return Setting(name, (kind,), why, variables)
