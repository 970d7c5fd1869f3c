"""Tables, databases and JSON of rocprofv3, written here as documented, whole and damaged."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest

from advisor.extension import host
from advisor.formats.rocprof import advisor_read, advisor_sniff
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MS = 1_000_000


def write_table(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)


def write_process(folder: Path, pid: int, length: int = 10) -> None:
    """Three kernels, each awaited by the host before the next is launched 1 ms later."""
    calls: list[dict[str, object]] = []
    kernels: list[dict[str, object]] = []

    def add_call(name: str, start: int, end: int, link: int) -> None:
        calls.append({
            "Domain": "HIP_RUNTIME_API", "Function": name, "Process_Id": pid, "Thread_Id": pid, "Correlation_Id": link,
            "Start_Timestamp": start, "End_Timestamp": end,
        })  # fmt: skip

    for step in range(3):
        at = (length + 2) * MS * step
        add_call("hipLaunchKernel", at, at + 10_000, 2 * step + 1)
        begin = at + 20_000
        kernels.append({
            "Kind": "KERNEL_DISPATCH", "Agent_Id": "Agent 4", "Queue_Id": 1, "Stream_Id": 0, "Thread_Id": pid,
            "Dispatch_Id": step, "Kernel_Id": 1, "Kernel_Name": "stencil(double*)", "Correlation_Id": 2 * step + 1,
            "Start_Timestamp": begin, "End_Timestamp": begin + length * MS,
        })  # fmt: skip
        add_call("hipDeviceSynchronize", at + 30_000, begin + length * MS + 5000, 2 * step + 2)
    write_table(folder / f"{pid}_hip_api_trace.csv", calls)
    write_table(folder / f"{pid}_kernel_trace.csv", kernels)


def test_seconds_of_two_processes(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    write_process(tmp_path, 101)
    assert advisor_sniff(tmp_path) is not None
    profile = advisor_read(tmp_path)
    use = profile.devices
    assert use is not None
    assert len(use.devices) == 2
    assert sum(each.mean() for each in use.seconds.values()) == pytest.approx(profile.actual_s, rel=1e-9)
    ms = {name: each.round(5).tolist() for name, each in use.seconds.items() if each.any()}
    assert ms["compute"] == [0.03, 0.03]
    assert ms["host"] == [0.00395, 0.00395]  # above 0.25 ms it is no part of the launches
    assert profile.paradigms == ("hip",)


def test_a_table_of_kernels_brings_the_others(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    table = tmp_path / "100_kernel_trace.csv"
    assert advisor_sniff(table) == 1.0
    use = advisor_read(table).devices
    assert use is not None
    assert use.facts["sync_calls"] == 3
    assert advisor_sniff(tmp_path / "100_hip_api_trace.csv") is None


@pytest.mark.parametrize("between_h", [0, 3])
def test_recordings_that_lie_hours_apart_in_one_table_are_no_run(between_h: int, tmp_path: Path) -> None:
    """A program's own pause is known by what it does beside it: three hours behind 30 ms of kernels are none."""
    write_process(tmp_path, 100)
    (tmp_path / "100_hip_api_trace.csv").unlink()
    table = tmp_path / "100_kernel_trace.csv"
    with table.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for name in ("Start_Timestamp", "End_Timestamp"):
        rows[2][name] = str(int(rows[2][name]) + between_h * 3600 * 1000 * MS)
    write_table(table, rows)
    if between_h:
        with pytest.raises(InputError, match="of events with pauses of 10800 s in all"):
            advisor_read(table)
    else:
        assert advisor_read(table).actual_s == pytest.approx(0.034)


