"""Databases of nvprof, written here by the tables of CUPTI: the same run as an export of Nsight Systems would hold."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from advisor.analysis import soundness
from advisor.formats.nsys import advisor_read, advisor_sniff
from advisor.formats.nsys.nvprof_database import load_database
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
SCHEMA = """
CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER PRIMARY KEY, cbid INT, start INT, end INT, processId INT,
  threadId INT, correlationId INT, returnValue INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_DRIVER (_id_ INTEGER PRIMARY KEY, cbid INT, start INT, end INT, processId INT,
  threadId INT, correlationId INT, returnValue INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (_id_ INTEGER PRIMARY KEY, start INT, end INT, deviceId INT,
  contextId INT, streamId INT, gridX INT, gridY INT, gridZ INT, localMemoryPerThread INT, correlationId INT, name INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (_id_ INTEGER PRIMARY KEY, copyKind INT, srcKind INT, dstKind INT, bytes INT,
  start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_METRIC (_id_ INTEGER PRIMARY KEY, id INT, value BLOB, correlationId INT);
INSERT INTO StringTable VALUES (0, '-- null --'), (1, 'stencil(double*)');
"""
#: cudaMalloc starts the context, a copy and a kernel follow, and a call that waits for the kernel.
CALLS = (
    (20, 0, 200, 1),
    (31, 200, 260, 2),
    (999, 260, 261, 3),  # not in the list of numbers: what it issued tells
    (165, 261, 361, 4),
    (1234, 361, 362, 5),
)


def write(path: Path, *more: str, table: str = "RUNTIME") -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(SCHEMA)
        for cbid, start, end, link in CALLS:
            row = (cbid, MS * (start + 1000), MS * (end + 1000), 7, -5, link)
            statement = f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES (NULL, ?, ?, ?, ?, ?, ?, 0)"
            database.execute(statement, row)
        kernel = (MS * 1262, MS * 1360, 0, 1, 7, 100, 1, 1, 0, 3, 1)
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (NULL" + ", ?" * 11 + ")", kernel)
        lost = (0, 0, *kernel[2:])  # nvprof's buffer was too small
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (NULL" + ", ?" * 11 + ")", lost)
        copy = (1, 1, 3, 80_000_000, MS * 1205, MS * 1255, 0, 1, 7, 2)
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (NULL" + ", ?" * 10 + ")", copy)
        for statement in more:
            database.execute(statement)
    return path


def test_calls_kernels_and_copies_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "run.nvvp")
    assert advisor_sniff(path) == 1.0
    profile = advisor_read(path)
    soundness.check_profile(profile)
    assert profile.actual_s == pytest.approx(0.362)
    names = {region.name for region in profile.regions}
    assert {"stencil(double*)", "cudaMalloc", "cudaDeviceSynchronize", "memcpy to device"} <= names


def list_calls(path: Path) -> list[str]:
    query = """SELECT value FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON StringIds.id = nameId ORDER BY start"""
    with closing(load_database(path)) as database:
        return [name for (name,) in database.execute(query)]


def test_calls_have_the_names_of_their_numbers_or_of_what_they_issued(tmp_path: Path) -> None:
    names = ["cudaMalloc", "cudaMemcpy", "cudaLaunchKernel", "cudaDeviceSynchronize", "cudaCall 1234"]
    assert list_calls(write(tmp_path / "run.nvvp")) == names
    driver = ["cuCall 20", "cuMemcpy", "cuLaunchKernel", "cuCall 165", "cuCall 1234"]
    assert list_calls(write(tmp_path / "driver.nvvp", table="DRIVER")) == driver


def test_pageable_memory_is_told(tmp_path: Path) -> None:
    with closing(load_database(write(tmp_path / "run.nvvp"))) as database:
        kinds = database.execute("SELECT copyKind, srcKind, dstKind FROM CUPTI_ACTIVITY_KIND_MEMCPY").fetchall()
    assert kinds == [(1, 0, 2)], "as Nsight Systems numbers pageable memory and that of a device"


def test_kernels_that_were_repeated_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.nvprof", "INSERT INTO CUPTI_ACTIVITY_KIND_METRIC VALUES (NULL, 1, x'00', 3)")
    with pytest.raises(InputError, match=r"again and again.*nvprof -f -o FILE.nvvp ./PROGRAM"):
        advisor_read(path)


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "run.nvvp")
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(InputError):
        advisor_read(path)
