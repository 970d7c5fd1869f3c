"""Which of the experiments that are kept belongs to a program."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.errors import InputError
from advisor_coupling import keeping, results
from advisor_coupling.model import model

if TYPE_CHECKING:
    from advisor_coupling.keeping import Place
    from advisor_coupling.model import CaseModel


def of_program(program: str) -> Place | None:
    """Return where the newest experiment with a program of that name lies; None if there is none.

    A file that can't be read is as good as none.
    """
    wanted = Path(program).name
    if not wanted:
        return None
    found: list[tuple[str, Place]] = []
    for place in keeping.kept():
        document = document_at(place)
        if document and document.program == wanted and document.runs:
            found.append((document.runs[-1].started, place))
    return max(found, key=lambda one: one[0])[1] if found else None


@lru_cache(maxsize=keeping.MOST)
def document_at(place: Place) -> results.Document | None:
    """Return the experiment in a file, None if it can't be read."""
    try:
        return results.read(place.path)
    except InputError:
        return None


@lru_cache(maxsize=keeping.MOST)
def models_at(place: Place) -> tuple[CaseModel, ...]:
    """Return the models of the cases in a file, for seconds."""
    document = document_at(place)
    return tuple(model(case) for case in results.cases(document)) if document else ()
