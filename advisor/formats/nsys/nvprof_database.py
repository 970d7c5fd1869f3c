"""Databases of nvprof (``nvprof -o FILE``, imported by the Visual Profiler as ``.nvvp``) as tables of Nsight Systems.

Calls are stored by number. Most tell what they are by what they issued: kernels, copies and synchronizations have the
number of their call. Source: the tables of CUPTI's activity records.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError

#: The table of names, which tells such a database from an export of Nsight Systems.
STRINGS: Final = "StringTable"
ACTIVITIES: Final = "CUPTI_ACTIVITY_KIND_"
_AGAIN: Final = "nvprof -f -o FILE.nvvp ./PROGRAM"
#: Tables of what is counted while kernels run again and again.
_REPLAYS: Final = tuple(f"{ACTIVITIES}{kind}" for kind in ("METRIC", "METRIC_INSTANCE", "EVENT", "EVENT_INSTANCE"))
#: CUPTI's numbers of calls of the runtime that wait, allocate or start the device, which issue no activity.
_RUNTIME: Final = {
    4: "cudaGetDeviceProperties", 13: "cudaLaunch", 16: "cudaSetDevice", 20: "cudaMalloc", 21: "cudaMallocPitch",
    22: "cudaFree", 23: "cudaMallocArray", 24: "cudaFreeArray", 25: "cudaMallocHost", 26: "cudaFreeHost",
    27: "cudaHostAlloc", 30: "cudaMemGetInfo", 31: "cudaMemcpy", 32: "cudaMemcpy2D", 41: "cudaMemcpyAsync",
    49: "cudaMemset", 51: "cudaMemsetAsync", 126: "cudaThreadSynchronize", 129: "cudaStreamCreate",
    131: "cudaStreamSynchronize",
    133: "cudaEventCreate", 134: "cudaEventCreateWithFlags", 137: "cudaEventSynchronize",
    164: "cudaDeviceReset", 165: "cudaDeviceSynchronize", 198: "cudaStreamCreateWithFlags", 211: "cudaLaunchKernel",
}  # fmt: skip
#: What a call is called that issued such activities, by the runtime and by the driver.
_ISSUED: Final = {
    "KERNEL": ("cudaLaunchKernel", "cuLaunchKernel"),
    "CONCURRENT_KERNEL": ("cudaLaunchKernel", "cuLaunchKernel"),
    "MEMCPY": ("cudaMemcpy", "cuMemcpy"),
    "MEMSET": ("cudaMemset", "cuMemset"),
    "SYNCHRONIZATION": ("cudaDeviceSynchronize", "cuCtxSynchronize"),
}
_SCHEMA: Final = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, nameId, correlationId);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, localMemoryPerThread,
  gridX, gridY, gridZ, demangledName);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, correlationId, bytes, copyKind, srcKind,
  dstKind);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, streamId, correlationId, bytes);
CREATE TABLE TARGET_INFO_GPU (id, smCount);
"""
_KERNEL: Final = """
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start, end, deviceId, streamId, correlationId, localMemoryPerThread,
  gridX, gridY, gridZ, name FROM nvprof.{table} WHERE start > 0
"""
_COPY: Final = """
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT start, end, deviceId, streamId, correlationId, bytes, copyKind,
  srcKind - 1, dstKind - 1 FROM nvprof.CUPTI_ACTIVITY_KIND_MEMCPY WHERE start > 0
"""
_FILL: Final = """
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET SELECT start, end, deviceId, streamId, correlationId, bytes
  FROM nvprof.CUPTI_ACTIVITY_KIND_MEMSET WHERE start > 0
"""
_STATEMENTS: Final = {"KERNEL": _KERNEL, "CONCURRENT_KERNEL": _KERNEL, "MEMCPY": _COPY, "MEMSET": _FILL}
_CALLS: Final = """
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
  SELECT start, end, (processId << 24) | (threadId & 16777215), name, correlationId
  FROM (SELECT *, {name} AS name FROM nvprof.{table}) WHERE start > 0
"""


def load_database(path: Path) -> sqlite3.Connection:
    """Return the tables of Nsight Systems with what nvprof recorded; raises ``InputError`` where kernels ran again."""
    database = sqlite3.connect(":memory:", uri=True)
    try:
        database.execute("ATTACH ? AS nvprof", (f"{path.resolve().as_uri()}?mode=ro&immutable=1",))
        tables = {str(name) for (name,) in database.execute("SELECT name FROM nvprof.sqlite_master")}
        if any(_count_rows(database, table) for table in _REPLAYS if table in tables):
            raise InputError(
                path, f"its kernels ran again and again while they were counted, so times say nothing: {_AGAIN}"
            )
        database.executescript(_SCHEMA)
        database.execute(f"INSERT INTO StringIds SELECT _id_, value FROM nvprof.{STRINGS}")
        for kind, statement in _STATEMENTS.items():
            if f"{ACTIVITIES}{kind}" in tables:
                database.execute(statement.format(table=f"{ACTIVITIES}{kind}"))
        if f"{ACTIVITIES}DEVICE" in tables:
            database.execute(
                f"INSERT INTO TARGET_INFO_GPU SELECT id, numMultiprocessors FROM nvprof.{ACTIVITIES}DEVICE"
            )
        _add_calls(database, tables)
    except BaseException:
        database.close()
        raise
    return database


def _count_rows(database: sqlite3.Connection, table: str) -> int:
    return int(database.execute(f"SELECT count(*) FROM nvprof.{table}").fetchone()[0])


def _add_calls(database: sqlite3.Connection, tables: set[str]) -> None:
    """Add the calls of the runtime; of a program that uses the driver alone, those of the driver."""
    names: dict[str, int] = {}
    first = int(database.execute("SELECT coalesce(max(id), 0) FROM StringIds").fetchone()[0]) + 1

    def number_name(name: str) -> int:
        return names.setdefault(name, first + len(names))

    runtime, driver = f"{ACTIVITIES}RUNTIME", f"{ACTIVITIES}DRIVER"
    used = runtime if runtime in tables and _count_rows(database, runtime) else driver
    if used not in tables:
        return
    issued: dict[int, str] = {}
    for kind, words in _ISSUED.items():
        if f"{ACTIVITIES}{kind}" in tables:
            numbers = database.execute(f"SELECT DISTINCT correlationId FROM nvprof.{ACTIVITIES}{kind}")
            issued |= {number: words[used == driver] for (number,) in numbers}

    def name_call(call: int, link: int) -> int:
        known = _RUNTIME.get(call) if used == runtime else None
        return number_name(known or issued.get(link) or f"{'cuda' if used == runtime else 'cu'}Call {call}")

    database.create_function("name_call", 2, name_call, deterministic=True)
    database.execute(_CALLS.format(name="name_call(cbid, correlationId)", table=used))
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, name) for name, number in names.items()])
