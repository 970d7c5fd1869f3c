"""Samples -> a machine model; each number names a source that says how it was measured and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from advisor.analysis.machines.records import (
    Cache,
    CacheName,
    FunctionalUnit,
    Machine,
    Memory,
    Network,
    Number,
    NumberSource,
    SynchronizationCost,
    UnitName,
    iterate_numbers,
)
from advisor.model.units import format_bytes
from advisor_processor.probe.samples import Samples, round_cycles, round_rate
from advisor_processor.probe.tools import BANDWIDTHS

SamplesByKernel = dict[str, Samples]
#: Additions and multiplications at once are this much faster than either alone where they have pipes of their own.
_APART: Final = 1.2
_RATE: Final = "independent instructions, rounded up to what a core can start in a cycle"
_LATENCY: Final = "dependent instructions, rounded down to whole cycles"
_FP: Final = ("fp_add", "fp_mul", "fp_fma")
#: Measured by programs that do not look at the clock.
_READ, _TRIAD = (name for name, _, _ in BANDWIDTHS)
_UNTIMED: Final = ("message", "transfer", "rendezvous", "page_fault", _READ, _TRIAD)
_PIPES: Final = "floating point"


def build_machine(name: str, host: Machine, found: SamplesByKernel, sizes: Mapping[str, int], width: int) -> Machine:
    """Return the model of the machine that ``host`` describes, with the numbers ``found`` on it."""
    notes = _SourcedNumbers(found)
    frequency = notes.add_number(
        "clock", 1 / found["clock"].typical_s, "dependent additions of integers, first quartile"
    )
    how = "dependent additions of integers, the fastest seen three times beside all other kernels"
    boost = notes.add_number("clock", 1 / _fastest_cycle(found), how, "boost")
    units = _build_units(notes, width)
    issue = notes.add_number("issue", round_rate(found["issue"].cycles), f"no-operations: {_RATE}")
    peak, memory = _compute_peak(notes, units), _build_memory(notes, host.memory or Memory(), sizes)
    caches = {level: _build_cache(notes, level, cache, sizes) for level, cache in host.caches.items()}
    network, synchronization = _build_network(notes), _build_synchronization(notes)
    kept = (host.sockets, host.cores_per_socket, host.threads_per_core, host.vector_width, caches, memory)
    known = {number.source for part in kept for _, number in iterate_numbers(part)}
    return replace(
        host,
        name=name,
        title=f"{host.title}, measured",
        description="Measured on this machine; counts and sizes as reported by the system.",
        sources={key: source for key, source in host.sources.items() if key in known} | notes.sources,
        frequency=frequency,
        boost=boost,
        flops_per_cycle=peak,
        issue=issue,
        units=units,
        caches=caches,
        memory=memory,
        network=network,
        synchronization=synchronization,
    )


def _fastest_cycle(found: SamplesByKernel) -> float:
    """Return the shortest cycle in seconds that was seen three times, so that one jump of a clock does not count."""
    seen = sorted(cycle for key, one in found.items() if key not in _UNTIMED for cycle in one.cycle_s)
    return seen[min(2, len(seen) - 1)]


class _SourcedNumbers:
    """The samples, and the sources of the numbers derived from them."""

    def __init__(self, found: SamplesByKernel) -> None:
        self.found = found
        self.sources: dict[str, NumberSource] = {}

    def add_number(self, key: str, value: float, how: str, name: str | None = None) -> Number:
        """Return ``value`` with a source that says how it was measured and how far its samples lay apart."""
        source = f"probe {name or key}"
        self.sources[source] = NumberSource(
            f"measured here by gapwatch machines probe: {how}; {self.found[key].description}"
        )
        return Number(value, source)

    def fastest_rate(self, keys: Sequence[str], how: str) -> Number | None:
        """Return the highest rate of several ways to measure the same; None where none of them was measured."""
        known = [key for key in keys if key in self.found]
        if not known:
            return None
        best = min(known, key=lambda key: self.found[key].best_s)
        return self.add_number(best, _round_digits(1 / self.found[best].best_s), how)

    def instruction_rate(self, key: str, least: float = 0.0) -> Number | None:
        """Return instructions per cycle, at least ``least``; None where it was not measured."""
        if key not in self.found:
            return None
        return self.add_number(key, max(round_rate(self.found[key].cycles), least), _RATE)

    def result_latency(self, key: str) -> Number | None:
        """Return cycles until a result can be used; None where it was not measured."""
        if key not in self.found:
            return None
        return self.add_number(key, round_cycles(self.found[key].cycles), _LATENCY)


def _build_units(notes: _SourcedNumbers, width: int) -> dict[UnitName, FunctionalUnit]:
    units: dict[UnitName, FunctionalUnit] = {}
    shared, together = _detect_sharing(notes.found)
    names: tuple[UnitName, ...] = ("fp_add", "fp_mul", "fp_fma", "fp_div", "load", "store")
    for name in names:
        wide = notes.instruction_rate(f"{name}.wide")
        if wide is not None:
            units[name] = FunctionalUnit(
                per_cycle=wide,
                width=Number(width, wide.source),
                narrow_per_cycle=notes.instruction_rate(f"{name}.narrow", together if name in _FP else 0.0),
                latency=_unit_latency(notes, name),
                chained_latency=_chained_latency(notes) if name == "fp_add" else None,
                pipes=_PIPES if shared and name in _FP else None,
            )
    if (rate := notes.instruction_rate("int.narrow")) is not None:
        units["int"] = FunctionalUnit(per_cycle=rate, latency=Number(1, rate.source))
    return units


def _unit_latency(notes: _SourcedNumbers, name: str) -> Number | None:
    """Return the cycles of a unit; of loads those of the first cache, of stores the way back to a load."""
    if name == "load":
        return notes.result_latency("L1.latency")
    if name == "fp_add" and _chained_latency(notes) is not None:
        how = "a chain of additions and multiplications in turn, less the multiplication, rounded down to whole cycles"
        return notes.add_number("mixed.latency", round_cycles(_addition_cycles(notes.found)), how)
    if name != "store":
        return notes.result_latency(f"{name}.latency")
    ways = [key for key in ("forward", "forward.moving") if key in notes.found]
    if not ways or "fp_add.latency" not in notes.found:
        return None
    fastest = min(ways, key=lambda key: notes.found[key].cycles)
    cycles = notes.found[fastest].cycles - _addition_cycles(notes.found)
    how = "stored, loaded again and added to, less the addition, rounded down to whole cycles"
    return notes.add_number(fastest, round_cycles(max(cycles, 1.0)), how)


def _addition_cycles(found: SamplesByKernel) -> float:
    """Return the cycles of an addition whose operand does not come from another addition."""
    if not {"mixed.latency", "fp_mul.latency"} <= found.keys():
        return found["fp_add.latency"].cycles
    return max(found["mixed.latency"].cycles - found["fp_mul.latency"].cycles, found["fp_add.latency"].cycles)


def _chained_latency(notes: _SourcedNumbers) -> Number | None:
    """Return the latency from addition to addition where it is shorter than from elsewhere."""
    if "fp_add.latency" not in notes.found:
        return None
    chained = round_cycles(notes.found["fp_add.latency"].cycles)
    return notes.result_latency("fp_add.latency") if chained < round_cycles(_addition_cycles(notes.found)) else None


def _detect_sharing(found: SamplesByKernel) -> tuple[bool, float]:
    """Return whether additions and multiplications compete for pipes, and how many narrow ones start together."""
    if not {"mixed.wide", "fp_add.wide", "fp_mul.wide"} <= found.keys():
        return False, 0.0
    alone = min(found["fp_add.wide"].cycles, found["fp_mul.wide"].cycles)
    shared = found["mixed.wide"].cycles * _APART > alone
    return shared, round_rate(found["mixed.narrow"].cycles) if "mixed.narrow" in found else 0.0


def _compute_peak(notes: _SourcedNumbers, units: Mapping[UnitName, FunctionalUnit]) -> Number | None:
    """Return the floating-point operations per cycle of a core: a multiply-add counts as two."""
    rates = {name: units[name].operations_per_cycle for name in units if name in _FP}
    if not rates:
        return None
    fused = 2 * rates.get("fp_fma", 0.0)
    apart = rates.get("fp_add", 0.0) + rates.get("fp_mul", 0.0)
    shared = any(unit.pipes for unit in units.values())
    best = max(fused, *rates.values()) if shared else max(fused, apart) + (rates.get("fp_add", 0.0) if fused else 0.0)
    key = "fp_fma.wide" if "fp_fma" in rates else "fp_add.wide"
    return notes.add_number(key, best, "the rates of the units that work at once, a multiply-add counts twice", "peak")


def _build_cache(notes: _SourcedNumbers, level: CacheName, cache: Cache, sizes: Mapping[str, int]) -> Cache:
    if level not in sizes:
        return cache
    size = format_bytes(sizes[level])
    latency, read = notes.found.get(f"{level}.latency"), notes.found.get(f"{level}.read")
    if latency:
        how = f"pointers followed through {size} in random order, the fewest cycles"
        cache = replace(cache, latency=notes.add_number(f"{level}.latency", float(int(latency.fewest_cycles)), how))
    if read:
        per_cycle = 1 / read.fewest_cycles
        how = f"{size} read again and again by one core"
        cache = replace(cache, bandwidth=notes.add_number(f"{level}.read", _round_digits(per_cycle), how))
    return cache


def _build_memory(notes: _SourcedNumbers, memory: Memory, sizes: Mapping[str, int]) -> Memory:
    size = format_bytes(sizes["memory"])
    if latency := notes.found.get("memory.latency"):
        how = f"pointers followed through {size} in random order"
        memory = replace(memory, latency=notes.add_number("memory.latency", _round_digits(latency.best_s), how))
    per_core = notes.fastest_rate(("memory.read", _READ), f"{size} read by one core")
    sustained = notes.fastest_rate(
        ("triad", _TRIAD), f"STREAM's triad over {size} by all cores, bytes as STREAM counts them"
    )
    if (fault := notes.found.get("page_fault")) and fault.best_s > 0:
        how = "pages of a file that were evicted from the page cache, read back one by one"
        memory = replace(memory, page_fault=notes.add_number("page_fault", _round_digits(fault.best_s), how))
    return replace(memory, per_core=per_core or memory.per_core, sustained=sustained or memory.sustained)


def _build_network(notes: _SourcedNumbers) -> Network | None:
    if "message" not in notes.found:
        return None
    how = "half of a round trip between two processes of this node through MPI"
    return Network(
        name="MPI within this node",
        latency=notes.add_number("message", _round_digits(notes.found["message"].best_s), f"{how}, 8 B"),
        bandwidth=notes.add_number("transfer", _round_digits(1 / notes.found["transfer"].best_s), f"{how}, 4 MiB"),
        barrier=notes.add_number("rendezvous", _round_digits(notes.found["rendezvous"].best_s), "a barrier of MPI")
        if "rendezvous" in notes.found
        else None,
    )


def _build_synchronization(notes: _SourcedNumbers) -> SynchronizationCost | None:
    """Return the cost of barriers of threads: through those of one and of all, the least in between."""
    teams = {int(key.removeprefix("barrier.")): one for key, one in notes.found.items() if key.startswith("barrier.")}
    most = max(teams, default=1)
    if most < 2 or 1 not in teams:
        return None
    per_doubling = max((teams[most].best_s - teams[1].best_s) / math.log2(most), 1e-9)
    base = notes.add_number("barrier.1", _round_digits(teams[1].best_s), "a barrier of OpenMP with one thread")
    how = f"a barrier of OpenMP with {most} threads, less that of one"
    fork_join = None
    if "fork_join" in notes.found:
        best = _round_digits(notes.found["fork_join"].best_s)
        fork_join = notes.add_number("fork_join", best, f"an empty parallel region of OpenMP with {most} threads")
    return SynchronizationCost(notes.add_number(f"barrier.{most}", _round_digits(per_doubling), how), base, fork_join)


def _round_digits(value: float) -> float:
    """Return ``value`` to four significant digits: more were never measured."""
    return float(f"{value:.4g}")
