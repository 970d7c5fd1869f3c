"""Settings of MPI libraries: protocols of messages, algorithms of collectives, waiting, and where ranks run.

Variables of Open MPI are those of its components (``ompi_info --all``), those of MPICH its control variables
(``mpivars``), and both may stand on UCX. A library ignores variables that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.experiments.settings import Launcher
    from advisor.model.records import Advice

#: The gaps in which the seconds of MPI functions show.
_GAPS: Final = ("C'", "S'", "W", "L", "M'", "D")
#: Messages up to so many bytes are sent before their receiver asks, where their sizes are unknown, and at most: of
#: twice that, Open MPI's usual segment of shared memory (4 MiB) doesn't hold the eight with which it begins.
_EAGER_B: Final = 1 << 16
_MOST_EAGER_B: Final = 1 << 18
_HEADER_B: Final = 1 << 10
#: Without ``inplace``: else shared memory leaves a message of any size where it is until its receiver takes it.
_COPYING: Final = "send,put,get,atomics,fetching-atomics"
#: What lets a waiting rank leave its core to others.
_YIELDING: Final[Mapping[str, Mapping[str, str]]] = {
    "openmpi": {"OMPI_MCA_mpi_yield_when_idle": "1"},
    "hydra": {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"},
}
#: Two algorithms of a collective in each library: of few steps, for short messages, and of few bytes, for long ones.
_ALGORITHMS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "openmpi": {
        "allreduce": ("3", "6"), "bcast": ("6", "8"), "alltoall": ("3", "2"), "allgather": ("3", "4"),
        "reduce": ("5", "7"), "barrier": ("4", "3"), "gather": ("2", "1"), "scatter": ("2", "1"),
        "reduce_scatter": ("2", "3"), "alltoallv": ("1", "2"), "allgatherv": ("2", "3"),
    },
    "hydra": {
        "allreduce": ("recursive_doubling", "reduce_scatter_allgather"),
        "bcast": ("binomial", "scatter_ring_allgather"), "alltoall": ("brucks", "pairwise"),
        "allgather": ("recursive_doubling", "ring"), "reduce": ("binomial", "reduce_scatter_gather"),
        "alltoallv": ("scattered", "pairwise_sendrecv_replace"), "allgatherv": ("brucks", "ring"),
        "reduce_scatter": ("recursive_halving", "pairwise"),
    },
}  # fmt: skip


def iterate_mpi_variables(
    launcher: Launcher | None, advice: Advice | None, *, crowded: bool
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the reason and the variables of each setting of the library, the likeliest first.

    ``crowded`` says that there are more ranks than cores. Algorithms are those of the collective that took most time
    in the run of ``advice``; none where it shows no collective.
    """
    if launcher is None or launcher not in _YIELDING:
        return
    if crowded:
        yield "waiting ranks keep others off the cores", _YIELDING[launcher]
    collective = find_costly_collective(advice) if advice is not None else "allreduce"
    if collective in _ALGORITHMS[launcher]:
        for algorithm in _ALGORITHMS[launcher][collective]:
            yield f"time in MPI_{collective.capitalize()}", _choose_algorithm(launcher, collective, algorithm)
    messages = advice is None or _sum_seconds(advice, ("send", "recv", "wait")) > 0
    limit_B = choose_eager_limit(advice) if messages else None
    if limit_B is not None:
        yield "messages wait for their receiver", _send_eagerly(launcher, limit_B)


def choose_eager_limit(advice: Advice | None) -> int | None:
    """Return up to how many bytes messages have to be sent at once, so that all do that may; None where all are larger.

    ``size_class`` is the bit length of a message's bytes; the limit counts its header too.
    """
    causes = advice.profile.causes if advice is not None else None
    if advice is None or causes is None:
        return _EAGER_B
    sends = ["send" in region.name.lower() for region in advice.profile.regions]
    sizes = [bits for bits, call in zip(causes.size_class.tolist(), causes.call.tolist(), strict=True) if sends[call]]
    known = [1 << bits for bits in sizes if bits > 0]
    small = [size_B for size_B in known if size_B <= _MOST_EAGER_B]
    return max(small) + _HEADER_B if small else None if known else _EAGER_B


def _send_eagerly(launcher: Launcher, limit_B: int) -> Mapping[str, str]:
    """Return the variables that let messages up to ``limit_B`` be sent without their receiver."""
    limit = str(limit_B)
    if launcher == "hydra":
        names = ("MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE", "MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE", "UCX_RNDV_THRESH")
        return {"MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE": str(_EAGER_B), **dict.fromkeys(names, limit)}
    memory = {f"OMPI_MCA_btl_{name}_{what}": value for name in ("vader", "sm")  # the same before and since version 5
              for what, value in (("eager_limit", limit), ("flags", _COPYING))}  # fmt: skip
    return {**memory, "UCX_RNDV_THRESH": limit}


def _choose_algorithm(launcher: Launcher, collective: str, algorithm: str) -> Mapping[str, str]:
    if launcher == "hydra":
        return {f"MPIR_CVAR_{collective.upper()}_INTRA_ALGORITHM": algorithm}
    return {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", f"OMPI_MCA_coll_tuned_{collective}_algorithm": algorithm}


def find_costly_collective(advice: Advice) -> str:
    """Return the collective with the most seconds in the gaps of communication, without ``MPI_``; empty for none."""
    names = {name for library in _ALGORITHMS.values() for name in library}
    seconds = {name: _sum_seconds(advice, (name,), whole=True) for name in sorted(names)}
    best = max(seconds, key=lambda name: seconds[name])
    return best if seconds[best] > 0 else ""


def _sum_seconds(advice: Advice, words: tuple[str, ...], *, whole: bool = False) -> float:
    """Return the seconds of MPI functions that are called so, or whose names hold one of the words."""
    total = 0.0
    for gap in advice.gaps:
        if not set(_GAPS) & set(gap.members or (gap.name,)):
            continue
        for part in gap.regions:
            lead, _, function = part.name.lower().partition("mpi_")
            if function and not lead and (function in words if whole else any(word in function for word in words)):
                total += max(0.0, part.seconds)
    return total


def iterate_bindings(launcher: Launcher | None, *, crowded: bool, threaded: bool) -> Iterator[tuple[str, ...]]:
    """Yield the words behind a launcher that bind ranks, or leave them free where cores are short or threaded."""
    to_core = {
        "openmpi": ("--bind-to", "core", "--map-by", "core"),
        "hydra": ("-bind-to", "core"),
        "slurm": ("--cpu-bind=cores",),
    }
    free = {"openmpi": ("--bind-to", "none"), "hydra": ("-bind-to", "none"), "slurm": ("--cpu-bind=none",)}
    if launcher is None:
        return
    if not crowded:
        yield to_core[launcher]
    if (crowded or threaded) and launcher != "hydra":  # which binds nothing unless it is told to
        yield free[launcher]
