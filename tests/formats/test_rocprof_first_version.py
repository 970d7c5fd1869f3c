"""Recordings of rocprof 1 and 2: the database and the document hold the same run, and tables of sums are read."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import gapwatch
from advisor.analysis import soundness
from advisor.formats.rocprof import advisor_read, advisor_sniff
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
#: Table, beginning and end in ms, place, name, number of the call.
ROWS = (
    ("HIP", 0, 150, 77, "hipMalloc", 1),
    ("HIP", 150, 190, 77, "hipMemcpy", 2),
    ("HIP", 190, 191, 77, "hipLaunchKernel", 3),
    ("HIP", 191, 291, 77, "hipDeviceSynchronize", 4),
    ("COPY", 155, 185, 0, "CopyHostToDevice", 2),
    ("OPS", 192, 290, 0, "stencil(double*)", 3),
    ("OPS", 290, 290, 0, "Unknown command type", 4),
    ("rocTX", 190, 291, 77, '"step 1"', 5),
)


def write_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        for table in ("HIP", "rocTX"):
            database.execute(
                f'CREATE TABLE {table} ("BeginNs" INT, "EndNs" INT, "pid" INT, "tid" INT, "Name" TEXT, "Index" INT)'
            )
        for table in ("OPS", "COPY"):
            columns = '"BeginNs" INT, "EndNs" INT, "dev-id" INT, "queue-id" INT, "Name" TEXT, "Index" INT'
            database.execute(f"CREATE TABLE {table} ({columns})")
        for table, begin, end, place, name, number in ROWS:
            places = (0, place) if table in ("HIP", "rocTX") else (place, 0)
            row = (MS * (begin + 500), MS * (end + 500), *places, name, number)
            database.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)", row)
    return path


def write_document(path: Path) -> Path:
    processes = {"rocTX": (0, "Markers and Ranges"), "COPY": (1, "COPY"), "HIP": (2, "CPU HIP API"), "OPS": (6, "GPU0")}
    events: list[dict[str, object]] = [{}]
    for pid, name in processes.values():
        events.append({"args": {"name": name}, "ph": "M", "pid": pid, "name": "process_name", "sort_index": pid})
    for table, begin, end, place, name, _ in ROWS:
        at = {"dev-id": str(place), "queue-id": "0"} if table in ("OPS", "COPY") else {"tid": str(place)}
        args = {"BeginNs": str(MS * (begin + 500)), "EndNs": str(MS * (end + 500)), "Name": name, **at}
        events.append({"ph": "X", "name": name, "pid": str(processes[table][0]), "ts": "1", "dur": "1", "args": args})
    path.write_text('{ "traceEvents":[' + "\n,".join(map(json.dumps, events)) + "]}")
    return path


@pytest.mark.parametrize(("write", "name"), [(write_database, "results.db"), (write_document, "results.json")])
def test_both_forms_hold_the_run(tmp_path: Path, write: object, name: str) -> None:
    path = write(tmp_path / name)  # type: ignore[operator]
    assert advisor_sniff(path) == 1.0
    profile = advisor_read(path)
    soundness.check_profile(profile)
    assert profile.actual_s == pytest.approx(0.291)
    assert {"stencil(double*)", "hipMalloc", "CopyHostToDevice"} <= {region.name for region in profile.regions}
    assert "Unknown command type" not in {region.name for region in profile.regions}
    assert "hip" in profile.paradigms
    assert gapwatch.load(path).grade.letter in "ABC"


def test_kernels_of_the_database_are_linked_to_their_calls(tmp_path: Path) -> None:
    linked, unlinked = (
        [note.text for note in gapwatch.load(path).grade.notes if "not linked to the host call" in note.text]
        for path in (write_database(tmp_path / "results.db"), write_document(tmp_path / "results.json"))
    )
    assert (len(linked), len(unlinked)) == (0, 1)


def test_times_that_are_none_are_refused(tmp_path: Path) -> None:
    path = write_document(tmp_path / "results.json")
    path.write_text(path.read_text().replace(f'"{MS * 692}"', '"soon"'))
    with pytest.raises(InputError, match=r"BeginNs.*'soon' is not a time"):
        advisor_read(path)


STATS = """"Name","Calls","TotalDurationNs","AverageNs","Percentage"
void stencil<double, 2>(double*, int),100,25000000,250000,62.5
CopyHostToDevice,2,15000000,7500000,37.5
"""


def test_sums_of_kernels_and_calls(tmp_path: Path) -> None:
    (tmp_path / "results.stats.csv").write_text(STATS)
    assert advisor_sniff(tmp_path / "results.stats.csv") == 0.9
    profile = advisor_read(tmp_path / "results.stats.csv")
    found = dict(zip((r.name for r in profile.regions), profile.counts["device_s"].sum(axis=1), strict=True))
    assert found == pytest.approx({"void stencil<double, 2>(double*, int)": 0.025, "CopyHostToDevice": 0.015})
    advice = gapwatch.load(tmp_path / "results.stats.csv")
    assert advice.grade.letter == "D"
    assert (advice.grade.notes[0].collect or "").startswith("rocprofv3 ")
    calls = STATS.replace("void stencil<double, 2>(double*, int)", '"hipLaunchKernel"').replace("Copy", "hipMemcpy")
    (tmp_path / "hip_stats.csv").write_text(calls.replace("37.5", "37.5,1,2,3.5"))
    assert advisor_read(tmp_path / "hip_stats.csv").counts["runtime_call_s"].sum() == pytest.approx(0.04)
    for old, new, message in (("250000,", "150000,", "line 2.*are not"), ("37.5\n", "37", "line 3.*cut off")):
        (tmp_path / "bad.csv").write_text(STATS.replace(old, new))
        with pytest.raises(InputError, match=message):
            advisor_read(tmp_path / "bad.csv")
