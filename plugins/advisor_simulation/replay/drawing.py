"""The time line of a replayed run as a picture (SVG): what each rank does when, and where the critical path runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

import numpy as np

from advisor.model import units
from advisor.model.errors import UsageError
from advisor.model.reports import Text
from advisor.support.atomic_write import atomic_write
from advisor_simulation.replay.outcome_report import spread_intervals
from advisor_simulation.replay.program import Op
from advisor_simulation.replay.waits import operation_starts

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.outcome import ReplayOutcome

#: Columns of time, and rows of ranks at most; more ranks share rows.
COLUMNS: Final = 1000
ROWS: Final = 64
_LEFT, _TOP, _ROW, _GAP = 90, 46, 14, 3
#: States in the order of their rows, with colours that differ in brightness as well.
STATES: Final = (("computation", "#3b6ea5"), ("communication", "#f2c14e"), ("waiting", "#c8553d"))
_PATH_COLOUR: Final = "#111111"


def write_picture(found: ReplayOutcome, path: Path) -> Text:
    """Write the picture, and say so; raises ``UsageError`` where that fails."""
    try:
        with atomic_write(path) as partial:
            partial.write_text(draw_timeline(found), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--picture {path}: {error.strerror or error}") from None
    return Text(f"The time line is drawn in {path.name}.")


def draw_timeline(found: ReplayOutcome) -> str:
    """Return the picture: of each row and column of time the state that takes most of it."""
    ranks = found.program.ranks
    rows = min(ranks, ROWS)
    row = np.arange(ranks) * rows // max(ranks, 1)
    height = _TOP + rows * (_ROW + _GAP) + 34
    title = f"{found.program.title or 'replay'}: {units.format_seconds(found.time_s)} on {ranks} ranks"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + COLUMNS + 20}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<text x="{_LEFT}" y="16" font-size="14">{escape(title)}</text>',
        *_draw_legend(found),
        *_draw_names(row, rows),
        *_draw_bars(compute_shares(found, row, rows)),
        *_draw_axis(found.time_s, height - 22),
        *_draw_critical_path(found, row),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def compute_shares(found: ReplayOutcome, row: IntArray, rows: int) -> FloatArray:
    """Return (states, rows, columns): the part of each column that the ranks of a row spend in each state."""
    program, width = found.program, max(found.time_s, 1e-300) / COLUMNS
    begin, end = operation_starts(program, found.end_s), found.end_s
    waited = begin + found.waits.seconds
    computes = program.op == Op.BURST
    result = np.zeros((len(STATES), rows, COLUMNS))
    for state, low, high, chosen in (
        (0, begin, end, computes),
        (1, waited, end, ~computes),
        (2, begin, waited, ~computes),
    ):
        at = np.flatnonzero(chosen & (high > low))
        result[state] = spread_intervals(row[program.rank[at]], low[at] / width, high[at] / width, rows, COLUMNS)
    result /= np.bincount(row, minlength=rows)[None, :, None]
    return result


def _draw_bars(parts: FloatArray) -> list[str]:
    """Return a rectangle for each stretch of columns with one state; where nothing happens there is none."""
    state = np.where(parts.sum(axis=0) > 0.5, parts.argmax(axis=0), -1)
    drawn = []
    for row, line in enumerate(state):
        edges = np.flatnonzero(np.r_[True, line[1:] != line[:-1], True])
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if line[low] >= 0:
                drawn.append(_draw_rectangle(_LEFT + low, _row_top(row), high - low, STATES[int(line[low])][1]))
    return drawn


def _draw_rectangle(x: int, y: int, width: int, colour: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{_ROW}" fill="{colour}"/>'


def _row_top(row: int) -> int:
    return _TOP + row * (_ROW + _GAP)


def _draw_legend(found: ReplayOutcome) -> list[str]:
    drawn, x = [], _LEFT
    for name, colour in STATES:
        drawn += [_draw_rectangle(x, 24, 14, colour), f'<text x="{x + 19}" y="36">{name}</text>']
        x += 130
    if found.path is not None:
        drawn.append(f'<line x1="{x}" y1="31" x2="{x + 14}" y2="31" stroke="{_PATH_COLOUR}" stroke-width="2"/>')
        drawn.append(f'<text x="{x + 19}" y="36">critical path</text>')
    return drawn


def _draw_names(row: IntArray, rows: int) -> list[str]:
    drawn = []
    for each in range(rows):
        ranks = np.flatnonzero(row == each)
        name = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]}-{ranks[-1]}"
        drawn.append(f'<text x="{_LEFT - 6}" y="{_row_top(each) + 11}" text-anchor="end">{name}</text>')
    return drawn


def _draw_axis(time_s: float, y: int) -> list[str]:
    drawn = []
    for tick in range(6):
        x = _LEFT + tick * COLUMNS // 5
        words = units.format_seconds(tick * time_s / 5)
        drawn.append(f'<line x1="{x}" y1="{_TOP}" x2="{x}" y2="{y}" stroke="#999999" stroke-width="0.5"/>')
        drawn.append(f'<text x="{x}" y="{y + 16}" text-anchor="middle">{escape(words)}</text>')
    return drawn


def _draw_critical_path(found: ReplayOutcome, row: IntArray) -> list[str]:
    """Return the critical path as a line from rank to rank; corners closer than half a column are left out."""
    if found.path is None or not len(found.path.op):
        return []
    path = found.path
    ends = path.begin_s + np.cumsum(path.seconds)
    x = _LEFT + np.r_[path.begin_s, ends] * COLUMNS / max(found.time_s, 1e-300)
    y = _TOP + row[np.r_[path.rank[:1], path.rank]] * (_ROW + _GAP) + _ROW / 2
    moved = (np.diff(y, prepend=np.nan) != 0) | (np.diff(y, append=np.nan) != 0)
    kept = moved & np.r_[True, np.diff(np.round(2 * x)) + np.abs(np.diff(y)) > 0]
    kept[-1] = True
    corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[kept].tolist(), y[kept].tolist(), strict=True))
    return [f'<polyline points="{corners}" fill="none" stroke="{_PATH_COLOUR}" stroke-width="1.5"/>']
