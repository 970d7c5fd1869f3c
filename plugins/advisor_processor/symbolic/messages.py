"""Messages and bytes that the calls of MPI of a program send, as formulas of one rank.

A send is one message unless it goes to ``MPI_PROC_NULL``; an operation of all ranks that goes as a tree is one for each
time that 1 has to be doubled to reach their number, an exchange of all with all one for each other rank (M. Clement, M.
Quinn 1995, section 2.2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sympy

from advisor_processor.symbolic.integer_functions import Doublings
from advisor_processor.symbolic.walk_records import RANKS, CallRecord

#: Sends: where the number of values stands, and the rank they go to; persistent ones are counted where they are made.
_SENDS: Final = {
    **dict.fromkeys(("send", "isend", "ssend", "bsend", "rsend", "issend", "ibsend", "irsend"), (1, 3)),
    "sendrecv": (1, 3), "sendrecv_replace": (1, 3),
}  # fmt: skip
#: Operations of all ranks: where the number of values stands, and how many messages one rank sends.
_TREES: Final = {
    "bcast": 1, "ibcast": 1, "reduce": 2, "ireduce": 2, "allreduce": 2, "iallreduce": 2, "scan": 2, "exscan": 2,
    "gather": 1, "scatter": 1, "gatherv": 1, "scatterv": 5, "reduce_scatter_block": 2,
    "barrier": None, "ibarrier": None,
}  # fmt: skip
_TO_ALL: Final = {
    "alltoall": 1, "ialltoall": 1, "allgather": 1, "iallgather": 1, "allgatherv": 1, "iallgatherv": 1, "alltoallv": -1,
    "ialltoallv": -1, "alltoallw": -1,
}  # fmt: skip
#: Calls that send what is not counted here.
_OTHERS: Final = re.compile(
    r"i?neighbor_\w+|(r?(put|get|accumulate)|get_accumulate|fetch_and_op|compare_and_swap)|[bsr]?send_init|i?gatherv"
    r"|i?scatterv|reduce_scatter|ireduce_scatter(_block)?|i?(ex)?scan|igather|iscatter|psend_init|isendrecv(_replace)?"
)
_SIZES: Final = {
    **dict.fromkeys(("char", "byte", "signed_char", "unsigned_char", "int8_t", "uint8_t", "character", "integer1"), 1),
    **dict.fromkeys(("short", "unsigned_short", "int16_t", "uint16_t", "integer2"), 2),
    **dict.fromkeys(
        ("int", "unsigned", "float", "int32_t", "uint32_t", "integer", "real", "real4", "logical", "integer4"), 4
    ),
    **dict.fromkeys(
        ("double", "long", "unsigned_long", "long_long", "int64_t", "uint64_t", "double_precision", "real8", "complex",
         "integer8", "double_int", "c_float_complex"), 8,
    ),
    **dict.fromkeys(("c_double_complex", "double_complex", "complex16"), 16),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MessageSums:
    """Messages and bytes that a rank sends; calls with ``unknown`` bytes, and what is ``uncertain`` of messages."""

    messages: Any
    moved: Any
    unknown: tuple[str, ...]
    uncertain: tuple[str, ...]


def sum_messages(calls: Sequence[CallRecord]) -> MessageSums:
    """Return the sums over all calls of MPI."""
    messages = moved = sympy.Integer(0)
    unknown: list[str] = []
    uncertain: list[str] = []
    for call in calls:
        name = call.name.lower().removeprefix("mpi_")
        found = _find_kind(name)
        if found is None:
            if _OTHERS.fullmatch(name):
                uncertain.append(f"the messages of {call.name} at {call.place} are not counted")
            continue
        place, present = found
        sent = call.sum_calls(present(call))
        if sent == 0:
            continue
        messages += sent
        if name in _SENDS and _is_uncertain(call, _SENDS[name][1]):
            uncertain.append(f"whether {call.name} at {call.place} has a receiver on all ranks is not known")
        if place is None:
            continue
        size = _type_size(call, place + 1)
        count = call.arguments[place] if 0 <= place < len(call.arguments) else None
        if size is None or count is None:
            unknown.append(f"{call.name} at {call.place}")
        else:
            moved += call.sum_calls(present(call) * count * size)
    return MessageSums(
        sympy.expand(messages), sympy.expand(moved), tuple(dict.fromkeys(unknown)), tuple(dict.fromkeys(uncertain))
    )


def _is_uncertain(call: CallRecord, place: int) -> bool:
    """Return whether a message may go to no rank: its receiver is a variable whose value is not known."""
    written = call.written[place] if place < len(call.written) else ""
    return (place >= len(call.arguments) or call.arguments[place] is None) and not re.search(r"[-+*/%^]", written)


def _find_kind(name: str) -> tuple[int | None, Callable[[CallRecord], Any]] | None:
    """Return where the number of values stands in a call, and the messages that one call is."""
    if name in _SENDS:
        place, target = _SENDS[name]
        return place, lambda call: _is_sent(call, target)
    if name in _TREES:
        return _TREES[name], lambda _: Doublings(RANKS)
    if name in _TO_ALL:
        return _TO_ALL[name], lambda _: RANKS - 1
    return None


def _is_sent(call: CallRecord, place: int) -> Any:  # noqa: ANN401
    """Return 1 if a message goes to a rank, 0 if it goes to none; an unknown one goes to a rank."""
    target = call.arguments[place] if place < len(call.arguments) else None
    return sympy.Integer(1) if target is None else call.is_nonnegative(target)


def _type_size(call: CallRecord, place: int) -> int | None:
    written = call.written[place] if place < len(call.written) else ""
    return _SIZES.get(written.lower().removeprefix("mpi_"))
