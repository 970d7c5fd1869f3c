"""MPI calls that make communicators and windows: the recorder wraps them, and traces are read by their names."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

#: The call, and which of its arguments is the communicator whose members make it together (MPI 4.1, chapters 7, 8, 12).
CONSTRUCTORS: Final = MappingProxyType({
    "MPI_Comm_dup": 0, "MPI_Comm_dup_with_info": 0, "MPI_Comm_split": 0, "MPI_Comm_split_type": 0, "MPI_Comm_create": 0,
    "MPI_Cart_create": 0, "MPI_Cart_sub": 0, "MPI_Graph_create": 0, "MPI_Dist_graph_create": 0,
    "MPI_Dist_graph_create_adjacent": 0, "MPI_Intercomm_merge": 0,
    "MPI_Win_create": 4, "MPI_Win_allocate": 3, "MPI_Win_allocate_shared": 3, "MPI_Win_create_dynamic": 1,
})  # fmt: skip
