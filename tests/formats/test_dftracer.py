"""DFTracer traces: events with names and with hashes, whole, packed, of many processes, damaged."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest

from advisor import pipeline
from advisor.analysis import soundness
from advisor.extension import host
from advisor.formats import dftracer
from advisor.formats.io_events import IoEvents, IoRun, build_io_profile
from advisor.model.errors import InputError
from advisor.model.records import Processor, Profile
from advisor.support import contract

RECORDED = Path(__file__).parents[1] / "profiles" / "dftracer" / "test.pfw"


def event(name: str, at: int, took: int, pid: int = 7, category: str = "POSIX", **arguments: object) -> str:
    """A line of DFTracer 2, which names files and hosts by hashes."""
    head = {
        "id": at,
        "name": name,
        "cat": category,
        "pid": pid,
        "tid": pid,
        "ts": 1_000_000 + at,
        "dur": took,
        "ph": "X",
    }
    return json.dumps(head | {"args": {"hhash": 11, "fhash": 12, **arguments}}, separators=(",", ":"))


NAMES = [
    '{"id":0,"name":"HH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"hhash":11,"name":"node3","value":11}}',
    '{"id":1,"name":"FH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"hhash":11,"name":"/data/in.h5","value":12}}',
]


def trace(folder: Path, *lines: str, name: str = "run.pfw") -> Path:
    path = folder / name
    path.write_text("\n".join(("[", *NAMES, *lines)) + "\n")
    return path


def read(path: Path) -> Profile:
    found = dftracer.advisor_read(path)
    contract.check_value(found, Profile)
    soundness.check_profile(found)
    return found


def total(profile: Profile, count: str) -> float:
    return float(profile.counts[count].sum())


def test_a_recorded_trace() -> None:
    assert dftracer.advisor_sniff(RECORDED) == 1.0
    found = read(RECORDED)
    lines = [json.loads(line) for line in RECORDED.read_text().splitlines()[1:]]
    assert [region.name for region in found.regions[1:]] == ["POSIX metadata", "POSIX write", "POSIX read"]
    assert found.phases[0].arrays["io_s"].sum() == pytest.approx(sum(int(each["dur"]) for each in lines) * 1e-6)
    first, last = int(lines[0]["ts"]), max(int(each["ts"]) + int(each["dur"]) for each in lines)
    assert found.actual_s == pytest.approx((last - first) * 1e-6)
    moved = sum(int(each["args"]["ret"]) for each in lines if each["name"] in ("read", "write"))
    assert total(found, "io_bytes") == moved
    assert [processor.host for processor in found.processors] == ["node1"]
    assert found.started == "2023-10-23T16:58:43.775554+00:00"


def test_names_stand_for_hashes_and_offsets_are_followed(tmp_path: Path) -> None:
    found = read(trace(
        tmp_path,
        event("open64", 0, 10, ret=3),
        event("read", 20, 100, ret=400, count=400),
        event("read", 200, 100, ret=400, count=400),
        event("lseek64", 310, 1, ret=0),
        event("read", 320, 100, ret=400, count=400),
        event("pread64", 500, 100, ret=400, offset=100, count=400),
        event("close", 700, 10, ret=0),
    ))  # fmt: skip
    assert found.causes is not None
    assert (found.causes.targets, found.processors[0].host) == (("/data/in.h5",), "node3")
    assert total(found, "io_operations") == 4
    assert total(found, "io_random_operations") == 2  # back to 0, then back to 100
    assert total(found, "io_reread_bytes") == pytest.approx(1600 - 800)
    assert total(found, "io_switches") == 0


def test_streams_return_items(tmp_path: Path) -> None:
    found = read(trace(tmp_path, event("fwrite", 0, 9, category="STDIO", size=8, count=100, ret=100)))
    assert total(found, "io_bytes") == 800
    assert found.regions[1].name == "STDIO write"


def test_processes_in_files_of_a_folder_are_one_run(tmp_path: Path) -> None:
    for pid in (7, 8):
        path = trace(tmp_path, event("write", pid, 1000, pid, ret=5), name=f"run-{pid}.pfw")
        if pid == 8:
            path.with_name("run-8.pfw.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    assert dftracer.advisor_sniff(tmp_path) == 1.0
    assert read(tmp_path).ranks == 2


def test_other_chrome_traces_are_not_of_dftracer(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('[{"name": "a", "ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 3}]')
    assert dftracer.advisor_sniff(path) is None
    assert dftracer.advisor_sniff(tmp_path) is None


def test_advice_on_small_reads_in_bursts(tmp_path: Path) -> None:
    lines = [event("open", 0, 10, ret=3)]
    for step in range(10):
        lines += [event("read", 100_000 * step + 300 * n + 20, 290, ret=512, count=512) for n in range(100)]
    found = read(trace(tmp_path, *lines))
    assert total(found, "io_bursts") == 10
    advice = pipeline.study_run(found, pipeline.Options(), host.load_plugins()).advice
    assert advice.recommendations[0].action in ("G-18", "G-51")
    assert "small reads" in {one.kind for one in dftracer.advisor_findings(found)}


def test_seconds_and_bytes_of_nested_calls_count_once() -> None:
    columns = [np.array(each) for each in ([0, 0, 0], [0, 1, 1], [0, 0, 0])]
    times = np.array([0.0, 1.0, 4.0]), np.array([10.0, 3.0, 6.0])
    events = IoEvents(*columns, *times, np.array([64, 32, 32]), np.array([-1, 0, 32]))
    run = IoRun("p", "r", "dftracer", (Processor(0),), ("MPI-IO collective write", "POSIX write"), ("f",), (0.0, 20.0))
    found = build_io_profile(run, events)
    assert found.phases[0].arrays["io_s"][:, 0, 0].tolist() == [0.0, 6.0, 4.0]
    assert total(found, "io_bytes") == 64
    assert total(found, "io_operations") == 2
    assert total(found, "calls") == 3


def test_turns_between_reading_and_writing_but_the_first() -> None:
    n = 6
    kinds = np.array([0, 1, 0, 1, 1, 0])  # read write read write write read
    starts = np.arange(n, dtype=float)
    zero = np.zeros(n, dtype=np.int64)
    events = IoEvents(zero, kinds, zero, starts, starts + 0.5, zero + 8, np.arange(n) * 8)
    run = IoRun("p", "r", "dftracer", (Processor(0),), ("POSIX read", "POSIX write"), ("f",), (0.0, 6.0))
    assert total(build_io_profile(run, events), "io_switches") == 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (event("read", 0, 5).replace('"dur":5', '"dur":-5'), "impossible"),
        (event("read", 0, 5, ret=1 << 70), "impossible"),
        (event("read", 0, 5).replace('"ts":1000000', '"ts":"soon"'), "ValueError"),
        (event("read", 0, 5).replace('"pid":7,', ""), "KeyError"),
        ("[1, 2]", "no event"),
    ],
)
def test_what_no_call_can_be_is_refused_with_its_line(line: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        read(trace(tmp_path, event("read", 0, 5, ret=1), line, event("read", 9, 5, ret=1)))
    assert "line 5" in str(caught.value)


def test_a_trace_without_calls_on_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no call on a file"):
        read(trace(tmp_path))


def test_half_a_last_line_is_a_note(tmp_path: Path) -> None:
    path = trace(tmp_path, event("read", 0, 5, ret=1), event("read", 9, 5, ret=1)[:40])
    assert [note.name for note in read(path).notes] == ["span of events", "trace cut off"]


def test_damage_is_refused_or_read_soundly(tmp_path: Path) -> None:
    content, draw = RECORDED.read_bytes(), random.Random(5)
    path, packed = tmp_path / "x.pfw", gzip.compress(RECORDED.read_bytes())
    for number in range(600):
        whole = packed if number % 3 == 0 else content
        damaged = bytearray(whole[: draw.randrange(len(whole))] if number % 2 else whole)
        for _ in range(1 if number % 2 == 0 else 0):
            damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        dftracer.advisor_sniff(path)
        try:
            read(path)
        except InputError:
            continue
