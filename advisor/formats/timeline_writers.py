"""Events of a trace for viewers: Chrome's trace event format, and evented profiles of speedscope.

Times are microseconds from the first event on, on one clock. A call that the trace leaves open ends with
the location's last event, an end without a beginning is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.json_stream import format_json, write_list
from advisor.trace.aligned_times import align_times
from advisor.trace.events import Kind, Trace

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, Profile

#: Events of a location that are taken out of the columns at a time.
_BLOCK: Final = 1 << 16
SPEEDSCOPE_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_MICRO: Final = 1e6


def _iterate_calls(trace: Trace, time_s: FloatArray, location: int) -> Iterator[tuple[bool, int, float]]:
    """Yield begins (True) and ends of calls at a location: the region and the seconds; all that begin also end."""
    open_calls: list[int] = []
    low, high = int(trace.first[location]), int(trace.first[location + 1])
    now = 0.0
    for start in range(low, high, _BLOCK):
        block = slice(start, min(start + _BLOCK, high))
        columns = (trace.kind[block].tolist(), trace.region[block].tolist(), time_s[block].tolist())
        for kind, region, now in zip(*columns, strict=True):
            if kind == Kind.ENTER:
                open_calls.append(region)
                yield True, region, now
            elif kind == Kind.LEAVE and region in open_calls:
                while (last := open_calls.pop()) != region:
                    yield False, last, now
                yield False, region, now
    yield from ((False, region, now) for region in reversed(open_calls))


def write_chrome_trace(trace: Trace, path: Path) -> None:
    """Write begins and ends of all calls, a process for each rank and a thread for each location."""
    time_s = align_times(trace)
    with path.open("w", encoding="utf-8") as stream:
        stream.write('{"displayTimeUnit":"ms","traceEvents":')
        write_list(stream, _iterate_chrome_events(trace, time_s))
        stream.write(f',"otherData":{format_json({"program": trace.program, "tool": trace.tool})}}}\n')


def _iterate_chrome_events(trace: Trace, time_s: FloatArray) -> Iterator[dict[str, object]]:
    for number, location in enumerate(trace.locations):
        place = {"pid": location.rank, "tid": location.thread}
        yield {"ph": "M", "name": "process_name", **place, "args": {"name": f"rank {location.rank}"}}
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": location.name}}
        for begins, region, at_s in _iterate_calls(trace, time_s, number):
            event: dict[str, object] = {"ph": "B" if begins else "E", "ts": round(at_s * _MICRO, 3), **place}
            if begins:
                known = trace.regions[region]
                event |= {"name": known.name, "cat": known.role.name.lower()}
            yield event


def write_speedscope_timeline(trace: Trace, path: Path) -> None:
    """Write an evented profile for each location."""
    time_s = align_times(trace)
    frames = [_build_frame(region.name, region.file, region.line) for region in trace.regions]
    with path.open("w", encoding="utf-8") as stream:
        stream.write(_open_speedscope(trace.program, frames))
        for number, location in enumerate(trace.locations):
            low, high = int(trace.first[number]), int(trace.first[number + 1])
            end = float(time_s[low:high].max(initial=0.0))
            head = {"type": "evented", "name": location.name, "unit": "microseconds", "startValue": 0}
            stream.write((",\n" if number else "") + format_json(head | {"endValue": round(end * _MICRO, 3)})[:-1])
            stream.write(',"events":')
            events = (
                {"type": "O" if begins else "C", "frame": region, "at": round(at_s * _MICRO, 3)}
                for begins, region, at_s in _iterate_calls(trace, time_s, number)
            )
            write_list(stream, events)
            stream.write("}")
        stream.write("]}\n")


def write_speedscope_totals(profile: Profile, path: Path) -> None:
    """Write a sampled profile for each processor: phase and region, weighed with their seconds."""
    frames = [_build_frame(region.name, region.file, region.line) for region in profile.regions]
    base = len(frames)
    frames += [_build_frame(phase.name, None, None) for phase in profile.phases]
    with path.open("w", encoding="utf-8") as stream:
        stream.write(_open_speedscope(profile.program, frames))
        for number, processor in enumerate(profile.processors):
            samples: list[list[int]] = []
            weights: list[float] = []
            for at, phase in enumerate(profile.phases):
                array = phase.arrays.get("wall_s", next(iter(phase.arrays.values())))
                seconds = array[:, number].sum(axis=1)
                kept = np.flatnonzero(seconds > 0)
                samples += [[base + at, region] for region in phase.regions[kept].tolist()]
                weights += seconds[kept].tolist()
            stream.write((",\n" if number else "") + format_json({
                "type": "sampled", "name": processor.name, "unit": "seconds", "startValue": 0,
                "endValue": sum(weights), "samples": samples, "weights": weights,
            }))  # fmt: skip
        stream.write("]}\n")


def _build_frame(name: str, file: str | None, line: int | None) -> dict[str, object]:
    place = {"file": file, "line": line}
    return {"name": name} | {key: value for key, value in place.items() if value is not None}


def _open_speedscope(name: str, frames: list[dict[str, object]]) -> str:
    head = {"$schema": SPEEDSCOPE_SCHEMA, "name": name, "exporter": "gapwatch", "shared": {"frames": frames}}
    return format_json(head)[:-1] + ',"profiles":['
