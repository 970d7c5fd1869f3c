"""Where finished experiments lie."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.support.disk_cache import system_folder

#: What the names of their files end in.
SUFFIX: Final = ".coupling.json"
#: The folder inside the user's data directory of gapwatch.
FOLDER: Final = "coupling"
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]")
#: So many files of a folder are looked at.
MOST: Final = 100


def file_name(program: str) -> str:
    """Return the name of the file that keeps the experiment of a program."""
    return f"{_ODD.sub('_', program).lstrip('.')[:100] or 'program'}{SUFFIX}"


@dataclass(frozen=True, slots=True)
class ResultFile:
    """The current state of a results file: it is read again only when that changes."""

    path: Path
    changed_ns: int
    size: int


def find_result_files() -> list[ResultFile]:
    """Return where experiments may lie that advice knows of.

    In the directory where gapwatch was started, and where ``gapwatch couple`` keeps results for advice (a profile does
    not say where it lay).
    """
    folders = [system_folder("data") / FOLDER]
    with suppress(OSError):  # the current directory may be gone
        folders.insert(0, Path.cwd())
    found = [stat_file(path) for folder in folders for path in sorted(folder.glob(f"*{SUFFIX}"))[:MOST]]
    return [place for place in found if place is not None]


def kept_file(program: str) -> Path:
    """Return the file that keeps the experiment of a program for advice."""
    return system_folder("data") / FOLDER / file_name(program)


def stat_file(path: Path) -> ResultFile | None:
    """Return the current state of a file; None if it does not exist."""
    try:
        state = path.stat()
    except OSError:
        return None
    return ResultFile(path, state.st_mtime_ns, state.st_size)
