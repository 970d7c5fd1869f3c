"""Untrusted text on its way to a screen: the one door for names that come from profiles, traces and plugins.

They may hold anything: control characters, terminal commands, signs that reverse the reading direction, markup. What
comes out of ``clean_text`` is verbatim or visibly escaped.

In the log of a CI job some lines are commands of its runner: GitHub Actions reads ``::error file=…::`` at the beginning
of a line; it, Azure Pipelines and TeamCity read ``##[…]``, ``##vso[…]`` and ``##teamcity[…]`` wherever they stand. A
program or a function of that name must not forge an annotation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

#: Unicode categories without a picture of their own: controls, formats (bidi, zero width), surrogates, separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: Set where a runner reads the log.
_RUNNERS: Final = ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", "GITEA_ACTIONS", "FORGEJO_ACTIONS")
_LINE_COMMAND: Final = re.compile(r"^(\s*):(?=:[A-Za-z][A-Za-z-]*(?:\s[^\n]*?)?::)", re.MULTILINE)
_INNER_COMMAND: Final = re.compile(r"#(?=#(?:\w*\[))")


def clean_text(text: str, encoding: str = "utf-8") -> str:
    """Return ``text`` with everything a terminal would act on, or the encoding lacks, as a backslash escape.

    Cleaning twice changes nothing. Line ends count as control characters: one name stays one line.
    """
    if text.isascii() and text.isprintable():
        return text
    from unicodedata import category  # help is plain ASCII, and need not pay for it

    shown = "".join(
        character.encode("unicode_escape").decode("ascii") if category(character) in _HIDDEN else character
        for character in text
    )
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def escape_ci_commands(text: str, environ: Mapping[str, str]) -> str:
    """Return ``text`` without workflow commands of CI runners; unchanged outside CI.

    In JSON the first ``#`` becomes an escape of the same meaning; elsewhere a space is put behind the first sign.
    """
    if not any(environ.get(name) for name in _RUNNERS):
        return text
    if text.lstrip()[:1] in ("{", "["):
        return _INNER_COMMAND.sub(r"\\u0023", text)
    return _LINE_COMMAND.sub(r"\1: ", _INNER_COMMAND.sub("# ", text))
