"""The elements of every page: headings, paragraphs, lists, and commands to copy.

Texts given to these functions are already fit for the page (``Page.name``, ``Page.remark``, ``Page.prose``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from advisor.output.text_cells import make_line, pad_text, wrap_text

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.output.page import Page


def render_heading(title: str, page: Page, aside: str = "") -> list[Text]:
    """Return the title of a section, with a remark at the right end of its line where there is room."""
    room = page.frame_width - cell_len(title)
    if aside and room >= cell_len(aside) + 2:
        return [make_line((title, "bold"), (pad_text(aside, room, "right"), "dim"))]
    return render_paragraph(title, page, "bold") + render_paragraph(aside, page, "dim")


def render_paragraph(text: str, page: Page, style: str = "", indent: int = 0) -> list[Text]:
    """Return the wrapped lines of a text; none for an empty one."""
    return (
        [make_line((part, style), indent=indent) for part in wrap_text(text, page.prose_width - indent)] if text else []
    )


def render_bullet(text: str, page: Page) -> list[Text]:
    """Return one entry of a list."""
    parts = wrap_text(text, page.prose_width - 2)
    return [make_line("- " if not at else "  ", part) for at, part in enumerate(parts)]


def render_command(label: str, command: str, page: Page, indent: int = 0) -> Text:
    """Return a command on one line of its own, never broken, so that it can be copied."""
    return make_line((label, "dim"), (page.clean_name(command), "bold"), indent=indent)
