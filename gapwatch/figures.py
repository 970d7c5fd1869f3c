"""Advice in notebooks: the waterfall of bounds as a figure, and the page of a run in a frame."""

from __future__ import annotations

import html
import textwrap
from typing import TYPE_CHECKING, Final

from advisor.model.errors import AdvisorError
from advisor.output.wording import describe_gap, find_base_bound
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from advisor.model.records import Advice
    from gapwatch.runs import Run

_ROW_INCHES, _WIDTH_INCHES = 0.32, 8.0
#: Characters in a line of what stands beside a bar: that of merged gaps names them all.
_LABEL: Final = 36
#: Height of the frame in a notebook, in pixels; the page scrolls in it.
_FRAME_HEIGHT: Final = 640


def draw_waterfall(advice: Advice) -> Figure:
    """Return bars from the lowest known bound over the gaps to the run time, seconds; estimates are hatched.

    The figure belongs to no window, so that it needs no display. Raises ``AdvisorError`` without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise AdvisorError(f"plots need matplotlib: {install_line('html')}") from error
    base = find_base_bound(advice)
    known = {bound.name: bound.seconds for bound in advice.bounds if bound.seconds is not None}
    rows: list[tuple[str, float, float, str]] = []
    if base is not None and base.seconds is not None:
        rows.append((base.name, 0.0, base.seconds, base.status))
    for gap in advice.gaps:
        words = textwrap.fill(f"{gap.name}  {_escape_math(describe_gap(gap))}", _LABEL)
        rows += [(words, known.get(gap.lower, 0.0), gap.seconds, gap.status)]
    lines = sum(1 + name.count("\n") for name, *_ in rows)
    figure = Figure(figsize=(_WIDTH_INCHES, _ROW_INCHES * (lines + 3)), layout="constrained")
    axes = figure.add_subplot()
    for number, (_, left, width, status) in enumerate(rows):
        color = "0.75" if number == 0 else "tab:red" if width < 0 else "tab:blue"
        hatch = None if status == "measured" else "//"
        axes.barh(number, width, left=left, color=color, hatch=hatch, edgecolor="white")
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axes.invert_yaxis()
    axes.set_xlabel("seconds (hatched: estimated or modelled)")
    axes.set_title(_escape_math(advice.profile.program))
    return figure


def _escape_math(text: str) -> str:
    """Return text that matplotlib draws as it stands: names of programs and regions are no formulas."""
    return text.replace("$", r"\$")


def frame_page(run: Run) -> str:
    """Return HTML that shows the advice on a run inside another page: a sandboxed frame, or text without the extra."""
    try:
        page = run.to_html()
    except AdvisorError:
        return f"<pre>{html.escape(run.to_text())}</pre>"
    return (
        f'<iframe sandbox srcdoc="{html.escape(page, quote=True)}" '
        f'style="width:100%;height:{_FRAME_HEIGHT}px;border:1px solid #8888"></iframe>'
    )
