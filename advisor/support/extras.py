"""The optional parts of gapwatch, and how to install one."""

from __future__ import annotations

from typing import Literal

#: The extras of pyproject.toml that something in the code needs; ``all`` is all of them.
Extra = Literal["cluster", "fast", "html", "mcp", "postgres", "processor", "screen", "serve"]


def install_line(extra: Extra) -> str:
    """Return the command that installs what ``extra`` brings, quoted for any shell."""
    return f'pip install "gapwatch[{extra}]"'
