"""What the first versions of OTF2 said by one number about a region or a group, in today's terms."""

from __future__ import annotations

from advisor.formats.otf2.codes import (
    COMM_GROUP,
    COMM_LOCATIONS,
    COMM_SELF,
    MPI,
    PARADIGMS,
    ROLES,
)


def _split_words(text: str) -> list[str]:
    return text.split()


#: Role and paradigm of a region by its type before OTF2 1.1, which goes up to 35.
_REGION_TYPES = _split_words(
    "UNKNOWN/UNKNOWN FUNCTION/UNKNOWN LOOP/USER FUNCTION/USER FILE_IO/USER PARALLEL/OPENMP LOOP/OPENMP SECTIONS/OPENMP "
    "SECTION/OPENMP WORKSHARE/OPENMP SINGLE/OPENMP MASTER/OPENMP CRITICAL/OPENMP ATOMIC/OPENMP BARRIER/OPENMP "
    "IMPLICIT_BARRIER/OPENMP FLUSH/OPENMP CRITICAL_SBLOCK/OPENMP SINGLE_SBLOCK/OPENMP WRAPPER/OPENMP TASK/OPENMP "
    "TASK_WAIT/OPENMP BARRIER/MPI COLL_ONE2ALL/MPI COLL_ALL2ONE/MPI COLL_ALL2ALL/MPI COLL_OTHER/MPI CODE/USER "
    "CODE/USER CODE/USER LOOP/USER FUNCTION/USER LOOP/USER TASK_CREATE/OPENMP ORDERED/OPENMP ORDERED_SBLOCK/OPENMP"
)
#: Type of a group by its type before OTF2 1.2, where only MPI had communicators.
_GROUP_TYPES = {4: COMM_GROUP, 5: COMM_SELF, 6: COMM_LOCATIONS}


def convert_region_type(old: int) -> tuple[int, int]:
    """Return role and paradigm of a region of the type ``old``."""
    role, paradigm = _REGION_TYPES[old if old < len(_REGION_TYPES) else 0].split("/")
    return ROLES.index(role), PARADIGMS.index(paradigm)


def convert_group_type(old: int) -> tuple[int, int]:
    """Return type and paradigm of a group of the type ``old``."""
    return (_GROUP_TYPES[old], MPI) if old in _GROUP_TYPES else (old, PARADIGMS.index("UNKNOWN"))
