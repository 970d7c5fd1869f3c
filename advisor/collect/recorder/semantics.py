"""What the recorder's wrappers do before and after calls of MPI functions, as lines of C.

Parameters are ``$0``, ``$1`` …, by position, since libraries name them differently; ``r`` is the record of the call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from advisor.model.mpi_calls import CONSTRUCTORS

#: Collectives by name: bytes that a rank sends and receives, root, position of the communicator. ``SELF`` and ``SIZE``
#: are the rank in the communicator and its size, ``WIDE`` whether counts are of the type ``MPI_Count``.
_COLLECTIVES: Final = {
    "Barrier": ("0", "", 0),
    "Bcast": ("bytes($1, $2) * (SELF == $3 ? SIZE - 1 : 1)", "$3", 4),
    "Gather": ("(SELF == $6 ? bytes($4, $5) * SIZE : bytes($1, $2))", "$6", 7),
    "Gatherv": ("(SELF == $7 ? sum_bytes($4, WIDE, SIZE, $6) : bytes($1, $2))", "$7", 8),
    "Scatter": ("(SELF == $6 ? bytes($1, $2) * SIZE : bytes($4, $5))", "$6", 7),
    "Scatterv": ("(SELF == $7 ? sum_bytes($1, WIDE, SIZE, $3) : bytes($5, $6))", "$7", 8),
    "Allgather": ("bytes($4, $5) * (SIZE + 1)", "", 6),
    "Allgatherv": ("sum_bytes($4, WIDE, SIZE, $6) + ($0 == MPI_IN_PLACE ? 0 : bytes($1, $2))", "", 7),
    "Alltoall": ("2 * bytes($4, $5) * SIZE", "", 6),
    "Alltoallv": ("sum_bytes($5, WIDE, SIZE, $7) + ($0 == MPI_IN_PLACE ? 0 : sum_bytes($1, WIDE, SIZE, $3))", "", 8),
    "Alltoallw": ("sum_each($5, WIDE, SIZE, $7) + ($0 == MPI_IN_PLACE ? 0 : sum_each($1, WIDE, SIZE, $3))", "", 8),
    "Reduce": ("bytes($2, $3) * (SELF == $5 ? SIZE - 1 : 1)", "$5", 6),
    "Allreduce": ("2 * bytes($2, $3)", "", 5),
    "Reduce_scatter": ("sum_bytes($2, WIDE, SIZE, $3)", "", 5),
    "Reduce_scatter_block": ("bytes($2, $3) * (SIZE + 1)", "", 5),
    "Scan": ("2 * bytes($2, $3)", "", 5),
    "Exscan": ("2 * bytes($2, $3)", "", 5),
}
#: Blocking collectives that bring the same to all: the data, how many of which type.
_BRINGING: Final = {"Bcast": ("$0", "$1", "$2"), "Allgather": ("$3", "(int64_t)$4 * SIZE", "$5")}
#: Collectives among neighbours: what each of those that a rank sends to gets, what each that it receives from sends,
#: and the position of the communicator.
_OF_NEIGHBOURS: Final[dict[str, tuple[str, str, int]]] = {
    "allgather": ("{.count = $1, .type = $2}", "{.count = $4, .type = $5}", 6),
    "allgatherv": ("{.count = $1, .type = $2}", "{.counts = $4, .wide = WIDE, .type = $6}", 7),
    "alltoall": ("{.count = $1, .type = $2}", "{.count = $4, .type = $5}", 6),
    "alltoallv": ("{.counts = $1, .wide = WIDE, .type = $3}", "{.counts = $5, .wide = WIDE, .type = $7}", 8),
    "alltoallw": ("{.counts = $1, .wide = WIDE, .types = $3}", "{.counts = $5, .wide = WIDE, .types = $7}", 8),
}
#: MPI-IO that moves data: the position of the count, behind which the datatype stands.
_FILE_COUNTS: Final = {"": 2, "_at": 3, "_all": 2, "_at_all": 3, "_shared": 2, "_ordered": 2}


@dataclass(frozen=True, slots=True)
class Meaning:
    """Lines of C before and after a call.

    ``status`` is the parameter for which the recorder has its own where the program ignores it.
    """

    before: str = ""
    after: str = ""
    status: int | None = None


def _of_blocking_send() -> Meaning:
    return Meaning("send_event(r, GW_SEND, bytes($1, $2), $3, $4, $5);")


def _of_send_start() -> Meaning:
    return Meaning(after="isend_event(r, $6, bytes($1, $2), $3, $4, $5);")


def _of_persistent(event: str) -> Meaning:
    return Meaning(after=f"persistent(r, $6, {event}, bytes($1, $2), $3, $4, $5);")


_SENDRECV: Final = Meaning(
    "send_event(r, GW_SEND, bytes($1, $2), $3, $4, $10);", "recv_message(r, $11, $10);", status=11
)
_MEANINGS: Final = {
    **{name: _of_blocking_send() for name in ("Send", "Bsend", "Ssend", "Rsend")},
    **{name: _of_send_start() for name in ("Isend", "Ibsend", "Issend", "Irsend")},
    **{name: _of_persistent("GW_ISEND") for name in ("Send_init", "Bsend_init", "Ssend_init", "Rsend_init")},
    "Recv_init": _of_persistent("GW_IRECV"),
    "Psend_init": Meaning(after="persistent(r, $8, GW_ISEND, $1 * bytes($2, $3), $4, $5, $6);"),
    "Precv_init": Meaning(after="persistent(r, $8, GW_IRECV, $1 * bytes($2, $3), $4, $5, $6);"),
    "Recv": Meaning(after="recv_event(r, $6, $5);", status=6),
    "Irecv": Meaning(after="irecv_event(r, $6, bytes($1, $2), $3, $4, $5);"),
    "Sendrecv": _SENDRECV,
    "Sendrecv_replace": Meaning(
        "send_event(r, GW_SEND, bytes($1, $2), $3, $4, $7);", "recv_message(r, $8, $7);", status=8
    ),
    "Isendrecv": Meaning(
        after="isendrecv_event(r, $11, bytes($1, $2), $3, $4, bytes($6, $7), $8, $9, $10);"
    ),
    "Isendrecv_replace": Meaning(
        after="isendrecv_event(r, $8, bytes($1, $2), $3, $4, bytes($1, $2), $5, $6, $7);"
    ),
    "Mprobe": Meaning(after="probed(r, $3, $2);"),
    "Improbe": Meaning(after="if (*$3) probed(r, $4, $2); else idle = 1;"),
    "Iprobe": Meaning(after="idle = !*$3;"),
    "Parrived": Meaning(after="idle = !*$2;"),
    "Win_test": Meaning(after="idle = !*$1;"),
    "Mrecv": Meaning(
        "int comm = r ? comm_of_message(*$3) : 0;",
        "if (r && $4->MPI_SOURCE != MPI_PROC_NULL) "
        "fill(r, GW_RECV, comm, $4->MPI_SOURCE, $4->MPI_TAG, received($4), 0);",
        status=4,
    ),
    "Imrecv": Meaning(
        "int comm = r ? comm_of_message(*$3) : 0;",
        "if (r) fill(r, GW_IRECV_POST, comm, GW_NOBODY, 0, bytes($1, $2), "
        "add_request($4, GW_IRECV, comm, GW_NOBODY, 0, bytes($1, $2), 0));",
    ),
    "Start": Meaning(after="started(r, $0);"),
    "Startall": Meaning(after="if (r) for (int i = 0; i < $0; i++) started(r, &$1[i]);"),
    "Wait": Meaning("MPI_Request handle = *$0;", "completed(r, handle, $0, $1);", status=1),
    "Test": Meaning("MPI_Request handle = *$0;", "idle = !*$1; if (*$1) completed(r, handle, $0, $2);", status=2),
    "Waitall": Meaning(
        "copy_handles(r, $0, $1); if (r && $2 == MPI_STATUSES_IGNORE) $2 = statuses;",
        "if (r) for (int i = 0; i < $0; i++) completed(r, handles[i], &$1[i], &$2[i]);",
    ),
    "Testall": Meaning(
        "copy_handles(r, $0, $1); if (r && $3 == MPI_STATUSES_IGNORE) $3 = statuses;",
        "idle = !*$2; if (r && *$2) for (int i = 0; i < $0; i++) completed(r, handles[i], &$1[i], &$3[i]);",
    ),
    "Waitany": Meaning(
        "copy_handles(r, $0, $1);",
        "if (r && *$2 != MPI_UNDEFINED) completed(r, handles[*$2], &$1[*$2], $3);", status=3,
    ),
    "Testany": Meaning(
        "copy_handles(r, $0, $1);",
        "idle = !*$3; if (r && *$3 && *$2 != MPI_UNDEFINED) completed(r, handles[*$2], &$1[*$2], $4);", status=4,
    ),
    **{
        name: Meaning(
            "copy_handles(r, $0, $1); if (r && $4 == MPI_STATUSES_IGNORE) $4 = statuses;",
            "idle = *$2 <= 0; if (r && *$2 != MPI_UNDEFINED) for (int i = 0; i < *$2; i++) "
            "completed(r, handles[$3[i]], &$1[$3[i]], &$4[i]);",
        )
        for name in ("Waitsome", "Testsome")
    },
    "Request_free": Meaning("forget(r, *$0, $0);"),
    "Cancel": Meaning("cancelling(r, $0);"),
    "Comm_idup": Meaning(after="copied_comm(r, $0, $1);"),
    "Comm_idup_with_info": Meaning(after="copied_comm(r, $0, $2);"),
    "Comm_free": Meaning("drop_comm(*$0);"),
    "Comm_disconnect": Meaning("drop_comm(*$0);"),
    "Win_fence": Meaning("meet_at_window(r, $1);"),
    "Win_free": Meaning("meet_at_window(r, *$0); new_window(NULL, *$0, MPI_COMM_NULL);"),
    "File_open": Meaning(after="opened_file(r, *$4, $1);"),
    **{name: Meaning("one_sided(r, $7, $3, bytes($1, $2));") for name in ("Put", "Get", "Rput", "Rget")},
    **{name: Meaning("one_sided(r, $8, $3, bytes($1, $2));") for name in ("Accumulate", "Raccumulate")},
    **{name: Meaning("one_sided(r, $11, $6, bytes($1, $2) + bytes($4, $5));")
       for name in ("Get_accumulate", "Rget_accumulate")},
    "Fetch_and_op": Meaning("one_sided(r, $6, $3, 2 * bytes(1, $2));"),
    "Compare_and_swap": Meaning("one_sided(r, $6, $4, 2 * bytes(1, $3));"),
}  # fmt: skip


def meaning_of(name: str, parameters: tuple[str, ...]) -> Meaning:
    """Return what the wrapper of a function ``MPI_…`` does beside the call."""
    short = name.removeprefix("MPI_")
    wide = short.endswith("_c")
    short = short.removesuffix("_c")
    known = _MEANINGS.get(short) or _of_collective(short, wide) or _of_neighbours(short, wide) or _of_file(short)
    return _of_constructor(short, parameters) if known is None else known


def _of_constructor(short: str, parameters: tuple[str, ...]) -> Meaning:
    """Return what is done beside a call that makes a communicator or a window, in which all members take part."""
    together = CONSTRUCTORS.get(f"MPI_{short}")
    meets = "" if together is None else f"if (r) nonblocking(r, GW_COLLECTIVE, 0, GW_NOBODY, ${together});"
    if together is not None and short.startswith("Win_"):
        return Meaning(meets, f"new_window(r, *${len(parameters) - 1}, ${together});")
    created = [number for number, text in enumerate(parameters) if text.startswith("MPI_Comm *")]
    if created and short != "Comm_get_parent":
        return Meaning(meets, f"new_comm(r, ${created[-1]});")
    return Meaning()


def _of_collective(short: str, wide: bool) -> Meaning | None:
    base = short.removesuffix("_init")
    blocking = base if base == short else ""
    name = next((one for one in (blocking, base[1:].capitalize()) if one in _COLLECTIVES), None)
    if name is None or short.endswith("_init"):
        return None
    size, root, comm = _COLLECTIVES[name]
    size = size.replace("SELF", f"comm_of(${comm})->rank").replace("SIZE", f"comm_of(${comm})->size")
    size, root = size.replace("WIDE", str(int(wide))), root or "GW_NOBODY"
    after = ""
    if base == short and name in _BRINGING:
        data, count, datatype = (text.replace("SIZE", f"comm_of(${comm})->size") for text in _BRINGING[name])
        after = f"if (r) compare_data(r, {data}, {count}, {datatype});"
    return Meaning(f"if (r) nonblocking(r, GW_COLLECTIVE, {size}, {root}, ${comm});", after)


def _of_neighbours(short: str, wide: bool) -> Meaning | None:
    parts = _OF_NEIGHBOURS.get(short.rpartition("eighbor_")[2])
    if parts is None or not short.startswith(("Neighbor_", "Ineighbor_")):
        return None
    out, into, comm = parts
    out, into = (f"(struct part){end}".replace("WIDE", str(int(wide))) for end in (out, into))
    if short.startswith("I"):
        return Meaning(after=f"start_exchange(r, ${comm + 1}, ${comm}, {out}, {into});")
    return Meaning(
        f"struct exchange *exchange = begin_exchange(r, ${comm}, {out}, {into});", "end_exchange(r, exchange);"
    )


def _of_file(short: str) -> Meaning | None:
    for begin in ("File_read", "File_write", "File_iread", "File_iwrite"):
        at = _FILE_COUNTS.get(short.removeprefix(begin)) if short.startswith(begin) else None
        if at is not None:
            return Meaning(after=f"file_event(r, $0, bytes(${at}, ${at + 1}));")
    return None
