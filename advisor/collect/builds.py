"""Which build is it? The commit of a source tree, with a mark of what was changed since."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.support.child_process import run_child

#: How long git may take (seconds), and how many digits tell commits and changes apart.
_PATIENCE_S: Final = 20.0
_DIGITS: Final = 12
_MARK: Final = 8
#: What a commit message says of advice that the commit carries out.
TRAILER: Final = "Gapwatch-Applied"
_ACTION: Final = re.compile(r"(?P<action>[A-Za-z]+-[A-Za-z0-9.-]+)(?:\s+(?P<region>.+))?")
#: Settings of a repository that say how its files are compared, and run nothing.
_HARMLESS: Final = (
    r"^(core\.(filemode|autocrlf|eol|safecrlf|symlinks|ignorecase|repositoryformatversion)|extensions\.objectformat)$"
)
_HEX: Final = re.compile(r"[0-9a-f]{7,64}")


def identify_build(root: Path) -> str | None:
    """Return the build of the source tree at ``root``: its commit, and a hash of the changes where there are any.

    None where ``root`` is in no git repository, there is no commit yet, or git cannot say. Files that git does not
    track are no part of a build, and of submodules only the commit is.
    """
    with _open_repository(root) as repository:
        if repository is None:
            return None
        changes = repository.run_git(
            "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "HEAD", "--"
        )
        if changes is None:
            return None
        commit = repository.commit[:_DIGITS]
        return f"{commit}+{hashlib.blake2b(changes, digest_size=_MARK // 2).hexdigest()}" if changes else commit


def find_applied_actions(root: Path, build: str, before: str | None) -> tuple[tuple[str, str | None], ...]:
    """Return the actions that commits of a build say they carry out, each with its region (None: anywhere).

    A commit says so by a trailer such as ``Gapwatch-Applied: A-29 solve``. Asked are the commits after the build
    ``before``, or the last one alone where that is not among its ancestors.
    """
    last, first = _parse_commit(build), _parse_commit(before or "")
    if last is None:
        return ()
    with _open_repository(root) as repository:
        if repository is None:
            return ()
        follows = first is not None and repository.run_git("merge-base", "--is-ancestor", first, last) is not None
        span = [f"{first}..{last}"] if follows else ["--max-count=1", last]
        said = repository.run_git("log", f"--format=%(trailers:key={TRAILER},valueonly,unfold)", *span, "--")
    lines = (said or b"").decode("utf-8", "replace").splitlines()
    found = (_ACTION.fullmatch(line.strip()) for line in lines)
    return tuple(dict.fromkeys((one["action"], one["region"]) for one in found if one is not None))


def _parse_commit(build: str) -> str | None:
    """Return the commit that a build of ``identify_build`` names."""
    commit = build.partition("+")[0]
    return commit if _HEX.fullmatch(commit) else None


@dataclass(frozen=True, slots=True)
class _Repository:
    """A repository seen through a directory of our own: its commits, index and files, and nothing of its configuration.

    Filters, hooks, monitors, signing programs and remotes are named in a configuration, and run when git is asked what
    changed. None of that is in ``folder``, which holds the commit that is checked out and says how files are compared.
    """

    commit: str
    folder: Path
    variables: Mapping[str, str]

    def run_git(self, *arguments: str) -> bytes | None:
        """Return what git says; None where it fails."""
        return _run_git(self.folder, arguments, self.variables)


@contextmanager
def _open_repository(root: Path) -> Iterator[_Repository | None]:
    """Give the repository that ``root`` is in; None where there is none, or no commit yet."""
    said = _run_git(root, ("rev-parse", "--show-toplevel", "--git-path", "objects", "--git-path", "index", "HEAD"))
    lines = os.fsdecode(said or b"").splitlines()
    if len(lines) != 4 or not _HEX.fullmatch(lines[3]):
        yield None
        return
    settings = _run_git(root, ("config", "-z", "--get-regexp", _HARMLESS)) or b""
    with tempfile.TemporaryDirectory(prefix="gapwatch-") as name:
        folder = Path(name)
        for part in ("objects", "refs"):
            (folder / part).mkdir()
        (folder / "HEAD").write_text(f"{lines[3]}\n", encoding="ascii")
        (folder / "config").write_text(_format_settings(settings), encoding="utf-8")
        variables = {
            "GIT_DIR": str(folder), "GIT_WORK_TREE": lines[0], "GIT_OBJECT_DIRECTORY": str(root / lines[1]),
            "GIT_INDEX_FILE": str(root / lines[2]),
        }  # fmt: skip
        yield _Repository(lines[3], folder, variables)


def _format_settings(said: bytes) -> str:
    """Return a configuration with the settings that git listed, each a word."""
    lines = []
    for entry in said.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        if re.fullmatch(r"\w+", value):
            section, _, name = key.partition(".")
            lines.append(f"[{section}]\n\t{name} = {value}\n")
    return "".join(lines)


def _run_git(folder: Path, arguments: Sequence[str], variables: Mapping[str, str] | None = None) -> bytes | None:
    """Return what git says; None where it fails, or would have to wait for somebody."""
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_PAGER": "cat"}
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    made = run_child(command, _PATIENCE_S, folder=folder, extra={**quiet, **(variables or {})})
    return made.output if made.status == 0 else None
