"""What other programs did to a run: seconds that look like imbalance and waiting, and are neither.

A thread that is ready to run and has no core holds up whoever waits for it. The program can't be blamed for more
waiting than the longest delay of each instance of a phase, so that a gap is known only down to what is left without it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from advisor.model.records import OTHER_PROGRAMS, Profile
from advisor.model.units import format_seconds
from advisor.support.grouping import iterate_groups
from advisor.trace.counts import UNDISTURBED_TRANSFER

#: Counts, in the row of the program: the longest delay of each instance of a phase, summed up; the run-queue delay of
#: each thread, and the part of it in calls for input and output; what the machine's cores did for others; and the
#: imbalance that a second run may not show: all seconds.
LONGEST_DELAY, QUEUE_DELAY, TAKEN = "delay.longest_s", "delay.queue_s", "delay.taken_s"
IO_DELAY: Final = "delay.io_s"
UNREPEATED: Final = "delay.unrepeated_s"
#: The note of a run that was compared with a second one.
REPEATED: Final = "second run"
#: Counts, in the row of the program: the cores that each process may use, in the column of its first thread.
BOUND_CORES: Final = "cores.bound"
#: The seconds in which a processor had a core or waited for one, where whoever waits for anything else sleeps.
BUSY: Final = "cores.busy_s"
#: Gaps that such delays lengthen; computation is measured by CPU clocks, and the rest is not waited for. Input and
#: output are lengthened by what delays their calls.
DISTURBED_GAPS: Final = frozenset({"C'", "L", "M'", "D", "S'", "W"})
#: Gaps that cores of different speed make as well: caches, memory and clocks are shared, and pages lie as they may.
UNEVEN_GAPS: Final = frozenset({"L", "M'", "D", "W"})
#: By so much of the computation equal work may differ from one run to the next, the slowest processor from the mean
#: (docs/recording.md).
SPEED_SHARE: Final = 0.1
#: Where no more is known than sums over the run, its processors crowd the cores that are busy for so much of it.
_CROWDED: Final = 0.75
#: Less of the run does not matter.
_LEAST_SHARE: Final = 0.01
#: A rank whose processors compute less than this share of what others do on average takes no part in the work.
_IDLE_SHARE: Final = 0.05


def has_free_cores(profile: Profile) -> bool:
    """Return whether it was seen that hardly more processors want a core at a time than there are cores.

    A recording tells this from what its threads did at each time: their delays are other programs' doing then.
    """
    if LONGEST_DELAY in profile.counts:
        return True
    return (
        BUSY in profile.counts
        and float(profile.counts[BUSY].sum()) < _CROWDED * (profile.cores or 0) * profile.actual_s
    )


def count_idle_processors(profile: Profile) -> int:
    """Return the processors of ranks that compute next to nothing, as a master does who only hands out work.

    Such ranks give up their cores while they wait (Open MPI lets ranks yield where they share cores); with fewer ranks
    there would be one less of those that compute.
    """
    if not profile.has_measure("cpu_s"):
        return 0
    taken = profile.sum_by_region("cpu_s").sum(axis=0)
    ranks = np.array([processor.rank for processor in profile.processors])
    idle = [team for _, team in iterate_groups(ranks) if taken[team].mean() < _IDLE_SHARE * taken.mean()]
    return sum(len(team) for team in idle)


def disturbance_seconds(profile: Profile) -> float:
    """Return the seconds of a gap that other programs may have made; 0 where they are few, or were not measured."""
    table = profile.counts.get(LONGEST_DELAY)
    if table is not None:
        seconds = float(table.sum())
    elif OTHER_PROGRAMS in profile.outside:
        seconds = float(profile.outside[OTHER_PROGRAMS].max())
    else:
        return 0.0
    return seconds if seconds >= _LEAST_SHARE * profile.actual_s else 0.0


def doubtful_seconds(
    profile: Profile, gap: str, share: float = 1.0, *, proven_s: float = 0.0, seconds: float | None = None
) -> float:
    """Return the seconds of a gap, by its letter, that need not come back in another run.

    In a part of the run with this ``share`` of its computation cores differ by so much less; a delay may be anywhere.
    What CPU clocks have ``proven_s`` of the gap's ``seconds`` is in no doubt (``proven_imbalance``).
    """
    if gap == "O":
        return _io_delay_seconds(profile) + min(_blocked_seconds(profile), disturbance_seconds(profile))
    if gap not in DISTURBED_GAPS:
        return 0.0
    table = profile.counts.get(UNREPEATED)
    uneven_s = float(table.sum()) if table is not None and gap in UNEVEN_GAPS else 0.0
    doubted_s = disturbance_seconds(profile) + share * uneven_s
    if seconds is not None and proven_s > 0:  # what differs between cores is no part of that either
        doubted_s = min(doubted_s, max(seconds - proven_s, 0.0))
    return doubted_s


def undisturbed_seconds(profile: Profile) -> float:
    """Return how long the run would have taken without the other programs that held its cores, as far as that is known.

    Computation is measured without them, and gaps are known down to what is left without them (``doubtful_seconds``):
    shares of the whole run would shrink with the machine's load. Their time outside the phases is known, and what
    every processor spent in the run queue. Processors that need each other all the time get on only while all of them
    have a core: if they have it independently, with delays d(q) of a run T, for T x prod(1 - d(q) / T); in the rest
    those that have one poll. It takes at least what it computes, transfers (as equal calls prove), starts and ends.
    """
    taken, queued = profile.outside.get(OTHER_PROGRAMS), profile.counts.get(QUEUE_DELAY)
    lost_s = float(taken.max()) if taken is not None else 0.0
    if queued is None or not disturbance_seconds(profile):
        return max(profile.actual_s - lost_s, 0.0)
    delays = queued.sum(axis=0)
    together_s = profile.actual_s * float(np.prod(np.clip(1.0 - delays / profile.actual_s, 0.0, 1.0)))
    left_s = profile.actual_s - max(lost_s, float(delays.min()))
    return max(min(left_s, max(together_s, _least_seconds(profile))), 0.0)


def taken_share(profile: Profile) -> float | None:
    """Return what others took of all cores of the run's hosts; a measure over the whole life of the first process."""
    table, hosts = profile.counts.get(TAKEN), len({processor.host for processor in profile.processors})
    available_s = (profile.cores or 0) * hosts * profile.actual_s
    return float(table.sum()) / available_s if table is not None and available_s > 0 else None


