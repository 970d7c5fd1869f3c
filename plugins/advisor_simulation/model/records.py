"""The records of a model, as they are written in YAML: one record for each kind of thing, frozen.

The five modules of the source (section 3.3.1): ``control`` and ``procedures`` (control flow), ``reads`` and ``writes``
of the steps with ``tables`` (data dependence), ``domains`` (decomposition), ``arrays`` and ``groups`` (data layout),
``weights`` (weight distribution).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from advisor.model.units import DIMENSIONS
from advisor.support.documents import Between, Mark, Marked
from advisor.support.expressions import Expression
from advisor_simulation.model.accesses import Access

Formula = Marked[Expression]
Reference = Marked[Access]
Share = Annotated[float, Between(0.0, 1.0)]
Name = str
Bytes = Annotated[float, DIMENSIONS["size"]]

Schedule = Literal["static", "chunk", "dynamic", "guided", "self", "affinity"]
End = Literal["barrier", "none", "fuzzy", "neighbours"]


@dataclass(frozen=True, slots=True)
class Values:
    """A table written out: numbers, or rows of numbers, which may have different lengths."""

    values: tuple[float | tuple[float, ...], ...]
    mark: Mark


@dataclass(frozen=True, slots=True)
class FromFile:
    """A table in a file next to the model: text with a row of numbers on each line, or arrays (``.npz``).

    Of these ``values`` holds the numbers; where there is a ``first``, it says where each row begins.
    """

    file: str
    mark: Mark
    ragged: bool = False


@dataclass(frozen=True, slots=True)
class Computed:
    """A table of ``size`` entries, each computed from its number ``i``."""

    size: Formula
    formula: Formula
    mark: Mark


@dataclass(frozen=True, slots=True)
class Grid:
    """The neighbours of each cell of a rectangular grid, first index fastest."""

    grid: tuple[Formula, ...]
    mark: Mark


Table = Values | FromFile | Computed | Grid


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Which processor owns which index of a domain.

    ``block``: consecutive parts, ``floor(k n / P)`` to ``floor((k + 1) n / P)`` (section 4.1.1); ``static``:
    consecutive parts, of which the first n mod P have one index more, as compilers cut loops of OpenMP. ``graph``
    bisects a graph of neighbours again and again with balanced ``weight``; ``metis`` asks METIS. ``explicit`` takes a
    table of owners.
    """

    kind: Literal["block", "static", "cyclic", "block-cyclic", "explicit", "graph", "metis"]
    mark: Mark
    block: Formula | None = None
    owner: Marked[str] | None = None
    graph: Marked[str] | None = None
    weight: Formula | None = None


@dataclass(frozen=True, slots=True)
class Domain:
    """A range of indices 0 to ``size`` - 1 that parallel loops run over."""

    size: Formula
    mark: Mark
    decomposition: Decomposition | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """Data: rows of items, laid out row by row (``row``) or item by item (``column``).

    ``element`` is the size of an item, ``pad`` the number of unused items after each row, ``align`` what the array's
    address is a multiple of. ``at`` is the address that a run gave it; where arrays before it have grown over that, it
    moves on by whole pages, unless it ``overlaps`` them: memory that was given back and allocated again. ``private``
    arrays have a copy on each processor, and ``buffers`` copies are used in turn.
    """

    shape: tuple[Formula, ...]
    mark: Mark
    element: Bytes = 8.0
    order: Literal["row", "column"] = "row"
    pad: Annotated[int, Between(0, 4096)] = 0
    align: Bytes | None = None
    at: Bytes | None = None
    overlaps: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True)
class Weight:
    """The cost of one index: a ``constant``, a ``table`` by index, an ``expression`` or a region of a ``profile``."""

    mark: Mark
    constant: float | None = None
    table: Marked[str] | None = None
    expression: Formula | None = None
    profile: str | None = None
    region: str | None = None
    domain: Marked[str] | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps repeated ``times`` times; ``index`` counts from 0."""

    loop: Name
    times: Formula
    do: tuple[Step, ...]
    mark: Mark
    index: Name = "t"


@dataclass(frozen=True, slots=True)
class When:
    """Steps that are taken when ``condition`` holds, or in that ``ratio`` of the times they are reached."""

    when: Name
    do: tuple[Step, ...]
    mark: Mark
    ratio: Share | None = None
    condition: Formula | None = None
    else_: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """The steps of a procedure."""

    call: Marked[str]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Everybody waits for everybody (``all``); relaxed as the end of a parallel loop may be."""

    barrier: Name
    mark: Mark
    kind: Literal["all", "fuzzy", "neighbours"] = "all"


