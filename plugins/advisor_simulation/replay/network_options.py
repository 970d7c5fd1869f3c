"""From the options of ``gapwatch replay`` to a network, or from a configuration of Dimemas.

That (``.cfg``) has records of a kind with values, such as ``"environment information" {...};;``. What one machine of
equal nodes is described by is read: bandwidth and buses, of a node processors, speed, latencies, links, and tasks per
node. A megabyte has 2^20 bytes there, and a bandwidth of 0 is none to wait for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.model import units
from advisor.model.errors import InputError, UsageError
from advisor.support.limited_files import read_limited
from advisor_simulation.replay import collectives
from advisor_simulation.replay.network import IDEAL, MEGABYTE, Network, from_machine
from advisor_simulation.replay.program import Op, Program

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandServices

_RECORD: Final = re.compile(r'"([^"]{1,80})"\s*\{([^{}]{0,100000})\}\s*;;')
_MAGIC: Final = "#DIMEMAS_CONFIGURATION"
_LARGEST: Final = 10_000_000
#: Places of the values that are used, in the records of the machine and of its nodes.
_BANDWIDTH, _BUSES = 4, 5
_SPEED, _INNER_LATENCY, _INNER_BANDWIDTH, _LATENCY, _LINKS_IN, _LINKS_OUT = 4, 5, 6, 10, 11, 12
_ENVIRONMENT_VALUES, _NODE_VALUES = 7, 14


def build_network(args: Namespace, services: CommandServices) -> Network | None:
    """Return the network of the options; None where none of them names one, for the recorded times."""
    if args.ideal:
        return replace(IDEAL, **_shared_fields(args))
    if not (args.machine or args.dimemas or args.latency or args.bandwidth):
        return None
    given = _cost_fields(args)
    base = Network()
    if args.machine:
        base = from_machine(services.load_machine(args.machine), given.get("latency_s"), given.get("bandwidth"))
    base = read_config(args.dimemas, base) if args.dimemas else base
    return replace(base, **given, **_shared_fields(args))


def check_network(network: Network, program: Program) -> None:
    """Raise ``UsageError`` where a network names ranks or regions that the program does not have."""
    for rank in network.rank_ratios:
        if not 0 <= rank < program.ranks:
            raise UsageError(f"--rank-ratio {rank}: the run has ranks 0 to {program.ranks - 1}")
    computing = np.unique(program.region[(program.op == Op.BURST) & (program.region >= 0)])
    known = sorted(program.find_name(int(region)) for region in computing)
    for name in network.region_ratios:
        if name not in known:
            raise UsageError(
                f"--region-ratio {name}: no computation in such a region; there is {', '.join(known[:20])}"
            )


def computation_network(args: Namespace) -> Network:
    """Return what the options say about computation alone."""
    return replace(Network(), **_shared_fields(args))


def _cost_fields(args: Namespace) -> dict[str, Any]:
    """Return the fields that name costs of messages."""
    found: dict[str, Any] = {
        "latency_s": parse_quantity(args.latency, "time", "--latency"),
        "bandwidth": parse_quantity(args.bandwidth, "bandwidth", "--bandwidth"),
        "intra_latency_s": parse_quantity(args.intra_latency, "time", "--intra-latency"),
        "intra_bandwidth": parse_quantity(args.intra_bandwidth, "bandwidth", "--intra-bandwidth"),
        "eager_bytes": parse_quantity(args.eager, "size", "--eager"),
        "links_in": args.links, "links_out": args.links, "buses": args.buses, "ranks_per_node": args.ranks_per_node,
    }  # fmt: skip
    found = {name: value for name, value in found.items() if value is not None}
    for name in ("links_in", "buses", "ranks_per_node"):
        if found.get(name, 0) < 0:
            raise UsageError(f"--{name.replace('_in', '').replace('_', '-')} must be 0 or more")
    if "bandwidth" in found and found["bandwidth"] <= 0:
        raise UsageError("--bandwidth must be above 0")
    if args.startup:
        found["startup"] = args.startup
    return found


def _shared_fields(args: Namespace) -> dict[str, Any]:
    """Return the fields about computation and collective operations."""
    found: dict[str, Any] = {"collectives": collectives.parse_models(args.collectives or ())}
    if args.cpu_ratio is not None:
        found["cpu_ratio"] = args.cpu_ratio
    if args.rank_ratio:
        found["rank_ratios"] = {
            _parse_rank(name): ratio for name, ratio in _parse_pairs(args.rank_ratio, "--rank-ratio 3=0.5")
        }
    if args.region_ratio:
        found["region_ratios"] = dict(_parse_pairs(args.region_ratio, "--region-ratio solve=0.5"))
    return found


def parse_quantity(text: str | None, dimension: str, option: str) -> float | None:
    """Return a quantity of an option in base units, None where it is not given; raises ``UsageError``."""
    if text is None:
        return None
    try:
        value = units.parse_quantity(text, dimension)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None
    if value < 0:
        raise UsageError(f"{option} must not be negative")
    return value


def _parse_pairs(texts: Sequence[str], example: str) -> list[tuple[str, float]]:
    found = []
    for text in texts:
        name, _, ratio = text.rpartition("=")
        try:
            value = float(ratio)
        except ValueError:
            value = -1.0
        if not name or not 0.0 <= value < float("inf"):
            raise UsageError(f"{text}: expected a name and a number from 0 on, such as {example}")
        found.append((name, value))
    return found


def _parse_rank(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--rank-ratio {text}: expected the number of a rank") from None


def read_config(path: Path, base: Network | None = None) -> Network:
    """Return the network that a configuration describes, the rest as in ``base``; raises ``InputError``."""
    text = read_limited(path, _LARGEST).decode("utf-8", "surrogateescape")
    if not text.lstrip().startswith(_MAGIC):
        raise InputError(path, f"no configuration of Dimemas: it does not begin with {_MAGIC}", "line 1")
    records: dict[str, list[list[str]]] = {}
    for kind, values in _RECORD.findall(text):
        records.setdefault(kind, []).append([value.strip().strip('"') for value in values.split(",")])
    machine = _require_record(path, records, ("environment information",), _ENVIRONMENT_VALUES)
    node = _require_record(path, records, ("multi node information", "node information"), _NODE_VALUES)
    inner = _parse_number(path, node[_INNER_BANDWIDTH]) * MEGABYTE
    speed = _parse_number(path, node[_SPEED])
    if speed <= 0:
        raise InputError(path, f"the speed of processors must be above 0, not {speed:g}")
    return replace(
        base or Network(),
        latency_s=_parse_number(path, node[_LATENCY]),
        bandwidth=_parse_number(path, machine[_BANDWIDTH]) * MEGABYTE or math.inf,
        intra_latency_s=_parse_number(path, node[_INNER_LATENCY]),
        intra_bandwidth=inner or math.inf,
        links_in=int(_parse_number(path, node[_LINKS_IN])),
        links_out=int(_parse_number(path, node[_LINKS_OUT])),
        buses=int(_parse_number(path, machine[_BUSES])),
        ranks_per_node=_tasks_per_node(path, records.get("predefined mapping information", [])),
        cpu_ratio=1.0 / speed,
    )


def _require_record(path: Path, records: dict[str, list[list[str]]], kinds: tuple[str, ...], values: int) -> list[str]:
    """Return the values of the record of one of ``kinds``; several must agree but for their numbers."""
    found = [record for kind in kinds for record in records.get(kind, [])]
    if not found or any(len(record) != values for record in found):
        raise InputError(path, f'no record "{kinds[0]}" with {values} values')
    if len({tuple(record[3:]) for record in found}) > 1:
        raise InputError(path, "nodes or machines that differ: a replay knows one kind of node")
    return found[0]


def _parse_number(path: Path, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(path, f"expected a number, not {text!r}") from None
    if not (math.isfinite(value) and value >= 0):
        raise InputError(path, f"expected a number from 0 on, not {text}")
    return value


def _tasks_per_node(path: Path, records: list[list[str]]) -> int:
    for record in records:
        found = re.fullmatch(r"(\d{1,7}) TASKS_PER_NODE", " ".join(record).strip())
        if found and int(found[1]) > 0:
            return int(found[1])
        raise InputError(path, f"the mapping {' '.join(record)!r} is not known; N TASKS_PER_NODE is")
    return 1
