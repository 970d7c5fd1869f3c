"""The files of the simple kernel timer (``kp_kernel_timer.cpp``, ``kp_kernel_info.h``): binary records, or JSON."""

from __future__ import annotations

import math
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.plain_text import read_content, read_ends
from advisor.model.errors import InputError
from advisor.support import strict_json

if TYPE_CHECKING:
    from advisor.support.strict_json import JsonNode

_JSON: Final = re.compile(rb'\s*\{\s*"kokkos-kernel-data"\s*:')
#: A file is called as the host and the process: ``node07-4711.dat``.
_NAME: Final = re.compile(r".+-\d+\.(?:dat|json)$")
#: Length of a record and of its name; calls, seconds, the sum of their squares, and the kind behind the name.
_HEAD: Final = struct.Struct("<II")
_TAIL: Final = struct.Struct("<QddI")
_REGION: Final = 3
_LONGEST_S: Final = 1e9
_LONGEST_NAME: Final = 1 << 16
#: Files of one run hold the same kernels, and ran about as long as each other.
_ALIKE: Final = 1.25
#: Seconds are printed to a millisecond or a microsecond.
_DIGITS_S: Final = 2e-3
_MOST_PROCESSES: Final = 4096
_ROUNDED: Final = 1 + 1e-6


class Kernel(NamedTuple):
    """A kernel or a region of a process, with all its calls."""

    name: str
    calls: int
    seconds: float


class Process(NamedTuple):
    """What the timer wrote of a process: how long it ran, its kernels, and the regions around them."""

    wall_s: float
    kernels: tuple[Kernel, ...]
    regions: tuple[Kernel, ...]


def is_timer_file(path: Path) -> bool:
    """Return whether the file is one of the timer, by its beginning."""
    head = read_ends(path)
    return bool(_JSON.match(head)) or (path.suffix == ".dat" and _begins_with_record(head))


def _begins_with_record(head: bytes) -> bool:
    if len(head) < 8 + _HEAD.size + _TAIL.size:
        return False
    wall_s, length, size = struct.unpack_from("<dII", head)
    return bool(0 <= wall_s < _LONGEST_S and length == size + 4 + _TAIL.size and 0 < size < _LONGEST_NAME)


def list_processes(folder: Path) -> list[Path]:
    """Return the files of the processes of one run, none where there are fewer than two or they are of several runs."""
    files = sorted(path for path in folder.iterdir() if _NAME.match(path.name) and path.is_file())
    if not 2 <= len(files) <= _MOST_PROCESSES or not all(is_timer_file(path) for path in files):
        return []
    try:
        processes = [read_process(path) for path in files]
    except InputError:
        return []
    times = [process.wall_s for process in processes]
    names = {frozenset(kernel.name for kernel in process.kernels) for process in processes}
    kinds = {path.suffix for path in files}
    return files if len(names) == len(kinds) == 1 and max(times) <= _ALIKE * min(times) else []


def read_process(path: Path) -> Process:
    """Return the kernels of a process; raises ``InputError`` with the place of what is damaged."""
    content = read_content(path)
    return _parse_json(path, content) if _JSON.match(content[:4096]) else _parse_records(path, content)


def _parse_records(path: Path, content: bytes) -> Process:
    if len(content) < 8:
        raise InputError(path, "ends early", f"byte {len(content)}")
    (wall_s,) = struct.unpack_from("<d", content)
    if not 0 <= wall_s < _LONGEST_S:
        raise InputError(path, "damaged: an impossible run time")
    found: tuple[list[Kernel], list[Kernel]] = ([], [])
    place = 8
    while place < len(content):
        if place + _HEAD.size > len(content):
            raise InputError(path, "a record ends early", f"byte {place}")
        length, size = _HEAD.unpack_from(content, place)
        end = place + 4 + length
        if length != size + 4 + _TAIL.size or end > len(content):
            raise InputError(path, "damaged: no record here", f"byte {place}")
        name = content[place + _HEAD.size : place + _HEAD.size + size].decode("utf-8", "surrogateescape")
        calls, seconds, squares, kind = _TAIL.unpack_from(content, end - _TAIL.size)
        if not (0 <= seconds < _LONGEST_S and kind <= _REGION and _are_squares_possible(seconds, squares, calls)):
            raise InputError(path, f"damaged: impossible times of {name[:60]!r}", f"byte {place}")
        found[kind == _REGION].append(Kernel(name, calls, seconds))
        place = end
    return Process(wall_s, tuple(found[0]), tuple(found[1]))


def _are_squares_possible(seconds: float, squares: float, calls: int) -> bool:
    """Return whether the sum of squares is between that of equal times and that of one long call."""
    whole = seconds**2
    return (
        math.isfinite(squares) and whole / max(calls, 1) <= squares * _ROUNDED + 1e-12 and squares <= whole * _ROUNDED
    )


def _parse_json(path: Path, content: bytes) -> Process:
    document = strict_json.parse_json(path, content).require_members("kokkos-kernel-data")
    fields = document["kokkos-kernel-data"].require_fields()
    missing = {"total-app-time", "total-kernel-times", "kernel-perf-info"} - fields.keys()
    if missing:
        raise InputError(path, f"{min(missing)!r} is missing", "kokkos-kernel-data")
    wall_s, together_s = (fields[name].require_number(0.0) for name in ("total-app-time", "total-kernel-times"))
    kernels = tuple(_parse_kernel(node) for node in fields["kernel-perf-info"].require_items())
    around = fields["region-perf-info"].require_items() if "region-perf-info" in fields else ()
    regions = tuple(_parse_kernel(node) for node in around)
    listed_s = sum(kernel.seconds for kernel in kernels + regions)
    if abs(listed_s - together_s) > _DIGITS_S + 1e-6 * len(kernels + regions):
        raise InputError(path, f"states {together_s:.3f} s of kernels and lists {listed_s:.3f} s")
    return Process(wall_s, kernels, regions)


def _parse_kernel(node: JsonNode) -> Kernel:
    fields = node.require_members("kernel-name", "call-count", "total-time", "time-per-call")
    calls, seconds = fields["call-count"].require_whole(), fields["total-time"].require_number(0.0)
    if (
        abs(fields["time-per-call"].require_number(0.0) * max(calls, 1) - seconds)
        > 1e-6 + 1e-8 * calls + 1e-6 * seconds
    ):
        raise node.make_error("time and calls contradict the time of a call")
    return Kernel(fields["kernel-name"].require_text(), calls, seconds)