def _least_seconds(profile: Profile) -> float:
    """Return what the run computes, transfers, starts and ends, whatever else there is to wait for."""
    certain = [float(phase.arrays["cpu_s"].sum()) for phase in profile.phases if "cpu_s" in phase.arrays]
    transferred = profile.counts.get(UNDISTURBED_TRANSFER)
    certain += [] if transferred is None else [float(transferred.sum())]
    around = sum(float(seconds.min()) for name, seconds in profile.outside.items() if name != OTHER_PROGRAMS)
    return sum(certain) / len(profile.processors) + around


def _io_delay_seconds(profile: Profile) -> float:
    """Return the mean seconds that processors were without a core in I/O calls; 0 if they are few."""
    table = profile.counts.get(IO_DELAY)
    seconds = float(table.sum()) / len(profile.processors) if table is not None else 0.0
    return seconds if seconds >= _LEAST_SHARE * profile.actual_s else 0.0


def _blocked_seconds(profile: Profile) -> float:
    """Return the mean seconds that processors were off their cores and in no call."""
    lost = [float(phase.arrays["os_s"].sum()) for phase in profile.phases if "os_s" in phase.arrays]
    return max(sum(lost), 0.0) / len(profile.processors)


def delayed_io_share(profile: Profile) -> float:
    """Return the share of all I/O time in which the processor had no core, as far as known (0 to 1)."""
    table = profile.counts.get(IO_DELAY)
    spent = sum(float(phase.arrays["io_s"].sum()) for phase in profile.phases if "io_s" in phase.arrays)
    return 0.0 if table is None or spent <= 0 else min(float(table.sum()) / spent, 1.0)


def describe_disturbance(seconds: float) -> str:
    """Return what such seconds mean for imbalance and waiting."""
    return f"up to {format_seconds(seconds)} of imbalance, waiting and communication are theirs"
