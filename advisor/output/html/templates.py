"""Templates filled: text of any origin in, a sound page out that loads nothing, and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from advisor import __version__
from advisor.model.errors import AdvisorError
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from jinja2 import Environment

#: What stands in every page that is made here.
MARK: Final = '<meta name="generator" content="gapwatch">'
#: Code points that stand for no character.
_ENDS: Final = "".join(chr(plane << 16 | end) for plane in range(17) for end in (0xFFFE, 0xFFFF))
_FORBIDDEN: Final = re.compile(f"[\ufdd0-\ufdef{_ENDS}]")


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
