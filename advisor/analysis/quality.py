"""Grade the quality of a profile from A to F, with all reasons and remedies.

Each doubt is a note with a fixed penalty (``PENALTIES``, explained in ``docs/quality.md``); notes of the reader count
too. The score is one less all penalties; F, or any penalty of 1, means insufficient evidence.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.bounds import are_durations_known, explain_shared_cores, instance_durations
from advisor.analysis.device_ladder import find_device_doubts
from advisor.analysis.loads import summarize_loads
from advisor.analysis.measures import recording_command
from advisor.model import policy
from advisor.model.records import RANKS_ADDED_UP, SHARED_CORES, WAITING_UNKNOWN, Grade, Note
from advisor.model.units import format_seconds, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.analysis.loads import ProfileLoads
    from advisor.model.records import Bound, FloatArray, Gap, Profile

#: The note of a profile in which waiting counts as work, since processors poll while they wait: what it shows of
#: imbalance is the least there is, and that it shows nothing means nothing.
HIDDEN: Final = "waiting hidden"
#: The note of a profile that does not tell work from waiting at all.
UNTOLD: Final = WAITING_UNKNOWN
#: The commands that record what its devices do, in a form that is read here.
RECORD_CUDA: Final = "nsys profile -t cuda,nvtx,osrt,mpi -o run ./PROGRAM && nsys export -t sqlite run.nsys-rep"
RECORD_ROCM: Final = "rocprofv3 --sys-trace --output-format rocpd -d traces -- ./PROGRAM"
RECORD_DEVICES: Final = f"{RECORD_CUDA}  # of AMD: rocprofv3 --sys-trace -- ./PROGRAM"

#: The note of a run that nobody measured: its times have no noise, and are as good as its model.
SIMULATED: Final = Note("simulated", "these are the times of a simulation, not of a run")
#: The part of a run outside of what a tool recorded.
UNRECORDED: Final = "not recorded"
#: Calls of MPI that need another rank.
TO_PARTNERS: Final = frozenset(
    f"MPI_{name}" for name in ("Send", "Ssend", "Rsend", "Bsend", "Isend", "Recv", "Irecv", "Sendrecv", "Issend")
)


def grade_profile(
    profile: Profile, bounds: Sequence[Bound], gaps: Sequence[Gap], loads: ProfileLoads | None = None
) -> Grade:
    """Return the grade of ``profile`` with its notes, the gravest first; letter F means insufficient evidence.

    Of a simulated run only its values and phases are checked: what else makes measurements doubtful (noise, clocks,
    missing ranks) is not in it. ``loads`` spares one of the passes over the arrays (``loads.summarize``).
    """
    if profile.devices is not None:
        return _grade_notes([*profile.notes, *find_device_doubts(profile, profile.devices)])
    loads = loads or summarize_loads(profile)
    if not profile.has_run_time:
        return _grade_without_run_time(profile)
    if profile.is_simulated:
        doubts = [*_check_values(profile, bounds, gaps), *_check_phases(profile, loads)]
        return _grade_notes([*profile.notes, *doubts, SIMULATED])
    found = [*profile.notes, *_check_run(profile), *_check_processors(profile), *_check_values(profile, bounds, gaps)]
    found += [*_check_phases(profile, loads), *_check_clocks(profile)]
    return _grade_notes(found, computes_by_clock=profile.status.get("cpu_s") == "measured")


def _grade_without_run_time(profile: Profile) -> Grade:
    """Return D where the time of processors or devices tells what changes of the computation win at most, else F."""
    from advisor.analysis.cpu_time import has_cpu_time_alone

    how = recording_command(profile, "actual_s")
    unknown = "the wall time of the run is not known"
    if has_cpu_time_alone(profile):
        text = f"{unknown}: seconds are those of processors, without any waiting"
        return _grade_notes([_make_note("CPU time alone", text, how), *profile.notes])
    on_devices, in_calls = (
        float(profile.counts[name].sum()) if name in profile.counts else 0.0 for name in ("device_s", "runtime_call_s")
    )
    record = {"nsys": RECORD_CUDA, "rocprof": RECORD_ROCM}.get(profile.reader, RECORD_DEVICES)
    if on_devices >= policy.SHORTEST_DEVICE_RUN_S or in_calls >= policy.SHORTEST_RUN_S:
        text = f"{unknown}: seconds are those of devices, without what they wait for"
        return _grade_notes([_make_note("device time alone", text, record), *profile.notes])
    if on_devices or in_calls:
        how = record
    return Grade("F", 0.0, (_make_note("no run time", unknown, how), *profile.notes))


def _grade_notes(found: Sequence[Note], *, computes_by_clock: bool = False) -> Grade:
    """Return the grade that the penalties of notes leave, of any kind of run.

    Where computation was measured by CPU clocks, doubts about the rest of the time don't add up without end.
    """
    notes = tuple(sorted(found, key=lambda note: -note.penalty))
    waiting = sum(note.penalty for note in notes if note.name in policy.WAITING_DOUBTS)
    others = sum(note.penalty for note in notes if note.name not in policy.WAITING_DOUBTS)
    most = policy.MOST_WAITING_DOUBT if computes_by_clock else waiting
    score = min(max(1.0 - others - min(waiting, most), 0.0), 1.0)
    fatal = any(note.penalty >= 1.0 for note in notes)
    letter = "F" if fatal else next(letter for letter, least in policy.LETTERS if round(score, 9) >= least)
    return Grade(letter, score, notes)


def _make_note(name: str, text: str, collect: str | None = None) -> Note:
    return Note(name, text, policy.PENALTIES[name], collect)


def _check_run(profile: Profile) -> Iterator[Note]:
    """Yield doubts about the length of the run."""
    if profile.actual_s < policy.SHORTEST_RUN_S:
        shortest = format_seconds(policy.SHORTEST_RUN_S)
        how = f"the run took {format_seconds(profile.actual_s)}; below {shortest} noise decides"
        yield _make_note("too short", how, "run a larger problem or more iterations")
    if not are_durations_known(profile):
        return
    lengths = instance_durations(profile)
    together = float(lengths.sum())
    if together < policy.SHORTEST_RUN_S <= profile.actual_s:
        how = f"all phases together took {format_seconds(together)}; the rest is start-up and shutdown"
        yield _make_note("short phases", how, "run a larger problem or more iterations")
    brief = float(lengths[lengths < policy.INSTANCE_RESOLUTIONS * policy.CLOCK_RESOLUTION_S].sum())
    if brief > policy.SHORT_INSTANCES * together:
        how = f"{format_share(brief / together)} of the time is in instances shorter than "
        yield _make_note(
            "instances near the clock's resolution",
            how + format_seconds(policy.INSTANCE_RESOLUTIONS * policy.CLOCK_RESOLUTION_S),
        )


def _check_processors(profile: Profile) -> Iterator[Note]:
    """Yield doubts about the number of processors."""
    ranks, expected = profile.ranks, profile.ranks_expected
    if expected is not None and ranks < expected:
        name = "processors missing" if 2 * ranks >= expected else "most processors missing"
        yield _make_note(
            name, f"the profile holds {ranks} of {expected} ranks", "copy the files of all ranks, or run again"
        )
    yield from _of_ranks(profile)
    cores = profile.cores
    if cores is None:
        yield _make_note("cores unknown", "the number of cores is not known; oversubscribed cores would go unnoticed")
    elif shared := explain_shared_cores(profile):
        yield _make_note(SHARED_CORES, shared, _suggest_fewer(profile, cores))
        yield from _check_cores(profile, cores)


def _suggest_fewer(profile: Profile, cores: int) -> str:
    """Return the command that records no more processors than cores, or what to do where that takes other settings.

    A number of ranks that divides the one there was fits most programs; those that make communicators of the rows and
    columns of a square may refuse any other number than a square.
    """
    root, at_most = math.isqrt(profile.ranks), f"run with at most {cores} processors, each on its own core"
    if cores < 2 or "mpi" not in profile.paradigms or profile.ranks < len(profile.processors):
        return at_most
    if root * root == profile.ranks and _has_rows_and_columns(profile):
        root = math.isqrt(cores)
        return f"gapwatch run -- mpirun -n {root * root} ./PROGRAM" if root > 1 else at_most
    fewer = max((count for count in range(2, cores + 1) if profile.ranks % count == 0), default=cores)
    return f"gapwatch run -- mpirun -n {fewer} ./PROGRAM"


def _has_rows_and_columns(profile: Profile) -> bool:
    """Return whether a program divides a Cartesian topology into communicators."""
    called = {region.name.upper() for region in profile.regions}
    return "MPI_CART_SUB" in called or {"MPI_CART_CREATE", "MPI_COMM_SPLIT"} <= called


def _check_cores(profile: Profile, cores: int) -> Iterator[Note]:
    """Yield a doubt where the clocks of the processors counted more CPU time than so many cores have."""
    computed = _sum_by_processor(profile, "cpu_s")
    if computed is None or profile.status["cpu_s"] != "measured":  # what is derived from wall time needs no core
        return
    used, had = float(computed.sum()), cores * profile.actual_s
    if used > had + cores * policy.TIME_SLACK_S + policy.TIME_SLACK * had + len(computed) * policy.CPU_TICK_S:
        core = "1 core has" if cores == 1 else f"{cores} cores have"
        how = f"the processors used {format_seconds(used)} of CPU time, more than the {format_seconds(had)} that {core}"
        yield _make_note(
            "CPU time exceeds the cores", f"{how}: one of the numbers is wrong",
            "state the cores of the run, hardware threads included: --cores N",
        )  # fmt: skip


def _of_ranks(profile: Profile) -> Iterator[Note]:
    """Yield doubts about whether these are the ranks of one run: those that messages go to, and equally long."""
    missing = "copy the files of all ranks, or run again"
    if profile.ranks_expected is None:
        highest = max(processor.rank for processor in profile.processors)
        if profile.ranks <= highest:
            yield _make_note("processors missing", f"the profile holds {profile.ranks} of {highest + 1} ranks", missing)
        elif highest == 0 and not profile.has_phases and (call := _message_call(profile)):
            yield _make_note(
                "partners missing", f"the only rank calls {call}: the ranks it talks to are not here", missing
            )
    alive = _sum_by_processor(profile, "wall_s")
    if alive is None:
        return
    factor = policy.RANKS_UNLIKE if profile.status["wall_s"] == "measured" else policy.RANKS_UNLIKE_SAMPLED
    alive = alive + sum((s for name, s in profile.outside.items() if name != UNRECORDED), np.zeros(len(alive)))
    whole = [q for q, one in enumerate(profile.processors) if one.thread == 0 and one.from_s is None is one.to_s]
    if not whole or not (0 < alive[whole].min() * factor < alive[whole].max()):
        return
    shortest, longest = (whole[int(choose(alive[whole]))] for choose in (np.argmin, np.argmax))
    how = f"{profile.processors[longest].name} was there for {format_seconds(float(alive[longest]))}, "
    how += f"{profile.processors[shortest].name} for {format_seconds(float(alive[shortest]))}"
    yield _make_note("ranks unlike", how + ": of different runs, in different units, or cut off", missing)


def _message_call(profile: Profile) -> str | None:
    """Return a call that needs a partner, and that took time on the only rank."""
    for phase in profile.phases:
        for row, region in enumerate(phase.regions.tolist()):
            name: str = profile.regions[region].name
            if name in TO_PARTNERS and "wall_s" in phase.arrays and phase.arrays["wall_s"][row].sum() > 0:
                return name
    return None


def _check_values(profile: Profile, bounds: Sequence[Bound], gaps: Sequence[Gap]) -> Iterator[Note]:
    """Yield doubts about values that cannot be."""
    lowest = {
        name: min(float(phase.arrays[name].min()) for phase in profile.phases if name in phase.arrays)
        for name in sorted({name for phase in profile.phases for name in phase.arrays})
    }
    numbers = [*lowest.values(), *(bound.seconds for bound in bounds if bound.seconds is not None)]
    if not np.isfinite(numbers).all():
        yield _make_note("impossible values", "some times are not finite numbers")
        return
    negative = [name for name, least in lowest.items() if name != "os_s" and least < -policy.CLOCK_RESOLUTION_S]
    if negative:
        yield _make_note(
            "negative times", f"{', '.join(negative)} hold times below zero, beyond the clock's resolution"
        )
    slack = policy.TIME_SLACK_S + policy.TIME_SLACK * profile.actual_s
    highest = max((bound for bound in bounds if bound.seconds is not None), key=lambda bound: bound.seconds or 0.0)
    if excess := _explain_excess(profile, slack):
        yield _make_note("times exceed the run", excess)
    elif (highest.seconds or 0.0) - profile.actual_s > slack:
        how = f"the bound {highest.name} is {format_seconds(highest.seconds or 0.0)}, more than the run took"
        model = "; the machine model or the counts do not fit" if highest.status == "modelled" else ""
        yield _make_note("times exceed the run", how + model)
    wrong = [gap.name for gap in gaps if gap.seconds < -slack]
    if wrong:
        one = f"the gap {wrong[0]} is negative; see its reason"
        many = f"the gaps {', '.join(wrong)} are negative; see their reasons"
        yield _make_note("negative gap", one if len(wrong) == 1 else many)


def _explain_excess(profile: Profile, slack: float) -> str | None:
    """Return which times of a processor are longer than the run by more than ``slack`` (s), None where none are."""
    present, computed = _sum_by_processor(profile, "wall_s"), _sum_by_processor(profile, "cpu_s")
    if present is not None:
        beyond = float(np.sum([present, *profile.outside.values()], axis=0).max()) - profile.actual_s
        if beyond > slack:
            return f"a processor's times exceed those of the run by {format_seconds(beyond)}"
    if computed is not None:
        beyond = float(computed.max()) - profile.actual_s
        if beyond > slack + policy.CPU_TICK_S:
            return f"a processor's CPU time exceeds the run by {format_seconds(beyond)}"
    return None


def _sum_by_processor(profile: Profile, name: str) -> FloatArray | None:
    """Return the seconds of a measure in all phases by processor, None where it was not measured."""
    if not profile.has_measure(name):
        return None
    total: FloatArray = np.sum([phase.arrays[name].sum(axis=(0, 2)) for phase in profile.phases], axis=0)
    return total


def _check_phases(profile: Profile, loads: ProfileLoads) -> Iterator[Note]:
    """Yield doubts about the resolution of the profile."""
    if not loads.quantities.work.is_known:
        how = "waiting is unknown, so load, communication and waiting cannot be separated"
        yield _make_note(UNTOLD, how, recording_command(profile, "wait_s"))
    if not profile.has_phases and len(profile.processors) > 1:
        how = "there are no known synchronizations, so imbalance, synchronization and waiting cannot be separated"
        yield _make_note("no phases", how, recording_command(profile, "phases"))
    elif profile.has_phases and max(phase.iterations for phase in profile.phases) < policy.FEWEST_ITERATIONS:
        how = f"no phase has {policy.FEWEST_ITERATIONS} iterations or more, so changes between iterations hardly show"
        yield _make_note("few iterations", how, "run more iterations")
    spread = loads.spreads.get("IPCO") or loads.spreads.get("I")
    added_up = any(note.name == RANKS_ADDED_UP for note in profile.notes)
    if spread is None or (added_up and not profile.has_measure("wait_s")):  # then no place can be told anyway
        return
    region = np.concatenate([phase.regions for phase in profile.phases])
    each = np.bincount(region, weights=spread.regions)
    if each.max() >= policy.ONE_REGION * each.sum() > 0:
        how = f"{format_share(float(each.max() / each.sum()))} of the work is in one region, so places are coarse"
        yield _make_note("one region", how, recording_command(profile, "functions"))


def _check_clocks(profile: Profile) -> Iterator[Note]:
    """Yield a doubt where the clocks' uncertainty is large against the waiting that they measure."""
    uncertainty = profile.clock_uncertainty_s
    if not uncertainty or not profile.has_measure("wait_s"):
        return
    waited = sum(float(phase.arrays["wait_s"].sum()) for phase in profile.phases) / len(profile.processors)
    instances = sum(phase.iterations for phase in profile.phases)
    error = uncertainty * instances
    if waited >= policy.WAITING_SHARE * profile.actual_s and error > policy.CLOCK_ERROR * waited:
        how = f"the clocks agree to {format_seconds(uncertainty)}, up to {format_seconds(error)} over all instances, "
        yield _make_note("clock uncertainty", how + f"while processors wait {format_seconds(waited)}")
