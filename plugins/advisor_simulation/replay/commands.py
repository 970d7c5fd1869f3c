"""``gapwatch replay``: light code; what is heavy is imported when the command runs."""

from __future__ import annotations

from pathlib import Path

from advisor.extension.commands import Argument, CommandRegistry, DeferredFunction

NETWORK = (
    Argument("--latency", "latency of a message, such as '5 us'", metavar="TIME"),
    Argument("--bandwidth", "bandwidth of a node, such as '1 GB/s'", metavar="RATE"),
    Argument("--machine", "take latency and bandwidth from a machine model", metavar="MODEL"),
    Argument("--dimemas", "take the machine from a Dimemas configuration (.cfg)", Path),
    Argument("--ideal", "no latency and infinite bandwidth", bool, False),
    Argument("--intra-latency", "latency within a node", metavar="TIME"),
    Argument("--intra-bandwidth", "bandwidth within a node", metavar="RATE"),
    Argument("--ranks-per-node", "place N ranks on each node (0: the nodes of the recording)", int),
    Argument("--eager", "largest message sent without waiting for the receiver, such as '16 KiB'", metavar="SIZE"),
    Argument("--startup", "whether the latency occupies the processor or the wire", choices=("processor", "wire")),
    Argument(
        "--collectives",
        "'dimemas', 'today', or the algorithm of one operation, such as allreduce=ring",
        several=True,
        metavar="ALGORITHM",
    ),
    Argument("--links", "concurrent messages into and out of a node (0: unlimited)", int),
    Argument("--buses", "concurrent messages between all nodes (0: unlimited)", int),
    Argument("--cpu-ratio", "multiply all computation times by this factor", float),
    Argument("--rank-ratio", "the same for one rank, such as 3=0.5", several=True, metavar="RANK=X"),
    Argument("--region-ratio", "the same for one region, such as solve=0.5", several=True, metavar="NAME=X"),
)


MANY = (
    Argument("--sweep", "replay at N points of latency and bandwidth, and compute the exact function of both", int),
    Argument("--grid", "use a grid of points instead of random ones", bool, False),
    Argument("--seed", "seed of the random points", int, 1),
    Argument("--latencies", "range of latencies, such as '0..100 us'", metavar="RANGE"),
    Argument("--bandwidths", "range of bandwidths, such as '100 MB/s..10 GB/s'", metavar="RANGE"),
    Argument("--cpu-ratios", "range of factors on computation, such as '0.5..1'", metavar="RANGE"),
    Argument("--cluster", "address of a Dask scheduler whose workers replay the points", metavar="ADDRESS"),
    Argument("--fit", "fit the model T(P, L, BW) to traces at several numbers of ranks", bool, False),
    Argument("--predict", "predict the run time at numbers of ranks that were not traced", int, several=True),
    Argument("--calibrate", "fit latency and bandwidth to half of the run, and predict the other half", bool, False),
    Argument(
        "--accept",
        "check that the machine of --machine performs as its model promises: exit status 1 if not",
        bool,
        False,
    ),
    Argument("--tolerance", "with --accept: share by which the run may take longer (default: 0.1)", float),
    Argument("--costs", "show what the network and the imbalance cost, and where", bool, False),
)


def register_command(registry: CommandRegistry) -> None:
    """Register the command."""
    registry(
        "replay",
        "replay a recorded trace on another machine",
        (
            Argument("paths", "traces of one program", Path, several=True),
            *NETWORK,
            *MANY,
            Argument(
                "--export",
                "write the replayed run as a profile (.json or .npz), or the points of --sweep (.json)",
                Path,
            ),
            Argument("--picture", "draw the timeline of the replayed run and its critical path (.svg)", Path),
        ),
        DeferredFunction("advisor_simulation.replay.options", "build_report"),
    )
