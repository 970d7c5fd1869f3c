"""What PETSc's events do, by their names, and which of them contain others."""

from __future__ import annotations

import re
from typing import Final

from advisor.trace.events import Role

_ROLES: Final = (
    (re.compile(r"(VecScatter|SFBcast|SFReduce|SFFetchOp|SFBcastOp)End$"), Role.WAIT),
    (re.compile(r"(VecScatter|SFBcast|SFReduce|SFFetchOp|SFBcastOp)Begin$"), Role.POST),
    (re.compile(r"\w*Barrier$"), Role.BARRIER),
    (re.compile(r"Vec(M?T?Dot|MTDot|TDot|Norm|DotNorm2|ReduceComm)$"), Role.ALL_TO_ALL),
    (re.compile(r"BuildTwoSidedF?$"), Role.COMM_OTHER),
    (re.compile(r"(Vec|Mat)?(View|Load)(Binary|MPIIO)?$"), Role.IO),
)
#: Events whose seconds are those of others that are listed beside them.
_CONTAINING: Final = re.compile(
    r"(KSP|PC|SNES|TS|Tao|DM|Vec(Normalize|Assembly)|MatResidual|SFSetUp|SFSetGraph|MatMult(Add|Transpose|TrAdd)?_?MF)\w*$"
)
#: What exchanges values for the products of matrices and vectors.
_EXCHANGES: Final = re.compile(r"(VecScatter|SFBcast|SFReduce|SFPack|SFUnpack)\w*$")
_INSIDE: Final = re.compile(r"BuildTwoSided$|SFPack$|SFUnpack$")


def classify_event(name: str) -> Role:
    """Return what the event called ``name`` does: reductions and exchanges communicate, all else works."""
    return next((role for pattern, role in _ROLES if pattern.match(name)), Role.USER)


def is_containing(name: str) -> bool:
    """Return whether an event contains others, or is inside one that is listed, so that it can't stand beside them."""
    return bool(_CONTAINING.match(name) or _INSIDE.match(name))


def is_exchange(name: str) -> bool:
    """Return whether an event is part of the exchange of values that products of matrices and vectors need."""
    return bool(_EXCHANGES.match(name))
