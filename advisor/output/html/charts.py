"""Parts of a report drawn by matplotlib, as SVG pictures for light and dark pages."""

from __future__ import annotations

import base64
import io
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from advisor.model.errors import AdvisorError, UsageError
from advisor.model.reports import Axis, Bars, HeatMap, Line, Picture, Series
from advisor.output import numbers
from advisor.output.clean import clean_text
from advisor.support.atomic_write import atomic_write
from advisor.support.disk_cache import system_folder
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as Drawn
    from matplotlib.figure import Figure

#: Kinds of files that pictures are written into.
FILE_KINDS: Final = ("png", "svg")
_FONT_CACHE: Final = "MPLCONFIGDIR"
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "text.parse_math": False,
    "svg.hashsalt": "0",
}
_NAME: Final = 40
#: Cells in which the value is written, and those from which on they are drawn as points of a picture: it is smaller.
_WRITTEN: Final = 200
_CELLS: Final = 400
#: What else tells lines apart when the colours begin again.
_SIGNS: Final = "osD^vPX"
_STROKES: Final = ("-", "--", ":")
#: So many names stand below an axis.
_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class ChartTheme:
    """Colours of a page: its signs, and those that tell lines apart (by Okabe and Ito, also for the colour-blind)."""

    ink: str
    faint: str
    lines: tuple[str, ...]


