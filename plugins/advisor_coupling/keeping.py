"""Where finished experiments lie, and which of them belong to a program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.errors import InputError
from advisor_coupling import results
from advisor_coupling.model import model

if TYPE_CHECKING:
    from advisor_coupling.model import CaseModel

#: The folder inside the user's data directory of gapwatch.
FOLDER: Final = "coupling"
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]")
_MOST: Final = 100


def file_name(program: str) -> str:
    """Return the name of the file that keeps the experiment of a program."""
    return f"{_ODD.sub('_', program).lstrip('.')[:100] or 'program'}{results.SUFFIX}"


@dataclass(frozen=True, slots=True)
class Place:
    """A file of results as it is now: it is read again only when it changes."""

    path: Path
    changed_ns: int
    size: int


def of_program(program: str) -> Place | None:
    """Return where the newest experiment with a program of that name lies; None if there is none.

    Looks in the directory where gapwatch was started, and where ``gapwatch couple`` keeps results for advice (a profile
    does not say where it lay). A file that can't be read is as good as none.
    """
    import platformdirs

    wanted = Path(program).name
    if not wanted:
        return None
    found: list[tuple[str, Place]] = []
    for folder in (Path.cwd(), platformdirs.user_data_path("gapwatch") / FOLDER):
        for path in sorted(folder.glob(f"*{results.SUFFIX}"))[:_MOST]:
            place = _place(path)
            document = document_at(place) if place else None
            if place and document and document.program == wanted and document.runs:
                found.append((document.runs[-1].started, place))
    return max(found, key=lambda one: one[0])[1] if found else None


def _place(path: Path) -> Place | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return Place(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=_MOST)
def document_at(place: Place) -> results.Document | None:
    """Return the experiment in a file, None if it can't be read."""
    try:
        return results.read(place.path)
    except InputError:
        return None


@lru_cache(maxsize=_MOST)
def models_at(place: Place) -> tuple[CaseModel, ...]:
    """Return the models of the cases in a file, for seconds."""
    document = document_at(place)
    return tuple(model(case) for case in results.cases(document)) if document else ()
