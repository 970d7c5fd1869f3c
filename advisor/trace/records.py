"""Data on a trace window, or on the whole run, before its seconds are attributed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.clock_constraints import ClockConstraints
    from advisor.trace.matching import Collectives, Messages
    from advisor.trace.nesting import Calls
    from advisor.trace.teams import ThreadTeams
    from advisor.trace.waits import ShortestCalls
    from advisor.trace.windows import TraceWindow


@dataclass(frozen=True, slots=True)
class MatchedWindow:
    """A window with its calls, which of them belong together, and those in which all processes synchronize.

    ``closing`` (k, locations) holds the calls of the synchronizations, -1 where a location takes no part.
    """

    window: TraceWindow
    calls: Calls
    collectives: Collectives
    messages: Messages
    teams: ThreadTeams
    closing: IntArray


@dataclass(frozen=True, slots=True)
class RunSurvey:
    """The survey of a window, or of the whole run, before its seconds are attributed.

    ``closing_region`` and ``closing_end_s`` (k, locations) tell the synchronizations (-1 and -inf where a location
    takes no part), ``inside`` the user regions entered before each of them; of the run's end it has one more.
    ``started_s``, ``stopping`` and ``stopping_s`` (locations,) say when start-up was over (-inf unknown), and in which
    region and when the shutdown begins (-1 and inf unknown); ``done_s`` when the last call was over. ``used``
    are the regions that were entered, ``outermost`` those that were called by nobody. It is ``torn`` where partners are
    missing that could have been cut off.
    """

    constraints: ClockConstraints
    closing_region: IntArray
    closing_end_s: FloatArray
    inside: tuple[IntArray, ...]
    started_s: FloatArray
    stopping: IntArray
    stopping_s: FloatArray
    done_s: FloatArray
    used: IntArray
    outermost: IntArray
    shortest: ShortestCalls
    lost_collectives: int
    lost_messages: int
    torn: bool
