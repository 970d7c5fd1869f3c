"""Which build is it? The commit of a source tree, with a mark of what was changed since."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

#: How long git may take (seconds), and how many digits tell commits and changes apart.
_PATIENCE_S: Final = 20.0
_DIGITS: Final = 12
_MARK: Final = 8


def of_source(root: Path) -> str | None:
    """Return the build of the source tree at ``root``: its commit, and a hash of the changes where there are any.

    None where ``root`` is in no git repository, there is no commit yet, or no git. Files that git does not track
    are no part of a build.
    """
    head = _git(root, "rev-parse", "--verify", "HEAD")
    if head is None:
        return None
    commit = head.decode("ascii", "replace").strip()[:_DIGITS]
    changes = _git(root, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--")
    if not changes:
        return commit
    return f"{commit}+{hashlib.blake2b(changes, digest_size=_MARK // 2).hexdigest()}"


def _git(root: Path, *arguments: str) -> bytes | None:
    """Return what git says; None where it fails. Nothing of the repository's own configuration is run."""
    command = ["git", "-C", str(root), "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    try:
        made = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return made.stdout if made.returncode == 0 else None
