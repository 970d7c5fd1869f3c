"""Tasks of IPM as call paths: the program, its regions, and below each the calls of MPI and of I/O by size."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import Note, Processor
from advisor.model.units import format_seconds
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.ipm.job_profile import CallSums, TaskProfile

#: The region of what is in none of the program's own, and how IPM calls it.
_NO_REGION: Final = frozenset({"ipm_noregion", "ipm_global", ""})
#: Seconds stand there with five digits.
_SHARE: Final = 1e-3
_SLACK_S: Final = 1e-3
_FULL: Final = "IPM_REPORT=full IPM_LOG=full"

Node = tuple[str, str, int]


def build_call_paths(tasks: Sequence[TaskProfile], path: Path) -> CallPaths:
    """Return the call paths of ``tasks``, a column each."""
    program = Counter(task.program for task in tasks if task.program).most_common(1)
    labels = dict.fromkeys(name for task in tasks for name, _ in task.regions.values() if name not in _NO_REGION)
    nodes = [CallPathNode(program[0][0] if program else "the program", Role.ROOT)]
    numbers: dict[str, int] = dict.fromkeys(_NO_REGION, 0)
    for label in labels:
        numbers[label] = len(nodes)
        nodes.append(CallPathNode(label, Role.USER, parent=0))
    calls = [_sum_calls(task) for task in tasks]
    places: dict[Node, int] = {}
    for node in sorted({node for each in calls for node in each}):
        name, role = classify_region(node[1])
        places[node] = len(nodes)
        nodes.append(CallPathNode(name, role, parent=numbers.get(node[0], 0)))
    shape = (len(nodes), len(tasks))
    wall, visits, moved, shortest = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.full(shape, np.nan)
    for column, (task, each) in enumerate(zip(tasks, calls, strict=True)):
        for node, sums in each.items():
            place = places[node]
            wall[place, column], visits[place, column] = sums.total_s, sums.count
            shortest[place, column], moved[place, column] = sums.shortest_s, sums.moved
        inside = np.zeros(len(nodes))
        for node in each:
            inside[nodes[places[node]].parent] += each[node].total_s
        spent = {name: seconds for name, seconds in task.regions.values() if name not in _NO_REGION}
        for label, seconds in spent.items():
            wall[numbers[label], column] = max(seconds - inside[numbers[label]], 0.0)
        own = task.wall_s - sum(max(spent[label], inside[numbers[label]]) for label in spent) - inside[0]
        wall[0, column] = max(own, 0.0)
        visits[0, column] = 1
    return CallPaths(
        program=nodes[0].name if program else "",
        run=path.name,
        reader="ipm",
        processors=tuple(Processor(task.rank, 0, task.host) for task in tasks),
        nodes=tuple(nodes),
        wall_s=wall,
        visits=visits,
        bytes=moved,
        shortest_s=shortest,
        actual_s=max(task.wall_s for task in tasks),
        started=datetime.datetime.fromtimestamp(min(task.started_s for task in tasks), datetime.UTC).isoformat(
            timespec="seconds"
        ),
        ranks_expected=max(task.size for task in tasks),
        notes=tuple(_check_tasks(tasks)),
    )


class _NodeSums:
    """Calls, seconds, the shortest and the bytes of a node on one task."""

    __slots__ = ("count", "moved", "shortest_s", "total_s")

    def __init__(self) -> None:
        self.count, self.moved, self.total_s, self.shortest_s = 0, 0.0, 0.0, float("inf")

    def add_call(self, sums: CallSums, size: int) -> None:
        self.count += sums.count
        self.moved += float(size) * sums.count
        self.total_s += sums.total_s
        self.shortest_s = min(self.shortest_s, sums.shortest_s)


def _sum_calls(task: TaskProfile) -> dict[Node, _NodeSums]:
    """Return the calls by region, name and size class: calls of a size take alike."""
    found: dict[Node, _NodeSums] = {}
    for (region, call, size), sums in task.calls.items():
        label = task.regions.get(region, ("", 0.0))[0]
        node = (label if label not in _NO_REGION else "", call, size.bit_length())
        found.setdefault(node, _NodeSums()).add_call(sums, size)
    return found


def _check_tasks(tasks: Sequence[TaskProfile]) -> Iterator[Note]:
    """Yield a note where what IPM says twice differs, where calls are missing, and where runs are mixed."""
    for task in tasks:
        if not task.calls and task.mpi_s > _SLACK_S:
            yield Note("calls not listed", "the document holds no single calls: they count as work", 1.0, _FULL)
            break
    doubts = []
    for task in tasks:
        counted = sum(sums.count for sums in task.calls.values())
        if task.stated_calls is not None and counted != task.stated_calls:
            doubts.append(f"task {task.rank} states {task.stated_calls} calls and lists {counted}")
        listed = sum(s.total_s for (_, call, _), s in task.calls.items() if call.startswith("MPI_"))
        if task.calls and abs(listed - task.mpi_s) > _SHARE * task.mpi_s + _SLACK_S:
            stated = format_seconds(task.mpi_s)
            doubts.append(f"task {task.rank} states {stated} in MPI, its calls take {format_seconds(listed)}")
    if len({task.size for task in tasks}) > 1 or len({task.program for task in tasks if task.program}) > 1:
        doubts.append("the tasks are of different runs")
    if doubts:
        yield Note("contradictions in the profile", doubts[0], 0.3, _FULL)
    if max(task.threads for task in tasks) > 1:
        text = f"a task ran {max(task.threads for task in tasks)} threads, of which IPM tells nothing: it is one column"
        yield Note("threads not told apart", text, 0.1)
