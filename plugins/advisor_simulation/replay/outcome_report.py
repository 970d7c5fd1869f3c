"""What is said about one replay, as parts of a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis import bounds as bounds_of
from advisor.analysis import gaps as gaps_of
from advisor.formats import native_writer
from advisor.model import units
from advisor.model.errors import UsageError
from advisor.model.reports import Bar, Bars, Column, HeatMap, Part, Table, Text
from advisor.trace.profile import from_trace
from advisor_simulation.replay import outcome, rebuilding
from advisor_simulation.replay.program import Op
from advisor_simulation.replay.waits import CAUSES, operation_starts

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray, Profile
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.outcome import ReplayOutcome

#: Rows of tables, and rows and columns of the picture of a run, at most.
ROWS: Final = 12
PICTURE: Final = (16, 10)


def build_parts(found: ReplayOutcome, as_recorded: bool) -> list[Part]:
    """Return run time, waits, critical path, time line, bounds and gaps."""
    parts: list[Part] = [Text(_describe_run(found, as_recorded)), _efficiency_table(found), _waiting_bars(found)]
    if found.path is not None:
        parts += [*_path_parts(found, as_recorded)]
    parts.append(build_timeline(found))
    parts += _bounds_table(found)
    return parts


def describe_network(network: Network) -> str:
    """Return a network in words."""
    bandwidth = "infinite bandwidth" if np.isinf(network.bandwidth) else f"{network.bandwidth / 1e6:g} MB/s"
    limits = [f"{units.format_count(network.links_in, 'link')} a node"] if network.links_in else []
    limits += [f"{network.buses} bus{'' if network.buses == 1 else 'es'}"] if network.buses else []
    return ", ".join([f"latency {units.format_seconds(network.latency_s)}", bandwidth, *limits])


def _describe_run(found: ReplayOutcome, as_recorded: bool) -> str:
    where = (
        "with the recorded times of its calls" if as_recorded else f"on a network of {describe_network(found.network)}"
    )
    measured = outcome.recorded_time_s(found.program)
    text = f"The run takes {units.format_seconds(found.time_s)} {where}"
    if measured is not None:
        text += f"; recorded were {units.format_seconds(measured)}"
    left_out = "".join(f" Left out: {each}." for each in found.program.left_out)
    return f"{text}. {len(found.program.op)} operations were replayed.{left_out}"


def _efficiency_table(found: ReplayOutcome) -> Table:
    mean, most = float(found.compute_s.mean()), float(found.compute_s.max(initial=0.0))
    whole = max(found.time_s, 1e-300)
    rows = (("load balance", mean / max(most, 1e-300)), ("communication", most / whole), ("parallel", mean / whole))
    return Table("Efficiencies of the replayed run", (Column("efficiency"), Column("value", "share")), rows)


def _waiting_bars(found: ReplayOutcome) -> Bars:
    waited = found.waits.sum_by_cause()
    transfer = float(found.waits.transfer_s.sum())
    bars = [
        Bar(f"waiting: {cause}", float(seconds)) for cause, seconds in zip(CAUSES, waited, strict=True) if seconds > 0
    ]
    title = "Time in communication, over all ranks"
    return Bars(title, "s", (*bars, Bar("startup and transfer", transfer)))


def _path_parts(found: ReplayOutcome, as_recorded: bool) -> list[Part]:
    path, program = found.path, found.program
    if path is None:
        return []
    names: dict[tuple[str, str], float] = {}
    for op, seconds in zip(path.op.tolist(), path.seconds.tolist(), strict=True):
        call = program.find_name(int(program.call[op]))
        region = program.find_name(int(program.region[op]))
        names[region, call] = names.get((region, call), 0.0) + seconds
    rows = sorted(((region, call, s, s / found.time_s) for (region, call), s in names.items()), key=lambda row: -row[2])
    columns = (Column("region"), Column("call"), Column("seconds", "s"), Column("share", "share"))
    title = "The critical path by region and call" + describe_limit(len(rows), ROWS)
    parts: list[Part] = [Table(title, columns, tuple(rows[:ROWS]))]
    if not as_recorded:
        parts.append(Text(
            f"Around this point T = {path.alpha:.9g} s + {path.beta:.10g} L + {path.gamma:.10g} B / BW: "
            f"{path.beta:,.6g} latencies and {path.gamma:,.0f} bytes are not overlapped."
        ))  # fmt: skip
    return parts


def describe_limit(count: int, shown: int) -> str:
    """Return what the title of a table adds where only its first rows are shown."""
    return f", the {shown} longest of {count}" if count > shown else ""


def build_timeline(found: ReplayOutcome) -> HeatMap:
    """Return how much of its time each rank computes, over the run; many ranks are combined."""
    rows, columns = min(found.program.ranks, PICTURE[0]), PICTURE[1]
    share = np.zeros((rows, columns))
    group = np.arange(found.program.ranks) * rows // max(found.program.ranks, 1)
    at = np.flatnonzero(found.program.op == Op.BURST)
    begin, end = operation_starts(found.program, found.end_s)[at], found.end_s[at]
    row = group[found.program.rank[at]]
    width = max(found.time_s, 1e-300) / columns
    share += spread_intervals(row, begin / width, end / width, rows, columns)
    share /= np.bincount(group, minlength=rows)[:, None]
    names = [np.flatnonzero(group == each) for each in range(rows)]
    titles = tuple(f"rank {each[0]}" if len(each) == 1 else f"ranks {each[0]}-{each[-1]}" for each in names)
    times = tuple(units.format_seconds((column + 0.5) * width) for column in range(columns))
    cells = tuple(tuple(float(cell) for cell in line) for line in np.clip(share, 0.0, 1.0))
    return HeatMap("Time line: share of computation", "share", titles, times, cells)


def spread_intervals(row: IntArray, begin: FloatArray, end: FloatArray, rows: int, columns: int) -> FloatArray:
    """Return (rows, columns): the length of the intervals in each column, widths of columns as unit."""
    whole = np.zeros((rows, columns + 1))
    part = np.zeros((rows, columns + 1))
    for edge, sign in ((begin, 1.0), (end, -1.0)):
        column = np.clip(edge.astype(np.int64), 0, columns - 1)
        np.add.at(part, (row, column), sign * (column + 1 - edge))
        np.add.at(whole, (row, column + 1), sign)
    result: FloatArray = (np.cumsum(whole, axis=1) + part)[:, :columns]
    return result


def build_profile(found: ReplayOutcome) -> Profile:
    """Return the profile of the replayed run; raises ``InputError`` where it holds none."""
    return from_trace(rebuilding.rebuild_trace(found.program, found.end_s), found.program.title, "replay")


def _bounds_table(found: ReplayOutcome) -> list[Part]:
    replayed = build_profile(found)
    levels = bounds_of.compute_bounds(replayed, None)
    gaps = gaps_of.attribute_gaps(replayed, levels)
    columns = (Column("bound"), Column("seconds", "s"), Column("gap below it"), Column("gap", "s"))
    of_gap = {gap.upper: gap for gap in gaps}
    rows = []
    for bound in levels:
        gap = of_gap.get(bound.name)
        if bound.seconds is not None:
            rows.append((bound.name, bound.seconds, gap.name if gap else None, gap.seconds if gap else None))
    return [Table("Bounds and gaps of the replayed run", columns, tuple(rows))]


def _mark_simulated(profile: Profile) -> Profile:
    """Return the profile of a replay, marked as simulated."""
    return replace(profile, status=dict.fromkeys(profile.status, "modelled"))


def export_profile(found: ReplayOutcome, path: Path) -> Text:
    """Write the replayed run as a profile, and say so; raises ``UsageError`` where that fails."""
    try:
        native_writer.write_profile(_mark_simulated(build_profile(found)), path)
    except OSError as error:
        raise UsageError(f"--export {path}: {error.strerror or error}") from None
    return Text(f"The replayed run is written to {path.name}; gapwatch advise reads it.")
