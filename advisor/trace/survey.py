"""First pass over a trace: what attribution needs to know about the whole run.

Constraints on the clocks, the synchronizations of all processes, when processes start up and shut down, which functions
run between two synchronizations, and the shortest call of each sort. Times are by each process's own clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.grouping import number_values
from advisor.trace import locations, matching, nesting, phases, teams, waits
from advisor.trace.clock_constraints import collect_constraints, combine_constraints
from advisor.trace.events import Role, Trace
from advisor.trace.records import MatchedWindow, RunSurvey
from advisor.trace.segmentation import has_receives
from advisor.trace.windows import TraceWindow, UncleanError

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.matching import Collectives, Messages
    from advisor.trace.nesting import Calls

#: Regions that are no call of the program; what comes after the last other call may be the tracer's own doing.
_NO_CALLS = (Role.ROOT, Role.FINALIZE, Role.TOOL, Role.INIT)


def match_window(window: TraceWindow, calls: Calls, comparable: npt.NDArray[np.bool_] | None = None) -> MatchedWindow:
    """Return what belongs together in a window, of different processes only where they can be compared.

    ``comparable`` (locations,) tells who shares a clock with all that it communicates with, None that all do.
    """
    trace = window.trace
    joint, messages = (
        matching.match_collectives(trace, calls),
        matching.match_messages(trace, calls, compiled=window.compiled),
    )
    if comparable is not None:
        joint = matching.select_collectives(calls, joint, comparable)
        messages = matching.select_messages(trace, calls, messages, comparable)
    return group_calls(window, calls, joint, messages)


def group_calls(window: TraceWindow, calls: Calls, joint: Collectives, messages: Messages) -> MatchedWindow:
    """Return a window of which it is known which calls of different processes belong together."""
    groups = teams.find_teams(window.trace, calls)
    closing = phases.find_synchronizations(window.trace, calls, joint, groups)
    return MatchedWindow(window, calls, joint, messages, groups, closing)


def survey_window(found: MatchedWindow, whole: Trace, windows: int = 1, *, last: bool) -> RunSurvey:
    """Return what one of so many windows of the ``whole`` trace tells; ``last`` says whether the run ends with it."""
    trace, calls = found.window.trace, found.calls
    role = nesting.roles_of_regions(trace)[calls.region]
    taking_part = found.closing >= 0
    closing = np.maximum(found.closing, 0)
    started = _latest_ends(calls, np.flatnonzero(role == Role.INIT), len(trace.locations))
    stopping = phases.find_stopping_calls(trace, calls, role)
    stops = stopping >= 0
    shown = stopping[stops]
    region, start = np.full(len(stopping), -1), np.full(len(stopping), np.inf)
    region[stops], start[stops] = calls.region[shown], calls.start_s[shown]
    return RunSurvey(
        constraints=collect_constraints(trace, calls, found.collectives, found.messages, whole, windows),
        closing_region=np.where(taking_part, calls.region[closing], -1),
        closing_end_s=np.where(taking_part, calls.end_s[closing], -np.inf),
        inside=_find_user_regions(found, role, started, last=last),
        started_s=started,
        stopping=region,
        stopping_s=start,
        done_s=_latest_ends(
            calls, np.flatnonzero(~nesting.have_roles(trace, calls.region, _NO_CALLS)), len(trace.locations)
        ),
        used=number_values(calls.region, len(trace.regions))[0],
        outermost=number_values(calls.region[calls.parent < 0], len(trace.regions))[0],
        shortest=waits.find_shortest_calls(
            trace, calls, waits.find_explained_calls(calls, found.collectives, found.messages, found.teams)
        ),
        lost_collectives=found.collectives.unmatched,
        lost_messages=found.messages.unmatched_ends,
        torn=bool(found.collectives.torn or (found.messages.unmatched_ends and has_receives(trace))),
    )


def combine_surveys(parts: Sequence[RunSurvey], whole: Trace) -> RunSurvey:
    """Return what all windows of the ``whole`` trace together tell.

    Raises ``UncleanError`` where a cut tore something apart.
    """
    if len(parts) == 1:
        return parts[0]
    if any(part.torn for part in parts):
        raise UncleanError
    stopping = np.stack([part.stopping for part in parts])
    first = np.argmax(stopping >= 0, axis=0)
    everywhere = np.arange(stopping.shape[1])
    return RunSurvey(
        constraints=combine_constraints([part.constraints for part in parts], whole),
        closing_region=np.vstack([part.closing_region for part in parts]),
        closing_end_s=np.vstack([part.closing_end_s for part in parts]),
        inside=tuple(regions for part in parts for regions in part.inside),
        started_s=np.stack([part.started_s for part in parts]).max(axis=0),
        stopping=stopping[first, everywhere],
        stopping_s=np.stack([part.stopping_s for part in parts])[first, everywhere],
        done_s=np.stack([part.done_s for part in parts]).max(axis=0),
        used=np.unique(np.concatenate([part.used for part in parts])),
        outermost=np.unique(np.concatenate([part.outermost for part in parts])),
        shortest=waits.merge_shortest_calls(part.shortest for part in parts),
        lost_collectives=sum(part.lost_collectives for part in parts),
        lost_messages=sum(part.lost_messages for part in parts),
        torn=False,
    )


def _latest_ends(calls: Calls, chosen: IntArray, count: int) -> FloatArray:
    """Return the latest end of the chosen calls in each location, -inf without any."""
    latest: FloatArray = np.full(count, -np.inf)
    np.maximum.at(latest, calls.location[chosen], calls.end_s[chosen])
    return latest


def _find_user_regions(
    found: MatchedWindow, role: IntArray, started_s: FloatArray, *, last: bool
) -> tuple[IntArray, ...]:
    """Return for each synchronization the user regions entered before it, and after start-up, in a process."""
    trace, calls = found.window.trace, found.calls
    process = locations.processes_of_locations(trace)
    begin: FloatArray = np.full(int(process.max(initial=0)) + 1, -np.inf)
    np.maximum.at(begin, process, started_s)
    user = np.flatnonzero((role == Role.USER) & (calls.anchor < 0) & ~found.window.is_continued(calls))
    user = user[calls.start_s[user] >= begin[process[calls.location[user]]]]
    leaves = phases.compute_leave_times(trace, calls, found.closing)
    instance = phases.instances_at(leaves, calls.location[user], calls.start_s[user])
    count = len(found.closing) + last
    pairs, _ = number_values(instance * len(trace.regions) + calls.region[user], (count + 1) * len(trace.regions))
    edges = np.searchsorted(pairs, np.arange(count + 1) * len(trace.regions))
    return tuple(pairs[edges[k] : edges[k + 1]] - k * len(trace.regions) for k in range(count))
