"""Why some changes of the rules can't be tried on a recorded run, or on a model, and what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    Words = tuple[str, str]

_MODEL: Final = "no recording tells where data lie; try it on a model that says what loops read and write"
_COMPILED: Final = "what a compiler makes of a loop stands in no recording and no model; gapwatch incore looks at that"
_LIBRARIES: Final = "what a library does for fewer calls stands in no recording; the rule states its share"
_CACHES: Final = "the order of references within a loop, which this changes, stands in no recording and no model"
_NODES: Final = "nodes to map to have to be named (--ranks-per-node, with a trace); a model can tell, too"

_FILES: Final = "how long a file system takes for other requests than those recorded stands in no recording"
_SUMS: Final = "sums over the run do not tell when and for whom it happens; record the run (gapwatch run)"
_DEVICES: Final = "device runs have their own replay: the expected gain of the item comes from it"

#: Changes that recorded runs say nothing about.
OF_RUNS: Final[Mapping[Words, str]] = {
    ("placement", "first touch"): "no recording tells in which memory pages lie, and models have one memory",
    ("schedule", "static"): _MODEL,
    ("volume", "smaller"): _MODEL,
    ("layout", "grouped"): _MODEL,
    ("layout", "padded"): _MODEL,
    ("layout", "contiguous"): _CACHES,
    ("layout", "ordered"): _CACHES,
    ("writes", "private"): _MODEL,
    ("coherence", "exclusive read"): "no recording tells single accesses to lines; in models each stays where it is",
    ("stores", "nontemporal"): "neither recordings nor models tell how much of the memory's bandwidth is in use",
    ("ordering", "relaxed"): "neither recordings nor models tell how long a processor waits for its own stores",
    ("sharing", "messages"): "that is another program, with messages that nobody has recorded; write a model of it",
    ("locality", "nodes"): _NODES,
    ("mapping", "neighbours"): _NODES,
    ("threads", "more"): "what threads on one core take from each other was not measured with fewer of them",
    ("collectives", "reduced"): "how long a reduction takes stands in no recording; the rule states its share",
    ("collectives", "to all"): "how long another collective takes stands in no recording; the rule states its share",
    ("collectives", "once"): "whether the data change later is for the program to say; the rule states its share",
    ("messages", "rarer"): "what wider borders cost in computation stands in no recording; write a model of it",
    ("messages", "neighbours"): "which of the data of a collective operation somebody needs stands in no recording",
    ("messages", "staggered"): "how messages hold each other up in the network stands in no recording",
    ("jobs", "ahead"): "what threads need of each other stands in no recording; the rule states its share",
    ("requests", "concurrent"): "what requests need of each other stands in no recording; the rule states its share",
    ("threads", "introduced"): "how loops of one thread scale stands in no recording; the rule states its share",
    ("threads", "all cores"): "how loops of one thread scale stands in no recording; the rule states its share",
    ("threads", "kept"): "how long threads that stay wait for each other stands in no recording of threads that don't",
    ("tasks", "larger"): "what it costs to make a task and to take it up depends on how many are made, and by whom",
    ("cpu", "compiled"): _COMPILED,
    ("cpu", "tuned"): _COMPILED,
    ("cpu", "optimized"): _COMPILED,
    ("cpu", "vectorized"): _COMPILED,
    ("cpu", "reordered"): _COMPILED,
    ("cpu", "simplified"): _COMPILED,
    ("cpu", "inlined"): _COMPILED,
    ("cpu", "unlocked"): _COMPILED,
    ("cpu", "binary"): _COMPILED,
    ("cpu", "interleaved"): _COMPILED,
    ("cpu", "unchecked"): _COMPILED,
    ("memory", "outside loops"): _COMPILED,
    ("memory", "reused"): _LIBRARIES,
    ("remote", "grouped"): _LIBRARIES,
    ("remote", "exposed early"): "what accesses to windows wait for stands in no recording; the rule states its share",
    ("communicators", "kept"): _LIBRARIES,
    ("polls", "fewer"): _LIBRARIES,
    ("imports", "later"): _LIBRARIES,
    ("copies", "shallow"): _LIBRARIES,
    ("memory", "fewer bytes"): _CACHES,
    ("loops", "interchanged"): _CACHES,
    ("loops", "blocked"): _CACHES,
    ("misses", "prefetched"): _CACHES,
    ("placement", "pinned"): "what migration between cores has cost was not recorded",
    ("startup", "shorter"): "nothing tells by how much it can be shorter",
    ("shutdown", "shorter"): "nothing tells by how much it can be shorter",
    ("division", "ranks and threads"): _SUMS,
    ("division", "equal work"): _SUMS,
    ("division", "independent parts"): _SUMS,
    ("output", "rarer"): _SUMS,
    ("cores", "exclusive"): _SUMS,
    ("cores", "used"): _SUMS,
    ("io", "aligned"): _FILES,
    ("io", "in order"): _FILES,
    ("io", "binary"): "how many digits the program needs stands in no recording; the rule states what it usually wins",
    ("io", "less"): _FILES,
    ("io", "one direction"): _FILES,
    ("io", "read once"): _FILES,
    ("io", "tuned"): _FILES,
    ("io", "unbuffered"): _FILES,
    **{("devices", word): _DEVICES for word in (
        "accumulate", "allocations", "batch", "batched", "binding", "buckets", "bytes", "communication",
        "concurrent", "copies", "data", "divergence", "elements", "fusion", "gpu_aware", "grids", "half", "host",
        "host_work", "imbalance", "launches", "lead", "matrix_units", "occupancy", "optimizer", "order",
        "own_device", "pinned", "pipeline", "prefetch", "reads", "registers", "resident", "route", "setup", "shapes",
        "startup", "streams", "synchronizations",
    )},
}  # fmt: skip
