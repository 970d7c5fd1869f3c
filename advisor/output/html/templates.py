"""Templates filled: text of any origin in, a sound page out that loads nothing, and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from advisor import __version__
from advisor.model.errors import AdvisorError
from advisor.output import numbers
from advisor.output.clean import clean_text
from advisor.output.text_cells import shorten_text
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from jinja2 import Environment

    from advisor.model.records import Advice, Gap, Share

#: What stands in every page that is made here.
MARK: Final = '<meta name="generator" content="gapwatch">'
#: Code points that stand for no character.
_ENDS: Final = "".join(chr(plane << 16 | end) for plane in range(17) for end in (0xFFFE, 0xFFFF))
_FORBIDDEN: Final = re.compile(f"[\ufdd0-\ufdef{_ENDS}]")
#: Rows of each attribution; the JSON document has them all.
_ROWS = 25


#: Longer text loses its middle: so many characters of it are shown, and a page lists so many of such names in full.
_BRIEF, _LONG_NAMES, _IN_FULL = 240, 20, 10_000


def render_template(template: str, content: Mapping[str, Any]) -> str:
    """Return the page that a template makes of its content; raises ``AdvisorError`` without the library for that."""
    style, script = (_read_part(name) for name in ("page.css", "timeline.js"))
    known = {
        "style": _SafeHtml(style),
        "style_hash": _compute_hash(style),
        "script": _SafeHtml(script),
        "script_hash": _compute_hash(script),
        "version": __version__,
        "mark": _SafeHtml(MARK),
    }
    text = _load_environment().get_template(template).render(content, **known) + "\n"
    # whatever encoding it is written or served in: all else is a character reference
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _read_part(name: str) -> str:
    return (files("advisor.output") / "html" / name).read_text("utf-8")


def _compute_hash(text: str) -> str:
    """Return what the policy of a page calls its one style, or its one script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


@cache
def _load_environment() -> Environment:
    """Return what reads the templates, each once."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise AdvisorError(f"pages need matplotlib and jinja2: {install_line('html')}") from error
    return Environment(
        loader=PackageLoader("advisor.output", "html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_escape_forbidden,
    )


def _escape_forbidden(value: object) -> object:
    """Return text without the code points that HTML forbids: they become visible escapes."""
    if not isinstance(value, str) or hasattr(value, "__html__") or value.isascii():
        return value
    return _FORBIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), value)


def mark_safe(text: str) -> str:
    """Return trusted text that a template must not escape: paths, and JSON without ``<``."""
    return _SafeHtml(text)


class _SafeHtml(str):
    """Text of our own that is HTML already."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def clean_and_shorten(text: str) -> str:
    """Return text cleaned, without the middle of what is too long."""
    return shorten_text(clean_text(text[: 4 * _IN_FULL]), _BRIEF)


def find_long_names(advice: Advice) -> list[str]:
    """Return the names of programs, regions, files and causes that lose their middle on the page, cleaned."""
    profile = advice.profile
    shares = [share for gap in advice.gaps for share in (*gap.regions[:_ROWS], *gap.causes[:_ROWS])]
    names = [profile.program, profile.build or ""]
    names += [name or "" for share in shares for name in (share.name, share.phase, share.file)]
    for item in advice.recommendations:
        names += [name or "" for name in (item.region, item.phase, *item.more_phases, item.file)]
    long = [clean_text(name[:_IN_FULL]) for name in dict.fromkeys(names) if len(name) > _BRIEF]
    return long[:_LONG_NAMES]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table whose cells are text, fit for a page."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def build_grid(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Grid:
    """Return a table with cleaned cells."""
    return Grid(
        clean_and_shorten(title),
        tuple(map(clean_and_shorten, heads)),
        tuple(tuple(map(clean_and_shorten, row)) for row in rows),
    )


def build_gap_grids(gap: Gap) -> list[Grid]:
    """Return where the seconds of a gap are: by region, by processor, by iteration and by cause."""
    kinds = (
        ("region", gap.regions),
        ("processor", gap.processors),
        ("iteration", gap.iterations),
        ("cause", gap.causes),
    )
    return [_build_share_grid(kind, shares) for kind, shares in kinds if shares]


def _build_share_grid(kind: str, shares: Sequence[Share]) -> Grid:
    shown = sorted(shares, key=lambda share: -abs(share.seconds))[:_ROWS]
    rows = [
        (share.name, share.kind or "", share.phase or "", _format_place(share), numbers.format_duration(share.seconds))
        for share in shown
    ]
    left = len(shares) - len(shown)
    title = f"By {kind}" + (f" (and {left} smaller ones)" if left else "")
    heads = (kind, "kind", "phase", "place", "seconds")
    filled = [at for at in range(len(heads)) if any(row[at] for row in rows)]
    return build_grid(title, [heads[at] for at in filled], [[row[at] for at in filled] for row in rows])


def _format_place(share: Share) -> str:
    if not share.file:
        return ""
    return f"{share.file}:{share.line}" if share.line else share.file
