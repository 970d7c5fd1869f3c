"""Pieces of Markdown, with nothing in them that could be taken for markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SIGNS = re.compile(r"([\\`*_\[\]<>#|~$])")


def plain(text: str) -> str:
    """Return ``text`` as one line that Markdown shows as it is."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return a code span, also of text with backticks in it, for the cell of a table too."""
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def block(text: str, language: str = "") -> str:
    """Return a code block."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; nothing where there are no rows."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join((f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines, "")) if lines else ""


def link(words: str, page: str) -> str:
    """Return a link to a page, by its path relative to the page it stands on."""
    return f"[{words}]({page})"


def page(title: str, *parts: str) -> str:
    """Return a page; parts that are empty are left out."""
    return "\n".join((f"# {title}\n", *(part for part in parts if part)))


def aside(text: str) -> str:
    """Return a page that stands in no table of contents: it is found from its list, by links and by searching."""
    return f"---\norphan: true\n---\n\n{text}"


def contents(entries: Iterable[str], caption: str = "") -> str:
    """Return a table of contents that is shown in the navigation alone."""
    named = f":caption: {caption}\n" if caption else ""
    return f"```{{toctree}}\n:hidden:\n{named}\n" + "\n".join(entries) + "\n```\n"
