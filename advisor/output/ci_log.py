"""Text on its way to the log of a CI job, whose runner takes some lines for commands.

GitHub Actions reads ``::error file=…::`` at the beginning of a line; it, Azure Pipelines and TeamCity read ``##[…]``,
``##vso[…]`` and ``##teamcity[…]`` wherever they stand. A program or a function of that name must not forge an
annotation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

#: Set where a runner reads the log.
_RUNNERS: Final = ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", "GITEA_ACTIONS", "FORGEJO_ACTIONS")
_LINE_COMMAND: Final = re.compile(r"^(\s*):(?=:[A-Za-z][A-Za-z-]*(?:\s[^\n]*?)?::)", re.MULTILINE)
_INNER_COMMAND: Final = re.compile(r"#(?=#(?:\w*\[))")


def escape_ci_commands(text: str, environ: Mapping[str, str]) -> str:
    """Return ``text`` without workflow commands of CI runners; unchanged outside CI.

    In JSON the first ``#`` becomes an escape of the same meaning; elsewhere a space is put behind the first sign.
    """
    if not any(environ.get(name) for name in _RUNNERS):
        return text
    if text.lstrip()[:1] in ("{", "["):
        return _INNER_COMMAND.sub(r"\\u0023", text)
    return _LINE_COMMAND.sub(r"\1: ", _INNER_COMMAND.sub("# ", text))
