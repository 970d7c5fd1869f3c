"""What can be done to a model: the actions of the rules, what each does, and why the others can't be tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor_simulation.whatif.modelled import decomposition, layout, loop_order, synchronization
from advisor_simulation.whatif.modelled.buffering import double_buffer
from advisor_simulation.whatif.reasons import OF_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from advisor_simulation.model.records import Model
    from advisor_simulation.whatif.modelled.setting import ModelSetting


_WEIGHTS: Final = "what an index takes is a number of the model: change its weight"
_MEASURED: Final = "a model holds the time of messages and files as measured: try it on the recorded run"
_ORDER: Final = "a model's references are those of the program, all of them, when they are made"
_NO_LOOKUPS: Final = "a model's loops find their data by their index: it has no pointers to follow and no lookups"
_NO_DEVICES: Final = "models have no devices"
_FIXED: Final = "no model holds what that would change"
#: Changes of the rules that models can't be changed by.
OF_MODELS: Final[Mapping[tuple[str, str], str]] = {
    ("serial", "overlapped"): "in a model nobody works beside a serial part: try it on the recorded run",
    ("threads", "everywhere"): "the processors of a model are all alike, ranks or threads",
    ("placement", "first touch"): "a model has one memory, as far from all",
    ("coherence", "exclusive read"): "the simulated protocol knows no reads that fetch a line for writing",
    ("stores", "nontemporal"): "in the simulated protocol a write always goes into the writer's cache",
    ("ordering", "relaxed"): "simulated processors never wait for their own writes",
    ("sharing", "messages"): "that is another model, of messages: write them as exchanges",
    ("remote", "prefetched"): _MEASURED,
    ("remote", "grouped"): _MEASURED,
    ("remote", "exposed early"): _MEASURED,
    ("communicators", "kept"): _MEASURED,
    ("division", "ranks and threads"): _FIXED,
    ("division", "equal work"): _FIXED,
    ("division", "independent parts"): _FIXED,
    ("output", "rarer"): _MEASURED,
    ("cores", "exclusive"): _FIXED,
    ("cores", "used"): _FIXED,
    ("messages", "overlapped"): _MEASURED,
    ("messages", "grouped"): _MEASURED,
    ("messages", "collective"): _MEASURED,
    ("messages", "neighbours"): _MEASURED,
    ("messages", "staggered"): _MEASURED,
    ("access", "blocks"): _MEASURED,
    ("threads", "more"): "a simulated processor does one thing at a time",
    ("send", "early"): _MEASURED,
    ("turns", "together"): _MEASURED,
    ("receive", "early"): _MEASURED,
    ("pipeline", "finer"): _MEASURED,
    ("collectives", "nonblocking"): _MEASURED,
    ("collectives", "grouped"): _MEASURED,
    ("reductions", "fused"): _MEASURED,
    ("alltoall", "overlapped"): _MEASURED,
    ("cpu", "compiled"): _WEIGHTS,
    ("cpu", "tuned"): _WEIGHTS,
    ("cpu", "optimized"): _WEIGHTS,
    ("cpu", "vectorized"): _WEIGHTS,
    ("cpu", "reordered"): _WEIGHTS,
    ("cpu", "simplified"): _WEIGHTS,
    ("cpu", "inlined"): _WEIGHTS,
    ("cpu", "unlocked"): _WEIGHTS,
    ("cpu", "binary"): _WEIGHTS,
    ("cpu", "interleaved"): _WEIGHTS,
    ("cpu", "unchecked"): _WEIGHTS,
    ("memory", "outside loops"): _WEIGHTS,
    ("memory", "fewer bytes"): _ORDER,
    ("misses", "prefetched"): _ORDER,
    ("layout", "contiguous"): _NO_LOOKUPS,
    ("layout", "ordered"): _NO_LOOKUPS,
    ("locks", "private"): "models have no locks",
    ("tasks", "larger"): "models have no tasks",
    ("workers", "processes"): "models have no interpreter",
    ("jobs", "larger"): "models have no queue of jobs",
    ("jobs", "ahead"): "models have no queue of jobs",
    ("requests", "concurrent"): "models ask nobody",
    ("polls", "fewer"): "models look for nothing: their messages are awaited",
    ("arguments", "smaller"): _WEIGHTS,
    ("memory", "reused"): _WEIGHTS,
    ("imports", "later"): _WEIGHTS,
    ("copies", "shallow"): _WEIGHTS,
    ("threads", "introduced"): "models have as many threads as they name",
    ("threads", "all cores"): "models have as many threads as they name",
    ("threads", "kept"): "models have no threads that end before their program does",
    ("regions", "merged"): "costs.fork is paid by each loop: set it to 0 for one region around all of them",
    ("rebalance", "iterations"): "a domain of a model has one decomposition from beginning to end",
    ("rebalance", "periods"): "a domain of a model has one decomposition from beginning to end",
    ("io", "collective"): _MEASURED,
    ("io", "buffered"): _MEASURED,
    ("io", "asynchronous"): _MEASURED,
    ("io", "parallel"): _MEASURED,
    ("io", "fewer files"): _MEASURED,
    ("fsync", "rare"): _MEASURED,
    ("ranks", "cores"): "--processors says how many there are",
    ("placement", "pinned"): "on models that is A-3, sub-domains bound",
    ("sleep", "removed"): _FIXED,
    ("startup", "shorter"): _FIXED,
    ("shutdown", "shorter"): _FIXED,
    ("io", "aligned"): _MEASURED,
    ("io", "balanced"): _MEASURED,
    ("io", "in order"): _MEASURED,
    ("io", "binary"): _MEASURED,
    ("collectives", "reduced"): _MEASURED,
    ("collectives", "to all"): _MEASURED,
    ("collectives", "once"): _MEASURED,
    ("io", "less"): _MEASURED,
    ("io", "one direction"): _MEASURED,
    ("io", "read once"): _MEASURED,
    ("io", "tuned"): _MEASURED,
    ("io", "unbuffered"): _MEASURED,
    **{word: _NO_DEVICES for word in OF_RUNS if word[0] == "devices"},
}


@dataclass(frozen=True, slots=True)
class ModelChange:
    """A change of models, the ``actions`` of the rules that it carries out, and the tuning step of the first."""

    actions: tuple[str, ...]
    title: str
    step: int
    make: Callable[[Model, ModelSetting], Model | None]


#: Padding stands in step 2: it is about lines that processors share.
CHANGES: Final = (
    ModelChange(
        ("A-1", "A-28", "G-106", "A-35"),
        "a decomposition by weight, along lists of neighbours",
        1,
        decomposition.decompose_by_weight,
    ),
    ModelChange(
        ("A-4",), "a decomposition along lists of neighbours, of equal sizes", 2, decomposition.decompose_equally
    ),
    ModelChange(("G-1",), "serial loops shared by all processors", 1, synchronization.spread_serial_loops),
    ModelChange(("G-12", "G-33"), "rows padded to whole lines of the cache", 2, layout.pad_rows),
    ModelChange(("A-5", "A-23"), "arrays that are used together grouped by row", 2, layout.group_arrays),
    ModelChange(("A-6", "G-42"), "copies of one's own of what is written, added up later", 2, layout.privatize_arrays),
    ModelChange(("G-32",), "loops in the order that takes the smallest steps", 3, loop_order.interchange_loops),
    ModelChange(
        ("A-24", "G-59", "G-72"), "loops cut into blocks that fit into the first cache", 3, loop_order.block_loops
    ),
    ModelChange(("A-3",), "sub-domains bound to processors", 2, synchronization.bind_subdomains),
    ModelChange(("A-12", "A-11"), "sub-domains that exchange most on one node", 2, decomposition.map_to_nodes),
    ModelChange(("A-29", "A-38"), "loops handed out in chunks", 4, synchronization.schedule_dynamically),
    ModelChange(
        ("A-32",), "own pieces first, then those of whoever has most left", 5, synchronization.schedule_by_affinity
    ),
    ModelChange(("G-14",), "one barrier instead of several in a row", 5, synchronization.merge_barriers),
    ModelChange(("G-13", "A-36"), "no barrier between loops that hand nothing on", 5, synchronization.drop_unneeded),
    ModelChange(("A-30",), "fuzzy barriers in front of independent work", 5, synchronization.make_fuzzy),
    ModelChange(("A-31",), "synchronization of those who exchange data", 5, synchronization.wait_pairwise),
    ModelChange(("A-33",), "the decomposition that suits the costliest loop", 6, decomposition.decompose_critical_loop),
    ModelChange(("A-34",), "a decomposition of its own for each loop", 6, decomposition.decompose_each_loop),
    ModelChange(("A-40",), "two copies of what a loop overwrites, no barrier before it", 7, double_buffer),
)
