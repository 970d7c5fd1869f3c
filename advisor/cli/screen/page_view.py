"""A part of the screen that shows lines of a page, drawn anew for the width that it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.widgets import Static

from advisor.output.text_cells import join_lines

if TYPE_CHECKING:
    from rich.text import Text
    from textual.app import ComposeResult
    from textual.events import Resize

    from advisor.output.page import Page


class PageView(VerticalScroll, can_focus=True):
    """Scrolls over lines that ``draw_lines`` makes for a page; they are ``rich`` texts, so that no name is markup."""

    def __init__(self, page: Page, id: str | None = None) -> None:
        super().__init__(id=id)
        self._page = page
        self._draw_lines: Callable[[Page], list[Text]] = lambda page: []
        self._drawn: tuple[Page, object] | None = None
        self._static = Static()

    def compose(self) -> ComposeResult:
        """Yield the text."""
        yield self._static

    def on_resize(self, event: Resize) -> None:
        """Draw for the new width."""
        self._draw_again()

    def show_lines(self, draw_lines: Callable[[Page], list[Text]], page: Page | None = None) -> None:
        """Show other lines from now on."""
        self._draw_lines = draw_lines
        self._page = page or self._page
        self._draw_again()

    def _draw_again(self) -> None:
        width = self.scrollable_content_region.width
        if width > 0:
            page = replace(self._page, width=width)
            if self._drawn != (page, self._draw_lines):
                self._drawn = page, self._draw_lines
                self._static.update(join_lines(self._draw_lines(page)))
