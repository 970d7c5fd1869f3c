"""From a directory of Markdown to a site: every warning is an error, and nothing comes from elsewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a browser would fetch by itself; links that somebody has to follow are none.
_FETCHED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["'](?:https?:)?//[^"']*|"""
                      r"""<link\b[^>]*?\bhref=["'](?:https?:)?//[^"']*""")  # fmt: skip
_IMPORTED = re.compile(r"""(?:@import\s+|url\()["']?(?:https?:)?//[^"')]*""")


def build(source: Path, folder: Path) -> int:
    """Build the site in ``folder``; returns 0, or 1 where Sphinx warned of anything or a page needs the network."""
    from sphinx.cmd.build import main as sphinx

    with TemporaryDirectory() as doctrees:
        strict = ["-W", "--keep-going", "-q", "-j", "auto", "-d", doctrees]
        failed = sphinx(["-b", "html", "-c", str(Path(__file__).parent), *strict, str(source), str(folder)])
    outside = list(from_elsewhere(folder))
    for complaint in outside:
        print(complaint, file=sys.stderr)
    return 1 if failed or outside else 0


def from_elsewhere(folder: Path) -> Iterator[str]:
    """Yield what the pages and style sheets in ``folder`` would fetch from the network, with their names."""
    for pattern, searched in (("*.html", _FETCHED), ("*.css", _IMPORTED)):
        for path in sorted(folder.rglob(pattern)):
            for found in searched.findall(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(folder)}: {found}"
