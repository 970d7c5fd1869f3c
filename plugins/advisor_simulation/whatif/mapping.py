"""Other mappings of the ranks of a trace to nodes: the recorded program replayed with messages within and between them.

Within a node messages cost what they do in the recording (calibrated on half of it), between nodes what the machine
model's network says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import UsageError
from advisor.model.reports import Column, Report, Table, Text
from advisor.model.units import format_quantity, format_seconds
from advisor_simulation.replay import calibration, conversion, outcome
from advisor_simulation.replay.network import Network, of_machine
from advisor_simulation.replay.setup import quantity
from advisor_simulation.whatif.placing import outside, placed

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import Services
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.program import Program


def report(args: Namespace, services: Services) -> Report:
    """Return the run time of the recorded program with its ranks placed in three ways on nodes of so many ranks."""
    if args.ranks_per_node < 1:
        raise UsageError("--ranks-per-node takes a number from 1 on")
    between = _between(args, services)
    program = conversion.program(services.trace(args.path))
    if program.left_out or not len(program.source):
        raise UsageError("the trace does not hold both ends of all messages, so no mapping can be compared")
    with services.working("calibrating messages within a node") as done:
        inner = calibration.calibrate(program, Network(), done).network
    network = replace(between, intra_latency_s=inner.latency_s, intra_bandwidth=inner.bandwidth, ranks_per_node=None)
    moved = exchanged(program)
    nodes = mappings(moved, args.ranks_per_node)
    times = [time_s(program, network, node) for node in nodes.values()]
    rows = [
        (name, time, times[0] - time, outside(moved, node))
        for (name, node), time in zip(nodes.items(), times, strict=True)
    ]
    columns = (Column("mapping"), Column("then", "s"), Column("wins", "s"), Column("between nodes", "B"))
    said = (
        f"Messages within a node take what they took when recorded: {_costs(inner)}; between nodes {_costs(between)}."
    )
    table = Table(f"Ranks on nodes of {args.ranks_per_node}, replayed", columns, tuple(rows))
    return Report(f"What if: {program.title} on other nodes", (Text(said), table))


def _between(args: Namespace, services: Services) -> Network:
    """Return the network between nodes that the options name."""
    if args.machine is not None:
        return of_machine(services.machine(args.machine))
    latency, bandwidth = (
        quantity(args.latency, "time", "--latency"),
        quantity(args.bandwidth, "bandwidth", "--bandwidth"),
    )
    if latency is None or not bandwidth:
        raise UsageError("--ranks-per-node needs the network between nodes: --latency and --bandwidth, or --machine")
    return Network(latency_s=latency, bandwidth=bandwidth)


def _costs(network: Network) -> str:
    return f"{format_seconds(network.latency_s)} and {format_quantity(network.bandwidth, 'bandwidth')}"


def exchanged(program: Program) -> FloatArray:
    """Return the bytes that go from each rank to each (ranks, ranks)."""
    moved = np.zeros((program.ranks, program.ranks))
    np.add.at(moved, (program.source, program.target), program.sizes)
    return moved


def mappings(moved: FloatArray, per_node: int) -> dict[str, IntArray]:
    """Return the node of each rank (ranks,), by the name of the mapping."""
    ranks = np.arange(len(moved))
    return {
        "in the order of ranks": ranks // per_node,
        "round robin": ranks % -(-len(moved) // per_node),
        "by what they exchange": placed(moved, per_node) // per_node,
    }


def time_s(program: Program, network: Network, node: IntArray) -> float:
    """Return how long the program takes with its ranks on these nodes, seconds."""
    return outcome.replay(replace(program, hosts=tuple(f"node {each}" for each in node)), network).time_s
