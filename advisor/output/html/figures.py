"""Pictures of a page, each with its numbers as a table for those who cannot see it.

The timeline is a picture of paths, one for each kind of seconds; a script tells about a cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from advisor.model.reports import Bars, HeatMap, Line, Picture, count_values
from advisor.model.timeline import KINDS, Timeline
from advisor.output import numbers
from advisor.output.html.charts import DARK, LIGHT, draw_picture
from advisor.output.html.templates import Grid, build_grid, clean_and_shorten

#: All pictures of a page together, as they stand in it.
PICTURES_B: Final = 800_000

#: Rows and columns of the table behind a picture, and how many numbers a picture may hold.
_ROWS, _COLUMNS, _MOST = 200, 65, 5_000
#: The units of the picture: its width, the height of a row, and how much of it is filled.
WIDTH: Final = 200_000
ROW: Final = 10
_FILLED: Final = 9
#: Columns of the table for those who cannot see the picture: the phases with the most seconds.
_PHASES: Final = 12
_LEAD: Final = (
    "from the first phase to the last, a row for each rank. Within a phase the seconds of a kind stand together: it is "
    "known how many there are, not drawn when they were."
)
_DEVICE_LEAD: Final = (
    "of hosts, devices, streams and network. What is not computation on a device is a gap, in the colour of its level; "
    "communication in the row of the network may be covered by computation. Within a column the seconds of a kind "
    "stand together."
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture for light and for dark pages, and its numbers."""

    title: str
    light: str
    dark: str
    table: Grid
    omitted_rows: int


def build_figure(part: Picture) -> Figure:
    """Return the picture of a part of a report; of one that is too large, or empty, only the numbers."""
    heads, rows = _tabulate_part(part)
    shown = build_grid("", heads[:_COLUMNS], [row[:_COLUMNS] for row in rows[:_ROWS]])
    left = sum(map(len, rows)) - sum(map(len, shown.rows))
    light, dark = (draw_picture(part, LIGHT), draw_picture(part, DARK)) if 0 < count_values(part) <= _MOST else ("", "")
    return Figure(clean_and_shorten(part.title), light, dark, shown, left)


def build_figures(parts: Sequence[Picture], limit: int) -> list[Figure]:
    """Return the pictures as far as all of them have room in ``limit`` characters; of the others only the numbers."""
    found = []
    for part in parts:
        made = build_figure(part)
        size = len(made.light) + len(made.dark)
        found.append(made if size <= limit else replace(made, light="", dark=""))
        limit -= size if size <= limit else 0
    return found


