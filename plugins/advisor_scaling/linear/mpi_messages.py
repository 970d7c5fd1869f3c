"""Messages and bytes of the calls of MPI that a program was seen to make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: Calls in which a process sends one message to another, by where the number of values stands in them.
_TO_ONE: Final = {
    **dict.fromkeys(("MPI_Send", "MPI_Isend", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend", "MPI_Issend", "MPI_Ibsend"), 1),
    "MPI_Sendrecv": 1,
    "MPI_Sendrecv_replace": 1,
}
#: Operations of all processes that go as a tree: so many rounds as doubling takes from one process to all.
_TREES: Final = {"MPI_Bcast": 1, "MPI_Reduce": 2, "MPI_Allreduce": 2, "MPI_Barrier": None}
#: Operations in which each process sends to each other one.
_TO_ALL: Final = {"MPI_Alltoall": 1, "MPI_Allgather": 1}
_SIZES: Final = {
    **dict.fromkeys(("MPI_CHAR", "MPI_BYTE", "MPI_SIGNED_CHAR", "MPI_UNSIGNED_CHAR", "MPI_INT8_T", "MPI_UINT8_T"), 1),
    **dict.fromkeys(("MPI_SHORT", "MPI_UNSIGNED_SHORT", "MPI_INT16_T", "MPI_UINT16_T"), 2),
    **dict.fromkeys(("MPI_INT", "MPI_UNSIGNED", "MPI_FLOAT", "MPI_INT32_T", "MPI_UINT32_T"), 4),
    **dict.fromkeys(("MPI_DOUBLE", "MPI_LONG", "MPI_UNSIGNED_LONG", "MPI_LONG_LONG", "MPI_INT64_T", "MPI_UINT64_T"), 8),
    **dict.fromkeys(("MPI_C_DOUBLE_COMPLEX", "MPI_DOUBLE_COMPLEX"), 16),
}
_KINDS: Final[tuple[tuple[dict[str, Any], Callable[[int], int]], ...]] = (
    (_TO_ONE, lambda ranks: 1 if ranks > 1 else 0),
    (_TREES, lambda ranks: (ranks - 1).bit_length()),
    (_TO_ALL, lambda ranks: ranks - 1),
)


def sum_messages(document: Any) -> tuple[float, float, tuple[str, ...]]:  # noqa: ANN401 (JSON)
    """Return messages and bytes that a process sends on average, and the calls whose bytes the source does not tell.

    ``document`` is what the service ``operation_counts`` gives. A tree of P processes counts as log2(P) messages,
    rounded up (M. Clement, M. Quinn 1995).
    """
    ranks = max(int(document["ranks"]), 1)
    total = moved = 0.0
    unknown: list[str] = []
    for block in document["blocks"]:
        for call in block["calls"]:
            places, rounds = next(((places, of) for places, of in _KINDS if call["name"] in places), ({}, None))
            if rounds is None:
                continue
            sent = rounds(ranks) * sum(block["executions"]) / ranks
            size = _call_bytes(call, places[call["name"]])
            total += sent
            if size is not None:
                moved += sent * size
            elif sent:
                unknown.append(f"{call['name']} at {block['file']}:{block['line']}")
    return total, moved, tuple(dict.fromkeys(unknown))


def _call_bytes(call: Any, place: int | None) -> float | None:  # noqa: ANN401 (JSON)
    """Return the mean bytes of a call whose number of values stands at a place, None where it is not known."""
    if place is None:
        return 0.0
    if len(call["arguments"]) < place + 2:
        return None
    size, count = _SIZES.get(call["arguments"][place + 1]), call["means"][place]
    return None if size is None or count is None else max(size * count, 0.0)
