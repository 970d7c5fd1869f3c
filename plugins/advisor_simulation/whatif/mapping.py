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
from advisor_simulation.replay.network import Network, from_machine
from advisor_simulation.replay.network_options import parse_quantity
from advisor_simulation.whatif.placing import exchanged_bytes, place_by_exchange, sum_outside

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandServices
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.program import Program


def build_report(args: Namespace, services: CommandServices) -> Report:
    """Return the run time of the recorded program with its ranks placed on nodes in three ways."""
    if args.ranks_per_node < 1:
        raise UsageError("--ranks-per-node takes a number from 1 on")
    between = _node_network(args, services)
    program = conversion.convert_trace(services.read_trace(args.path))
    if program.left_out or not len(program.source):
        raise UsageError("the trace does not hold both ends of all messages, so no mapping can be compared")
    with services.show_progress("calibrating messages within a node") as done:
        inner = calibration.calibrate_network(program, Network(), done).network
    network = replace(between, intra_latency_s=inner.latency_s, intra_bandwidth=inner.bandwidth, ranks_per_node=None)
    moved = exchanged_bytes(program)
    nodes = build_mappings(moved, args.ranks_per_node)
    times = [mapped_time_s(program, network, node) for node in nodes.values()]
    rows = [
        (name, time, times[0] - time, sum_outside(moved, node))
        for (name, node), time in zip(nodes.items(), times, strict=True)
    ]
    columns = (Column("mapping"), Column("then", "s"), Column("wins", "s"), Column("between nodes", "B"))
    said = (
        f"Messages within a node take what they took when recorded: {_describe_costs(inner)}; "
        f"between nodes {_describe_costs(between)}."
    )
    table = Table(f"Ranks on nodes of {args.ranks_per_node}, replayed", columns, tuple(rows))
    return Report(f"What if: {program.title} on other nodes", (Text(said), table))


def _node_network(args: Namespace, services: CommandServices) -> Network:
    """Return the network between nodes that the options name."""
    if args.machine is not None:
        return from_machine(services.load_machine(args.machine))
    latency, bandwidth = (
        parse_quantity(args.latency, "time", "--latency"),
        parse_quantity(args.bandwidth, "bandwidth", "--bandwidth"),
    )
    if latency is None or not bandwidth:
        raise UsageError("--ranks-per-node needs the network between nodes: --latency and --bandwidth, or --machine")
    return Network(latency_s=latency, bandwidth=bandwidth)


def _describe_costs(network: Network) -> str:
    return f"{format_seconds(network.latency_s)} and {format_quantity(network.bandwidth, 'bandwidth')}"


def build_mappings(moved: FloatArray, per_node: int) -> dict[str, IntArray]:
    """Return the node of each rank (ranks,), by the name of the mapping."""
    ranks = np.arange(len(moved))
    return {
        "in the order of ranks": ranks // per_node,
        "round robin": ranks % -(-len(moved) // per_node),
        "by what they exchange": place_by_exchange(moved, per_node) // per_node,
    }


def mapped_time_s(program: Program, network: Network, node: IntArray) -> float:
    """Return how long the program takes with its ranks on these nodes, seconds."""
    return outcome.replay_program(replace(program, hosts=tuple(f"node {each}" for each in node)), network).time_s
