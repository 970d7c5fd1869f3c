"""Trace events of programs without devices: begun and ended ones, and those with a duration."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from advisor.analysis import soundness
from advisor.formats import chrome_trace
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

if TYPE_CHECKING:
    from pathlib import Path


def begun(name: str, start: float, end: float, **lane: int) -> list[dict[str, Any]]:
    at = {"pid": 7, "tid": 7} | lane
    return [at | {"ph": "B", "ts": start, "name": name}, at | {"ph": "E", "ts": end}]


def lasting(name: str, start: float, dur: float, **lane: int) -> dict[str, Any]:
    return {"pid": 7, "tid": 7, "ph": "X", "ts": start, "dur": dur, "name": name} | lane


def read_events(path: Path, *events: dict[str, Any]) -> Profile:
    path.write_text(json.dumps(list(events)))
    assert chrome_trace.advisor_sniff(path) == 0.9
    profile = chrome_trace.advisor_read(path)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    return profile


def seconds(profile: Profile) -> dict[str, list[float]]:
    wall = profile.phases[0].arrays["wall_s"].sum(axis=2)
    rows = profile.phases[0].regions.tolist()
    return {profile.regions[row].name: np.round(v, 9).tolist() for row, v in zip(rows, wall, strict=True) if v.any()}


def test_events_inside_others(tmp_path: Path) -> None:
    main = begun("main", 0, 1e6)
    events = (main[0], lasting("solve", 1e5, 6e5), lasting("dot", 2e5, 1e5), *begun("read", 8e5, 9e5), main[1])
    profile = read_events(tmp_path / "t.json", *events)
    assert profile.actual_s == 1
    assert seconds(profile) == {"main": [0.3], "solve": [0.5], "dot": [0.1], "read": [0.1]}


def test_processes_and_threads(tmp_path: Path) -> None:
    names = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"rank {pid}"}} for pid in (9, 10)]
    events = [lasting("work", 0, 1e6 - 1e5 * tid, pid=pid, tid=pid + tid) for pid in (10, 9) for tid in (1, 0)]
    profile = read_events(tmp_path / "t.json", *names, *events)
    assert [(one.rank, one.thread) for one in profile.processors] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert seconds(profile) == {"work": [1.0, 0.9, 1.0, 0.9]}
    assert "waiting hidden" in {note.name for note in profile.notes}


def test_calls_of_mpi_wait(tmp_path: Path) -> None:
    events = [
        lasting(name, start, dur, pid=pid, tid=pid)
        for pid, work in ((1, 8e5), (2, 4e5))
        for name, start, dur in (("work", 0, work), ("MPI_Allreduce", work, 1e6 - work))
    ]
    profile = read_events(tmp_path / "t.json", *events)
    assert profile.phases[0].arrays["wait_s"].sum() == pytest.approx(0.4)


def test_what_is_odd_is_noted(tmp_path: Path) -> None:
    opened = begun("main", 0, 1)[0]
    over = lasting("late", 5e5, 9e5)
    bad = lasting("broken", 0, -1)
    profile = read_events(tmp_path / "t.json", opened, lasting("first", 1e5, 6e5), over, bad, {"ph": "E", "ts": 1})
    assert {"events not ended", "events not read"} <= {note.name for note in profile.notes}
    assert sum(value[0] for value in seconds(profile).values()) == pytest.approx(profile.actual_s)


def test_programs_beside_each_other_are_no_run(tmp_path: Path) -> None:
    names = [{"ph": "M", "name": "process_name", "pid": n, "args": {"name": name}} for n, name in enumerate("ab")]
    with pytest.raises(InputError, match="different programs, not of one parallel run: a and b"):
        read_events(tmp_path / "t.json", *names, *(lasting("work", 0, 1e6, pid=pid) for pid in (0, 1)))
    with pytest.raises(InputError, match="no events of threads"):
        read_events(tmp_path / "t.json", {"ph": "i", "ts": 1, "name": "mark"})


def test_damage(tmp_path: Path) -> None:
    content = json.dumps([*begun("main", 0, 2e5), lasting("solve", 1e4, 6e4), lasting("dot", 2e4, 1e4)]).encode()
    random = np.random.default_rng(2)
    file = tmp_path / "t.json"
    for length in range(40, len(content) - 1, 3):
        file.write_bytes(content[:length])
        try:
            notes = {note.name for note in chrome_trace.advisor_read(file).notes}
        except InputError:
            continue
        assert "trace does not end" in notes, length
        assert content[:length].rstrip(b", ").endswith(b"}"), length
    for place in random.integers(0, len(content), 300).tolist():
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(random.integers(8))
        (tmp_path / "t.json.gz").write_bytes(gzip.compress(bytes(damaged)))
        try:
            soundness.check_profile(chrome_trace.advisor_read(tmp_path / "t.json.gz"))
        except InputError:
            continue


def test_processes_without_names_that_do_nothing_alike_are_different_programs(tmp_path: Path) -> None:
    workers = [lasting("work", 0, 1e6, pid=pid, tid=pid) for pid in (1, 2)]
    master = lasting("dispatch", 0, 1e6, pid=3, tid=3)
    assert read_events(tmp_path / "team.json", *workers, master).ranks == 3
    other = lasting("draw", 0, 1e6, pid=4, tid=4)
    with pytest.raises(InputError, match="different programs, not of one parallel run: what processes 3 and 4 do"):
        read_events(tmp_path / "apart.json", *workers, master, other)


def test_a_browser_is_no_parallel_run(tmp_path: Path) -> None:
    name = {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "Browser"}}
    events = [lasting("RunTask", 0, 1e6 - 1e5 * tid, tid=tid) for tid in (1, 2)]
    with pytest.raises(InputError, match="holds a browser, whose threads serve events"):
        read_events(tmp_path / "t.json", name, *events)