@dataclass(frozen=True, slots=True)
class Read:
    """A reference that reads; ``where`` restricts it to some executions."""

    read: Marked[Access]
    mark: Mark
    where: Formula | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """A reference that writes; ``where`` restricts it to some executions."""

    write: Marked[Access]
    mark: Mark
    where: Formula | None = None


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop within one index of a domain: ``times`` times its ``body``, counted from 0 by the index ``for``."""

    for_: Name
    times: Formula
    body: tuple[Read | Write | Nest, ...]
    mark: Mark


#: What is executed for one index, in program order.
BodyItem = Read | Write | Nest


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages between processors: from ``p`` to ``to``, ``count`` of ``size`` each; ``where`` leaves senders out.

    Or a ``collective`` of all of them, in which each sends and receives ``size`` as the recorder counts them.
    """

    messages: Name
    size: Formula
    mark: Mark
    to: Formula | None = None
    count: Formula | None = None
    where: Formula | None = None


@dataclass(frozen=True, slots=True)
class Parallel:
    """A loop over a domain whose indices are independent of each other.

    ``body`` states its references in program order, with loops of their own; without it they are made as a whole,
    ``reads`` before ``writes``.

    ``where`` or ``ratio`` restrict it to some of the indices. ``independent`` is the share of its work that needs
    nothing from the loop before, and may be done while that one's fuzzy barrier is still open.
    """

    parallel: Name
    over: Marked[str]
    mark: Mark
    index: Name = "i"
    weight: Formula | None = None
    reads: tuple[Reference, ...] = ()
    writes: tuple[Reference, ...] = ()
    body: tuple[BodyItem, ...] = ()
    schedule: Schedule = "static"
    chunk: Annotated[int, Between(1, 1e9)] | None = None
    where: Formula | None = None
    ratio: Share | None = None
    end: End = "barrier"
    independent: Share = 0.0


@dataclass(frozen=True, slots=True)
class Serial:
    """A part that processor 0 does while the others wait; ``over`` makes it a loop over a domain."""

    serial: Name
    mark: Mark
    weight: Formula | None = None
    over: Marked[str] | None = None
    index: Name = "i"
    reads: tuple[Reference, ...] = ()
    writes: tuple[Reference, ...] = ()
    body: tuple[BodyItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """Time of each processor (number ``p``): moving data (``transfer``), files (``io``), synchronizing or waiting."""

    exchange: Name
    cost: Formula
    mark: Mark
    kind: Literal["transfer", "io", "sync", "wait"] = "transfer"


Step = Loop | When | Call | Barrier | Parallel | Serial | Exchange | Messages


@dataclass(frozen=True, slots=True)
class CacheCosts:
    """A finite cache of each processor, least recently used line replaced first."""

    size: Bytes
    ways: Annotated[int, Between(1, 64)] = 1


@dataclass(frozen=True, slots=True)
class Costs:
    """What the machine takes for things, in the unit of the model; overrides what the machine model says.

    ``memory`` for a miss that memory serves, ``near`` and ``far`` for a line that another processor of the same or of
    another node of ``node`` processors has, also for taking a line from those that read it. A barrier takes
    ``barrier`` + ``barrier_per_doubling`` log2 P. ``signal`` is one synchronization of two processors, ``dispatch``
    one chunk handed out, ``fork`` the start of a parallel loop.
    """

    hit: float = 0.0
    memory: float | None = None
    near: float | None = None
    far: float | None = None
    line: Bytes | None = None
    node: Annotated[int, Between(1, 1e6)] | None = None
    barrier: float | None = None
    barrier_per_doubling: float | None = None
    signal: float = 0.0
    dispatch: float = 0.0
    fork: float = 0.0
    cache: CacheCosts | None = None


@dataclass(frozen=True, slots=True)
class MissingInput:
    """Something that the data behind a model lack: what, and how to get it."""

    at: str
    missing: str
    collect: str | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """An application model.

    ``unit`` is that of all weights and costs. ``processors`` is their number where the model, made of a run, holds for
    no other; ``error`` is the largest error that was found when the model was compared with its program; ``migration``
    is the share of sub-domains that change their processor at the start of each parallel loop, as threads do that are
    not bound.
    """

    aml: Literal["1"]
    name: str
    control: tuple[Step, ...]
    mark: Mark
    description: str = ""
    unit: Literal["cycle", "s"] = "cycle"
    processors: int | None = None
    error: Share = 0.0
    parameters: dict[str, float] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    domains: dict[str, Domain] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    groups: tuple[tuple[Marked[str], ...], ...] = ()
    weights: dict[str, Weight] = field(default_factory=dict)
    procedures: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    costs: Costs = field(default_factory=Costs)
    migration: Share = 0.0
    seed: int = 1
    startup: float = 0.0
    shutdown: float = 0.0
    holes: tuple[MissingInput, ...] = ()