LIGHT = ChartTheme("#1b1b1b", "#9a9a9a", ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#333333"))
DARK = ChartTheme("#e8e8e8", "#6f6f6f", ("#56b4e9", "#e69f00", "#2fc79b", "#e6a3c8", "#f0e442", "#cccccc"))


def draw_picture(part: Picture, theme: ChartTheme) -> str:
    """Return the part as a ``data:`` address of an SVG picture; raises ``AdvisorError`` without matplotlib."""
    return "data:image/svg+xml;base64," + base64.b64encode(_render_picture(part, theme, "svg")).decode("ascii")


def write_picture(part: Picture, path: Path) -> None:
    """Write the part into a PNG or SVG file, with its title, for paper and light pages.

    ``UsageError`` for another kind of file and for what cannot be written, ``AdvisorError`` without matplotlib.
    """
    kind = path.suffix[1:].lower()
    if kind not in FILE_KINDS:
        raise UsageError(f"{path.name} is neither a PNG nor an SVG file")
    drawn = _render_picture(part, LIGHT, kind, clean_text(part.title))
    try:
        with atomic_write(path) as partial:
            partial.write_bytes(drawn)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


@contextmanager
def _own_font_cache() -> Iterator[None]:
    """Have matplotlib keep what it knows of fonts where gapwatch may write, unless the user says where.

    It asks once, when it is imported; programs that are started later do not inherit the variable.
    """
    if _FONT_CACHE in os.environ:
        yield
        return
    folder = system_folder("cache") / "matplotlib"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        os.environ[_FONT_CACHE] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(_FONT_CACHE, None)


def _render_picture(part: Picture, theme: ChartTheme, kind: str, title: str = "") -> bytes:
    """Return the part as a picture; one with a title has a background, since it lies in a file of its own."""
    try:
        with _own_font_cache():
            import matplotlib as mpl
            from matplotlib.figure import Figure

            mpl.get_configdir()  # which keeps the answer
    except ImportError as error:
        raise AdvisorError(f"pictures need matplotlib: {install_line('html')}") from error
    with warnings.catch_warnings(), mpl.rc_context(_SETTINGS):
        warnings.simplefilter("ignore")  # of glyphs that only a browser has, of logarithms that there are none of
        figure = Figure(figsize=_figure_size(part), layout="constrained")
        axes = figure.subplots()
        _style_axes(axes, theme)
        if isinstance(part, HeatMap):
            _draw_heat_map(part, figure, axes, theme)
        elif isinstance(part, Bars):
            _draw_bars(part, axes, theme)
        else:
            _draw_series(part, axes, theme)
        if title:
            axes.set_title(title, color=theme.ink, fontsize=10)
        stream = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if kind == "svg" else None
        figure.savefig(stream, format=kind, transparent=not title, metadata=metadata)
    return stream.getvalue()


def _figure_size(part: Picture) -> tuple[float, float]:
    """Return width and height in inches."""
    if isinstance(part, HeatMap):
        return 8.0, min(1.6 + 0.22 * len(part.rows), 12.0)
    return 8.0, min(1.2 + 0.3 * len(part.bars), 12.0) if isinstance(part, Bars) else 3.6


def _style_axes(axes: Axes, theme: ChartTheme) -> None:
    axes.tick_params(colors=theme.ink, labelsize=8)
    for name, spine in axes.spines.items():
        spine.set_color(theme.faint)
        spine.set_visible(name in ("left", "bottom"))


def _draw_series(part: Series, axes: Axes, theme: ChartTheme) -> None:
    from matplotlib.ticker import MaxNLocator

    drawn = []
    for number, line in enumerate(part.lines):
        colour = theme.lines[number % len(theme.lines)]
        marker: dict[str, Any] = {
            "marker": _SIGNS[number % len(_SIGNS)],
            "markersize": 3 if len(line.x) < 60 else 0,
            "linestyle": _STROKES[number // len(theme.lines) % len(_STROKES)],
        }
        values = [math.nan if value is None else value for value in line.y]
        drawn += axes.plot(line.x, values, color=colour, lw=1.4 if line.joined else 0, **marker)
        _draw_band(line, axes, colour)
    axes.set_xscale(part.x.scale)
    if part.x.names:
        step = -(-len(part.x.names) // _NAMED)
        shown = range(0, len(part.x.names), step)
        axes.set_xticks(shown, [_shorten_name(part.x.names[at], 16) for at in shown], rotation=30, ha="right")
    elif part.x.scale == "linear" and all(float(x).is_integer() for line in part.lines for x in line.x):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_yscale(part.y.scale)
    _format_ticks(axes.yaxis, part.y)
    if not part.x.names:
        _format_ticks(axes.xaxis, part.x)
    axes.set_xlabel(clean_text(part.x.name), color=theme.ink, fontsize=9)
    axes.set_ylabel(clean_text(part.y.name), color=theme.ink, fontsize=9)
    if any(line.name for line in part.lines):
        # a name that begins with an underscore would be left out
        axes.legend(
            drawn,
            [f" {_shorten_name(line.name)}" for line in part.lines],
            fontsize=8,
            frameon=False,
            labelcolor=theme.ink,
        )


def _format_ticks(axis: Drawn, of: Axis) -> None:
    """Write the numbers of an axis with their units."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: numbers.format_value(value, of.unit)))
    axis.set_minor_formatter(NullFormatter())


def _draw_band(line: Line, axes: Axes, colour: str) -> None:
    if line.low and line.high:
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, lw=0)


def _draw_bars(part: Bars, axes: Axes, theme: ChartTheme) -> None:
    places = range(len(part.bars))
    axes.barh(places, [bar.value or 0.0 for bar in part.bars], color=theme.lines[0], height=0.6)
    for place, bar in enumerate(part.bars):
        if bar.low is not None and bar.high is not None:
            axes.plot([bar.low, bar.high], [place, place], color=theme.ink, lw=1.5)
    axes.set_yticks(places, [_shorten_name(bar.name) for bar in part.bars])
    axes.invert_yaxis()


def _draw_heat_map(part: HeatMap, figure: Figure, axes: Axes, theme: ChartTheme) -> None:
    from matplotlib.colors import CenteredNorm, Normalize

    cells = [[math.nan if cell is None else cell for cell in row] for row in part.cells]
    many = len(part.rows) * len(part.columns) > _CELLS
    norm = Normalize() if part.neutral is None else CenteredNorm(part.neutral)
    shown = axes.pcolormesh(cells, cmap="cividis" if part.neutral is None else "PuOr_r", norm=norm, rasterized=many)
    places = [at + 0.5 for at in range(len(part.columns))]
    axes.set_xticks(places, [_shorten_name(name) for name in part.columns], rotation=30, ha="right")
    axes.set_yticks([at + 0.5 for at in range(len(part.rows))], [_shorten_name(name) for name in part.rows])
    axes.invert_yaxis()
    bar = figure.colorbar(shown, ax=axes, pad=0.02)
    bar.ax.tick_params(colors=theme.ink, labelsize=8)
    if len(part.rows) * len(part.columns) <= _WRITTEN:
        _draw_values(part, axes)


def _draw_values(part: HeatMap, axes: Axes) -> None:
    """Write each value into its cell, black or white on a light shade behind it."""
    for y, row in enumerate(part.cells):
        for x, cell in enumerate(row):
            if cell is not None:
                text = numbers.format_value(cell, part.unit)
                box = {"facecolor": "#ffffff", "alpha": 0.7, "edgecolor": "none", "pad": 1}
                axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=7, color="#000000", bbox=box)


def _shorten_name(name: str, most: int = _NAME) -> str:
    shown = clean_text(name)
    return shown if len(shown) <= most else f"{shown[: most // 2]}…{shown[-most // 2 + 1 :]}"
