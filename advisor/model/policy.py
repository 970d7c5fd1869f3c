"""Every threshold on which advice turns, with its reason. Shares are parts of one.

What measures (tolerances of clocks, limits of memory) stands where it is used; what decides stands here, and
``tests/model/test_policy.py`` has a case on each side of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from advisor.model.records import Status

# The serial rule (docs/traces.md)

#: An instance is serial when one process does at least this share of its work: one rank of twenty that does as much as
#: the others together still is not.
SERIAL_WORK: Final = 0.95
#: … and at least this share of what the others wait is spent in the call that closes it: those that mostly wait in the
#: middle exchange messages with the worker, which is a pipeline and no serial part.
SERIAL_CLOSING_WAIT: Final = 0.5
#: A phase is serial when at least this share of its time is in serial instances of one process: one that changes hands,
#: or is parallel now and then, could be balanced.
SERIAL_TIME: Final = 0.90

# Significance: what is too small to be looked at

#: Phases and savings below this share of the run are left out: nobody changes a program for less than 1 %.
PLACE_SHARE: Final = 0.01
#: … and those below this many seconds, which the start of a program takes already.
PLACE_SECONDS: Final = 1e-3
#: How unlikely a change between builds must be for unchanged builds, all gaps of a comparison taken together: a project
#: that compares each commit is misled once in a thousand.
CHANGE_PROBABILITY: Final = 1e-3
#: A change below this share of the run is not worth a word, however sure it is.
CHANGE_SHARE: Final = 0.01
#: A repeat was disturbed if it took longer than the fastest run of its build by so many times what is usual.
DISTURBED_RUN: Final = 4.0
#: A change of so many times its noise looks like one, though too few repeats may keep it from being called that.
UNDECIDED_CHANGE: Final = 3.0

# Evidence: the grade of a profile (docs/quality.md)

#: What each doubt takes off the score.
PENALTIES: Final = {
    "no run time": 1.0,
    "CPU time alone": 0.5,
    "device time alone": 0.5,
    "too short": 1.0,
    "impossible values": 1.0,
    "most processors missing": 1.0,
    "times exceed the run": 0.5,
    "ranks unlike": 0.5,
    "partners missing": 0.5,
    "processors missing": 0.45,
    "processors share cores": 0.3,
    "CPU time exceeds the cores": 0.3,
    "negative times": 0.3,
    "short phases": 0.2,
    "instances near the clock's resolution": 0.2,
    "clock uncertainty": 0.2,
    "negative gap": 0.2,
    "waiting unknown": 0.2,
    "no phases": 0.1,
    "one region": 0.1,
    "few iterations": 0.05,
    "cores unknown": 0.02,
}
#: Doubts about how the time outside of computation is told apart. Computation that CPU clocks measured is as good on a
#: busy machine and on shared cores, so together …
WAITING_DOUBTS: Final = frozenset({
    "other programs", "processors share cores", "threads share cores", "clock uncertainty", "waiting unknown",
    "instances near the clock's resolution", "few iterations", "no phases", "unmatched messages",
    "unmatched collectives",
})  # fmt: skip
#: … they take no more off the score than this: D at the worst, if nothing else is doubtful.
MOST_WAITING_DOUBT: Final = 0.35
#: The lowest score of each letter.
LETTERS: Final[tuple[tuple[Literal["A", "B", "C", "D", "F"], float], ...]] = (
    ("A", 0.9),
    ("B", 0.75),
    ("C", 0.6),
    ("D", 0.4),
    ("F", 0.0),
)
#: In a run shorter than this, starting and stopping decide.
SHORTEST_RUN_S: Final = 0.1
#: Shares of less CPU time than this say little: its usual samples of 10 ms are 20.
SHORTEST_CPU_TIME_S: Final = 0.2
#: The shortest recording of devices, which their profilers limit to a few iterations.
SHORTEST_DEVICE_RUN_S: Final = 0.01
#: Kernels that were counted one at a time, at a fixed clock, have no noise; to shorten one below this wins nothing.
SHORTEST_COUNTED_RUN_S: Final = 1e-3
#: Ranks of one run are there equally long; a unit that is wrong makes a factor of a thousand.
RANKS_UNLIKE: Final = 20.0
#: Samples miss what a rank waits without polling, so they may differ more.
RANKS_UNLIKE_SAMPLED: Final = 200.0
#: Ranks of MPI end together (MPI_Finalize): measured from start to end, they are as long to less than a quarter.
WHOLE_RANKS_UNLIKE: Final = 1.25
#: Differences of clock readings fall below zero by this much.
CLOCK_RESOLUTION_S: Final = 1e-6
#: An instance should last this many times the resolution, or its times are off by more than a tenth.
INSTANCE_RESOLUTIONS: Final = 10
#: More than this share of the time in shorter instances is a doubt about all.
SHORT_INSTANCES: Final = 0.5
#: Changes between iterations show from this many on.
FEWEST_ITERATIONS: Final = 3
#: Waiting of less than this share of the run needs no exact clock.
WAITING_SHARE: Final = 0.01
#: The error of the clocks may be this share of the waiting.
CLOCK_ERROR: Final = 0.25
#: Work in a single region of at least this share cannot be told apart.
ONE_REGION: Final = 0.95
#: Times may exceed the run, or a gap be negative, by this much …
TIME_SLACK_S: Final = 1e-3
#: … and this share of the run: tools begin and end at different points.
TIME_SLACK: Final = 0.01
#: Kernels that account CPU time by ticks may be off by one of each processor (seconds).
CPU_TICK_S: Final = 0.01

# The verdict (docs/quality.md)

#: A gap that merges imbalance and waiting, or that others may have made, may hold this share of the run before "nothing
#: significant" says too much.
MERGED_SHARE: Final = 0.1
#: A gap of which others may have made more than this share is no place to begin: most of it may not come back.
DOUBTFUL_GAP: Final = 0.5

# The score of an action, and the order (docs/rules.md)

#: How far seconds of each status can be believed.
STATUS_CERTAINTY: Final[Mapping[Status, float]] = {
    "measured": 1.0,
    "estimated": 0.8,
    "modelled": 0.7,
    "unavailable": 0.5,
}
#: The same for a gap of which only a limit is known.
LIMIT_CERTAINTY: Final = 0.5
#: Compiling with optimization comes before other changes from this share of their gain on: it is an option of the
#: compiler, and all that was measured of the program changes with it.
BUILD_FIRST: Final = 0.5
#: Of several places of one cause, the first with this share of the largest one's seconds is shown; items of one action
#: whose worth differs by no more stand in the order of their places. So noise does not choose.
NEAR_EQUAL: Final = 0.8
#: A phase with this share of a ceiling is named beside the one that is shown.
NAMED_PHASE: Final = 0.05
#: A region names a cause if it holds at least this share of its seconds: most of it is there.
DOMINANT_REGION: Final = 0.5
#: What a change counts that no simulation could try, beside those that win in one: as likely as not it wins nothing,
#: unless its kind has always won something where it was measured.
UNTRIED: Final = 0.5
#: From this share of the run on, what an action can win is a warning and not only a note: less is not what the run
#: spends its time on, and a comparison of a few runs hardly shows it.
NOTABLE_GAIN: Final = 0.05
#: The interval of a gain known from history holds the next gain with this probability.
GAIN_LEVEL: Final = 0.9
#: A repair of code won up to so many times the upper end of what its kind of code explains: what computes the same
#: thing at the place, moves it or calls it goes as well. Of 112 right first items on real programs the gain lay in the
#: interval of 59 %, mostly because it was larger; with this and …
REPAIR_REACH: Final = 1.3
#: … with this share of a simulated gain more or less, which a repair differs by from the change that was replayed, of
#: 80 % (docs/validation/programs.md, "A batch of faults that the list lacked").
REPAIR_SPREAD: Final = 0.3
#: Waiting inside a phase is put down to its middle if that much of W was waited there: most of it.
INNER_WAIT: Final = 0.5
#: From this share of the run on, computation has to be spoken of: it is most of it.
COMPUTATION_SHARE: Final = 0.5
#: A kind of code with a smaller share of the computation is not named.
CODE_KIND: Final = 0.1
