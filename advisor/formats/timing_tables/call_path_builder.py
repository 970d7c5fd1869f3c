"""Timing tables as call paths: below the run its rows, one column for each rank.

Where a table holds least, mean and most over the ranks, the columns are those that ``formats.rank_extremes`` makes:
the least imbalance that the table allows. Where it holds means alone, nothing is known about the balance, and a note
says so.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.quality import HIDDEN
from advisor.formats.rank_extremes import CALLS, Extremes, shortest_call_s, spread_over_ranks, sum_children
from advisor.formats.timing_tables.row_roles import classify_row
from advisor.formats.timing_tables.table import NOT_ON_CORE, OFF_CORE
from advisor.formats.timing_tables.unknown_balance import NOTHING_KNOWN, SHARE_KNOWN
from advisor.model.errors import InputError
from advisor.model.lists import join_clauses
from advisor.model.records import DEVICE_WAIT_S, RANKS_ADDED_UP, Note, Processor
from advisor.model.units import format_seconds, format_share
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from advisor.formats.timing_tables.table import TimingTable
    from advisor.model.records import FloatArray

_MONTHS: Final = {
    name: n
    for n, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], start=1
    )
}
_CLOCK: Final = r"(?P<hour>[ \d]\d):(?P<minute>[ \d]\d):(?P<second>[ \d]\d)"
_FORMS: Final = (
    re.compile(rf"(?P<year>\d{{4}})-(?P<number>\d\d)-(?P<day>\d\d)[ T]{_CLOCK}"),
    re.compile(rf"\w{{3}} (?P<month>\w{{3}}) +(?P<day>\d{{1,2}}) {_CLOCK} (?P<year>\d{{4}})"),
    re.compile(rf"(?P<day>[ \d]?\d)(?P<month>[A-Z][a-z]{{2}})(?P<year>\d{{4}}) {_CLOCK}"),
)

_MOST_RANKS: Final = 1 << 20
_MOST_CELLS: Final = 20_000_000
_MOST_ROWS: Final = 100_000
#: Times in tables have a few digits; by more than this share and seconds they contradict each other.
_SHARE: Final = 0.02
#: From this share of the run on it matters how much longer one rank is in a row than another.
_WIDE: Final = 0.01
_SLACK_S: Final = 2e-2
_TRACE_THREADS: Final = "OMP_NUM_THREADS={threads} scorep …"
_TRACE: Final = 'mpirun -n {ranks} eztrace -t "openmpi posixio" ./PROGRAM'


def build_call_paths(table: TimingTable, path: Path) -> CallPaths:
    """Return the call paths of ``table``; raises ``InputError`` for ``path`` where it holds no times."""
    if not table.rows or not table.wall_s > 0:
        raise InputError(path, "the timing table holds no times")
    ranks = _find_least_ranks(table) if table.ranks is None else table.ranks
    if not 1 <= ranks <= _MOST_RANKS or len(table.rows) > _MOST_ROWS or ranks * len(table.rows) > _MOST_CELLS:
        raise InputError(path, f"{ranks:,} ranks and {len(table.rows):,} rows are more than a timing table holds")
    nodes = _build_nodes(table)
    found = _collect_extremes(table, nodes, ranks)
    spread = ranks > 1 and any(row.is_spread_known for row in table.rows)
    shortest = None
    exact = ranks == 1 or all(row.ranks_s for row in table.rows)
    if spread and exact:
        wall = _compute_own_seconds(table, nodes, ranks)
    elif spread:
        wall, shortest = spread_over_ranks(found, nodes, ranks), _find_shortest_calls(table, found, nodes, ranks)
    else:
        own = np.maximum(found.mean - sum_children(found.mean, nodes), 0.0)
        wall = np.repeat(own[:, None], ranks, axis=1)
    return CallPaths(
        program=table.program,
        run=table.run or path.name,
        reader="timing_tables",
        processors=tuple(Processor(rank) for rank in range(ranks)),
        nodes=nodes,
        wall_s=wall,
        cpu_s=_find_cpu_seconds(table, wall),
        visits=_count_visits(table, ranks),
        shortest_s=shortest,
        waits=_collect_waits(table, wall),
        counts=_collect_counts(table, ranks),
        actual_s=max(table.wall_s, float(wall.sum(axis=0).max())),
        status="estimated" if table.averages_ranks or not exact else "measured",
        started=parse_start_time(table.started),
        language=table.language,
        ranks_expected=table.ranks,
        parameters=table.parameters,
        notes=(*table.notes, *_describe_ranks(table, ranks, spread), *_check_times(table)),
    )


def _build_nodes(table: TimingTable) -> tuple[CallPathNode, ...]:
    """Return the run, and below it the rows; parents precede their children.

    A rank that is alone has nobody to communicate with: what a program calls so is its own copying then.
    """
    root = CallPathNode(table.program or "not timed", Role.ROOT)
    roles = [classify_row(row.name) if row.role is None else row.role for row in table.rows]
    if table.ranks == 1 and not table.first_rank:
        alone = (role in CALLS and not row.for_device for row, role in zip(table.rows, roles, strict=True))
        roles = [Role.USER if copies else role for role, copies in zip(roles, alone, strict=True)]
    return root, *(
        CallPathNode(row.name, role, parent=row.parent + 1) for row, role in zip(table.rows, roles, strict=True)
    )


def _collect_extremes(table: TimingTable, nodes: tuple[CallPathNode, ...], ranks: int) -> Extremes:
    """Return least, mean and most of the nodes, on the safe side of what a table lacks.

    Of work the least is what mean and most leave for one rank. Of calls the least may be the mean and the most all that
    the ranks took together: so no rank is said to communicate less than another, and to work more, that may not have.
    """
    mean = np.array([table.wall_s, *(row.mean_s for row in table.rows)])
    shortest = table.wall_s if math.isnan(table.shortest_s) else table.shortest_s
    least = np.array([shortest, *(row.least_s for row in table.rows)])
    most = np.array([table.wall_s, *(row.most_s for row in table.rows)])
    calls = np.array([node.role in CALLS for node in nodes])
    fewest = np.nan_to_num(np.maximum(ranks * mean - (ranks - 1) * most, 0.0))  # where all others take the most
    least = np.where(np.isnan(least), np.where(calls, mean, fewest), least)
    most = np.where(np.isnan(most), np.where(calls, np.minimum(ranks * mean, table.wall_s), mean), most)
    least_at, most_at = (
        np.array([-1, *(rank if 0 <= rank < ranks else -1 for rank in stated)], dtype=np.int64)
        for stated in ([row.least_at for row in table.rows], [row.most_at for row in table.rows])
    )
    return Extremes(np.fmin(least, mean), mean, np.fmax(most, mean), least_at, most_at)


def _find_shortest_calls(
    table: TimingTable, found: Extremes, nodes: tuple[CallPathNode, ...], ranks: int
) -> FloatArray:
    """Return what calls take on the rank that is least in them, NaN where the table does not tell."""
    known = np.array([True, *(not math.isnan(row.least_s) for row in table.rows)])
    shortest: FloatArray = np.where(known[:, None], shortest_call_s(found, nodes, ranks), np.nan)
    return shortest


def _compute_own_seconds(table: TimingTable, nodes: tuple[CallPathNode, ...], ranks: int) -> FloatArray:
    """Return own seconds (nodes, ranks) of a table that holds those of each rank."""
    inclusive = np.array([(table.wall_s,) * ranks, *(row.ranks_s for row in table.rows)])
    below = np.zeros_like(inclusive)
    for number, node in enumerate(nodes):
        if node.parent >= 0:
            below[node.parent] += inclusive[number]
    own: FloatArray = np.maximum(inclusive - below, 0.0)
    return own


def _find_cpu_seconds(table: TimingTable, wall: FloatArray) -> FloatArray | None:
    """Return own CPU seconds (nodes, ranks) where the table tells what was not on a core, else None."""
    off = np.array([False, *(row.name == NOT_ON_CORE for row in table.rows)])
    return np.where(off[:, None], 0.0, wall) if off.any() else None


def _collect_waits(table: TimingTable, wall: FloatArray) -> dict[str, FloatArray]:
    """Return the seconds (nodes, ranks) that the library itself measured as waiting, by kind; empty without any.

    Of several ranks waiting for devices is not set apart: what else they wait for each other would then count as none.
    """
    alone = table.ranks == 1
    only_waits = np.array([False, *(row.only_waits or (alone and row.for_device) for row in table.rows)])
    return {"collective": np.where(only_waits[:, None], wall, 0.0)} if only_waits.any() else {}


def _count_visits(table: TimingTable, ranks: int) -> FloatArray | None:
    """Return the calls of each rank (nodes, ranks), None where the table lacks them for some rows."""
    calls = np.array([1.0, *(row.calls for row in table.rows)])
    if np.isnan(calls).any():
        return None
    takes_part = np.array([(1.0,) * ranks, *(row.ranks_s or (1.0,) * ranks for row in table.rows)]) > 0
    visits: FloatArray = calls[:, None] * takes_part  # a rank of another kind does not make the call
    return visits


def _collect_counts(table: TimingTable, ranks: int) -> dict[str, FloatArray]:
    """Return what else was counted (nodes, ranks), shared equally by the ranks."""
    rows = (table.counts, *(row.counts for row in table.rows))
    found = {
        name: np.repeat(np.array([row.get(name, 0.0) for row in rows])[:, None] / ranks, ranks, axis=1)
        for name in sorted({name for row in rows for name in row})
    }
    waits = np.array([0.0, *(row.mean_s if row.for_device else 0.0 for row in table.rows)])
    if table.ranks == 1 and waits.any():
        found[DEVICE_WAIT_S] = waits[:, None]
    return found


def _find_least_ranks(table: TimingTable) -> int:
    """Return how many ranks there were at the least: one takes the most of a row, and no rank less than nothing."""
    differ = [row for row in table.rows if row.most_s > row.mean_s or row.least_s < row.mean_s]
    needed = max((row.most_s / row.mean_s for row in differ if row.mean_s > 0 and row.most_s > 0), default=1.0)
    named = max((max(row.least_at, row.most_at) + 1 for row in table.rows), default=0)
    return max(int(np.ceil(needed - 1e-3)), named, 2 if differ else 1)


def _describe_ranks(table: TimingTable, ranks: int, spread: bool) -> Iterator[Note]:
    """Yield what the table leaves open about its ranks."""
    trace = _TRACE.format(ranks=ranks)
    if table.ranks is None and table.first_rank:
        text = "the times are those of all threads and processes together: what they wait for each other cannot be told"
        known = not math.isnan(table.off_core_share)
        yield Note(RANKS_ADDED_UP, text, SHARE_KNOWN if known else NOTHING_KNOWN, table.record_command)
    elif table.ranks is None and ranks == 1:
        text = "the table does not tell how many ranks there were, and holds no times of single ranks"
        yield Note(RANKS_ADDED_UP, text, NOTHING_KNOWN, "keep the whole output of the program, its first lines too")
    elif table.ranks is None:
        text = f"the table does not tell how many ranks there were; {ranks} are the fewest that its times allow"
        yield Note("number of ranks unknown", text, 0.1, "keep the whole output of the program, its first lines too")
    if spread and not all(row.ranks_s for row in table.rows):
        text = (
            "the table holds least, mean and most over the ranks: the imbalance shown is the least that these allow, "
            f"and which rank takes longest is not known{_describe_widest(table)}"
        )
        yield Note(RANKS_ADDED_UP, text, 0.2, trace)
    elif ranks > 1 and not spread:
        tells_io = table.first_rank and any(row.role == Role.IO and row.mean_s > 0 for row in table.rows)
        shares = (table.off_core_share, table.idle_share, _find_communication(table))
        tells = tells_io or not all(math.isnan(share) for share in shares)
        yield Note(RANKS_ADDED_UP, _describe_one_column(table), SHARE_KNOWN if tells else NOTHING_KNOWN, trace)
    elif table.idle_share >= OFF_CORE:
        text = f"{_describe_threads(table)}: which of them, and in which rows, is not known"
        yield Note(RANKS_ADDED_UP, text, SHARE_KNOWN, _TRACE_THREADS.format(threads=table.threads))
    roles = [classify_row(row.name) if row.role is None else row.role for row in table.rows]
    calls = [
        row
        for row, role in zip(table.rows, roles, strict=True)
        if role in CALLS and (row.parent < 0 or roles[row.parent] not in CALLS)
    ]
    nothing_known = ranks > 1 and not spread  # then waiting is not known at all
    open_calls = [row for row in calls if (table.averages_ranks or math.isnan(row.least_s)) and not row.only_waits]
    if nothing_known:
        pass
    elif ranks > 1 and any(row.mean_s > _SHARE * table.wall_s for row in open_calls):
        text = "what ranks wait in communication is not told from what communication takes"
        yield Note(HIDDEN, text, 0.1, trace)
    elif table.hides_waiting and ranks > 1:
        text = "timers of a program's own parts hold what it waits in calls of MPI below them: that counts as work here"
        yield Note(HIDDEN, text, 0.1, trace)
    if table.threads > 1 and not nothing_known and not table.idle_share >= OFF_CORE:
        text = f"each rank ran {table.threads} threads, and what they wait for each other counts as work of the rank"
        yield Note(HIDDEN, text, 0.1, _TRACE_THREADS.format(threads=table.threads))


def _describe_threads(table: TimingTable) -> str:
    """Return on how many cores the threads of the first rank were, in the mean."""
    used = (1.0 - table.idle_share) * table.threads
    return f"its {table.threads} threads were on {used:.3g} cores in the mean"


def _describe_widest(table: TimingTable) -> str:
    """Return in which row the ranks differ most, nothing where that is little of the run: others may wait elsewhere."""
    widest = max(table.rows, key=lambda row: np.nan_to_num(row.most_s - row.least_s))
    if not widest.most_s - widest.least_s > _WIDE * table.wall_s:
        return ""
    return f"; they differ most in {widest.name}: {format_seconds(widest.least_s)} to {format_seconds(widest.most_s)}"


def _describe_one_column(table: TimingTable) -> str:
    """Return what a table with the same seconds for all ranks does not tell, and what it does."""
    seconds = _find_communication(table)
    share = "" if math.isnan(seconds) else format_share(seconds / table.wall_s)
    if not table.first_rank:
        known = f" but that they wait or communicate {share} of the run in the mean" if share else ""
        return f"the table holds no times of single ranks{known}: how the work is spread over them cannot be told"
    known = f", which spends {share} of the run in communication" if share else ""
    if table.off_core_share >= OFF_CORE:
        known += f", which has no core for {format_share(table.off_core_share)} of the run"
    elif not math.isnan(table.off_core_share):
        known += ", which had a core all the time"
    if not math.isnan(table.idle_share):
        known += f"; {_describe_threads(table)}"
    return f"the times are those of the first rank alone{known}: how the work is spread over the others cannot be told"


def _find_communication(table: TimingTable) -> float:
    """Return what the mean (else: the first) rank communicates, NaN where rows that communicate do not stand apart.

    Where other rows hide waiting it is the least that it may be.
    """
    if not math.isnan(table.communication_s):
        return table.communication_s
    roles = [classify_row(row.name) if row.role is None else row.role for row in table.rows]
    own = [row.mean_s for row, role in zip(table.rows, roles, strict=True) if role in CALLS and row.parent < 0]
    return sum(own) if own and (sum(own) > 0 or not table.hides_waiting) else math.nan


def _check_times(table: TimingTable) -> Iterator[Note]:
    """Yield a note where the times contradict each other."""
    together = sum(row.mean_s for row in table.rows if row.parent < 0)
    doubts = []
    if together > table.wall_s * (1 + _SHARE) + _SLACK_S:
        doubts.append(f"the rows add up to {format_seconds(together)}, the run took {format_seconds(table.wall_s)}")
    below = [0.0] * len(table.rows)
    for row in table.rows:
        if row.parent >= 0:
            below[row.parent] += row.mean_s
        slack = _SHARE * row.mean_s + _SLACK_S
        if row.least_s > row.mean_s + slack or row.most_s < row.mean_s - slack:
            doubts.append(f"{row.name}: the mean is not between the least and the most")
        if row.most_s > table.wall_s * (1 + _SHARE) + _SLACK_S:
            doubts.append(f"{row.name} takes longer than the run")
    for row, seconds in zip(table.rows, below, strict=True):
        if seconds > row.mean_s * (1 + _SHARE) + _SLACK_S:
            doubts.append(f"what {row.name} contains takes longer than itself")
    if doubts:
        yield Note("contradictory times", join_clauses(doubts, 1), 0.3, "copy the output of the program again")


def parse_start_time(text: str | None) -> str | None:
    """Return ``text`` as ``YYYY-MM-DDThh:mm:ss``, None where it is no time of a form that is known."""
    for form in _FORMS:
        found = form.match((text or "").strip())
        if found is None:
            continue
        parts = found.groupdict()
        month = int(parts["number"]) if "number" in parts else _MONTHS.get(parts["month"])
        if month is None:
            return None
        day, hour, minute, second = (int(parts[name]) for name in ("day", "hour", "minute", "second"))
        return f"{parts['year']}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
    return None
