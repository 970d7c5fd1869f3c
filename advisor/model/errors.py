"""The tree of errors.

    AdvisorError                 anything we can explain to the user; ``exit_code`` 2
    ├── InputError               a profile or trace that cannot be read: file, place, reason
    │   └── UnknownFormatError   no reader recognizes the path
    ├── DocumentError            mistakes in YAML documents (rules, machines), all of them at once
    ├── UsageError               a command line that asks for something impossible
    ├── ClusterError             workers of a cluster that cannot do their part: which, and why
    ├── PluginError              a plugin that failed; only its own result is lost
    └── StoreError               a history that cannot be opened, read or written

``GateCrossed`` (exit code 1) is no error: a ``--fail-on`` condition came true.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class AdvisorError(Exception):
    """Base of every error that ends in one clear message instead of a traceback.

    What another program said about it, line by line, follows as notes (``add_note``).
    """

    exit_code = 2


class InputError(AdvisorError):
    """A profile or trace that cannot be read; says which file, where in it, and why."""

    def __init__(self, path: Path | str, reason: str, place: str | None = None) -> None:
        self.path = Path(path)
        self.reason = reason
        self.place = place
        where = f"{path}:{place}" if place else str(path)
        super().__init__(f"{where}: {reason}")

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str | None]]:
        """Come over from another process as what it is."""
        return type(self), (str(self.path), self.reason, self.place)


class UnknownFormatError(InputError):
    """No reader recognizes what lies at the path."""


class UsageError(AdvisorError):
    """A command line that asks for something impossible; says what to type instead."""


class ClusterError(AdvisorError):
    """Workers of a cluster that cannot do their part; says which of them, why, and what to do."""


class PluginError(AdvisorError):
    """A plugin that raised or returned something that is not what its hook promises."""


class StoreError(AdvisorError):
    """A history that cannot be opened, read or written; says which, and what to do."""


class GateCrossed(AdvisorError):
    """A ``--fail-on`` condition came true; the message is the reason."""

    exit_code = 1


class Problem(NamedTuple):
    """One mistake in a document: place (1-based line and column) and message."""

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message}"


class DocumentError(AdvisorError):
    """Every mistake found in one or more YAML documents, in the order of their places."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))
