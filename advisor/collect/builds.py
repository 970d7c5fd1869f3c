"""Which build is it? The commit of a source tree, with a mark of what was changed since."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from advisor.support.child_process import run_child

if TYPE_CHECKING:
    from pathlib import Path

#: How long git may take (seconds), and how many digits tell commits and changes apart.
_PATIENCE_S: Final = 20.0
_DIGITS: Final = 12
_MARK: Final = 8
#: What a commit message says of advice that the commit carries out.
TRAILER: Final = "Gapwatch-Applied"
_ACTION: Final = re.compile(r"(?P<action>[A-Za-z]+-[A-Za-z0-9.-]+)(?:\s+(?P<region>.+))?")
_HEX: Final = re.compile(r"[0-9a-f]{7,64}")


def identify_build(root: Path) -> str | None:
    """Return the build of the source tree at ``root``: its commit, and a hash of the changes where there are any.

    None where ``root`` is in no git repository, there is no commit yet, or no git. Files that git does not track
    are no part of a build.
    """
    head = _run_git(root, "rev-parse", "--verify", "HEAD")
    if head is None:
        return None
    commit = head.decode("ascii", "replace").strip()[:_DIGITS]
    changes = _run_git(root, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--")
    if not changes:
        return commit
    return f"{commit}+{hashlib.blake2b(changes, digest_size=_MARK // 2).hexdigest()}"


def find_applied_actions(root: Path, build: str, before: str | None) -> tuple[tuple[str, str | None], ...]:
    """Return the actions that commits of a build say they carry out, each with its region (None: anywhere).

    A commit says so by a trailer such as ``Gapwatch-Applied: A-29 solve``. Asked are the commits after the build
    ``before``, or the last one alone where that is not among its ancestors.
    """
    last, first = _parse_commit(build), _parse_commit(before or "")
    if last is None:
        return ()
    follows = first is not None and _run_git(root, "merge-base", "--is-ancestor", first, last) is not None
    span = [f"{first}..{last}"] if follows else ["--max-count=1", last]
    said = _run_git(root, "log", f"--format=%(trailers:key={TRAILER},valueonly,unfold)", *span, "--")
    lines = (said or b"").decode("utf-8", "replace").splitlines()
    found = (_ACTION.fullmatch(line.strip()) for line in lines)
    return tuple(dict.fromkeys((one["action"], one["region"]) for one in found if one is not None))


def _parse_commit(build: str) -> str | None:
    """Return the commit that a build of ``identify_build`` names."""
    commit = build.partition("+")[0]
    return commit if _HEX.fullmatch(commit) else None


def _run_git(root: Path, *arguments: str) -> bytes | None:
    """Return what git says; None where it fails. Nothing of the repository's own configuration is run."""
    command = ["git", "-C", str(root), "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    made = run_child(command, _PATIENCE_S)
    return made.output if made.status == 0 else None
