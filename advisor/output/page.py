"""The page that text is written for: its width, its characters, its colours; and what stands on every page.

Texts given to the functions that make headings, paragraphs, lists and commands to copy are already fit for the page
(``Page.name``, ``Page.remark``, ``Page.prose``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from io import StringIO
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len

from advisor.output.clean import clean_text
from advisor.output.text_cells import make_line, pad_text, wrap_text

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

#: Below this width tables become lists: columns would leave no room for the names in them.
LIST_BELOW = 60
#: Prose and bars wider than this are hard to read, however wide the page is; tables of names use all of it.
PROSE_WIDTH = 110
FRAME_WIDTH = 140
#: Nothing is wrapped or shortened to less than this.
NARROWEST = 20
#: Typographic signs of our own prose, for pages that cannot carry them.
_PLAIN = str.maketrans(
    {
        "…": "...", "–": "-", "—": "-", "−": "-", "·": "-", "×": "x", "≥": ">=", "≤": "<=", "≠": "!=", "≈": "~",
        "→": "->", "‘": "'", "’": "'", "“": '"', "”": '"', "′": "'", "\u00a0": " ", "µ": "u", "μ": "u", "²": "^2",
        "³": "^3", "∑": "sum", "Σ": "sum",
    }
)  # fmt: skip
_GAPS = re.compile(r"[ \t\r\n]+")


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs that a page is drawn with; ``shades`` from light to dark, ``dots`` where a cell can hold 2 x 4 dots."""

    full: str
    left_half: str
    right_half: str
    thin: str
    ellipsis: str
    arrow: str
    dash: str
    from_here: str
    to_here: str
    cross: str
    shades: str
    rise: str
    corner: str
    dots: str


UNICODE = Signs(
    full="█", left_half="▌", right_half="▐", thin="▏", ellipsis="…", arrow="◂", dash="─", from_here="├", to_here="┤",
    cross="┼", shades="░▒▓█", rise="│", corner="└", dots="⣿",
)  # fmt: skip
ASCII = Signs(
    full="#", left_half="#", right_half="#", thin="|", ellipsis="...", arrow="<", dash="-", from_here="[", to_here="]",
    cross="+", shades=".:+#", rise="|", corner="+", dots="",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """Width in terminal cells, the encoding of the stream, and what the reader asked for."""

    width: int = 120
    encoding: str = "utf-8"
    color: bool = False
    verbose: bool = False
    lists: bool = False

    @property
    def signs(self) -> Signs:
        """Block graphics where the encoding has them, else ASCII."""
        try:
            "".join(astuple(UNICODE)).encode(self.encoding)
        except UnicodeEncodeError:
            return ASCII
        return UNICODE

    @property
    def as_list(self) -> bool:
        """Whether columns and bars become sentences: the page is too narrow for them, or its reader wants ``lists``."""
        return self.lists or self.width < LIST_BELOW

    @property
    def frame_width(self) -> int:
        """The width of headings, bars and titles, in cells."""
        return max(NARROWEST, min(self.width, FRAME_WIDTH))

    @property
    def prose_width(self) -> int:
        """The width that sentences are wrapped to, in cells."""
        return max(NARROWEST, min(self.width, PROSE_WIDTH))

    def clean_name(self, text: str) -> str:
        """``text`` as a name of the profile appears on this page: verbatim, or visibly escaped."""
        return clean_text(text, self.encoding)

    def clean_remark(self, text: str) -> str:
        """``text`` as one line of ours that may hold names; typographic signs become ASCII where they must."""
        return clean_text(text if self.signs is UNICODE else text.translate(_PLAIN), self.encoding)

    def clean_prose(self, text: str) -> str:
        """``text`` without names, such as a paragraph of a rule: its lines are joined."""
        return self.clean_remark(_GAPS.sub(" ", text.strip()))


def render_lines(lines: Iterable[Text], page: Page) -> str:
    """Return the lines as one string, with colours where the page has them; nothing is cut or wrapped."""
    if not page.color:
        return "".join(f"{line.plain.rstrip()}\n" for line in lines)
    from rich.console import Console

    stream = StringIO()
    console = Console(
        file=stream,
        force_terminal=True,
        color_system="standard",
        width=page.width,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        no_color=False,
        _environ={},
    )
    for line in lines:
        console.print(line, soft_wrap=True)
    return stream.getvalue()


def make_live_display(page: Page) -> Live:
    """Return a display that draws lines on the whole terminal and restores its contents at the end."""
    from rich.console import Console
    from rich.live import Live

    colors: Literal["auto"] | None = "auto" if page.color else None
    console = Console(
        markup=False, emoji=False, highlight=False, legacy_windows=False, color_system=colors, no_color=not page.color
    )  # fmt: skip
    return Live(console=console, screen=True, auto_refresh=False)


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
