"""From the events of Chrome traces, one file for each rank, to a ``DeviceTrace``."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, Final

from advisor.formats.chrome_trace.stream import OPEN_ENDED, Event, EventArgs, EventStream, read_tensors
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.devices import naming
from advisor.trace.devices.builder import CALL_COLUMNS, DeviceTraceBuilder, HostWork, KernelRow
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace

#: What is said of a trace of another kind of program.
NO_DEVICES: Final = "the trace holds no calls, operators or activities of devices"
_ACTIVITY, _CALL, _OPERATOR, _ANNOTATION, _OTHER = range(5)
#: What the events of a category are, by its name in lower case; the last ones are those of the first profilers with
#: Kineto (PyTorch 1.8 and 1.9).
_CATEGORIES: Final = {
    **dict.fromkeys(("kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "concurrent_kernel"), _ACTIVITY),
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "hip_runtime", "mtia_runtime", "xpu_runtime", "runtime"), _CALL),
    **dict.fromkeys(("cpu_op", "operator"), _OPERATOR),
    **dict.fromkeys(("user_annotation", "cpu_instant_event"), _ANNOTATION),
    **dict.fromkeys(("memcpy", "memset"), _ACTIVITY),
}
#: Bytes of an element of a communication, by the names that PyTorch gives the types.
_ELEMENT_B: Final = {
    "Float": 4, "Int": 4, "Double": 8, "Long": 8, "Half": 2, "BFloat16": 2, "Short": 2, "Char": 1, "Byte": 1, "Bool": 1,
}  # fmt: skip
#: The same by the names of C++, as operators name them.
_TENSOR_B: Final = {
    "float": 4, "int": 4, "double": 8, "long int": 8, "c10::Half": 2, "c10::BFloat16": 2, "short int": 2,
    "signed char": 1, "unsigned char": 1, "bool": 1,
}  # fmt: skip
_MOST_BYTES: Final = 1 << 50
#: What queues of MTIA devices do beside work: they wait for events, and note that those have happened.
_QUEUE_EVENT: Final = re.compile(r"event_(wait|record)$")
#: Ranges that PyTorch marks, among the operators in its first profilers with Kineto.
_ANNOTATED: Final = re.compile(r"ProfilerStep#|enumerate\(DataLoader\)|Optimizer\.")
#: How TensorFlow, JAX, rocprof and converters of Nsight's reports call the processes that stand for devices, and their
#: threads that hold no kernels.
_DEVICE: Final = re.compile(r"(?:/device:(?:GPU|TPU):|^(?:GPU|Device) ?)(\d+)")
_NO_KERNELS: Final = re.compile(r"Modules|Steps|Framework|TraceMe|Source|Launch Stats|Scope|NVTX|API")
#: NVIDIA's devices have matrix units from this compute capability on.
_MATRIX_UNITS: Final = 7
_MOST_RANKS: Final = 10_000_000
_US: Final = 1000  # nanoseconds in the unit of the times
#: What is beyond is looked at more closely; microseconds since 1970 are not.
_LATEST_US, _LONGEST_US, _LATEST_LINK = float(1 << 51), float(1 << 40), 1 << 61
_MOST_FILL: Final = 1e9
_NO_ARGS: Final = EventArgs()
_NUMBERS: Final = frozenset((int, float))


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
        self._kinds: dict[tuple[Any, Any], int] = {}
        self._own = array("q")
        #: By category and name: what such an event is, what the call does, the number of the name.
        self._usual: dict[tuple[Any, Any], tuple[int, CallRole, int]] = {}
        self._places: dict[tuple[int, int], tuple[int, int]] = {}
        self._kernels: list[KernelRow] = []
        self._thread_numbers: dict[Any, int] = {}
        self._rows: list[int] = []
        self._gloo: list[HostWork] = []
        self._data: list[tuple[int, int]] = []
        self._multiprocessors: dict[Any, int] = {}

    def read_rank(self) -> None:
        """Add all events; without activities of a device the operators of the host's threads count as such."""
        stream = EventStream(self._file)
        self._builder.begin_process()
        bad = 0
        for batch in stream.iterate_batches():
            if not self._multiprocessors and "deviceProperties" in stream.header:
                self._note_devices(stream.header["deviceProperties"])
            bad += self._add_events(batch)
        header = stream.header
        stated = header.get("distributedInfo")
        info = stated if isinstance(stated, dict) else {}
        rank = info.get("rank")
        base = header.get("baseTimeNanoseconds", 0)
        try:
            known = self._builder.end_process(
                rank=rank if isinstance(rank, int) and 0 <= rank < _MOST_RANKS else self._number,
                host=str(header["host_name"]) if "host_name" in header else None,
                base_ns=base if isinstance(base, int) and 0 <= base < 1 << 61 else 0,
                file=self._file,
                work=self._host_work() if not self._builder.has_activities else None,
            )
        except (ValueError, OverflowError) as error:
            raise InputError(self._file, f"holds times that are impossible: {error}") from None
        if isinstance(info.get("world_size"), int):
            self._builder.ranks_expected = max(self._builder.ranks_expected or 0, info["world_size"])
        if bad:
            text = f"{bad} events of {self._file.name} lack a time or have another form than expected"
            self._builder.notes.append(Note("events not read", text, 0.1))
        if stream.open_ended and OPEN_ENDED not in self._builder.notes:
            self._builder.notes.append(OPEN_ENDED)
        if not known:
            raise InputError(self._file, NO_DEVICES)

    def _add_events(self, batch: Sequence[Event]) -> int:
        """Add events and return how many could not be read; those of the usual form take a short way."""
        bad, usual, rows, own = 0, self._usual, self._rows, self._own
        before, threads = self._builder.call_count, self._thread_numbers
        for event in batch:
            try:
                if event.ph != "X":
                    if event.ph == "M":
                        self._note_metadata(event)
                    continue
                form, args = usual.get((event.cat, event.name)), event.args
                start, length = event.ts, event.dur
                if (
                    form is not None and type(args) is EventArgs and args.correlation_id is None
                    and type(start) in _NUMBERS and type(length) in _NUMBERS
                    and 0 <= length < _LONGEST_US and 0 <= start < _LATEST_US
                ):  # fmt: skip
                    kind, role, name = form
                    begin = round(start * _US)
                    end = begin + round(length * _US)
                    if kind == _ACTIVITY:
                        if self._add_usual_kernel(begin, end, name, args):
                            continue
                    elif (thread := threads.get(event.tid)) is not None:
                        link = args.external_id if args.correlation is None else args.correlation
                        if kind == _OPERATOR:
                            own.append(before + len(rows) // len(CALL_COLUMNS))
                            link = -1
                        if type(link) is int and -_LATEST_LINK < link < _LATEST_LINK:
                            rows += (begin, end, thread, role, name, link)
                            continue
                self._add_event(event)
                before = self._builder.call_count
            except (TypeError, ValueError, OverflowError):
                bad, before = bad + 1, self._builder.call_count
        self._flush_rows()
        return bad

    def _add_usual_kernel(self, begin: int, end: int, name: int, args: EventArgs) -> bool:
        """Add a kernel whose event says the usual of it, and return whether it does."""
        device, stream, link = args.device, args.stream, args.correlation
        fill, occupancy = self._find_fill(args, device), _find_occupancy(args)
        if not (
            type(device) is type(stream) is type(link) is int and -_LATEST_LINK < link < _LATEST_LINK
            and args.bytes is args.size is args.elements_in is None and max(fill, occupancy) < _MOST_FILL
        ):  # fmt: skip
            return False
        place = self._places.get((device, stream))
        if place is None:
            place = self._places[device, stream] = self._builder.find_place(device, stream)
        self._kernels.append((begin, end, *place, name, link, fill, occupancy))
        return True

    def _flush_rows(self) -> None:
        self._builder.add_call_rows(self._rows)
        self._rows.clear()
        self._builder.add_kernel_rows(self._kernels)
        self._kernels.clear()

    def _add_event(self, event: Event) -> None:
        name, kind = event.name, self._kinds.get((event.cat, event.name))
        if kind is None:
            kind = self._kinds[event.cat, name] = _classify_event(event.cat, name)
        args = event.args if isinstance(event.args, EventArgs) else _NO_ARGS
        if args.correlation_id is not None:
            args.correlation = args.correlation_id
        if event.pid not in self._devices and isinstance(event.pid, str) and (found := _DEVICE.search(event.pid)):
            self._note_device(event.pid, found[1])
        by_number = event.cat is None and args.correlation_id is not None  # recorded by CUPTI, or the like of it
        if kind != _CALL and ((event.pid in self._devices and self._is_stream(event)) or by_number):
            kind = _ACTIVITY
        if kind == _OTHER or event.dur is None:
            return
        start = _to_ns(event.ts)
        end = start + max(_to_ns(event.dur), 0)
        if kind == _ACTIVITY:
            self._add_activity(event, name, start, end, args)
        elif kind == _CALL:
            link = args.external_id if args.correlation is None else args.correlation
            self._add_call(event, name, start, end, naming.classify_call(name), _to_whole(link))
        elif kind == _OPERATOR:
            self._add_call(event, name, start, end, CallRole.WORK)
            self._own.append(self._builder.call_count - 1)
        else:
            self._add_annotation(event, name, start, end)

    def _note_devices(self, properties: object) -> None:
        for known in properties if isinstance(properties, list) else ():
            if isinstance(known, dict) and isinstance(known.get("numSms"), int) and known["numSms"] > 0:
                self._multiprocessors[known.get("id")] = known["numSms"]
                if _to_whole(known.get("computeMajor", -1)) in range(_MATRIX_UNITS):
                    self._builder.add_count("devices_without_matrix_units", 1)

    def _note_metadata(self, event: Event) -> None:
        if event.name not in ("process_name", "thread_name"):
            return
        words = str(event.args.name) if isinstance(event.args, EventArgs) else ""
        if event.name == "process_name" and (found := _DEVICE.search(words)):
            self._note_device(event.pid, found[1])
        if event.name == "thread_name":
            self._threads[event.pid, event.tid] = words

    def _note_device(self, process: object, number: str) -> None:
        self._devices[process] = number
        self._usual.clear()  # from now on the process tells whether an event is a device's

    def _is_stream(self, event: Event) -> bool:
        return not _NO_KERNELS.search(self._threads.get((event.pid, event.tid), str(event.tid)))

    def _add_activity(self, event: Event, name: str, start: int, end: int, args: EventArgs) -> None:
        device = self._devices.get(event.pid, event.pid) if args.device is None else args.device
        stream = event.tid if args.stream is None else args.stream
        if _QUEUE_EVENT.match(name):
            return
        kind = naming.classify_activity(name)
        direction = naming.find_direction(f"{name} {args.direction or ''}") if kind == Activity.COPY else None
        group = ""
        if kind == Activity.COMMUNICATION:
            members = args.member_ranks if args.members is None else args.members
            group = f"{members or ''} {args.collective or name}"
        self._flush_rows()
        self._builder.add_activity(
            start, end, device, stream, kind, name, size=self._find_size(args), direction=direction,
            link=_to_whole(args.correlation), group=group, blocks_per_sm=self._find_fill(args, device),
            occupancy=_find_occupancy(args),
        )  # fmt: skip
        if kind == Activity.COMPUTE and not self._devices:
            self._usual[event.cat, name] = _ACTIVITY, CallRole.WORK, self._builder.find_name(name)

    def _find_size(self, args: EventArgs) -> int:
        """Return the bytes of a copy or of a communication, -1 where they are not told; note those of floats."""
        size = args.size if args.bytes is None else args.bytes
        elements, kind = args.elements_in, args.dtype
        if isinstance(elements, int) and kind in _ELEMENT_B:
            size = max(elements, _to_whole(args.elements_out)) * _ELEMENT_B[kind]
            self._count_bytes(size, is_float=kind == "Float")
        return int(size) if isinstance(size, int | float) else -1

    def _find_tensor_size(self, args: object) -> int:
        """Return the bytes of the tensors that are communicated, -1 without their shapes (``record_shapes``)."""
        tensors = read_tensors(args) if isinstance(args, EventArgs) else []
        size = sum(_TENSOR_B.get(kind, 0) * prod(shape) for kind, shape in tensors)
        if not 0 < size < _MOST_BYTES or any(kind not in _TENSOR_B for kind, _ in tensors):
            return -1
        self._count_bytes(size, is_float=all(kind == "float" for kind, _ in tensors))
        return size

    def _count_bytes(self, size: int, *, is_float: bool) -> None:
        self._builder.add_count("communication_bytes", size)
        self._builder.add_count("float_communication_bytes", size if is_float else 0)

    def _find_fill(self, args: EventArgs, device: object) -> float:
        """Return the blocks of a kernel for each multiprocessor, -1 where grid or device are not told."""
        told = args.blocks_per_sm
        if isinstance(told, int | float) and told > 0:
            return float(told)
        grid, count = args.grid, self._multiprocessors.get(device, 0)
        if count and isinstance(grid, list) and len(grid) == 3 and all(isinstance(each, int) for each in grid):
            return float(grid[0] * grid[1] * grid[2] / count) or -1.0
        return -1.0

    def _add_call(self, event: Event, name: str, start: int, end: int, role: CallRole, link: int = -1) -> None:
        self._flush_rows()
        self._builder.add_call(start, end, f"thread {event.tid}", role, name, link)
        kind = self._kinds[event.cat, name]
        if kind in (_CALL, _OPERATOR) and not self._devices:
            self._thread_numbers[event.tid] = self._builder.find_thread(f"thread {event.tid}")
            self._usual[event.cat, name] = kind, role, self._builder.find_name(name)

    def _add_annotation(self, event: Event, name: str, start: int, end: int) -> None:
        if naming.STEP.match(name):
            self._builder.add_mark(start, end)
        elif name.startswith("gloo:"):
            size = self._find_tensor_size(event.args)
            self._gloo.append(HostWork(start, end, Activity.COMMUNICATION, name, size))
        else:
            role = naming.classify_call(name)
            if role == CallRole.LOAD_DATA:
                self._data.append((start, end))
            self._add_call(event, name, start, end, role)

    def _host_work(self) -> list[HostWork]:
        """Return what the host did in place of a device: its outermost operators, and gloo's communication.

        Operators of a data loader load data.
        """
        found = [*self._gloo]
        loading = sorted(self._data)
        reach: dict[int, int] = {}
        at: dict[int, int] = {}
        for start, end, thread, name in sorted(self._builder.list_calls(self._own), key=lambda own: (own[0], -own[1])):
            while at.get(thread, 0) < len(loading) and loading[at.get(thread, 0)][1] <= start:
                at[thread] = at.get(thread, 0) + 1
            inside = at.get(thread, 0) < len(loading) and loading[at.get(thread, 0)][0] <= start
            if start >= reach.get(thread, -1) and not inside:
                reach[thread] = end
                found.append(HostWork(start, end, Activity.COMPUTE, name))
        return found


def _classify_event(category: object, name: object) -> int:
    """Return what events of a category and name are; raises ``TypeError`` for what is no name."""
    if not isinstance(name, str):
        raise TypeError(name)
    kind = _CATEGORIES.get(str(category).lower(), _OTHER)
    if kind in (_OTHER, _ANNOTATION) and naming.is_runtime_call(name):
        return _CALL
    return _ANNOTATION if kind == _OPERATOR and _ANNOTATED.match(name) else kind


def _to_ns(moment: object) -> int:
    """Return a time in microseconds, a number or one in quotes, in whole nanoseconds."""
    if type(moment) is float:
        return round(moment * _US)
    return moment * _US if type(moment) is int else round(float(str(moment)) * _US)


def _find_occupancy(args: EventArgs) -> float:
    """Return the share of a multiprocessor that a kernel occupies, -1 where it is not told."""
    told = args.occupancy
    return told / 100 if isinstance(told, int | float) and told > 0 else -1.0


def _to_whole(number: object) -> int:
    return number if isinstance(number, int) else -1
