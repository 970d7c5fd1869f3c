"""Configurations of Dimemas (``.cfg``): records of a kind with values, such as ``"environment information" {...};;``.

What one machine of equal nodes is described by is read: bandwidth and buses, of a node processors, speed, latencies,
links, and tasks per node. A megabyte has 2^20 bytes there, and a bandwidth of 0 is none to wait for.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited
from advisor_simulation.replay.network import MEGABYTE, Network

_RECORD: Final = re.compile(r'"([^"]{1,80})"\s*\{([^{}]{0,100000})\}\s*;;')
_MAGIC: Final = "#DIMEMAS_CONFIGURATION"
_LARGEST: Final = 10_000_000
#: Places of the values that are used, in the records of the machine and of its nodes.
_BANDWIDTH, _BUSES = 4, 5
_SPEED, _INNER_LATENCY, _INNER_BANDWIDTH, _LATENCY, _LINKS_IN, _LINKS_OUT = 4, 5, 6, 10, 11, 12
_ENVIRONMENT_VALUES, _NODE_VALUES = 7, 14


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
