"""What every page is made of: headings, paragraphs, lists, and commands to copy.

Texts given to these functions are already fit for the page (``Page.name``, ``Page.remark``, ``Page.prose``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from advisor.output.text import line, pad, wrap

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.output.page import Page


def heading(title: str, page: Page, aside: str = "") -> list[Text]:
    """Return the title of a section, with a remark at the right end of its line where there is room."""
    room = page.frame_width - cell_len(title)
    if aside and room >= cell_len(aside) + 2:
        return [line((title, "bold"), (pad(aside, room, "right"), "dim"))]
    return paragraph(title, page, "bold") + paragraph(aside, page, "dim")


def paragraph(text: str, page: Page, style: str = "", indent: int = 0) -> list[Text]:
    """Return the wrapped lines of a text; none for an empty one."""
    return [line((part, style), indent=indent) for part in wrap(text, page.prose_width - indent)] if text else []


def bullet(text: str, page: Page) -> list[Text]:
    """Return one entry of a list."""
    parts = wrap(text, page.prose_width - 2)
    return [line("- " if not at else "  ", part) for at, part in enumerate(parts)]


def to_copy(label: str, command: str, page: Page, indent: int = 0) -> Text:
    """Return a command on one line of its own, never broken, so that it can be copied."""
    return line((label, "dim"), (page.name(command), "bold"), indent=indent)
