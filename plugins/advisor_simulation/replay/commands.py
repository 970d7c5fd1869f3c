"""``gapwatch replay``: light code; what is heavy is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.commands import Argument

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandRegistry, CommandServices
    from advisor.model.reports import Report

NETWORK = (
    Argument("--latency", "latency of a message, such as '5 us'"),
    Argument("--bandwidth", "bandwidth of a node, such as '1 GB/s'"),
    Argument("--machine", "take latency and bandwidth from a machine model, by name or file"),
    Argument("--dimemas", "take the machine from a configuration of Dimemas (.cfg)", Path),
    Argument("--ideal", "no latency and infinite bandwidth", bool, False),
    Argument("--intra-latency", "latency between ranks of one node"),
    Argument("--intra-bandwidth", "bandwidth between ranks of one node"),
    Argument("--ranks-per-node", "fill nodes with so many ranks (0: the nodes of the recording)", int),
    Argument("--eager", "messages up to this size are sent at once, such as '16 KiB'"),
    Argument("--startup", "where latency passes", choices=("processor", "wire")),
    Argument("--collectives", "'dimemas', 'today', or an algorithm for one: allreduce=ring", several=True),
    Argument("--links", "messages that travel at a time into and out of a node (0: any number)", int),
    Argument("--buses", "messages that travel at a time between all nodes (0: any number)", int),
    Argument("--cpu-ratio", "computation takes so many times as long as recorded", float),
    Argument("--rank-ratio", "the same for one rank: 3=0.5", several=True),
    Argument("--region-ratio", "the same for one region: solve=0.5", several=True),
)


MANY = (
    Argument("--sweep", "replay at so many points of latency and bandwidth, with the exact run time over both", int),
    Argument("--grid", "points on a grid instead of random ones", bool, False),
    Argument("--seed", "of random points", int, 1),
    Argument("--latencies", "range of latencies, such as '0..100 us'"),
    Argument("--bandwidths", "range of bandwidths, such as '100 MB/s..10 GB/s'"),
    Argument("--cpu-ratios", "range of factors on computation, such as '0.5..1'"),
    Argument("--cluster", "address of a Dask scheduler whose workers replay the points"),
    Argument("--fit", "fit the model T(P, L, BW) to traces at several numbers of ranks", bool, False),
    Argument("--predict", "predict the run time at numbers of ranks that were not traced", int, several=True),
    Argument("--calibrate", "find latency and bandwidth on half of the run, and predict the other half", bool, False),
    Argument(
        "--accept",
        "whether the machine of --machine delivers what its model promises: exit status 1 if not",
        bool,
        False,
    ),
    Argument("--tolerance", "with --accept: by what share the run may take longer (default: 0.1)", float),
    Argument("--costs", "what the network and the imbalance cost, and where", bool, False),
)


def register_command(registry: CommandRegistry) -> None:
    """Register the command."""
    registry(
        "replay",
        "run the recorded trace on another machine",
        (
            Argument("paths", "traces of one program", Path, several=True),
            *NETWORK,
            *MANY,
            Argument(
                "--export",
                "write the replayed run as a profile (.json or .npz), or the points of --sweep (.json)",
                Path,
            ),
            Argument("--picture", "draw the time line of the replayed run and its critical path (.svg)", Path),
        ),
        run_replay,
    )


def run_replay(args: Namespace, services: CommandServices) -> Report:
    """Return what the options ask for."""
    from advisor_simulation.replay import options

    return options.build_report(args, services)
