"""Where finished experiments lie, and which of them belongs to a program."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError
from advisor.model.records import KnownDocument
from advisor.support.atomic_write import atomic_write
from advisor.support.disk_cache import system_folder
from advisor_coupling import results
from advisor_coupling.model import build_case_model

if TYPE_CHECKING:
    from advisor_coupling.model import CaseModel


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
    """A file of results as it is now: it is read again only when it changes."""

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
    """Return where the experiment of a program is kept for advice."""
    return system_folder("data") / FOLDER / file_name(program)


def stat_file(path: Path) -> ResultFile | None:
    """Return a file as it is now; None where it is not there."""
    try:
        state = path.stat()
    except OSError:
        return None
    return ResultFile(path, state.st_mtime_ns, state.st_size)


def find_newest_result(program: str) -> ResultFile | None:
    """Return where the newest experiment with a program of that name lies; None if there is none.

    A file that can't be read is as good as none.
    """
    wanted = Path(program).name
    if not wanted:
        return None
    found: list[tuple[str, ResultFile]] = []
    for place in find_result_files():
        document = read_document(place)
        if document and document.program == wanted and document.runs:
            found.append((document.runs[-1].started, place))
    return max(found, key=lambda one: one[0])[1] if found else None


@lru_cache(maxsize=MOST)
def read_document(place: ResultFile) -> results.ExperimentDocument | None:
    """Return the experiment in a file, None if it can't be read."""
    try:
        return results.read_results(place.path)
    except InputError:
        return None


@lru_cache(maxsize=MOST)
def build_models(place: ResultFile) -> tuple[CaseModel, ...]:
    """Return the models of the cases in a file, for seconds."""
    document = read_document(place)
    return tuple(build_case_model(case) for case in results.build_cases(document)) if document else ()


def keep_results(path: Path) -> KnownDocument:
    """Keep an experiment where advice looks for it, unless a newer one of its program is there; return what it is.

    Raises ``InputError`` where it can't be read.
    """
    document = results.read_results(path)
    kept = kept_file(document.program)
    known = read_document(place) if (place := stat_file(kept)) is not None else None
    if document.runs and (known is None or not known.runs or known.runs[-1].started < document.runs[-1].started):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(kept) as partial:
            partial.write_bytes(path.read_bytes())
    kernels, cases = len(document.kernels), len(document.cases)
    words = f"the couplings of {kernels} kernels of {document.program} at {cases} point{'' if cases == 1 else 's'}"
    return KnownDocument(words, document.program)
