"""The words of a command line, and the variables that are set in front of them (``NAME=VALUE program``)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

_SETTING: Final = re.compile(r"[A-Za-z_]\w*=")


def split_line(line: object) -> tuple[list[str], list[str]]:
    """Return the settings of a command line and its other words; neither for what is none, or was cut short."""
    try:
        words = shlex.split(line) if isinstance(line, str) else []
    except ValueError:
        words = []
    return split_settings(words)


def split_settings(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the settings in front of a command, and its words."""
    settings = list(takewhile(_SETTING.match, words))
    return settings, list(words[len(settings) :])
