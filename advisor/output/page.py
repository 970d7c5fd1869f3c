"""The page that text is written for: its width, its characters, its colours."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from io import StringIO
from typing import TYPE_CHECKING, Literal

from advisor.output.clean import clean_text

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
