"""From rocprofv3's JSON (``*_results.json``) to a ``DeviceTrace``."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from advisor.formats.number_lines import open_maybe_packed
from advisor.formats.rocprof.grids import compute_groups_per_unit
from advisor.model.errors import InputError
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace
from advisor.trace.devices.iterations import find_iterations

_LARGEST: Final = 4 << 30


def read_documents(files: Sequence[Path]) -> DeviceTrace:
    """Return the run that these documents hold, each process a rank; raises ``InputError`` for what is damaged."""
    builder = DeviceTraceBuilder()
    rank = 0
    for file in files:
        for process in _load(file):
            try:
                rank = _Process(process, builder).read_process(rank, file)
            except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
                raise InputError(file, f"is damaged, or of another version of rocprofv3: {error!r}") from error
    if not rank:
        raise InputError(files[0], "holds no kernels and no calls of the runtime")
    return builder.build_trace(files[0], program="", tool="rocprofv3")


def _load(file: Path) -> list[dict[str, Any]]:
    try:
        with open_maybe_packed(file) as stream:
            text = stream.read(_LARGEST)
        found = json.loads(text)["rocprofiler-sdk-tool"]
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(file, f"is damaged or cut off: {error}") from error
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


class _Process:
    """Reads the records of one process into the builder."""

    def __init__(self, document: dict[str, Any], builder: DeviceTraceBuilder) -> None:
        self._builder = builder
        self._records = document["buffer_records"]
        self._operations = [kind["operations"] for kind in document["strings"]["buffer_records"]]
        marked = document["strings"].get("marker_api", [])
        self._messages = {each.get("key"): each.get("value") for each in marked if isinstance(each, dict)}
        self._units = {each["id"]["handle"]: each.get("cu_count", 0) for each in document["agents"]}
        self._names = {
            each["kernel_id"]: each.get("formatted_kernel_name") or each.get("kernel_name") or "kernel"
            for each in document["kernel_symbols"]
        }
        self._host = document["metadata"]["node"].get("hostname")

    def read_process(self, rank: int, file: Path) -> int:
        """Add the process; return the next rank."""
        self._builder.begin_process()
        for kind in ("hip_api", "rccl_api") if self._records.get("hip_api") else ("hsa_api", "rccl_api"):
            for row in self._records.get(kind, []):
                name = self._operations[row["kind"]][row["operation"]]
                role = naming.classify_call(name)
                self._builder.add_call(*_find_times(row), f"thread {row['thread_id']}", role, name, _find_link(row))
        for row in self._records.get("kernel_dispatch", []):
            self._add_kernel(row)
        for row in self._records.get("memory_copy", []):
            self._add_copy(row)
        self._add_markers()
        return rank + self._builder.end_process(rank, self._host, 0, file)

    def _add_kernel(self, row: dict[str, Any]) -> None:
        info = row["dispatch_info"]
        name, agent = str(self._names.get(info["kernel_id"], "kernel")), info["agent_id"]["handle"]
        kind = naming.classify_activity(name)
        stream = row.get("stream_id", info["queue_id"])["handle"]
        items, each = ([info[size][axis] for axis in ("x", "y", "z")] for size in ("grid_size", "workgroup_size"))
        fill = compute_groups_per_unit(items, each, self._units.get(agent, 0))
        self._builder.add_activity(
            *_find_times(row), agent, stream, kind, name, link=_find_link(row),
            group=name if kind == Activity.COMMUNICATION else "", blocks_per_sm=fill,
            local_bytes=info.get("private_segment_size", -1),
        )  # fmt: skip

    def _add_copy(self, row: dict[str, Any]) -> None:
        words = self._operations[row["kind"]][row["operation"]]
        device = row["dst_agent_id" if "HOST_TO" in words else "src_agent_id"]["handle"]
        self._builder.add_activity(
            *_find_times(row), device, "copies", Activity.COPY, f"memcpy {words}", size=row.get("bytes", -1),
            link=_find_link(row), pageable=False,
        )  # fmt: skip

    def _add_markers(self) -> None:
        """Add ranges that the program marks; those that repeat are iterations."""
        ranges = []
        for row in self._records.get("marker_api", []):
            start, end = _find_times(row)
            told = self._messages.get(row["correlation_id"]["internal"])
            name = str(told or self._operations[row["kind"]][row["operation"]])
            self._builder.add_call(start, end, f"thread {row['thread_id']}", CallRole.WORK, name)
            ranges.append((start, end, row["thread_id"], name))
        for start, end in find_iterations(ranges):
            self._builder.add_mark(start, end)


def _find_times(row: dict[str, Any]) -> tuple[int, int]:
    start, end = row["start_timestamp"], row["end_timestamp"]
    return start, max(start, end)


def _find_link(row: dict[str, Any]) -> int:
    found = row["correlation_id"]["internal"]
    return found if isinstance(found, int) and found > 0 else -1
