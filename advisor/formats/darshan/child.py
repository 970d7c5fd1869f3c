"""The process that reads a log with libdarshan-util, through the cffi backend of the package ``darshan``.

The library trusts its input: on some logs it aborts or asks for any amount of memory. This process may die. It writes
one marshalled ``LogContents`` to its standard output, or a text that says why there is none.
"""

from __future__ import annotations

import marshal
import os
import resource
import sys
from collections.abc import Iterator
from typing import Any, Final, TypedDict

MEMORY: Final = 4 << 30
#: Modules whose records are a row of counters and a row of times.
TABLES: Final = {"POSIX": "posix_file", "MPI-IO": "mpiio_file", "STDIO": "stdio_file"}
TRACES: Final = ("DXT_POSIX",)
HEATMAP: Final = "HEATMAP"
LUSTRE: Final = "LUSTRE"
_STRIPE_COUNT: Final = "LUSTRE_COMP_STRIPE_COUNT"
#: Parts of the run in which bytes are added up.
TIMELINE: Final = 100
_LONGEST_COMMAND: Final = 8192


class RawTable(TypedDict):
    """The records of one module: ids and ranks, counters and times (records, columns) as bytes, and their names."""

    version: int
    ids: bytes
    ranks: bytes
    counters: bytes
    times: bytes
    counter_names: list[str]
    time_names: list[str]


class LogContents(TypedDict):
    """A log: ``names`` by record id, ``heat`` (id, rank, bytes read, bytes written, bursts), ``timelines`` with the
    bytes in each hundredth of the run by record id, ``traced`` (id, rank, host, reads, writes, seconds reading, seconds
    writing), ``modules`` with a mark where some files were left out, ``stripes`` over how many servers of Lustre a file
    is spread, by record id."""

    version: str
    command: bytes
    job: int
    processes: int
    start: int
    seconds: float
    names: dict[int, bytes]
    modules: dict[str, bool]
    tables: dict[str, RawTable]
    heat: list[tuple[int, int, int, int, int]]
    timelines: dict[int, list[float]]
    traced: list[tuple[int, int, bytes, int, int, float, float]]
    stripes: dict[int, int]


