"""What a collective operation costs, counted in latencies and bytes, and who waits for whom in it.

Closed forms of the usual algorithms (Thakur, Rabenseifner, Gropp: Optimization of collective communication operations
in MPICH, 2005, sections 3 to 5), and the model of Dimemas (Girona, Labarta, Badia: Validation of Dimemas communication
model for MPI collective operations, EuroPVM/MPI 2000): a fan-in and a fan-out of log2 P steps each, which nobody leaves
before all are there. P is the size of the communicator, s what one member contributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from advisor.model.errors import UsageError
from advisor.trace.events import Role

Algorithm = Literal["dimemas", "binomial", "ring", "recursive-doubling", "linear", "pairwise", "dissemination"]
#: The algorithm of each operation by the name of its MPI function in lower case without ``mpi_``, ``*`` for all others;
#: ``allreduce:long`` once a member contributes ``LONG_BYTES``.
Models = Mapping[str, Algorithm]
DIMEMAS: Final[Models] = {"*": "dimemas"}
#: What MPI libraries of today choose.
TODAY: Final[Models] = {
    "*": "binomial",
    "barrier": "dissemination",
    "allreduce": "recursive-doubling",
    "allgather": "recursive-doubling",
    "alltoall": "pairwise",
    "allreduce:long": "ring",
    "allgather:long": "ring",
}
LONG_BYTES: Final = 32768.0
SETS: Final = {"dimemas": DIMEMAS, "today": TODAY}
_KNOWN: Final = (
    "barrier", "bcast", "reduce", "gather", "scatter", "allreduce", "allgather", "alltoall", "reduce_scatter", "scan",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CollectiveCost:
    """``latencies`` L + ``bytes`` / BW, from the moment when ``everyone`` is there (else: from when the root is)."""

    latencies: float
    bytes: float


def choose_algorithm(models: Models, name: str, size: float) -> Algorithm:
    """Return the algorithm for an operation."""
    if size >= LONG_BYTES and f"{name}:long" in models:
        return models[f"{name}:long"]
    return models.get(name, models.get("*", "dimemas"))


def compute_cost(algorithm: Algorithm, name: str, role: int, members: int, size: float) -> CollectiveCost:
    """Return what an operation of ``members`` ranks costs; nothing for one rank alone."""
    if members < 2:
        return CollectiveCost(0.0, 0.0)
    steps = math.ceil(math.log2(members))
    if algorithm == "dimemas":
        return _dimemas_cost(name, members, size)
    if role == Role.BARRIER:
        return CollectiveCost(float(members - 1 if algorithm in ("linear", "ring") else steps), 0.0)
    if algorithm in ("linear", "pairwise"):
        return CollectiveCost(float(members - 1), (members - 1) * size)
    if algorithm == "ring":
        return _ring_cost(name, members, size)
    if name in ("gather", "scatter", "allgather", "reduce_scatter"):
        return CollectiveCost(float(steps), (members - 1) * size)
    if name == "alltoall":
        return CollectiveCost(float(steps), steps * size * members / 2)
    return CollectiveCost(float(steps), steps * size)


def _ring_cost(name: str, members: int, size: float) -> CollectiveCost:
    """Pieces go round: twice where a result is first made and then handed on."""
    if name == "allreduce":
        return CollectiveCost(2.0 * (members - 1), 2.0 * (members - 1) / members * size)
    if name in ("gather", "scatter", "allgather", "alltoall"):
        return CollectiveCost(float(members - 1), (members - 1) * size)
    return CollectiveCost(float(members - 1), (members - 1) / members * size)


def _dimemas_cost(name: str, members: int, size: float) -> CollectiveCost:
    """Return log2 P steps in with the bytes of the largest sender, and as many out with those of the largest receiver.

    A reduction to one rank has no way out. Found from runs of Dimemas with its own default.
    """
    steps = math.log2(members)
    if name == "reduce":
        return CollectiveCost(steps, steps * size)
    if name in ("gather", "scatter", "allgather"):
        return CollectiveCost(2.0 * steps, steps * (1 + members) * size)
    return CollectiveCost(2.0 * steps, 2.0 * steps * size * (members if name == "alltoall" else 1))


def short_name(call: str) -> str:
    """Return ``allreduce`` of ``MPI_Allreduce``, ``MPI_Iallreduce`` or ``mpi_allreduce_``; vector variants as plain."""
    name = call.lower().removeprefix("mpi_").rstrip("_")
    if name.startswith("i") and name[1:] in _KNOWN:
        name = name[1:]
    return name.removesuffix("v") if name.removesuffix("v") in _KNOWN else name


def parse_models(texts: Sequence[str]) -> Models:
    """Return the models of ``--collectives``: a set (``dimemas``, ``today``) and pairs such as ``allreduce=ring``.

    Raises ``UsageError`` naming what is known.
    """
    models: dict[str, Algorithm] = {}
    base: Models = DIMEMAS
    for text in texts:
        if text in SETS:
            base = SETS[text]
            continue
        name, _, algorithm = text.partition("=")
        known = [each for each in get_args(Algorithm) if each == algorithm]
        if not known or name not in (*_KNOWN, "*"):
            sets = ", ".join(SETS)
            raise UsageError(
                f"--collectives {text}: expected {sets}, or an operation and its algorithm: allreduce=ring"
            )
        models |= {name: known[0], f"{name}:long": known[0]}
    return {**base, **models} if models else base