def test_a_table_of_kernels_by_any_name(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    (tmp_path / "100_kernel_trace.csv").rename(tmp_path / "kernels of friday.csv")
    assert advisor_sniff(tmp_path / "kernels of friday.csv") == 1.0
    assert advisor_sniff(tmp_path / "100_hip_api_trace.csv") is None
    assert advisor_read(tmp_path / "kernels of friday.csv").ranks == 1


def shift_table(path: Path, by_ns: int) -> None:
    """Move all moments of a table."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    moved = ("Start_Timestamp", "End_Timestamp")
    write_table(path, [row | {name: int(row[name]) + by_ns for name in moved} for row in rows])


def test_a_table_of_counters_holds_each_kernel_once(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    path = tmp_path / "100_kernel_trace.csv"
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    counters = [row | {"Counter_Name": name, "Counter_Value": 7} for row in rows for name in ("GRBM_COUNT", "SQ_WAVES")]
    write_table(tmp_path / "counters.csv", counters)
    path.unlink()
    profile = advisor_read(tmp_path / "counters.csv")
    assert profile.devices is not None
    assert profile.devices.facts["kernels"] == 3
    assert [note.name for note in profile.notes if note.penalty] == ["counters collected"]


def test_tables_of_an_earlier_recording_are_left_out_and_named(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    whole = advisor_read(tmp_path)
    (tmp_path / "100_hip_api_trace.csv").rename(tmp_path / "100_marker_api_trace.csv")
    shift_table(tmp_path / "100_marker_api_trace.csv", 3600 * 1000 * MS)
    profile = advisor_read(tmp_path / "100_kernel_trace.csv")
    note = next(note for note in profile.notes if note.name == "tables of another recording")
    assert "100_marker_api_trace.csv" in note.text
    assert note.penalty > 0
    assert profile.actual_s < whole.actual_s, "nothing of the other recording is in the run"
    shift_table(tmp_path / "100_marker_api_trace.csv", -3600 * 1000 * MS)
    assert not any(note.name == "tables of another recording" for note in advisor_read(tmp_path).notes)


@pytest.mark.parametrize(("apart_ms", "runs"), [(50, 1), (3_600_000, 2)])
def test_recordings_in_one_folder_are_runs_of_their_own(apart_ms: int, runs: int, tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    write_process(tmp_path, 200)
    for table in tmp_path.glob("200_*.csv"):
        shift_table(table, apart_ms * MS)
    assert (advisor_sniff(tmp_path) is not None) == (runs == 1)
    found = host.load_plugins().find_profiles(tmp_path)
    assert [advisor_read(each.path).ranks for each in found] == [2 // runs] * runs


def test_processes_that_communicate_are_one_run_whatever_their_clocks(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    write_process(tmp_path, 200)
    for table in (*tmp_path.glob("200_*.csv"), *tmp_path.glob("*_kernel_trace.csv")):
        table.write_text(table.read_text().replace("stencil(double*)", "ncclDevKernel_AllReduce(double*)"))
    shift_table(tmp_path / "200_kernel_trace.csv", 3600 * 1000 * MS)
    assert advisor_sniff(tmp_path) is not None


def test_a_table_without_kernels_ends_in_a_message(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    for table in tmp_path.iterdir():
        table.write_text(table.read_text().splitlines()[0])
    with pytest.raises(InputError, match="nothing that takes time"):
        advisor_read(tmp_path / "100_kernel_trace.csv")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [("Kernel_Name", "Kernel^Name", "no column Kernel_Name"), ('"Queue_Id",', "", "another length")],
)
def test_columns_that_are_missing_end_in_a_message(tmp_path: Path, before: str, after: str, reason: str) -> None:
    write_process(tmp_path, 100)
    table = tmp_path / "100_kernel_trace.csv"
    table.write_text(table.read_text().replace(before, after, 1))
    with pytest.raises(InputError, match=reason):
        advisor_read(table)


def test_damage_ends_in_a_message(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    table = tmp_path / "100_kernel_trace.csv"
    whole = table.read_text()
    table.write_text(whole[: len(whole) * 2 // 3].rstrip('"0123456789'))
    with pytest.raises(InputError, match="line"):
        advisor_read(table)


SCHEMA = """
CREATE TABLE rocpd_string_X (id INTEGER PRIMARY KEY, guid TEXT, string TEXT);
CREATE TABLE rocpd_info_node_X (id INTEGER PRIMARY KEY, hostname TEXT);
CREATE TABLE rocpd_info_process_X (id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER);
CREATE TABLE rocpd_info_agent_X (id INTEGER PRIMARY KEY, type TEXT, extdata JSONB);
CREATE TABLE rocpd_info_kernel_symbol_X (id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT);
CREATE TABLE rocpd_event_X (id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, correlation_id INTEGER);
CREATE TABLE rocpd_region_X (id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, end BIGINT,
  name_id INTEGER, event_id INTEGER, extdata JSONB);
CREATE TABLE rocpd_kernel_dispatch_X (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, agent_id INTEGER,
  kernel_id INTEGER, queue_id INTEGER, stream_id INTEGER, start BIGINT, end BIGINT, private_segment_size INTEGER,
  workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER,
  grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER);
CREATE TABLE rocpd_memory_copy_X (id INTEGER PRIMARY KEY, pid INTEGER, start BIGINT, end BIGINT, name_id INTEGER,
  dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, event_id INTEGER);
CREATE VIEW rocpd_kernel_dispatch AS SELECT * FROM rocpd_kernel_dispatch_X;
"""
STRINGS = (
    "HIP_RUNTIME_API", "KERNEL_DISPATCH", "MARKER_CORE_API", "hipLaunchKernel", "hipDeviceSynchronize",
    "roctxRangePushA", "MEMORY_COPY_HOST_TO_DEVICE", "HSA_CORE_API", "hsa_signal_wait_scacquire",
)  # fmt: skip


def write_database(path: Path, processes: int = 1) -> Path:
    """Three steps of each process: a copy of 2 ms, a kernel of 10 ms on a quarter of the device, a wait."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SCHEMA.replace("_X", "_0123abcd"))

        def insert(table: str, *values: object) -> None:
            places = ", ".join("?" * len(values))
            database.execute(f"INSERT INTO rocpd_{table}_0123abcd VALUES ({places})", values)

        for number, words in enumerate(STRINGS):
            insert("string", number, "g", words)
        insert("info_node", 1, "node7")
        insert("info_agent", 4, "GPU", '{"cu_count": 128}')
        insert("info_kernel_symbol", 1, "_Z7stencilPd.kd", "stencil(double*)")
        event = 0
        for process in range(1, processes + 1):
            insert("info_process", process, 1, 4000 + process)
            for step in range(3):
                at, link = 20 * MS * step, 10 * step
                for category, name, begin, end, stack in (
                    (2, 5, at, at + 18 * MS, 90 + step),
                    (0, 3, at + 2 * MS + 20_000, at + 2 * MS + 30_000, link + 1),
                    (7, 8, at + 3 * MS, at + 12 * MS, link + 2),
                    (0, 4, at + 2 * MS + 40_000, at + 12 * MS + 60_000, link + 2),
                ):
                    event += 1
                    insert("event", event, category, stack, 0)
                    more = '{"message": "step"}' if category == 2 else "{}"
                    insert("region", None, 1, process, 7, begin, end, name, event, more)
                event += 1
                insert("event", event, 1, link + 1, 0)
                begin = at + 2 * MS + 40_000
                insert("kernel_dispatch", None, process, 7, 4, 1, 1, 1, begin, begin + 10 * MS, 64, 64, 1, 1,
                       64 * 32, 1, 1, event)  # fmt: skip
                insert("memory_copy", None, process, at + 5000, at + 2 * MS, 6, 4, 0, 1 << 24, None)
        database.commit()
    return path


def test_seconds_of_a_database(tmp_path: Path) -> None:
    file = write_database(tmp_path / "4001_results.db")
    assert advisor_sniff(file) == 1.0
    profile = advisor_read(file)
    use = profile.devices
    assert use is not None
    assert sum(each.mean() for each in use.seconds.values()) == pytest.approx(profile.actual_s, rel=1e-9)
    ms = {name: round(float(each[0]) * 1e3, 2) for name, each in use.seconds.items() if each.any()}
    assert ms["compute"] == 30.0
    assert ms["copies"] == pytest.approx(5.99, abs=0.01)
    assert use.facts["iterations"] == 3
    assert use.facts["sync_calls"] == 3  # HSA's wait lies inside HIP's
    assert use.facts["small_grid_share"] == 1.0
    assert use.facts["spill_share"] == 1.0
    assert use.facts["graph_kernel_share"] == 0.0  # told of kernels that are linked to their calls only
    assert {processor.host for processor in profile.processors} == {"node7"}


def test_processes_of_databases_are_ranks(tmp_path: Path) -> None:
    write_database(tmp_path / "a_results.db", 2)
    write_database(tmp_path / "b_results.db")
    assert advisor_sniff(tmp_path) == 0.95
    use = advisor_read(tmp_path).devices
    assert use is not None
    assert len(use.devices) == 3


def test_damaged_databases_end_in_a_message_or_a_run(tmp_path: Path) -> None:
    whole = write_database(tmp_path / "whole.db").read_bytes()
    place = tmp_path / "damaged.db"
    for number in range(1, 40):
        data = bytearray(whole)
        data[(len(whole) - 1) * number // 40] ^= 0x41
        place.write_bytes(bytes(data) if number % 2 else whole[: len(whole) * number // 40])
        if advisor_sniff(place):
            with suppress(InputError):
                advisor_read(place)


def write_json(path: Path) -> Path:
    """What rocprofv3 writes with --output-format json, as far as it is read."""
    rows = [
        {"kind": 1, "operation": 0, "thread_id": 7, "correlation_id": {"internal": step + 1}, "start_timestamp": at,
         "end_timestamp": at + 10_000}
        for step, at in enumerate(range(0, 36 * MS, 12 * MS))
    ]  # fmt: skip
    kernels = [
        {"kind": 2, "operation": 0, "correlation_id": {"internal": row["correlation_id"]["internal"]},  # type: ignore[index]
         "start_timestamp": int(str(row["start_timestamp"])) + 20_000, "stream_id": {"handle": 1},
         "end_timestamp": int(str(row["start_timestamp"])) + 10 * MS + 20_000,
         "dispatch_info": {"agent_id": {"handle": 9}, "queue_id": {"handle": 3}, "kernel_id": 5,
                           "private_segment_size": 0, "workgroup_size": {"x": 64, "y": 1, "z": 1},
                           "grid_size": {"x": 64 * 512, "y": 1, "z": 1}}}
        for row in rows
    ]  # fmt: skip
    strings = [{"kind": "NONE", "operations": []}, {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel"]}]
    process = {
        "metadata": {"node": {"hostname": "node7"}, "pid": 1},
        "agents": [{"id": {"handle": 9}, "cu_count": 256}],
        "kernel_symbols": [{"kernel_id": 5, "formatted_kernel_name": "stencil(double*)"}],
        "strings": {"buffer_records": strings, "marker_api": []},
        "buffer_records": {"kernel_dispatch": kernels, "hip_api": rows, "memory_copy": [], "marker_api": []},
    }
    path.write_bytes(gzip.compress(json.dumps({"rocprofiler-sdk-tool": [process]}).encode()))
    return path


def test_seconds_of_json(tmp_path: Path) -> None:
    file = write_json(tmp_path / "1_results.json.gz")
    assert advisor_sniff(file) == 1.0
    assert advisor_sniff(tmp_path) == 0.95
    use = advisor_read(file).devices
    assert use is not None
    assert float(use.seconds["compute"][0]) == pytest.approx(0.03)
    assert use.facts["small_grid_share"] == 0.0
    assert use.peak_s is not None
    whole = gzip.decompress(file.read_bytes())
    (tmp_path / "2_results.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cut off"):
        advisor_read(tmp_path / "2_results.json")
