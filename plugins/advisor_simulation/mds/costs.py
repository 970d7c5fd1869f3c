"""What things take on the machine, in cycles or seconds: from the model's ``costs``, else from the machine model."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

from advisor.analysis.machine_rates import barrier_s
from advisor.model.errors import UsageError
from advisor_simulation.model.checks import iterate_steps
from advisor_simulation.model.records import Costs, Messages, Model

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine

#: Line of a cache whose line is not known, bytes.
LINE = 64


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """Costs in the model's unit, ``second`` seconds each; ``assumed`` names those that neither file states."""

    second: float
    hit: float
    memory: float
    near: float
    far: float
    line: int
    node: int
    barrier: float
    signal: float
    dispatch: float
    fork: float
    sets: int
    ways: int
    latency: float
    per_byte: float
    assumed: tuple[str, ...]


def resolve_costs(model: Model, machine: Machine | None, processors: int, finite: bool = False) -> MachineCosts:
    """Return all costs; those stated nowhere are zero, and named.

    Raises UsageError where cycles can't become seconds, or a finite cache is asked for whose size nobody states.
    """
    own = model.costs
    second = 1.0 if model.unit == "s" else _cycle_seconds(machine)
    assumed: list[str] = []
    memory = _first_known(own.memory, _memory_latency(machine, second), "memory", assumed)
    near = own.near if own.near is not None else memory
    far = _first_known(own.far, _remote_latency(machine, second, near), "far", assumed) if own.far is None else own.far
    cache = machine.caches.get("L1") if machine else None
    line = int(own.line or (cache.line if cache and cache.line else LINE))
    sets, ways = _cache_geometry(own, machine, line) if finite else (0, 0)
    network = machine.network if machine else None
    if sends_messages(model) and (network is None or not network.latency or not network.bandwidth):
        assumed.append("messages")
    return MachineCosts(
        second=second, hit=own.hit, memory=memory, near=near, far=far, line=line,
        node=own.node or _node_size(machine, processors), barrier=_barrier_cost(own, machine, processors, second,
        assumed),
        signal=own.signal, dispatch=own.dispatch, fork=own.fork, sets=sets, ways=ways,
        latency=_message_latency(machine, second), per_byte=_message_byte(machine, second), assumed=tuple(assumed),
    )  # fmt: skip


def sends_messages(model: Model) -> bool:
    """Return whether a model has steps that send messages."""
    bodies = (model.control, *model.procedures.values())
    return any(isinstance(step, Messages) for body in bodies for step in iterate_steps(body))


def _cycle_seconds(machine: Machine | None) -> float:
    if machine is None or machine.frequency is None:
        raise UsageError(
            "the model counts cycles, and the machine model knows no clock: name one that does, --machine NAME "
            "(gapwatch machines lists them), or measure this one, gapwatch machines probe"
        )
    return 1.0 / float(machine.frequency)


def _first_known(given: float | None, known: float | None, name: str, assumed: list[str]) -> float:
    if given is not None:
        return given
    if known is None:
        assumed.append(name)
        return 0.0
    return known


def _memory_latency(machine: Machine | None, second: float) -> float | None:
    memory = machine.memory if machine else None
    return float(memory.latency) / second if memory and memory.latency else None


def _remote_latency(machine: Machine | None, second: float, near: float) -> float | None:
    network = machine.network if machine else None
    if network is None:
        return near
    return float(network.latency) / second if network.latency else None


def _message_latency(machine: Machine | None, second: float) -> float:
    network = machine.network if machine else None
    return float(network.latency) / second if network and network.latency else 0.0


def _message_byte(machine: Machine | None, second: float) -> float:
    network = machine.network if machine else None
    return 1.0 / (float(network.bandwidth) * second) if network and network.bandwidth else 0.0


def _node_size(machine: Machine | None, processors: int) -> int:
    if machine is None or machine.cores_per_socket is None:
        return processors
    return int(machine.cores_per_socket) * int(machine.sockets or 1)


def _barrier_cost(own: Costs, machine: Machine | None, processors: int, second: float, assumed: list[str]) -> float:
    if processors == 1:
        return 0.0
    doublings = log2(processors)
    if own.barrier is not None or own.barrier_per_doubling is not None:
        return (own.barrier or 0.0) + (own.barrier_per_doubling or 0.0) * doublings
    known_s = barrier_s(machine, processors) if machine else None
    if known_s is None:
        assumed.append("barrier")
        return 0.0
    return known_s / second


def _cache_geometry(own: Costs, machine: Machine | None, line: int) -> tuple[int, int]:
    """Return sets and ways of a processor's cache: the model's own, else the largest that no other core shares."""
    if own.cache is not None:
        size, ways = int(own.cache.size), own.cache.ways
    else:
        private = [
            one for one in (machine.caches.values() if machine else ()) if one.size and int(one.shared_by or 1) == 1
        ]
        if not private:
            raise UsageError("no size of a private cache is known; state costs.cache in the model")
        largest = max(private, key=lambda one: float(one.size or 0.0))
        size, ways = int(largest.size or 0), int(largest.ways or 1)
    return max(size // (line * ways), 1), ways
