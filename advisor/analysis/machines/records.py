"""The records of a machine model. Every number has a source; unknown values are absent, never guessed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from advisor.model import units
from advisor.support.documents import FieldErrors, scalars

UnitName = Literal["fp_add", "fp_mul", "fp_fma", "fp_div", "load", "store", "int", "branch"]
CacheName = Literal["L1", "L2", "L3", "L4"]
KeyPath = tuple[str, ...]


def _split_source(text: str) -> tuple[str, str]:
    """``2.4 GHz`` and ``datasheet`` of ``2.4 GHz @datasheet``."""
    quantity, _, source = text.partition("@")
    if not source.strip():
        raise ValueError("expected the number and the name of its source, such as '2.4 GHz @datasheet'")
    return quantity.strip(), source.strip()


class Number(float):
    """A quantity in the base unit of its dimension, and the name of its source in ``Machine.sources``."""

    __slots__ = ("source",)
    source: str

    def __new__(cls, value: float, source: str = "") -> Self:
        """The number ``value`` as ``source`` gives it."""
        number = super().__new__(cls, value)
        number.source = source
        return number

    @classmethod
    def parse(cls, text: str, dimension: units.Dimension) -> Self:
        """``2.4 GHz @datasheet``; ValueError if unit or source is missing, or the number is not above zero."""
        quantity, source = _split_source(text)
        value = units.parse_with_dimension(quantity, dimension)
        if value <= 0:
            raise ValueError("expected a number above zero; leave out what is not known")
        return cls(value, source)


class Count(int):
    """A whole number, and the name of its source in ``Machine.sources``."""

    source: str

    def __new__(cls, value: int, source: str = "") -> Self:
        """The number ``value`` as ``source`` gives it."""
        count = super().__new__(cls, value)
        count.source = source
        return count

    @classmethod
    def parse(cls, text: str) -> Self:
        """``96 @datasheet``; ValueError if the source is missing, or the number is not whole and above zero."""
        digits, source = _split_source(text)
        value = scalars.parse_whole_number(digits)
        if value <= 0:
            raise ValueError("expected a number above zero; leave out what is not known")
        return cls(value, source)


Seconds = Annotated[Number, units.DIMENSIONS["time"]]
Cycles = Annotated[Number, units.DIMENSIONS["cycle count"]]
Bytes = Annotated[Number, units.DIMENSIONS["size"]]
BytesPerSecond = Annotated[Number, units.DIMENSIONS["bandwidth"]]
BytesPerCycle = Annotated[Number, units.DIMENSIONS["bandwidth per cycle"]]
Hertz = Annotated[Number, units.DIMENSIONS["frequency"]]
PerCycle = Annotated[Number, units.DIMENSIONS["rate per cycle"]]
Bits = Annotated[Number, units.DIMENSIONS["width"]]
DollarsPerHour = Annotated[Number, units.DIMENSIONS["cost"]]


@dataclass(frozen=True, slots=True)
class NumberSource:
    """The source of numbers: a document by its title, or how they were measured."""

    title: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class FunctionalUnit:
    """The issue rate of one kind of operation on one core.

    ``per_cycle`` instructions start per cycle (less than 1: a divider is busy for several cycles), each on ``width``
    bits of double-precision numbers (absent: one number); of narrower ones ``narrow_per_cycle``, where that is more.
    ``chained_latency`` is the latency to the next operation of the same unit, where that is shorter. Units that name
    the same ``pipes`` compete for them.
    """

    per_cycle: PerCycle
    width: Bits | None = None
    narrow_per_cycle: PerCycle | None = None
    latency: Cycles | None = None
    chained_latency: Cycles | None = None
    pipes: str | None = None

    @property
    def operations_per_cycle(self) -> float:
        """Operations on 64-bit numbers per cycle of one core."""
        return max(self.per_cycle * (self.width / 64 if self.width else 1.0), self.narrow_per_cycle or 0.0)

    @property
    def instructions_per_cycle(self) -> float:
        """Instructions of any width per cycle of one core, at most."""
        return max(self.per_cycle, self.narrow_per_cycle or 0.0)


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of data cache: size and line in bytes, of one cache; ``shared_by`` so many cores.

    ``bandwidth`` is what one core can read from it per cycle, ``latency`` that of a load that hits.
    """

    size: Bytes | None = None
    line: Bytes | None = None
    ways: Count | None = None
    latency: Cycles | None = None
    bandwidth: BytesPerCycle | None = None
    shared_by: Count | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """The main memory of one node; ``bandwidth`` is the peak, ``sustained`` what STREAM gets, ``per_core`` one core.

    ``page_fault`` is the time of a page that has to be read from storage.
    """

    kind: str | None = None
    size: Bytes | None = None
    bandwidth: BytesPerSecond | None = None
    sustained: BytesPerSecond | None = None
    per_core: BytesPerSecond | None = None
    latency: Seconds | None = None
    page: Bytes | None = None
    page_fault: Seconds | None = None
    numa_domains: Count | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """The network between nodes: one-way latency of a short message, bandwidth of one node in one direction.

    ``barrier`` is that of two processes.
    """

    name: str | None = None
    topology: str | None = None
    latency: Seconds | None = None
    bandwidth: BytesPerSecond | None = None
    eager_limit: Bytes | None = None
    barrier: Seconds | None = None
    nodes: Count | None = None


