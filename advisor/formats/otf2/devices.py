"""OTF2 archives with streams of devices: Score-P's recordings of CUDA, HIP, OpenACC and OpenMP target programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.otf2 import archive, definition_contents
from advisor.formats.otf2.anchor import read_anchor
from advisor.formats.otf2.codes import PARADIGMS
from advisor.formats.otf2.id_lookup import IdLookup
from advisor.formats.otf2.reading import EventReader, RecordedEvents
from advisor.model.errors import InputError
from advisor.model.records import DEVICES_UNSEEN, Note
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import CallRole, DeviceTrace
from advisor.trace.events import Kind

if TYPE_CHECKING:
    from advisor.formats.otf2.definitions import Definitions

_STREAM: Final = 2  # the type of locations that are streams of accelerators
_OF_DEVICES: Final = {
    "CUDA": "cuda", "HIP": "hip", "OPENACC": "openacc", "OPENMP_TARGET": "openmp-target", "OPENCL": "opencl",
}  # fmt: skip
HOW_SCOREP: Final = (
    "SCOREP_CUDA_ENABLE=yes, SCOREP_HIP_ENABLE=yes or SCOREP_OPENACC_ENABLE=yes records what the device does"
)


def find_device_paradigms(definitions: Definitions) -> tuple[str, ...]:
    """Return the programming models of devices that the regions show."""
    used = {PARADIGMS[row[6]] for row in definitions["Region"] if row[6] < len(PARADIGMS)}
    return tuple(name for word, name in _OF_DEVICES.items() if word in used)


def note_unseen_devices(definitions: Definitions) -> tuple[Note, ...]:
    """Return the doubt of a trace that holds calls to devices and not what the devices did."""
    models = find_device_paradigms(definitions)
    if not models:
        return ()
    words = (
        f"the program calls {', '.join(models)}, and what the devices did is not in the trace: time in which the host "
    )
    return (Note(DEVICES_UNSEEN, f"{words}waits for them counts as computation", 0.45, HOW_SCOREP),)


def has_device_streams(definitions: Definitions) -> bool:
    """Return whether streams of devices recorded anything."""
    return any(row[2] == _STREAM and row[3] for row in definitions["Location"])


def read_device_trace(anchor: Path, definitions: Definitions, *, compiled: bool) -> DeviceTrace:
    """Return hosts and devices of the archive; raises ``InputError`` for what is damaged."""
    names = definition_contents.collect_strings(definitions)
    places = definition_contents.build_locations(definitions, names)
    region_of, regions = definition_contents.build_regions(definitions, names)
    if not definitions["ClockProperties"] or not definitions["ClockProperties"][-1][0]:
        raise InputError(anchor.with_suffix(".def"), "defines no clock: its times have no unit")
    per_second, offset = definitions["ClockProperties"][-1][:2]
    groups = {row[0]: row for row in definitions["LocationGroup"]}
    streams = {row[0]: row for row in definitions["Location"] if row[2] == _STREAM and row[4] in groups}
    wanted = [i for i in (*places.ids, *streams) if archive.event_file(anchor, i).is_file()]
    reader = EventReader(anchor, read_anchor(anchor), IdLookup(region_of), IdLookup({}), IdLookup({}))
    events = reader.read_events(wanted, compiled=compiled)
    builder = DeviceTraceBuilder()
    builder.paradigms |= dict.fromkeys(find_device_paradigms(definitions))
    titles = [region.name for region in regions]
    for rank in sorted({location.rank for location in places.locations}):
        builder.begin_process()
        launches: list[int] = []
        host = None
        for identity, location in zip(places.ids, places.locations, strict=True):
            if location.rank == rank and identity in events.spans:
                host = location.host
                for start, end, region in _pair_calls(events, identity, per_second, offset):
                    role = naming.classify_call(titles[region])
                    builder.add_call(start, end, location.name, role, titles[region], _number(role, launches, start))
        _add_streams(builder, rank, launches, streams, groups, places.group_ranks, events, titles, (per_second, offset))
        builder.end_process(rank, host, 0, anchor)
    program = definition_contents.find_program(definitions, names, anchor.stem)
    builder.copies_recorded = False  # copies are one-sided transfers without a length
    copies = int(events.counts[3]) if len(events.counts) > 3 else 0
    if copies:
        builder.notes.append(
            Note("copies not read", f"{copies} copies by devices are recorded without their length", 0.05)
        )
    return builder.build_trace(anchor, program, "Score-P")


def _number(role: CallRole, launches: list[int], start: int) -> int:
    if role != CallRole.LAUNCH:
        return -1
    launches.append(start)
    return len(launches) - 1


def _add_streams(
    builder: DeviceTraceBuilder, rank: int, launches: list[int], streams: dict[int, list[int]],
    groups: dict[int, list[int]], ranks: dict[int, int], events: RecordedEvents, titles: list[str],
    clock: tuple[int, int],
) -> None:  # fmt: skip
    """Add what the streams of a process did, each kernel with the launch that it came from.

    No number links them: kernels come in the order of their launches where there are as many, else a kernel comes from
    the last launch before it.
    """
    found = []
    for identity, row in streams.items():
        group = groups[row[4]]
        if ranks.get(group[4], 0) == rank and identity in events.spans:
            found += [(*call, row[4], identity) for call in _pair_calls(events, identity, *clock, outermost=True)]
    found.sort()
    order = np.argsort(launches, kind="stable")
    in_order = np.array(launches, dtype=np.int64)[order]
    for number, (start, end, region, device, stream) in enumerate(found):
        if len(launches) == len(found):
            link = int(order[number])
        else:
            place = int(np.searchsorted(in_order, start, side="right")) - 1
            link = int(order[place]) if place >= 0 else -1
        name = titles[region]
        builder.add_activity(start, end, device, stream, naming.classify_activity(name), name, link=link)


def _pair_calls(
    events: RecordedEvents, identity: int, per_second: int, offset: int, *, outermost: bool = False
) -> Iterator[tuple[int, int, int]]:
    """Yield start and end in nanoseconds, and region, of each call of a location; an open call lasts to the end."""
    first, last = events.spans[identity]
    rows = events.columns.rows.slice_rows(first, last)
    seconds = (rows.ticks.astype(np.int64) - offset) * (1e9 / per_second)
    moments = np.rint(seconds).astype(np.int64).tolist()
    stack: list[tuple[int, int]] = []
    for moment, kind, region in zip(moments, rows.kind.tolist(), rows.region.tolist(), strict=True):
        if kind == Kind.ENTER:
            stack.append((moment, region))
        elif kind == Kind.LEAVE and stack:
            start, opened = stack.pop()
            if opened >= 0 and not (outermost and stack):
                yield start, moment, opened
    for start, opened in stack:
        if opened >= 0 and moments:
            yield start, moments[-1], opened
