"""IPM's XML (``report_xml.c``): for each task its times, regions, and the calls of each by size and partner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from advisor.formats.plain_text import read_content
from advisor.formats.safe_xml import parse_xml
from advisor.model.errors import InputError

#: A call in a region: the region's number, the call, and the bytes that one call moved.
CallKey = tuple[int, str, int]


@dataclass(slots=True)
class CallSums:
    """How often a task made a call, what all took together, and the shortest; seconds."""

    count: int = 0
    total_s: float = 0.0
    shortest_s: float = math.inf


@dataclass(slots=True)
class TaskProfile:
    """What IPM wrote of one task. ``regions`` maps a region's number to its name and seconds, calls and all.

    ``stated_calls`` is how many calls the task's table says that it holds, None where there is none.
    """

    rank: int
    size: int
    started_s: float
    wall_s: float = math.nan
    mpi_s: float = math.nan
    host: str | None = None
    program: str = ""
    threads: int = 1
    regions: dict[int, tuple[str, float]] = field(default_factory=dict)
    calls: dict[CallKey, CallSums] = field(default_factory=dict)
    stated_calls: int | None = None


class _JobReader:
    """One pass over a document: the task that is open, and the attributes of the elements that are."""

    def __init__(self) -> None:
        self.tasks: list[TaskProfile] = []
        self._open: list[tuple[str, Mapping[str, str]]] = []

    def start_element(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take the beginning of an element."""
        inside = self._open[-1][0] if self._open else ""
        self._open.append((name, attributes))
        if name == "task":
            self.tasks.append(
                TaskProfile(
                    int(_require(attributes, "mpi_rank")),
                    int(_require(attributes, "mpi_size")),
                    _parse_seconds(_require(attributes, "stamp_init")),
                )
            )
        elif not self.tasks:
            return
        elif name == "perf" and inside == "task":
            self.tasks[-1].wall_s = _parse_seconds(_require(attributes, "wtime"))
            self.tasks[-1].mpi_s = _parse_seconds(_require(attributes, "mtime"))
            self.tasks[-1].threads = int(attributes.get("omp_num_threads", "1"))
        elif name == "region":
            number = int(attributes.get("id", len(self.tasks[-1].regions)))
            seconds = _parse_seconds(_require(attributes, "wtime"))
            self.tasks[-1].regions[number] = (_require(attributes, "label"), seconds)
        elif name == "hash":
            self.tasks[-1].stated_calls = int(_require(attributes, "nlog"))

    def end_element(self, name: str, text: str) -> None:
        """Take the end of an element, with its text if it holds no other elements."""
        _, attributes = self._open.pop()
        if not self.tasks:
            return
        task = self.tasks[-1]
        if name == "host":
            task.host = text.strip() or None
        elif name == "cmdline":
            path = attributes.get("realpath", "").strip()
            task.program = (path or (text.split() or [""])[0]).rsplit("/", 1)[-1]
        elif name == "hent":
            key = (int(attributes.get("region", 0)), _require(attributes, "call"), int(_require(attributes, "bytes")))
            total, least, most = map(_parse_seconds, text.split())
            count = int(_require(attributes, "count"))
            if count < 1 or least > most + 1e-9 or total > most * count * 1.001 + 1e-9 or key[2] < 0:
                raise ValueError(f"the times of {key[1]} contradict each other")
            sums = task.calls.setdefault(key, CallSums())
            sums.count += count
            sums.total_s += total
            sums.shortest_s = min(sums.shortest_s, least)


def _require(attributes: Mapping[str, str], name: str) -> str:
    if name not in attributes:
        raise ValueError(f"the attribute {name} is missing")
    return attributes[name]


def _parse_seconds(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and 0 <= value < 1e12):
        raise ValueError(f"{text[:40]!r} is not a number of seconds")
    return value


def read_tasks(path: Path) -> list[TaskProfile]:
    """Return the tasks in the document at ``path``; raises ``InputError`` with the line of what is damaged."""
    reader = _JobReader()
    parse_xml(read_content(path), reader, path)
    if not reader.tasks:
        raise InputError(path, "holds no task of IPM")
    for task in reader.tasks:
        if math.isnan(task.wall_s):
            raise InputError(path, f"task {task.rank} states no times")
    ranks = [task.rank for task in reader.tasks]
    if len(set(ranks)) < len(ranks):
        raise InputError(path, "two tasks have the same rank: several runs")
    return sorted(reader.tasks, key=lambda task: task.rank)
