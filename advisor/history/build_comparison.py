"""Two builds, or two runs, of the history: which runs their names stand for, and what changed between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from advisor.advice.earlier_runs import NOISE_BUILDS
from advisor.analysis.comparison import Comparison, compare_builds
from advisor.model.errors import UsageError
from advisor.model.run_points import is_same_point

if TYPE_CHECKING:
    from advisor.history.runs import RunEntry, RunStore
    from advisor.model.records import Advice, Profile

#: So many builds are named to who asked for one that is not there.
_NAMED: Final = 12


@dataclass(frozen=True, slots=True)
class BuildComparison:
    """The advice on the runs of both builds, each at least one, and what changed between them."""

    before: tuple[Advice, ...]
    after: tuple[Advice, ...]
    comparison: Comparison


def compare_stored_builds(runs: RunStore, before: str, after: str, program: str | None = None) -> BuildComparison:
    """Compare two builds by name, or two runs by number; raises ``UsageError`` for an unknown name.

    All advice but the last is a summary (``RunStore.load_summary``).
    """
    entries = [entry for entry in runs.list_entries() if program in (None, entry.program)]
    program, first, second = _select_runs(entries, before, after)
    of_program = [entry for entry in entries if entry.program == program]
    repeated = _find_repeated_builds(of_program, first, second)[-NOISE_BUILDS:]
    of_second = _load_summaries(runs, second)
    shown, changed = _select_point(_load_summaries(runs, first), of_second)
    last = next(entry for entry, advice in zip(second, of_second, strict=True) if advice is changed[-1])
    changed = (*changed[:-1], runs.load_advice(last.number))
    others = [_at_point(_load_summaries(runs, build), changed[-1].profile) for build in repeated]
    found = compare_builds(shown, changed, [build for build in others if build])
    if _are_repeats(shown, changed):
        found = found.as_repeats()
    found = replace(found, before=_describe_side(before, first), after=_describe_side(after, second))
    return BuildComparison(shown, changed, found)


def _select_point(
    before: tuple[Advice, ...], after: tuple[Advice, ...]
) -> tuple[tuple[Advice, ...], tuple[Advice, ...]]:
    """Return the runs of both builds at one point: the newest one, ranks and parameters, at which both ran.

    Builds that never ran at the same point are compared as they are.
    """
    like = next((one.profile for one in reversed(after) if _at_point(before, one.profile)), None)
    return (before, after) if like is None else (_at_point(before, like), _at_point(after, like))


def _at_point(runs: tuple[Advice, ...], like: Profile) -> tuple[Advice, ...]:
    return tuple(run for run in runs if is_same_point(run.profile, like))


def _are_repeats(before: Sequence[Advice], after: Sequence[Advice]) -> bool:
    """Return whether all runs are of one build and were started alike."""
    started = [(one.profile.build, one.profile.parameters, len(one.profile.processors)) for one in (*before, *after)]
    return started[0][0] is not None and all(one == started[0] for one in started)


def _select_runs(entries: Sequence[RunEntry], before: str, after: str) -> tuple[str, list[RunEntry], list[RunEntry]]:
    """Return the program and the runs that the two names stand for."""
    sides = [_find_side(name, entries) for name in (before, after)]
    programs = {entry.program for entry in sides[0]} & {entry.program for entry in sides[1]}
    if len(programs) != 1:
        names = ", ".join(sorted({entry.program for side in sides for entry in side}))
        raise UsageError(f"several programs have such builds, choose one (--program): {names}")
    [program] = programs
    first, second = ([one for one in side if one.program == program and one.actual_s is not None] for side in sides)
    if not (first and second):
        raise UsageError(f"{after if first else before} was recorded without times of {program!r}")
    return program, first, second


def _find_repeated_builds(
    entries: Sequence[RunEntry], before: Sequence[RunEntry], after: Sequence[RunEntry]
) -> list[list[RunEntry]]:
    """Return the builds that ran more than once, without the runs that are compared.

    Where these are two single runs and no others tell the noise, their own builds do, such as of two repeats.
    """
    compared = {entry.number for entry in (*before, *after)}
    others = _group_by_build([entry for entry in entries if entry.number not in compared])
    return others or (_group_by_build(entries) if len(before) == len(after) == 1 else [])


def _group_by_build(entries: Sequence[RunEntry]) -> list[list[RunEntry]]:
    found: dict[str, list[RunEntry]] = {}
    for entry in entries:
        if entry.build is not None and entry.actual_s is not None:
            found.setdefault(entry.build, []).append(entry)
    return [build for build in found.values() if len(build) > 1]


def _find_side(name: str, entries: Sequence[RunEntry]) -> list[RunEntry]:
    """Return the runs of the build of that name, else the run of that number; raises ``UsageError``."""
    side = [entry for entry in entries if entry.build == name]
    side = side or [entry for entry in entries if str(entry.number) == name]
    if side:
        return side
    builds = list(dict.fromkeys(entry.build for entry in reversed(entries) if entry.build is not None))[:_NAMED]
    span = f"runs have the numbers {entries[0].number} to {entries[-1].number}" if entries else "there is no run"
    known = f"the last builds are {', '.join(reversed(builds))}" if builds else "no run says of which build it is"
    raise UsageError(f"no run or build named {name!r}; {known}; {span}")


def _describe_side(name: str, side: Sequence[RunEntry]) -> str:
    """Return what a side of the comparison is called: its build, or the run that stands for it."""
    build = side[0].build
    if name == build:
        return build
    return f"run {name}" if build is None else f"run {name} of {build}"


def _load_summaries(runs: RunStore, entries: Sequence[RunEntry]) -> tuple[Advice, ...]:
    return tuple(runs.load_summary(entry.number) for entry in entries)
