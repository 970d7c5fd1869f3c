"""Profiles of the Firefox Profiler and samply: processor time between samples of threads, and stacks of tables."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from advisor.analysis import soundness
from advisor.formats import call_stacks
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

TEXTS = ["main", "solve", "0x1f00", "libm.so.6", "heat.c", "0x1f40"]


def tables() -> dict[str, Any]:
    """Return the functions main, solve and two of libm without names, and stacks of them: main;solve;[libm.so.6]."""
    return {
        "stackTable": {"frame": [0, 1, 2, 3], "prefix": [None, 0, 1, 2], "length": 4},
        "frameTable": {"func": [0, 1, 2, 3], "length": 4},
        "funcTable": {
            "name": [0, 1, 2, 5], "resource": [-1, -1, 0, 0], "fileName": [4, 4, None, None],
            "lineNumber": [3, 9, None, None],
        },
        "resourceTable": {"name": [3]},
    }  # fmt: skip


def thread(stacks: list[int | None], deltas: list[int | None], pid: object = "7", **samples: object) -> dict[str, Any]:
    recorded = {"stack": stacks, "threadCPUDelta": deltas, "time": [10.0 * i for i in range(len(stacks))]}
    return {"pid": pid, "samples": recorded | samples, "stringArray": TEXTS, **tables()}


def document(*threads: dict[str, Any], **more: object) -> dict[str, Any]:
    units = {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"}
    meta = {"interval": 10.0, "product": "heat", "startTime": 1.7e12, "sampleUnits": units}
    return {"meta": meta, "libs": [], "threads": list(threads), **more}


def read(path: Path, content: dict[str, Any]) -> Profile:
    path.write_bytes(
        gzip.compress(json.dumps(content).encode()) if path.suffix == ".gz" else json.dumps(content).encode()
    )
    assert call_stacks.advisor_sniff(path) == 1.0
    profile = call_stacks.advisor_read(path)
    soundness.check_profile(profile)
    return profile


def cpu_seconds(profile: Profile) -> dict[str, list[float]]:
    """Return the seconds of each function on each thread, of its rows under several callers together."""
    found: dict[str, list[float]] = {}
    for region, row in zip(profile.regions, profile.phases[0].arrays["cpu_s"][:, :, 0], strict=True):
        before = found.get(region.name, [0.0] * row.size)
        found[region.name] = [round(one + two, 6) for one, two in zip(before, row.tolist(), strict=True)]
    return {name: seconds for name, seconds in found.items() if any(seconds)}


STACKS: list[int | None] = [0, 1, 1, 3, None]
DELTAS: list[int | None] = [90_000, 10_000, 4_000, 6_000, 2_000]


@pytest.mark.parametrize("name", ["profile.json", "profile.json.gz"])
def test_functions_get_the_processor_time_before_their_samples(tmp_path: Path, name: str) -> None:
    profile = read(tmp_path / name, document(thread(STACKS, DELTAS)))
    assert (profile.program, profile.actual_s) == ("heat", pytest.approx(0.04))
    assert profile.started == "2023-11-14T22:13:20+00:00"
    # what came before the first sample is no part of the recording; libm's functions have no names
    assert cpu_seconds(profile) == {"solve": [0.014], "[libm.so.6]": [0.006], "(no stack)": [0.002]}
    assert {(region.name, region.file, region.line) for region in profile.regions} >= {("solve", "heat.c", 9)}


def test_tables_may_be_shared_and_times_be_differences(tmp_path: Path) -> None:
    bare = thread(STACKS, DELTAS, timeDeltas=[0.0, 10.0, 10.0, 10.0, 10.0])
    del bare["samples"]["time"]
    shared = {name: bare.pop(name) for name in (*tables(), "stringArray")}
    profile = read(tmp_path / "a.json", document(bare, shared=shared))
    assert (profile.actual_s, cpu_seconds(profile)["solve"]) == (pytest.approx(0.04), [0.014])


def test_threads_that_do_next_to_nothing_and_other_processes_are_left_out(tmp_path: Path) -> None:
    idle, other = thread([0, 0], [0, 100]), thread([0, 0], [0, 9_000], pid="8")
    profile = read(tmp_path / "a.json", document(thread(STACKS, DELTAS), idle, other))
    assert len(profile.processors) == 1
    assert [note.name for note in profile.notes if "process" in note.name] == ["several processes"]
    two = read(tmp_path / "b.json", document(thread(STACKS, DELTAS), thread([0, 1], [0, 9_000])))
    assert cpu_seconds(two)["solve"] == [0.014, 0.009]


def test_code_without_names_is_told(tmp_path: Path) -> None:
    profile = read(tmp_path / "a.json", document(thread([3] * 5, DELTAS)))
    assert "addresses instead of names" in {note.name for note in profile.notes}
    assert "addresses instead of names" not in {
        note.name for note in read(tmp_path / "b.json", document(thread(STACKS, DELTAS))).notes
    }


def test_weights_are_samples_or_milliseconds(tmp_path: Path) -> None:
    counted = thread(STACKS, DELTAS, weight=[1, 2, 1, 1, 1], weightType="samples")
    del counted["samples"]["threadCPUDelta"]
    profile = read(tmp_path / "a.json", document(counted))
    assert (profile.has_run_time, float(profile.counts["samples"].sum())) == (False, 6.0)
    spans = thread(STACKS, DELTAS, weight=[1, 2, 1, 1, 1], weightType="tracing-ms")
    del spans["samples"]["threadCPUDelta"]
    assert read(tmp_path / "b.json", document(spans)).actual_s == pytest.approx(0.04)
    memory = thread(STACKS, DELTAS, weight=[1] * 5, weightType="bytes")
    del memory["samples"]["threadCPUDelta"]
    with pytest.raises(InputError, match=r"no samples tell where time passed.*samply record"):
        read(tmp_path / "c.json", document(memory))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"time": [0.0, 10.0, 5.0, 30.0, 40.0]}, r"threads\[0\].samples.time\[2\].*time runs backwards"),
        ({"stack": [0, 1, 9, 3, None]}, r"stackTable.frame.*no member 9"),
        ({"threadCPUDelta": [0, 1]}, r"2 values of 5 samples"),
        ({"threadCPUDelta": [0, 900_000, 0, 0, 0]}, r"spends 0.9 s in a recording of 0.04 s"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.json", document(thread(STACKS, DELTAS, **changed)))
