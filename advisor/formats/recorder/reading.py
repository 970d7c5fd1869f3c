"""Recorder's files -> ``IoEvents``: the calls of each rank in their order, with their times."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.io_events import IoEvents, IoRun, build_io_profile
from advisor.formats.rank_files import note_lengths
from advisor.formats.recorder import files
from advisor.formats.recorder.functions import Access, describe_call
from advisor.model.errors import InputError
from advisor.model.records import FloatArray, IntArray, Note, Processor, Profile
from advisor.model.units import format_seconds

if TYPE_CHECKING:
    from advisor.formats.recorder.files import Signature, TraceHeader

#: The folder's name: host, user, program, process and time of day.
_FOLDER: Final = re.compile(r"(?P<host>[^-]+)-(?P<user>[^-]+)-(?P<program>.+)-\d+-\d{6}\.\d{3}$")
_SPAN: Final = Note(
    "span of events",
    "the run lasts from Recorder's start to the last call; what the program did afterwards is not in it",
    0.05,
)

#: Calls that begin in the same unit of time follow each other by this part of it.
_TIE: Final = 1e-4
#: Units of time by which calls that follow each other may overlap: begin and end are cut to whole ones.
_ROUNDING: Final = 2.5


def read_trace(folder: Path) -> Profile:
    """Return the run whose trace is in ``folder``; raises ``InputError`` with the file and byte of what is damaged."""
    header = files.read_header(folder)
    missing = sorted(files.list_missing(folder, header))
    builder = _EventBuilder(folder, header)
    owners = files.read_owners(folder, header)
    shared = files.read_signatures(folder / "0.cst", header) if header.together else None
    orders: dict[int, IntArray] = {}
    for rank, owner in enumerate(owners):
        if rank in missing:
            continue
        signatures = shared if shared is not None else files.read_signatures(folder / f"{rank}.cst", header)
        if owner not in orders:
            grammar = folder / f"{owner}.cfg"
            orders = {owner: files.expand_grammar(files.read_grammar(grammar), len(signatures), grammar)}
        order = orders[owner]
        times = files.read_times(folder / f"{rank}.ts", len(order), header.resolution_s)
        builder.add_rank(rank, signatures, order, times)
    return builder.build_profile(missing)


class _EventBuilder:
    """Collects the columns of the calls on files of all ranks, and the seconds in other calls of MPI."""

    def __init__(self, folder: Path, header: TraceHeader) -> None:
        self.folder = folder
        self.header = header
        self.files: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.processors: dict[tuple[int, int], int] = {}
        self.columns: list[tuple[IntArray, ...]] = []
        self.times: list[tuple[FloatArray, FloatArray]] = []
        self.lengths_s: dict[str, float] = {}
        self.crossing = 0
        self.mpi_s: dict[int, float] = {}

    def add_rank(
        self, rank: int, signatures: list[Signature], order: IntArray, times: tuple[FloatArray, FloatArray]
    ) -> None:
        """Add the calls of a rank; other calls of MPI than those on files are counted by their seconds alone."""
        threads = len({signature.thread for signature in signatures})
        begin, end, crossing = _separate_calls(
            *times, np.array([each.level for each in signatures])[order], self.header
        )
        self.crossing += crossing if threads == 1 else 0
        names = [self._name(signature) for signature in signatures]
        accesses = [describe_call(name, signature) for name, signature in zip(names, signatures, strict=True)]
        handles = _find_handles(names, signatures)
        chosen = np.flatnonzero(np.array([access is not None for access in accesses], dtype=bool)[order])
        outermost = np.array([
            name.startswith("MPI_") and access is None and signature.level == 0
            for name, access, signature in zip(names, accesses, signatures, strict=True)
        ], dtype=bool)  # fmt: skip
        self.lengths_s[f"rank {rank}"] = float(end.max(initial=0.0))
        talking = outermost[order] if len(order) else np.zeros(0, dtype=bool)
        self.mpi_s[rank] = float((end - begin)[talking].sum())
        rows = np.array([
            (self._number_thread(rank, signature.thread), *self._number_access(access, handles))
            if access else (-1, -1, -1, -1)
            for access, signature in zip(accesses, signatures, strict=True)
        ], dtype=np.int64).reshape(-1, 4)[order[chosen]]  # fmt: skip
        offsets = _track_positions([accesses[number] for number in order[chosen].tolist()], rows[:, 2].tolist())
        self.columns.append((rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], offsets))
        self.times.append((begin[chosen], end[chosen]))

    def _name(self, signature: Signature) -> str:
        if signature.function == files.USER_FUNCTION:
            return "user function"
        if signature.function >= len(self.header.functions):
            raise InputError(self.folder / "recorder.mt", f"has no name of function {signature.function}: damaged")
        return self.header.functions[signature.function]

    def _number_thread(self, rank: int, thread: int) -> int:
        return self.processors.setdefault((rank, thread), len(self.processors))

    def _number_access(self, access: Access, handles: dict[str, str]) -> tuple[int, int, int]:
        """Return call, file and bytes of what a signature does."""
        call = self.calls.setdefault(access.call, len(self.calls))
        name = handles.get(access.file or "", access.file)
        file = -1 if name is None else self.files.setdefault(name, len(self.files))
        moves = access.call.endswith((" read", " write"))
        return call, file, access.size if moves else -1

    def build_profile(self, missing: list[int]) -> Profile:
        """Return the run; raises ``InputError`` where there is no call on a file."""
        folder = self.folder
        if not any(len(each[0]) for each in self.columns):
            raise InputError(folder, "holds no call on a file")
        processor, call, file, size, offset = (np.concatenate(column) for column in zip(*self.columns, strict=True))
        start_s, end_s = (np.concatenate(column) for column in zip(*self.times, strict=True))
        found = _FOLDER.match(folder.resolve().name)
        threads: dict[int, int] = {}
        processors = []
        for rank, _ in self.processors:
            thread = threads[rank] = threads.get(rank, -1) + 1
            processors.append(Processor(rank, thread))
        run = IoRun(
            program=found["program"] if found else folder.resolve().name,
            run=folder.name,
            reader="recorder",
            processors=tuple(processors),
            calls=tuple(self.calls),
            files=tuple(self.files),
            span_s=(0.0, max(self.lengths_s.values())),
            started=datetime.fromtimestamp(self.header.start_s, UTC).isoformat(timespec="seconds"),
            paradigms=("mpi",) if self.header.ranks > 1 else (),
            notes=(_SPAN, *self._describe(missing)),
        )
        profile = build_io_profile(run, IoEvents(processor, call, file, start_s, end_s, size, offset))
        return replace(profile, ranks_expected=self.header.ranks)

    def _describe(self, missing: list[int]) -> list[Note]:
        notes = []
        if missing:
            text = f"the trace lacks {len(missing)} of {self.header.ranks} ranks, rank {missing[0]} first"
            notes.append(Note("ranks missing", text, 0.2))
        notes += note_lengths(self.lengths_s)
        if self.crossing:
            text = f"calls that overlap the call before or around them: {self.crossing:,}"
            notes.append(Note("contradictory times", text, 0.3))
        inside = sum(self.mpi_s.values()) / max(len(self.mpi_s), 1)
        if inside > 0:
            share = format_seconds(inside)
            text = f"a rank is {share} on average in other calls of MPI, which count as the program's own time here"
            notes.append(Note("communication counts as the program", text))
        return notes


def _separate_calls(
    begin: FloatArray, end: FloatArray, levels: IntArray, header: TraceHeader
) -> tuple[FloatArray, FloatArray, int]:
    """Return times in which calls of one level do not overlap, and end before the call that they are in.

    Recorder cuts each time to whole units, a call may so begin a unit before the end of the one before. How many do so
    by more than that is the third value.
    """
    number = np.arange(len(begin))
    changes = np.r_[True, begin[1:] != begin[:-1]][: len(begin)]
    begin = begin + (number - np.maximum.accumulate(np.where(changes, number, 0))) * (header.resolution_s * _TIE)
    end = np.maximum(end, begin)
    open_calls: list[int] = []
    ends, begins = end.tolist(), begin.tolist()
    slack, crossing = _ROUNDING * header.resolution_s, 0
    for call, level in enumerate(levels.tolist()):
        while open_calls and levels[open_calls[-1]] >= level:
            last = open_calls.pop()
            crossing += ends[last] > begins[call] + slack
            ends[last] = max(min(ends[last], begins[call]), begins[last])
        if open_calls:
            crossing += ends[call] > ends[open_calls[-1]] + slack
            ends[call] = max(min(ends[call], ends[open_calls[-1]]), begins[call])
        open_calls.append(call)
    return begin, np.array(ends), crossing


def _find_handles(names: list[str], signatures: list[Signature]) -> dict[str, str]:
    """Return the file of each handle of MPI-IO: ``MPI_File_open`` names both."""
    return {
        signature.arguments[4]: signature.arguments[1]
        for name, signature in zip(names, signatures, strict=True)
        if name == "MPI_File_open" and len(signature.arguments) > 4
    }


def _track_positions(accesses: list[Access | None], numbers: list[int]) -> IntArray:
    """Return the offset of each call (-1: not known): reads and writes go on where the one before ended."""
    places: dict[int, int] = {}
    offsets = np.full(len(accesses), -1, dtype=np.int64)
    for row, (access, file) in enumerate(zip(accesses, numbers, strict=True)):
        if access is None or file < 0 or access.position == "keep":
            if access is not None:
                offsets[row] = access.offset
            continue
        place = places.get(file, -1)
        if access.position == "advance":
            offsets[row] = place
            places[file] = place + access.size if place >= 0 and access.size >= 0 else -1
        elif access.position == "move":
            places[file] = max(place + access.offset, -1) if place >= 0 else -1
        else:
            places[file] = {"open": 0, "set": access.offset}.get(access.position, -1)
    return offsets
