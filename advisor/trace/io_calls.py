"""What calls that access files do, told from their names: of POSIX, C, MPI, and those that Darshan's reader makes."""

from __future__ import annotations

import re
from typing import Final

FORCING: Final = "forcing to storage"
METADATA: Final = "metadata"
DATA: Final = "data"
WRITES: Final = "writes"
MPI_IO: Final = "MPI-IO"
STDIO: Final = "streams"
COLLECTIVE: Final = "collective MPI-IO"
INDEPENDENT: Final = "independent MPI-IO"
#: Writing and forcing to storage, in one sum of seconds.
BLENDED: Final = "data, forced to storage or not"
#: All of them.
TRAITS: Final = (FORCING, METADATA, DATA, WRITES, MPI_IO, STDIO, COLLECTIVE, INDEPENDENT, BLENDED)

_FORCING: Final = frozenset({"fsync", "fdatasync", "sync", "sync_file_range", "syncfs", "mpi_file_sync"})
_SUMMED_FORCING: Final = re.compile("(posix|mpi-io) sync(, timed as writing)?")
_METADATA: Final = re.compile(
    "(f?open|creat)(64|at)?|fdopen|freopen|f?close|[fl]?stat|access|unlink|rename|mkdir|(open|read|close)dir|f?truncate|"
    "dup[23]?|mpi_file_(open|close|delete|set_size|preallocate|set_view)|(posix|stdio|mpi-io) metadata"
)
_DATA: Final = ("read", "write", "put", "get", "print", "scan", "sendfile")
_STREAM: Final = re.compile("stdio .*|v?f?(printf|scanf)|f?(get|put)[cs]|fread|fwrite|getline|putchar")
_COLLECTIVE: Final = re.compile("mpi_file_i?(read|write)_.*(all|ordered).*|mpi-io (collective )?(read|write).*")
_INDEPENDENT: Final = re.compile("mpi_file_i?(read|write)(_at|_shared)?|mpi-io independent .*")
_WRITING: Final = ("write", "put", "print")


def find_io_traits(call: str) -> set[str]:
    """Return what an I/O call of that canonical name in lower case does, in the words above."""
    found = {MPI_IO} if call.startswith(("mpi_file_", "mpi-io ")) else set()
    ways = ((STDIO, _STREAM), (COLLECTIVE, _COLLECTIVE), (INDEPENDENT, _INDEPENDENT))
    found |= {name for name, pattern in ways if pattern.fullmatch(call)}
    if call in _FORCING or _SUMMED_FORCING.fullmatch(call):
        found.add(FORCING)
    elif _METADATA.fullmatch(call):
        found.add(METADATA)
    elif any(word in call for word in _DATA):
        found |= {DATA} | ({WRITES} if any(word in call for word in _WRITING) else set())
    return found | ({BLENDED} if call.endswith(" and sync") else set())
