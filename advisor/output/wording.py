"""The project's own words for gaps, bounds, grades and efforts, and the command that shows most of what is unknown."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from advisor.model import units
from advisor.model.records import ALL_LEVELS, COMPUTATION, DEVICES_UNSEEN, HOT_SPOTS, OTHERS_UNRECORDED, UNANSWERED
from advisor.model.units import format_count, format_seconds

if TYPE_CHECKING:
    from advisor.analysis.network_demands import CountChange
    from advisor.model.recommendations import HowTo
    from advisor.model.records import Advice, Bound, Gap, Grade, Note, Profile

#: What each gap costs, by its name.
GAPS = {level.gap: level.adds for level in ALL_LEVELS if level.gap} | {"M": "machine peak"}
#: What has to be filled in before a command can be run.
_OPEN: Final = re.compile(
    r"…|\b(?:PROGRAM|SOURCES?|PATH|DIR|DIRECTORY|RANKS|COMMAND|RUN-1|P=1024)\b|(?:-n|--cores) N\b"
)
#: A change of the program that only makes its next recording easier to read.
_MARKING: Final = "mark them"
#: A doubt that costs so much of the grade is to be settled first; what records the program anew.
_GRAVE: Final = 0.3
_RECORDS: Final = re.compile(r"\bgapwatch run\b")
#: What the run would take if only this were left: the bar that the gaps stand on.
BOUNDS = {
    "M": "all operations at the machine's peak",
    "MA": "this mix of operations at its peak",
    "MAC": "the compiled operations at their peak",
    "MACS": "the compiler's schedule",
    "I": "computation, shared evenly",
    "IP": "computation, its serial parts alone",
    "IPC": "computation and communication",
    "IPCO": "all work, shared evenly",
    "IPCOL": "the work of the busiest processor",
    "IPCOLM": "the busiest processor of each phase",
    "IPCOLMD": "the busiest processor of each iteration",
    "IPCOLMDS": "work and synchronization",
    "IPCOLMDSW": "all phases",
    "actual": "the whole run",
    "R": "the kernels at the devices' peak rates",
    "K": "kernels that compute, without a pause",
    "KT": "kernels and copies",
    "KTC": "kernels, copies and communication",
    "KTCB": "the same, waiting for slower devices",
    "KTCBL": "the same, fed launch by launch",
    "KTCBLS": "the same, with synchronous waits",
    "KTCBLSD": "the same, with data loading",
    "KTCBLSDH": "devices and their hosts",
}
GRADES = {
    "A": "reliable",
    "B": "good, minor doubts",
    "C": "fair, use with care",
    "D": "weak, seconds are rough",
    "F": "insufficient for advice",
}
EFFORTS = {1: "a flag or setting", 2: "a few lines", 3: "a local rewrite", 4: "a larger change", 5: "a redesign"}
EFFICIENCIES = ("load_balance", "communication", "parallel", "serialization", "transfer")
MODELS = {
    "mpi": "MPI", "openmp": "OpenMP", "threads": "threads", "cuda": "CUDA", "hip": "HIP",
    "openmp-target": "OpenMP target", "pytorch": "PyTorch", "jax": "JAX",
}  # fmt: skip
LANGUAGES = {"c": "C", "cxx": "C++", "fortran": "Fortran"}
#: How an expected gain is known.
BASES = {
    "simulation": "by simulating the measured run",
    "history": "by what it won before",
    "similar": "by what it gained in similar programs",
    "calibration": "by what such changes usually win",
    "experiment": "by an experiment with the program's kernels",
}
COUNTS = {1: "one thing", 2: "two things", 3: "three things"}


def describe_bound(advice: Advice) -> str:
    """Return what is known of computation that is most of the run; nothing where it is not."""
    return next((finding.text for finding in advice.findings if finding.kind == COMPUTATION), "")


def describe_hot_spots(advice: Advice) -> str:
    """Return the regions with the highest counts, for a run that allows no other conclusion; else nothing."""
    return next((finding.text for finding in advice.findings if finding.kind == HOT_SPOTS), "")


def describe_unanswered_gap(advice: Advice) -> str:
    """Return which large gap no recommendation is about; nothing where there is none, or too little evidence."""
    if advice.verdict == "insufficient evidence":
        return ""
    return next((finding.text for finding in advice.findings if finding.kind == UNANSWERED), "")


def describe_gap(gap: Gap) -> str:
    """Return what a gap costs; of a merged one, what it holds together."""
    words = [GAPS.get(member, member) for member in gap.members or (gap.name,)]
    return words[0] if len(words) == 1 else f"together: {', '.join(words)}"


def includes_outside_time(gap: Gap) -> bool:
    """Return whether a gap holds what lies outside of all phases: start-up, shutdown and the rest."""
    return "X" in (gap.name, *gap.members)


def describe_grade(grade: Grade) -> str:
    """Return the grade in words, with its letter."""
    return f"{grade.letter} ({GRADES[grade.letter]})"


def describe_how(how: HowTo) -> str:
    """Return for which model and language instructions hold, ``MPI, C++``; nothing where for any."""
    return ", ".join(filter(None, (MODELS.get(how.model), LANGUAGES.get(how.language or ""))))


def describe_length(profile: Profile, unknown: str) -> str:
    """Return how long the run took, else what processors or devices took, else the words for what is ``unknown``."""
    if profile.has_run_time:
        return format_seconds(profile.actual_s)
    counted = float(profile.sum_by_region("cpu_s").sum())
    if counted > 0:
        return f"{format_seconds(counted)} of CPU time"
    on_devices = float(profile.counts["device_s"].sum()) if "device_s" in profile.counts else 0.0
    return f"{format_seconds(on_devices)} of device time" if on_devices > 0 else unknown


def describe_processors(profile: Profile) -> str:
    """Return how many processors took part: ``4 MPI ranks with 16 threads on 2 hosts``, ``2 devices``.

    Those of a simulation took part in no run, which is said.
    """
    processors = profile.processors
    ranks = profile.ranks
    hosts = len({processor.host for processor in processors if processor.host})
    threads = format_count(len(processors), "thread")
    words = format_count(ranks, "MPI rank" if "mpi" in profile.paradigms else "rank")
    if len(processors) > ranks:
        words = f"{words} with {threads}" if ranks > 1 or "mpi" in profile.paradigms else threads
    elif ranks == 1 and "mpi" not in profile.paradigms:
        words = "1 processor"
    if profile.devices is not None and not profile.devices.facts.get("on_host"):
        of_ranks = f" of {words}" if ranks > 1 else ""
        words = format_count(len(profile.devices.devices), "device") + of_ranks.split(" with ")[0]
    where = f" on {hosts} hosts" if hosts > 1 else ""
    return words + where + (", simulated" if profile.is_simulated else "")


def find_base_bound(advice: Advice) -> Bound | None:
    """Return the lowest bound that has a value: where the first gap starts."""
    return next((bound for bound in advice.bounds if bound.seconds is not None), None)


def group_unavailable_bounds(advice: Advice) -> list[tuple[list[str], str]]:
    """Return the names of neighbouring bounds without a value that share one reason, with that reason."""
    missing = groupby(advice.bounds, lambda bound: bound.seconds is None and (bound.reason or "not measured"))
    return [([bound.name for bound in bounds], reason) for reason, bounds in missing if reason]


def group_unknown_bounds(advice: Advice) -> list[list[str]]:
    """Return the names of neighbouring bounds without a value."""
    missing = groupby(advice.bounds, lambda bound: bound.seconds is None)
    return [[bound.name for bound in bounds] for is_missing, bounds in missing if is_missing]


def describe_target(advice: Advice) -> str:
    """Return what is predicted for the run that the program is meant for; nothing where the user states none."""
    told = {one.subject: one for one in advice.findings if one.kind == "scaling" and one.subject in ("run", "gaps")}
    stated = "run" in told and told["run"].measures.get("stated")
    return " ".join(told[subject].text for subject in ("run", "gaps") if subject in told) if stated else ""


def describe_count(count: float, change: CountChange) -> str:
    """Return a number of what a build asks of a network: bytes, or a plain count."""
    return units.format_bytes(count) if change.is_bytes else f"{count:,.6g}"


def describe_added_traffic(change: CountChange) -> str:
    """Return by how much a count grew, also per step if the number of steps is equal: 240 more latencies (2 a step)."""
    more = describe_count(change.delta, change)
    steps = change.steps or 1.0
    a_step = f" ({describe_count(change.delta / steps, change)} a step)" if steps > 1.0 else ""
    return f"{more} more {change.words}{a_step}"


def worst_notes(advice: Advice) -> list[Note]:
    """Return what weakens the evidence, the worst first."""
    return sorted((note for note in advice.grade.notes if note.penalty > 0), key=lambda note: -note.penalty)


def is_open(advice: Advice) -> bool:
    """Return whether gaps are known and reliable, but no action matches them."""
    return advice.verdict == "insufficient evidence" and bool(advice.gaps) and advice.grade.letter != "F"


def select_command(advice: Advice) -> str | None:
    """Return the command to run next: against doubts first, then for what rules need, then for unknown bounds.

    Where devices were not recorded, or what the one recorded thread waits for, nothing else tells what the run does.
    Where a large gap is known and no action is about it, grave doubts that another run removes come first.
    """
    worst = worst_notes(advice)
    doubts = [note.collect for note in worst]
    unseen = [note.collect for note in advice.grade.notes if note.name in (DEVICES_UNSEEN, OTHERS_UNRECORDED)]
    grave = [note.collect for note in worst if note.penalty >= _GRAVE and _RECORDS.search(note.collect or "")]
    needs = [need.command for need in advice.needs]
    bounds = [bound.collect for bound in advice.bounds if bound.seconds is None]
    doubtful = advice.verdict == "insufficient evidence" and not is_open(advice)
    order = [*doubts, *needs, *bounds] if doubtful else [*needs, *bounds, *doubts]
    if is_open(advice) or describe_unanswered_gap(advice):
        order = [*grave, *order]
    known = [command for command in (unseen if any(unseen) else order) if command]
    ready = (command for command in known if not _OPEN.search(command) and not command.startswith(_MARKING))
    return next(ready, next(iter(known), None))
