"""Exports of Nsight Systems, written here by the documented schema, whole and damaged."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.formats.nsys import advisor_read, advisor_sniff
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT, globalTid INT,
  correlationId INT, nameId INT NOT NULL, returnValue INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT,
  streamId INT NOT NULL, correlationId INT, globalPid INT, demangledName INT NOT NULL, shortName INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT,
  streamId INT NOT NULL, correlationId INT, globalPid INT, bytes INT NOT NULL, copyKind INT NOT NULL, srcKind INT,
  dstKind INT);
CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, text TEXT, globalTid INT, textId INT);
CREATE TABLE MPI_COLLECTIVES_EVENTS (start INT NOT NULL, end INT NOT NULL, globalTid INT, textId INT);
"""
NAMES = (
    "cudaLaunchKernel_v7000",
    "cudaMemcpy_v3020",
    "cudaDeviceSynchronize_v3020",
    "stencil(double*)",
    "MPI_Allreduce",
)
MS = 1_000_000


def write_report(path: Path, pids: tuple[int, ...] = (100,)) -> Path:
    """Three steps of each process: a pageable copy of 2 ms, a kernel of 10 ms, a wait, MPI for 3 ms."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SCHEMA)
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(NAMES))
        for pid in pids:
            thread, process = pid << 24 | 7, pid << 24
            for step in range(3):
                at, link = 20 * MS * step, 10 * step

                def insert(table: str, *values: object) -> None:
                    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)

                kernel = at + 2 * MS + 40_000
                insert("NVTX_EVENTS", at, at + 20 * MS, 59, f"step {step}", thread, None)
                insert("CUPTI_ACTIVITY_KIND_RUNTIME", at, at + 2 * MS + 10_000, 0, thread, link + 1, 1, 0)
                insert("CUPTI_ACTIVITY_KIND_MEMCPY", at + 5000, at + 2 * MS, 0, 1, 7, link + 1, process, 10**7, 1, 0, 2)
                insert(
                    "CUPTI_ACTIVITY_KIND_RUNTIME", at + 2 * MS + 20_000, at + 2 * MS + 30_000, 0, thread, link + 2, 0, 0
                )
                kernel = at + 2 * MS + 40_000
                insert("CUPTI_ACTIVITY_KIND_KERNEL", kernel, kernel + 10 * MS, 0, 1, 7, link + 2, process, 3, 3)
                insert("CUPTI_ACTIVITY_KIND_RUNTIME", kernel, kernel + 10 * MS + 5000, 0, thread, link + 3, 2, 0)
                insert("MPI_COLLECTIVES_EVENTS", at + 13 * MS, at + 16 * MS, thread, 4)
        database.commit()
    return path


def test_seconds_of_a_report(tmp_path: Path) -> None:
    report = write_report(tmp_path / "run.sqlite")
    assert advisor_sniff(report) == 1.0
    profile = advisor_read(report)
    use = profile.devices
    assert use is not None
    ms = {name: round(float(each.mean()) * 1e3, 3) for name, each in use.seconds.items()}
    assert sum(ms.values()) == pytest.approx(profile.actual_s * 1e3, abs=1e-2)
    assert ms["compute"] == 30.0
    assert ms["copies"] == pytest.approx(6.0, abs=0.05)
    assert ms["communication"] == 9.0
    assert use.facts["iterations"] == 3
    assert use.facts["pageable_share"] == 1.0
    assert set(profile.paradigms) == {"cuda", "mpi"}


def test_processes_are_ranks_and_reports_of_a_directory_too(tmp_path: Path) -> None:
    both = advisor_read(write_report(tmp_path / "both.sqlite", (100, 101))).devices
    assert both is not None
    assert both.devices == ("rank 0 device", "rank 1 device")
    folder = tmp_path / "ranks"
    folder.mkdir()
    write_report(folder / "a.sqlite")
    assert advisor_sniff(folder) is None
    write_report(folder / "b.sqlite", (101,))
    assert advisor_sniff(folder) is not None
    apart = advisor_read(folder).devices
    assert apart is not None
    assert all(np.allclose(apart.seconds[name], both.seconds[name]) for name in both.seconds)


def test_sessions_that_begin_long_apart_are_runs_of_their_own(tmp_path: Path) -> None:
    for name, start_s in (("a", 10**9), ("b", 10**9 + 60), ("c", 10**9 + 3600)):
        with closing(sqlite3.connect(write_report(tmp_path / f"{name}.sqlite"))) as database:
            database.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)")
            database.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (start_s * 10**9,))
            database.commit()
    assert advisor_sniff(tmp_path) is None
    (tmp_path / "c.sqlite").unlink()
    assert advisor_sniff(tmp_path) is not None


def test_damage_ends_in_a_message_or_a_run(tmp_path: Path) -> None:
    whole = write_report(tmp_path / "run.sqlite").read_bytes()
    random = np.random.default_rng(5)
    for number in range(120):
        data = bytearray(whole[: len(whole) * (number + 1) // 60]) if number < 60 else bytearray(whole)
        if number >= 60:
            data[int(random.integers(0, len(data)))] ^= 1 << int(random.integers(0, 8))
        place = tmp_path / "damaged.sqlite"
        place.write_bytes(bytes(data))
        try:
            profile = advisor_read(place)
        except InputError:
            continue
        assert profile.devices is not None


def test_other_databases_are_not_taken(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as database:
        database.execute("CREATE TABLE t (a INT)")
        database.commit()
    assert advisor_sniff(tmp_path / "other.sqlite") is None


def test_grids_local_memory_migrations_and_shared_devices(tmp_path: Path) -> None:
    report = write_report(tmp_path / "run.sqlite", (100, 101))
    with closing(sqlite3.connect(report)) as database:
        database.executescript("""
            ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN gridX INT;
            ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN gridY INT;
            ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN gridZ INT;
            ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN localMemoryPerThread INT;
            UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 33, gridY = 1, gridZ = 1, localMemoryPerThread = 128;
            UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyKind = 11;
            CREATE TABLE TARGET_INFO_GPU (id INT, smCount INT);
            INSERT INTO TARGET_INFO_GPU VALUES (0, 132);
            CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT, uuid TEXT, numMultiprocessors INT);
            INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 100, 'GPU-1', 132), (0, 0, 101, 'GPU-1', 132);
            CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INT, globalPid INT, numberOfPageFaults INT);
            INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (1000, 0, 40), (2000, 0, 2);
        """)
        database.commit()
    use = advisor_read(report).devices
    assert use is not None
    assert use.facts["small_grid_share"] == 1.0
    assert use.facts["spill_share"] == 1.0
    assert use.facts["page_faults"] == 42
    assert use.facts["processes_per_device"] == 2
    assert use.facts["migration_share"] == pytest.approx(0.1, abs=0.01)
    assert use.facts["pageable_share"] == 0.0
    assert use.peak_s is not None
    assert use.peak_s.tolist() == pytest.approx([0.0075, 0.0075])


def test_tables_in_files_of_their_own(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet, feather = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.feather")
    report = write_report(tmp_path / "run.sqlite")
    whole = advisor_read(report).devices
    assert whole is not None
    for suffix in ("parquet", "arrow"):
        folder = tmp_path / f"run_{suffix}"
        folder.mkdir()
        with closing(sqlite3.connect(report)) as database:
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                rows = database.execute(f"SELECT * FROM {name}")
                columns = [column[0] for column in rows.description]
                table = arrow.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))
                if suffix == "parquet":
                    parquet.write_table(table, folder / f"{name}.parquet")
                else:
                    feather.write_feather(table, folder / f"{name}.arrow")
        assert advisor_sniff(folder) == 1.0
        found = advisor_read(folder).devices
        assert found is not None
        assert {name: each.tolist() for name, each in found.seconds.items()} == {
            name: each.tolist() for name, each in whole.seconds.items()
        }
        (folder / f"StringIds.{suffix}").write_bytes(b"ARROW1 damaged")
        with pytest.raises(InputError, match="damaged"):
            advisor_read(folder)


def test_without_pyarrow_the_other_export_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "StringIds.parquet").write_bytes(b"PAR1")
    assert advisor_sniff(tmp_path) == 1.0
    with pytest.raises(InputError, match="--type=sqlite"):
        advisor_read(tmp_path)
