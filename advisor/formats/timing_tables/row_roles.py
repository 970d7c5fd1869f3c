"""What the rows of timing tables do, by their names: people call the timers of halo exchanges all alike."""

from __future__ import annotations

import re
from typing import Final

from advisor.trace.events import Role
from advisor.trace.regions import classify_region

_COMMUNICATION: Final = re.compile(
    r"(?<![a-z])(mpi|communicat\w*|comm|halos?|ghosts?|exchange\w*|(all)?reduce|(all)?gather|allto\w+|bcast|broadcast|"
    r"send|recv|receive|barrier|wait\w*|synchroni[sz]\w*|doimport|doexport|fillboundary\w*|parallelcopy\w*)(?![a-z])",
    re.IGNORECASE,
)
_IO: Final = re.compile(
    r"(?<![a-z])(i/o|io|write\w*|read|output|checkpoint\w*|restart|plotfile|dump)(?![a-z])", re.IGNORECASE
)
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|[_:()]+")


def classify_row(name: str) -> Role:
    """Return what a timer called ``name`` measures: a call of MPI by its own name, else what the words in it say."""
    role = classify_region(name)[1]
    if role != Role.USER:
        return role
    both = f"{name} {_WORDS.sub(' ', name)}"
    if _COMMUNICATION.search(both):
        return Role.COMM_OTHER
    return Role.IO if _IO.search(both) else Role.USER
