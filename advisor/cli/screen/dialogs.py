"""What opens over the screen: a text to read, the keys, and the question why an item is suppressed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static

from advisor.cli.screen.page_view import PageView
from advisor.output.page import render_heading, render_paragraph
from advisor.output.text_cells import make_line, pad_text, wrap_text

if TYPE_CHECKING:
    from rich.text import Text
    from textual.app import ComposeResult
    from textual.events import DescendantFocus

    from advisor.output.page import Page

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_KEY: Final = 16


class TextScreen(ModalScreen[None]):
    """Lines over the whole screen, until Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back"),
        Binding("j", "scroll('down')", show=False),
        Binding("k", "scroll('up')", show=False),
    ]

    def __init__(self, page: Page, draw_lines: Callable[[Page], list[Text]], name: str = "text") -> None:
        super().__init__(name=name)
        self._draw_lines = draw_lines
        self.view = PageView(page)

    def compose(self) -> ComposeResult:
        """Yield the lines and the keys."""
        yield self.view
        yield Static("", id="said", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show the lines; they can be scrolled at once."""
        self.view.show_lines(self._draw_lines)
        self.view.focus()

    def show_lines(self, draw_lines: Callable[[Page], list[Text]]) -> None:
        """Show other lines from now on."""
        self._draw_lines = draw_lines
        if self.is_mounted:
            self.view.show_lines(draw_lines)

    def action_scroll(self, where: str) -> None:
        """Scroll by a line."""
        (self.view.scroll_down if where == "down" else self.view.scroll_up)(animate=False)


class ItemScreen(TextScreen):
    """One item in full, with the keys that hold for it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "app.mark_item('acknowledged')", "Acknowledge"),
        Binding("s", "app.mark_item('suppressed')", "Suppress"),
        Binding("p", "app.mark_item('applied')", "Applied"),
        Binding("x", "app.explain_item", "Explain"),
    ]


class Suppression(NamedTuple):
    """Until which day an item is suppressed (None: for good), and why."""

    until: str | None
    reason: str | None


class ReasonDialog(ModalScreen[Suppression | None]):
    """Asks until when an item is suppressed, and why; None where nothing is to be done."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def compose(self) -> ComposeResult:
        """Yield the fields."""
        with Vertical():
            yield Static("Suppress this item", classes="label", markup=False)
            yield Input(placeholder="Reason (may be empty)", id="reason")
            yield Input(placeholder="Until, as 2027-01-31 (empty: for good)", id="until")
            yield Static("", id="wrong", classes="wrong", markup=False)
            yield Static("", id="hint", classes="label", markup=False)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say what Enter does in the field."""
        what = "goes to the day" if event.widget.id == "reason" else "suppresses the item"
        self.query_one("#hint", Static).update(f"Enter {what}, Escape cancels.")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next field, or hand back what was said."""
        reason, until = (self.query_one(f"#{name}", Input) for name in ("reason", "until"))
        if event.input is reason:
            self.set_focus(until)
            return
        day = until.value.strip()
        wrong = find_day_problem(day)
        if wrong:
            self.query_one("#wrong", Static).update(wrong)
            return
        self.dismiss(Suppression(day or None, reason.value.strip() or None))


def find_day_problem(day: str) -> str:
    """Return what is wrong with a day of the future, or nothing; an empty one is right."""
    if not day:
        return ""
    try:
        known = date.fromisoformat(day) if _DAY.fullmatch(day) else None
    except ValueError:
        known = None
    if known is None:
        return "Expected a day such as 2027-01-31."
    return "" if known >= datetime.now(UTC).date() else "Expected a day of the future."


def draw_help(keys: Sequence[tuple[str, str]], page: Page) -> list[Text]:
    """Return what each key does, and what the signs mean."""
    lines = render_heading("Keys", page)
    for key, words in keys:
        first, *more = wrap_text(words, max(_KEY, page.prose_width - _KEY))
        lines.append(make_line((pad_text(key, _KEY), "bold"), first))
        lines += [make_line(line, indent=_KEY) for line in more]
    for title, text in (
        ("Programs", "slower and faster: by more than the noise of repeated runs, since the build before; unsure: too "
         "few runs to tell; no repeat: no build ran more than once, so that the noise is unknown. The line of signs "
         "shows the run times of the newest runs, from the least to the most; ? is a run without times."),
        ("Mouse", "Click on a program, an item or a tab; the wheel scrolls. Hold Shift to select text of the "
         "terminal."),
        ("Screen readers", "t turns bars and lines of signs into sentences. gapwatch watch --format lines writes a "
         "line for each event, and nothing is ever drawn over."),
    ):  # fmt: skip
        lines += [make_line(), *render_heading(title, page), *render_paragraph(page.clean_remark(text), page)]
    return lines
