"""From the events of Chrome traces, one file for each rank, to a ``DeviceTrace``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from advisor.formats.chrome_trace.stream import EventStream
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.trace.devices.events import DeviceTrace

#: What is said of a trace of another kind of program.
NO_DEVICES: Final = "the trace holds no calls, operators or activities of devices"
_ACTIVITIES: Final = frozenset(("kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "concurrent_kernel"))
_CALLS: Final = frozenset(("cuda_runtime", "cuda_driver", "hip_runtime", "mtia_runtime", "xpu_runtime", "runtime"))
_OPERATORS: Final = frozenset(("cpu_op", "operator"))
#: What the first profilers with Kineto called the categories (PyTorch 1.8 and 1.9), in lower case.
_FIRST_CATEGORIES: Final = {"memcpy": "gpu_memcpy", "memset": "gpu_memset", "python": "python_function"}
#: Bytes of an element of a communication, by the names that PyTorch gives the types.
_ELEMENT_B: Final = {
    "Float": 4, "Int": 4, "Double": 8, "Long": 8, "Half": 2, "BFloat16": 2, "Short": 2, "Char": 1, "Byte": 1, "Bool": 1,
}  # fmt: skip
_ANNOTATIONS: Final = frozenset(("user_annotation", "cpu_instant_event"))
#: Ranges that PyTorch marks, among the operators in its first profilers with Kineto.
_ANNOTATED: Final = re.compile(r"ProfilerStep#|enumerate\(DataLoader\)|Optimizer\.")
#: How TensorFlow, JAX and rocprof call the processes that stand for devices, and their threads that hold kernels.
_DEVICE: Final = re.compile(r"(?:/device:(?:GPU|TPU):|^GPU ?)(\d+)")
_NO_KERNELS: Final = re.compile(r"Modules|Steps|Framework|TraceMe|Source|Launch Stats|Scope")
#: NVIDIA's devices have matrix units from this compute capability on.
_MATRIX_UNITS: Final = 7
_MOST_RANKS: Final = 10_000_000
_US: Final = 1000  # nanoseconds in the unit of the times


def read_device_trace(files: Sequence[Path]) -> DeviceTrace:
    """Return the run that these files hold, one rank each; raises ``InputError`` for what is damaged."""
    builder = DeviceTraceBuilder()
    for number, file in enumerate(files):
        _RankReader(file, builder, number).read_rank()
    return builder.build_trace(files[0], program="", tool="PyTorch profiler")


class _RankReader:
    """Reads one file into the builder."""

    def __init__(self, file: Path, builder: DeviceTraceBuilder, number: int) -> None:
        self._file, self._builder, self._number = file, builder, number
        self._devices: dict[Any, str] = {}
        self._threads: dict[Any, str] = {}
        self._own: list[tuple[int, int, int, str]] = []
        self._gloo: list[tuple[int, int, str]] = []
        self._data: list[tuple[int, int, int]] = []
        self._multiprocessors: dict[Any, int] = {}

    def read_rank(self) -> None:
        """Add all events; without activities of a device the operators of the host's threads count as such."""
        stream = EventStream(self._file)
        self._builder.begin_process()
        bad = 0
        for event in stream.iterate_events():
            if not self._multiprocessors and "deviceProperties" in stream.header:
                self._note_devices(stream.header["deviceProperties"])
            try:
                self._add_event(event)
            except (KeyError, TypeError, ValueError, OverflowError):
                bad += 1
        header = stream.header
        stated = header.get("distributedInfo")
        info = stated if isinstance(stated, dict) else {}
        rank = info.get("rank")
        base = header.get("baseTimeNanoseconds", 0)
        known = self._builder.end_process(
            rank=rank if isinstance(rank, int) and 0 <= rank < _MOST_RANKS else self._number,
            host=str(header["host_name"]) if "host_name" in header else None,
            base_ns=base if isinstance(base, int) and 0 <= base < 1 << 61 else 0,
            file=self._file,
            work=self._host_work() if not self._builder.has_activities else None,
        )
        if isinstance(info.get("world_size"), int):
            self._builder.ranks_expected = max(self._builder.ranks_expected or 0, info["world_size"])
        if bad:
            text = f"{bad} events of {self._file.name} lack a time or have another form than expected"
            self._builder.notes.append(Note("events not read", text, 0.1))
        if not known:
            raise InputError(self._file, NO_DEVICES)

    def _add_event(self, event: dict[str, Any]) -> None:
        phase = event.get("ph")
        if phase == "M":
            self._note_metadata(event)
        if phase != "X" or "dur" not in event:
            return
        category, name = str(event.get("cat", "")).lower(), str(event["name"])
        category = _FIRST_CATEGORIES.get(category, category)
        start = _to_ns(event["ts"])
        end = start + max(_to_ns(event["dur"]), 0)
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        if category in _ACTIVITIES or (event.get("pid") in self._devices and self._is_stream(event)):
            self._add_activity(event, name, start, end, args)
        elif category in _CALLS or (category not in _OPERATORS and naming.is_runtime_call(name)):
            correlation = args.get("correlation", args.get("External id", -1))
            self._add_call(event, name, start, end, naming.classify_call(name), _to_whole(correlation))
        elif category in _OPERATORS and not _ANNOTATED.match(name):
            self._own.append((start, end, self._builder.find_thread(self._thread(event)), name))
            self._add_call(event, name, start, end, CallRole.WORK)
        elif category in _ANNOTATIONS or category in _OPERATORS:
            self._add_annotation(event, name, start, end)

    def _note_devices(self, properties: object) -> None:
        for known in properties if isinstance(properties, list) else ():
            if isinstance(known, dict) and isinstance(known.get("numSms"), int) and known["numSms"] > 0:
                self._multiprocessors[known.get("id")] = known["numSms"]
                if _to_whole(known.get("computeMajor", -1)) in range(_MATRIX_UNITS):
                    self._builder.add_count("devices_without_matrix_units", 1)

    def _note_metadata(self, event: dict[str, Any]) -> None:
        words = str((event.get("args") or {}).get("name", ""))
        if event.get("name") == "process_name" and (found := _DEVICE.search(words)):
            self._devices[event.get("pid")] = found[1]
        if event.get("name") == "thread_name":
            self._threads[event.get("pid"), event.get("tid")] = words

    def _is_stream(self, event: dict[str, Any]) -> bool:
        return not _NO_KERNELS.search(self._threads.get((event.get("pid"), event.get("tid")), ""))

    def _thread(self, event: dict[str, Any]) -> str:
        return f"thread {event.get('tid')}"

    def _add_activity(self, event: dict[str, Any], name: str, start: int, end: int, args: dict[str, Any]) -> None:
        device = args.get("device", self._devices.get(event.get("pid"), event.get("pid", 0)))
        stream = args.get("stream", event.get("tid", 0))
        kind = naming.classify_activity(name)
        group = ""
        if kind == Activity.COMMUNICATION:
            members = args.get("Process Group Name", args.get("Process Group Ranks", ""))
            group = f"{members} {args.get('Collective name', name)}"
        occupancy = args.get("est. achieved occupancy %")
        self._builder.add_activity(
            start, end, device, stream, kind, name, size=self._find_size(args),
            link=_to_whole(args.get("correlation", -1)), group=group, blocks_per_sm=self._find_fill(args, device),
            occupancy=occupancy / 100 if isinstance(occupancy, int | float) and occupancy > 0 else -1.0,
        )  # fmt: skip

    def _find_size(self, args: dict[str, Any]) -> int:
        """Return the bytes of a copy or of a communication, -1 where they are not told; note those of floats."""
        size = args.get("bytes", -1)
        elements, kind = args.get("In msg nelems"), args.get("dtype")
        if isinstance(elements, int) and kind in _ELEMENT_B:
            size = max(elements, _to_whole(args.get("Out msg nelems", -1))) * _ELEMENT_B[kind]
            self._builder.add_count("communication_bytes", size)
            self._builder.add_count("float_communication_bytes", size if kind == "Float" else 0)
        return int(size) if isinstance(size, int | float) else -1

    def _find_fill(self, args: dict[str, Any], device: object) -> float:
        """Return the blocks of a kernel for each multiprocessor, -1 where grid or device are not told."""
        told = args.get("blocks per SM")
        if isinstance(told, int | float) and told > 0:
            return float(told)
        grid, count = args.get("grid"), self._multiprocessors.get(device, 0)
        if count and isinstance(grid, list) and len(grid) == 3 and all(isinstance(each, int) for each in grid):
            return float(grid[0] * grid[1] * grid[2] / count) or -1.0
        return -1.0

    def _add_call(self, event: dict[str, Any], name: str, start: int, end: int, role: CallRole, link: int = -1) -> None:
        self._builder.add_call(start, end, self._thread(event), role, name, link)

    def _add_annotation(self, event: dict[str, Any], name: str, start: int, end: int) -> None:
        if naming.STEP.match(name):
            self._builder.add_mark(start, end)
        elif name.startswith("gloo:"):
            self._gloo.append((start, end, name))
        else:
            role = naming.classify_call(name)
            if role == CallRole.LOAD_DATA:
                self._data.append((start, end, self._builder.find_thread(self._thread(event))))
            self._add_call(event, name, start, end, role)

    def _host_work(self) -> list[tuple[int, int, Activity, str]]:
        """Return what the host did in place of a device: its outermost operators, and gloo's communication.

        Operators of a data loader load data.
        """
        found = [(start, end, Activity.COMMUNICATION, name) for start, end, name in self._gloo]
        loading = sorted(self._data)
        reach: dict[int, int] = {}
        at: dict[int, int] = {}
        for start, end, thread, name in sorted(self._own, key=lambda own: (own[0], -own[1])):
            while at.get(thread, 0) < len(loading) and loading[at.get(thread, 0)][1] <= start:
                at[thread] = at.get(thread, 0) + 1
            inside = at.get(thread, 0) < len(loading) and loading[at.get(thread, 0)][0] <= start
            if start >= reach.get(thread, -1) and not inside:
                reach[thread] = end
                found.append((start, end, Activity.COMPUTE, name))
        return found


def _to_ns(moment: object) -> int:
    """Return a time in microseconds, a number or one in quotes, in whole nanoseconds."""
    if isinstance(moment, int | float):
        return round(moment * _US)
    return round(float(str(moment)) * _US)


def _to_whole(number: object) -> int:
    return number if isinstance(number, int) else -1
