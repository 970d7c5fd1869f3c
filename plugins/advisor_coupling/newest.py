"""Finds the kept experiment that belongs to a program."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.errors import InputError
from advisor.model.records import KnownDocument
from advisor.support.atomic_write import atomic_write
from advisor_coupling import result_files, results
from advisor_coupling.model import CaseModel, build_case_model

if TYPE_CHECKING:
    from advisor_coupling.result_files import ResultFile


def find_newest_result(program: str) -> ResultFile | None:
    """Return where the newest experiment with a program of that name lies; None if there is none.

    A file that can't be read is as good as none.
    """
    wanted = Path(program).name
    if not wanted:
        return None
    found: list[tuple[str, ResultFile]] = []
    for place in result_files.find_result_files():
        document = read_document(place)
        if document and document.program == wanted and document.runs:
            found.append((document.runs[-1].started, place))
    return max(found, key=lambda one: one[0])[1] if found else None


@lru_cache(maxsize=result_files.MOST)
def read_document(place: ResultFile) -> results.ExperimentDocument | None:
    """Return the experiment in a file, None if it can't be read."""
    try:
        return results.read_results(place.path)
    except InputError:
        return None


@lru_cache(maxsize=result_files.MOST)
def build_models(place: ResultFile) -> tuple[CaseModel, ...]:
    """Return the models of the cases in a file, for seconds."""
    document = read_document(place)
    return tuple(build_case_model(case) for case in results.build_cases(document)) if document else ()


def keep_results(path: Path) -> KnownDocument:
    """Keep an experiment where advice looks for it, unless a newer one of its program is there; return what it is.

    Raises ``InputError`` where it can't be read.
    """
    document = results.read_results(path)
    kept = result_files.kept_file(document.program)
    known = read_document(place) if (place := result_files.stat_file(kept)) is not None else None
    if document.runs and (known is None or not known.runs or known.runs[-1].started < document.runs[-1].started):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(kept) as partial:
            partial.write_bytes(path.read_bytes())
    kernels, cases = len(document.kernels), len(document.cases)
    words = f"the couplings of {kernels} kernels of {document.program} at {cases} point{'' if cases == 1 else 's'}"
    return KnownDocument(words, document.program)