@dataclass(frozen=True, slots=True)
class SynchronizationCost:
    """Cost of a barrier of P processors: ``base + per_doubling * log2 P``; ``fork_join``: to start and join them."""

    per_doubling: Seconds
    base: Seconds | None = None
    fork_join: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """One node of a parallel computer, and the network between nodes.

    ``frequency`` is the nominal clock, ``boost`` the highest; ``flops_per_cycle`` counts double-precision
    operations of one core, ``issue`` its instructions of any kind. ``cpus`` are the identities under which processors
    of this kind present themselves. ValueError (``FieldErrors``) if a number names a source that ``sources`` does not
    list, or if one is listed in vain.
    """

    name: str
    title: str
    description: str
    sources: dict[str, NumberSource]
    year: Count | None = None
    cpus: tuple[str, ...] = ()
    sockets: Count | None = None
    cores_per_socket: Count | None = None
    threads_per_core: Count | None = None
    frequency: Hertz | None = None
    boost: Hertz | None = None
    vector_width: Bits | None = None
    flops_per_cycle: PerCycle | None = None
    issue: PerCycle | None = None
    units: dict[UnitName, FunctionalUnit] = field(default_factory=dict)
    caches: dict[CacheName, Cache] = field(default_factory=dict)
    memory: Memory | None = None
    network: Network | None = None
    synchronization: SynchronizationCost | None = None
    cost_per_hour: DollarsPerHour | None = None

    def __post_init__(self) -> None:
        named = [(path, number.source) for path, number in iterate_numbers(self)]
        problems = [
            (path, f"the source '{source}' is not listed in sources{scalars.suggest_word(source, self.sources)}")
            for path, source in named
            if source not in self.sources
        ]
        idle = self.sources.keys() - {source for _, source in named}
        problems += [(("sources", name), f"no number names the source '{name}'") for name in sorted(idle)]
        if problems:
            raise FieldErrors(problems)


def iterate_numbers(record: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Number | Count]]:
    """Every number in the record with the path of keys to it, in the order of the fields."""
    if isinstance(record, Number | Count):
        yield path, record
    elif isinstance(record, dict):
        for key, value in record.items():
            yield from iterate_numbers(value, (*path, str(key)))
    elif is_dataclass(record) and not isinstance(record, type):
        for each in fields(record):
            yield from iterate_numbers(getattr(record, each.name), (*path, each.name))


class Measurement(NamedTuple):
    """A number of a machine model: its field, the value in seconds or bytes per second, and what measured it where."""

    field: str
    value: float
    tool: str
    path: Path
