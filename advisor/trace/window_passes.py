"""The two passes over the windows of a trace: what the run tells, and where its seconds belong.

Which calls belong together is found in the first pass and kept for the second. Several windows are worked on at a time,
one by each thread; only the calls that one leaves open must be known before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from advisor.support.worker_threads import count_usable_cores, map_in_threads
from advisor.trace import attribution_merging, cluster_passes, nesting, survey, time_attribution
from advisor.trace.spool import ArrayStore
from advisor.trace.windows import Stacks, TraceWindow, TraceWindows, UncleanError, find_open_regions

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.trace.matching import Collectives, Messages
    from advisor.trace.nesting import Calls
    from advisor.trace.records import MatchedWindow, RunSurvey
    from advisor.trace.sharing import SharedWork
    from advisor.trace.time_attribution import RunPlan, TimeAttribution

#: Windows that are worked on at a time, at most: each takes some hundred bytes an event.
WINDOWS_AT_A_TIME: Final = 4

Record = TypeVar("Record", "Collectives", "Messages")


@dataclass(frozen=True, slots=True)
class SurveyedWindow:
    """What the second pass takes over from the first.

    The calls that are ``opened`` at the begin of the window, the synchronizations ``before`` it, and what returns the
    calls in it that belong together.
    """

    opened: Stacks
    before: int
    take_matches: Callable[[], tuple[Collectives, Messages]]


@dataclass(frozen=True, slots=True)
class SurveyedRun:
    """The windows of a run, what it tells, and what attributes its seconds in a second pass."""

    windows: TraceWindows
    told: RunSurvey
    attribute: Callable[[RunPlan], TimeAttribution]


def survey_windows(
    windows: TraceWindows, comparable: npt.NDArray[np.bool_] | None = None
) -> tuple[RunSurvey, MatchedWindow | list[SurveyedWindow]]:
    """Return what the run tells, and its only window, or else what is known of each.

    Of processes that are not ``comparable`` (locations,) calls are not matched; the trace is one window then. Raises
    ``UncleanError`` where a cut tore something apart.
    """
    if len(windows) == 1:
        window = windows.make_window(0, windows.empty_stacks())
        calls = nesting.pair_calls(window.trace, compiled=window.compiled)
        only = survey.match_window(window, calls, comparable)
        return survey.survey_window(only, windows.trace, last=True), only

    def survey_one(task: tuple[int, TraceWindow, Calls]) -> tuple[RunSurvey, Collectives, Messages]:
        number, window, calls = task
        matched = survey.match_window(window, calls)
        told = survey.survey_window(matched, windows.trace, len(windows), last=number + 1 == len(windows))
        return told, matched.collectives, matched.messages

    parts: list[RunSurvey] = []
    known: list[SurveyedWindow] = []
    store, stacks = ArrayStore(), [windows.empty_stacks()]
    before = 0
    for told, joint, messages in map_in_threads(survey_one, _nest_windows(windows, stacks), _count_threads()):
        parts.append(told)
        known.append(SurveyedWindow(stacks[len(known)], before, _put_away(store, joint, messages)))
        before += len(told.closing_region)
    return survey.combine_surveys(parts, windows.trace), known


def attribute_windows(
    windows: TraceWindows, found: MatchedWindow | list[SurveyedWindow], plan: RunPlan
) -> TimeAttribution:
    """Return what all windows hold."""
    if not isinstance(found, list):
        return time_attribution.attribute_window(found, plan, 0, last=True)

    def attribute_one(task: tuple[int, TraceWindow]) -> TimeAttribution:
        number, window = task
        calls = nesting.pair_calls(window.trace, compiled=window.compiled)
        matched = survey.group_calls(window, calls, *found[number].take_matches())
        return time_attribution.attribute_window(matched, plan, found[number].before, last=number + 1 == len(windows))

    tasks = ((number, windows.make_window(number, known.opened, matched=True)) for number, known in enumerate(found))
    return attribution_merging.merge_attributions(map_in_threads(attribute_one, tasks, _count_threads()))


def survey_run(windows: TraceWindows, work: SharedWork | None) -> SurveyedRun:
    """Return what the run tells, from one pass over the windows, by ``work`` where a cluster takes part.

    Where events cross the edges of windows, they are looked at as one, in this process.
    """
    try:
        if work is not None and len(windows) > 1:
            return SurveyedRun(windows, *cluster_passes.survey_windows(work, windows))
        return survey_here(windows)
    except UncleanError:
        return survey_here(windows.as_one_window())


def survey_here(windows: TraceWindows, comparable: npt.NDArray[np.bool_] | None = None) -> SurveyedRun:
    """Return what the run tells as this process alone finds it; the other arguments are those of ``survey_windows``."""
    told, found = survey_windows(windows, comparable)
    return SurveyedRun(windows, told, partial(attribute_windows, windows, found))


def _count_threads() -> int:
    return min(WINDOWS_AT_A_TIME, count_usable_cores())


def _nest_windows(windows: TraceWindows, stacks: list[Stacks]) -> Iterator[tuple[int, TraceWindow, Calls]]:
    """Yield the windows with their calls; ``stacks`` get what is open at the end of each."""
    for number in range(len(windows)):
        window = windows.make_window(number, stacks[number])
        calls = nesting.pair_calls(window.trace, compiled=window.compiled)
        stacks.append(find_open_regions(window, calls))
        yield number, window, calls


def _put_away(store: ArrayStore, joint: Collectives, messages: Messages) -> Callable[[], tuple[Collectives, Messages]]:
    """Return what gives back both records, whose columns lie in the store until then."""
    take_joint, take_messages = _store_record(store, joint), _store_record(store, messages)
    return lambda: (take_joint(), take_messages())


def _store_record(store: ArrayStore, record: Record) -> Callable[[], Record]:
    columns: dict[str, Any] = {field.name: getattr(record, field.name) for field in fields(record)}
    stored = {name: store.spill_array(column) for name, column in columns.items() if isinstance(column, np.ndarray)}
    empty: dict[str, Any] = dict.fromkeys(stored, np.zeros(0, dtype=np.int64))
    rest: Record = replace(record, **empty)

    def take_record() -> Record:
        taken: dict[str, Any] = {name: take() for name, take in stored.items()}
        return replace(rest, **taken)

    return take_record