def main(arguments: dict[str, Any]) -> None:
    """Read the log and write what it holds; whatever the library prints goes to the standard error."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        answer: Any = _DarshanLibrary().read_contents(arguments["log"])
    except _DamagedError as error:
        answer = str(error)
    output.write(marshal.dumps(answer))
    output.close()
    os._exit(0)


class _DamagedError(Exception):
    """The library cannot read a part of the log."""


class _DarshanLibrary:
    """The functions of libdarshan-util that are needed here."""

    def __init__(self) -> None:
        import darshan.backend.cffi_backend as backend
        import numpy as np

        self._backend, self._ffi, self._call, self._np = backend, backend.ffi, backend.libdutil, np

    def read_contents(self, path: str) -> LogContents:
        """Return everything that is read of the log."""
        handle = self._call.darshan_log_open(os.fsencode(path))
        if handle == self._ffi.NULL:
            raise _DamagedError("the header cannot be read")
        log = {"handle": handle, "modules": None, "name_records": None}
        modules = self._backend.log_get_modules(log)
        job = self._ffi.new("struct darshan_job *")
        seconds = self._ffi.new("double *")
        if self._call.darshan_log_get_job(handle, job) < 0:
            raise _DamagedError("the description of the job cannot be read")
        self._call.darshan_log_get_job_runtime(handle, job[0], seconds)
        timelines: dict[int, list[float]] = {}
        heat = modules[HEATMAP]["idx"] if HEATMAP in modules else None
        return {
            "version": self._ffi.string(self._ffi.cast("char *", handle)).decode("ascii", "replace"),
            "command": self._read_command(handle),
            "job": job.jobid,
            "processes": job.nprocs,
            "start": job.start_time_sec,
            "seconds": seconds[0],
            "names": self._read_names(handle),
            "modules": {name: module["partial_flag"] for name, module in modules.items()},
            "tables": {
                name: self._read_table(handle, name, modules[name], struct)
                for name, struct in TABLES.items()
                if name in modules
            },
            "heat": [] if heat is None else list(self._read_heat(handle, heat, seconds[0], timelines)),
            "timelines": timelines,
            "traced": [
                row for name in TRACES if name in modules for row in self._read_traced(handle, modules[name]["idx"])
            ],
            "stripes": dict(self._read_stripes(handle, modules[LUSTRE]["idx"])) if LUSTRE in modules else {},
        }

    def _read_command(self, handle: object) -> bytes:
        text = self._ffi.new("char[]", _LONGEST_COMMAND)
        self._call.darshan_log_get_exe(handle, text)
        return bytes(self._ffi.string(text))

    def _read_names(self, handle: object) -> dict[int, bytes]:
        records = self._ffi.new("struct darshan_name_record **")
        count = self._ffi.new("int *")
        self._call.darshan_log_get_name_records(handle, records, count)
        return {records[0][i].id: bytes(self._ffi.string(records[0][i].name)) for i in range(count[0])}

    def _iterate_records(self, handle: object, module: int) -> Iterator[Any]:
        """Yield each record of a module; it is valid until the next one."""
        record = self._ffi.new("void **")
        while (found := self._call.darshan_log_get_record(handle, module, record)) == 1:
            yield record[0]
            self._call.darshan_free(record[0])
            record[0] = self._ffi.NULL
        if found < 0:
            raise _DamagedError("a record cannot be read")

    def _read_table(self, handle: object, name: str, module: dict[str, int], struct: str) -> RawTable:
        kind = f"struct darshan_{struct} *"
        ids, ranks, counters, times = bytearray(), bytearray(), bytearray(), bytearray()
        for raw in self._iterate_records(handle, module["idx"]):
            record = self._ffi.cast(kind, raw)
            ids += record.base_rec.id.to_bytes(8, sys.byteorder)
            ranks += record.base_rec.rank.to_bytes(8, sys.byteorder, signed=True)
            counters += self._ffi.buffer(record.counters)
            times += self._ffi.buffer(record.fcounters)
        return {
            "version": module["ver"],
            "ids": bytes(ids),
            "ranks": bytes(ranks),
            "counters": bytes(counters),
            "times": bytes(times),
            "counter_names": self._backend.counter_names(name),
            "time_names": self._backend.fcounter_names(name),
        }

    def _read_heat(
        self, handle: object, module: int, run_s: float, timelines: dict[int, list[float]]
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield bytes and bursts (bins in a row that move any) of each rank; adds to the ``timelines`` of all ranks."""
        np = self._np
        for raw in self._iterate_records(handle, module):
            record = self._ffi.cast("struct darshan_heatmap_record *", raw)
            parts = (record.read_bins, record.write_bins)
            read, written = (np.frombuffer(self._ffi.buffer(part, 8 * record.nbins), "i8") for part in parts)
            active = np.concatenate(([False], read + written > 0))
            place = (np.arange(len(read)) + 0.5) * record.bin_width_seconds / max(run_s, 1e-9) * TIMELINE
            line = timelines.setdefault(record.base_rec.id, [0.0] * TIMELINE)
            for n in np.flatnonzero(active[1:]).tolist():
                line[min(max(int(place[n]), 0), TIMELINE - 1)] += float(read[n] + written[n])
            bursts = int((active[1:] & ~active[:-1]).sum())
            yield record.base_rec.id, record.base_rec.rank, int(read.sum()), int(written.sum()), bursts

    def _read_stripes(self, handle: object, module: int) -> Iterator[tuple[int, int]]:
        """Yield over how many servers each file is spread, at its widest; nothing where the library is before 3.5."""
        try:
            column = self._backend.counter_names("LUSTRE_COMP").index(_STRIPE_COUNT)
            self._ffi.typeof("struct darshan_lustre_component")
        except (KeyError, ValueError, AttributeError, getattr(self._ffi, "error", KeyError)):  # older cffi has none
            return
        for raw in self._iterate_records(handle, module):
            record = self._ffi.cast("struct darshan_lustre_record *", raw)
            counts = [int(record.comps[i].counters[column]) for i in range(record.num_comps)]
            if counts:
                yield record.base_rec.id, max(counts)

    def _read_traced(self, handle: object, module: int) -> Iterator[tuple[int, int, bytes, int, int, float, float]]:
        """Yield the sums over each traced file and rank; all writes stand before all reads."""
        for raw in self._iterate_records(handle, module):
            record = self._ffi.cast("struct dxt_file_record *", raw)
            writes, reads = record.write_count, record.read_count
            segments = self._ffi.buffer(raw + self._ffi.sizeof("struct dxt_file_record"), 32 * (writes + reads))
            span = self._np.frombuffer(segments, "f8").reshape(-1, 4)
            took = span[:, 3] - span[:, 2]
            host = bytes(self._ffi.string(record.hostname, 64))
            base = record.base_rec
            yield base.id, base.rank, host, reads, writes, float(took[writes:].sum()), float(took[:writes].sum())