def _tabulate_part(part: Picture) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the head and the rows of a table that holds the numbers of a part."""
    if isinstance(part, HeatMap):
        cells = [[_format_value(cell, part.unit) for cell in row] for row in part.cells]
        return ("", *part.columns), [[name, *row] for name, row in zip(part.rows, cells, strict=True)]
    if isinstance(part, Bars):
        rows = [(bar.name, _format_value(bar.value, part.unit), _format_interval(bar.low, bar.high, part.unit),
        bar.note)
                for bar in part.bars]  # fmt: skip
        return ("", "value", "interval", ""), [*rows]
    spread = any(line.low for line in part.lines)
    heads = ("line", part.x.name, part.y.name, "interval")
    points = [
        (
            line.name,
            numbers.format_axis_value(x, part.x),
            _format_value(y, part.y.unit),
            _format_interval(low, high, part.y.unit),
        )
        for line in part.lines
        for x, y, low, high in _iterate_points(line)
    ]
    return (heads, [*points]) if spread else (heads[:-1], [point[:-1] for point in points])


def _iterate_points(line: Line) -> Iterable[tuple[float, float | None, float | None, float | None]]:
    nothing: tuple[None, ...] = (None,) * len(line.x)
    return zip(line.x, line.y, line.low or nothing, line.high or nothing, strict=True)


def _format_interval(low: float | None, high: float | None, unit: str) -> str:
    return (
        ""
        if low is None or high is None
        else f"{numbers.format_value(low, unit)} to {numbers.format_value(high, unit)}"
    )


def _format_value(value: float | None, unit: str) -> str:
    return "-" if value is None else numbers.format_value(value, unit)


@dataclass(frozen=True, slots=True)
class TimelineFigure:
    """What a template needs: a path for each kind, names of rows, the data of the script, and the sums as a table."""

    width: int
    height: int
    paths: tuple[tuple[str, str, str], ...]
    rows: tuple[str, ...]
    span: str
    folded: str
    data: str
    table: Grid
    title: str = "Ranks over time"
    lead: str = _LEAD


def build_timeline_figure(timeline: Timeline) -> TimelineFigure:
    """Return the picture of a timeline."""
    paths = tuple(
        (f"kind-{at}", name, _draw_kind(timeline, at))
        for at, name in enumerate(timeline.kinds)
        if timeline.seconds[..., at].any()
    )
    rows = tuple(map(clean_and_shorten, timeline.rows))
    height = ROW * len(rows)
    span = numbers.format_duration(timeline.span_s)
    title, lead = ("Ranks over time", _LEAD) if timeline.kinds == KINDS else ("Devices over time", _DEVICE_LEAD)
    return TimelineFigure(
        WIDTH, height, paths, rows, span, _describe_folding(timeline), _build_data(timeline), _build_table(timeline),
        title, lead,
    )  # fmt: skip


def _edges(timeline: Timeline) -> tuple[np.ndarray, np.ndarray]:
    """Return where each segment begins and ends, (rows, columns, kinds), in units of the picture.

    The seconds of a cell stand beside each other in the order of its kinds; what takes longer than its column, by an
    error of clocks, is squeezed into it.
    """
    starts = np.array([column.start_s for column in timeline.columns])
    lengths = np.array([column.duration_s for column in timeline.columns])
    sums = np.cumsum(timeline.seconds, axis=2)
    sums = sums * (lengths[None, :] / np.maximum(sums[..., -1], lengths[None, :]))[..., None]
    ends = np.rint((starts[None, :, None] + sums) / timeline.span_s * WIDTH).astype(int)
    first = np.broadcast_to(np.rint(starts / timeline.span_s * WIDTH).astype(int)[None, :, None], ends[..., :1].shape)
    begins = np.concatenate([first, ends[..., :-1]], axis=2)
    return begins, ends


def _draw_kind(timeline: Timeline, kind: int) -> str:
    """Return the path of one kind: a rectangle for each stretch, neighbours joined."""
    begins, ends = _edges(timeline)
    parts: list[str] = []
    for row in range(len(timeline.rows)):
        spans: list[list[int]] = []
        for begin, end in zip(begins[row, :, kind].tolist(), ends[row, :, kind].tolist(), strict=True):
            if end <= begin:
                continue
            if spans and spans[-1][1] >= begin:
                spans[-1][1] = end
            else:
                spans.append([begin, end])
        parts += [f"M{begin} {row * ROW}h{end - begin}v{_FILLED}H{begin}z" for begin, end in spans]
    return "".join(parts)


def _describe_folding(timeline: Timeline) -> str:
    instances = sum(column.instances for column in timeline.columns)
    texts = []
    if timeline.ranks_per_row > 1:
        texts.append(f"each row is the mean of {timeline.ranks_per_row} neighbouring ranks")
    if instances > len(timeline.columns):
        texts.append(f"{instances} instances of phases in {len(timeline.columns)} columns: short ones are combined")
    return "; ".join(texts)


def _build_data(timeline: Timeline) -> str:
    """Return what the script says of a cell, as JSON that can stand inside of a ``script`` element."""
    names = sorted({column.phase for column in timeline.columns})
    places = {name: at for at, name in enumerate(names)}
    document = {
        "span": timeline.span_s,
        "row": ROW,
        "rows": [clean_and_shorten(name) for name in timeline.rows],
        "phases": [clean_and_shorten(name) for name in names],
        "kinds": timeline.kinds,
        "columns": [
            [round(column.start_s, 9), round(column.duration_s, 9), places[column.phase], column.iteration,
             column.instances]
            for column in timeline.columns
        ],
        "cells": [[[float(f"{value:.3g}") for value in cell] for cell in row] for row in timeline.seconds.tolist()],
        "causes": [
            [one.row, places[one.phase], clean_and_shorten(one.partner), float(f"{one.seconds:.3g}")]
            for one in timeline.causes
            if one.phase in places
        ],
    }  # fmt: skip
    return json.dumps(document, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")


def _build_table(timeline: Timeline) -> Grid:
    """Return the seconds by phase and kind, the means over the rows, and the row that waits longest.

    Of a run with devices the seconds of each row.
    """
    if timeline.kinds != KINDS:
        sums_by_row = timeline.seconds.sum(axis=1).tolist()
        lines = [
            (row, *map(numbers.format_duration, each)) for row, each in zip(timeline.rows, sums_by_row, strict=True)
        ]
        return build_grid("Seconds of each row", ("row", *timeline.kinds), lines)
    names = list(dict.fromkeys(column.phase for column in timeline.columns))
    columns = {name: [at for at, column in enumerate(timeline.columns) if column.phase == name] for name in names}
    sums = {name: timeline.seconds[:, at].sum(axis=1) for name, at in columns.items()}
    largest = sorted(names, key=lambda name: -float(sums[name].sum()))[:_PHASES]
    rows: list[Sequence[str]] = []
    for name in (name for name in names if name in largest):
        waiting = sums[name][:, -1]
        means = [numbers.format_duration(float(value)) for value in sums[name].mean(axis=0)]
        worst = int(waiting.argmax())
        longest = f"{timeline.rows[worst]}: {numbers.format_duration(float(waiting[worst]))}" if waiting.any() else ""
        rows.append((name, *means, longest))
    return build_grid("Seconds of a rank by phase, mean over all", ("phase", *KINDS, "waits longest"), rows)
