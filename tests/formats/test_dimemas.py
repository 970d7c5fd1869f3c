"""Dimemas traces: computation and communication of every task as the simulator counts them, and what they tell."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path

import damage
import numpy as np
import pytest

from advisor.analysis import bounds, gaps, soundness
from advisor.formats import dimemas, paraver
from advisor.formats.dimemas.records import RecordKind
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

HERE = Path(__file__).parents[1] / "profiles" / "dimemas"
CASES = sorted(path.name for path in HERE.iterdir() if path.is_dir())
RECORDED = HERE.parent / "paraver"
TASK = re.compile(r"^ +\d+\t(.*)$", re.MULTILINE)


def expected(case: str) -> tuple[list[list[float]], list[list[float]]]:
    """The two tables per task that Dimemas prints: computation …, messages sent, bytes sent …"""
    first, second = (HERE / case / "stats_L10us_BW1000.txt").read_text().split(" Id.\tMess.sent")
    return table(first), table(second)


def table(text: str) -> list[list[float]]:
    return [[float(value) for value in row.split("\t")] for row in TASK.findall(text)]


@pytest.mark.parametrize("case", CASES)
def test_tasks_compute_and_communicate_as_the_simulator_counts(case: str) -> None:
    records = dimemas.read_records(HERE / case / "trace.dim")
    computation, communication = expected(case)
    assert len(records.rank) == len(computation)
    for task, ((seconds, *_), row) in enumerate(zip(computation, communication, strict=True)):
        mine = slice(int(records.first[task]), int(records.first[task + 1]))
        kind, amount = records.kind[mine], records.amount[mine]
        assert amount[kind == RecordKind.BURST].sum() == round(seconds * 1e9)
        assert (kind == RecordKind.SEND).sum() == row[0]
        assert amount[kind == RecordKind.SEND].sum() == row[1]
        finished = (kind == RecordKind.RECEIVE) & (records.code[mine] != 1)
        assert amount[finished].sum() == row[4]
        assert (kind == RecordKind.COLLECTIVE).sum() == row[5]


@pytest.mark.parametrize("case", CASES)
def test_the_bounds_are_those_of_the_trace_it_was_made_from(case: str) -> None:
    """To within what the simulator leaves out: the time of all calls."""
    profile = dimemas.advisor_read(HERE / case / "trace.dim")
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    source = RECORDED / case / "trace.prv"
    whole = paraver.advisor_read(source if source.is_file() else source.with_suffix(".prv.gz"))
    found = {bound.name: bound for bound in bounds.compute_bounds(profile)}
    for theirs in bounds.compute_bounds(whole):
        ours = found[theirs.name]
        if theirs.name in ("I", "IP"):
            assert ours.status == "estimated"
            assert ours.seconds == pytest.approx(theirs.seconds, abs=0.0007)
        if theirs.name in ("IPCOL", "IPCOLM", "IPCOLMD"):
            assert (theirs.seconds or 0) - 0.003 < (ours.seconds or 0) <= (theirs.seconds or 0)
        if theirs.name in ("IPC", "IPCOLMDS", "IPCOLMDSW"):
            assert ours.seconds is None
    assert [phase.iterations for phase in profile.phases] == [phase.iterations for phase in whole.phases]
    assert [phase.kind for phase in profile.phases] == [phase.kind for phase in whole.phases]
    assert profile.actual_s == pytest.approx(whole.actual_s, abs=1e-9)
    assert profile.counts["messages"].sum() == whole.counts["messages"].sum() if "messages" in whole.counts else True


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("faultlab")])
def test_the_gaps_are_what_was_injected(case: str) -> None:
    profile = dimemas.advisor_read(HERE / case / "trace.dim")
    found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile))}
    truth = json.loads((RECORDED / case / "truth.json").read_text())["injected_s"]
    loads = [np.array(truth[name]) for name in ("phase1", "phase2", "exchange") if name in truth]
    total = sum(load.sum(axis=1) for load in loads)
    wanted = {"L": total.max() - total.mean(), "M'": sum(load.sum(axis=1).max() for load in loads) - total.max()}
    for name, seconds in wanted.items():
        assert found[name] == pytest.approx(seconds, abs=0.05 * seconds + 0.005), name


def test_the_tracers_clock_tells_how_long_the_run_took() -> None:
    profile = dimemas.advisor_read(HERE / "faultlab-imbalance30" / "trace.dim")
    work = sum(phase.arrays["work_s"].sum(axis=(0, 2)) for phase in profile.phases)
    assert work + sum(profile.outside.values()) == pytest.approx([profile.actual_s] * 2, abs=1e-9)


def without(tmp_path: Path, pattern: bytes) -> Path:
    """A trace of which the lines that match are gone, with places of its tasks that fit."""
    lines = (HERE / "faultlab-imbalance30" / "trace.dim").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not re.match(pattern, line) and not line.startswith(b"s:")]
    places, place = {}, 0
    for line in kept:
        if re.match(rb"\d+:\d+:", line):
            places.setdefault(int(line.split(b":")[1]), place)
        place += len(line)
    header = re.sub(rb":1,\d{5}:", b":1,%05d:" % place, kept[0])
    text = header + b"".join(kept[1:]) + b"".join(b"s:%d:%d\n" % item for item in sorted(places.items()))
    (tmp_path / "trace.dim").write_bytes(text)
    return tmp_path / "trace.dim"


def test_without_a_clock_there_is_no_run_time(tmp_path: Path) -> None:
    profile = dimemas.advisor_read(without(tmp_path, rb"20:\d:0:40000050:"))
    soundness.check_profile(profile)
    assert math.isnan(profile.actual_s)
    found = {bound.name: bound.seconds for bound in bounds.compute_bounds(profile)}
    assert found["actual"] is None
    assert found["IPCOLMD"] == pytest.approx(0.52335, abs=1e-4)


def test_records_alone_tell_the_phases(tmp_path: Path) -> None:
    profile = dimemas.advisor_read(without(tmp_path, rb"20:"))
    assert 20 in [phase.iterations for phase in profile.phases]
    found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile))}
    assert found["L"] == pytest.approx(0.12, abs=0.011)


def test_tasks_that_do_not_meet_equally_often_have_no_phases(tmp_path: Path) -> None:
    path = without(tmp_path, rb"10:1:0:11:")
    profile = dimemas.advisor_read(path)
    soundness.check_profile(profile)
    assert "phases unknown" in {note.name for note in profile.notes}
    assert len(profile.phases) == 1


def test_names_stand_beside_the_trace(tmp_path: Path) -> None:
    (tmp_path / "trace.dim").write_bytes((HERE / "faultlab-imbalance30" / "trace.dim").read_bytes())
    assert "function 5" in {region.name for region in dimemas.advisor_read(tmp_path / "trace.dim").regions}
    (tmp_path / "trace.pcf").write_bytes((RECORDED / "faultlab-imbalance30" / "trace.pcf").read_bytes())
    profile = dimemas.advisor_read(tmp_path / "trace.dim")
    assert {"phase1", "phase2", "MPI_Sendrecv"} <= {region.name for region in profile.regions}
    assert profile.program == "faultlab_extrae"
    assert "names missing" not in {note.name for note in profile.notes}


def test_what_is_claimed(tmp_path: Path) -> None:
    for case in CASES:
        assert dimemas.advisor_sniff(HERE / case / "trace.dim") == 1
        assert dimemas.advisor_sniff(HERE / case) is None
        assert dimemas.advisor_sniff(HERE / case / "stats_L10us_BW1000.txt") is None
    (tmp_path / "machine.cfg").write_text('#DIMEMAS_CONFIGURATION\n"wide area network information" {"", 0};;\n')
    assert dimemas.advisor_sniff(tmp_path / "machine.cfg") is None


def test_both_ways_of_reading_give_the_same() -> None:
    pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    path = HERE / "faultlab-late4" / "trace.dim"
    plain, compiled = (dimemas.read_records(path, way) for way in (False, True))
    for name in ("first", "kind", "amount", "more", "partner", "tag", "reference", "code"):
        assert np.array_equal(getattr(plain, name), getattr(compiled, name)), name


SMALL = HERE / "npb-bt.S.1" / "trace.dim"


def test_a_trace_cut_off_anywhere(tmp_path: Path) -> None:
    damage.every_prefix(SMALL, tmp_path, dimemas.advisor_read)


def test_bits_turned_over(tmp_path: Path) -> None:
    """The format says nothing twice but where tasks begin; most of its lines are names and numbers nobody checks."""
    tried = damage.TRIED
    assert damage.bit_flips(SMALL, tmp_path, dimemas.advisor_read) < 0.08 * tried


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b":1(1),1", b":2(1),1", "list of tasks is not complete"),
        (b"d:1:1:1:0", b"d:1:1:2:0", "communicator's members"),
        (b"s:0:60", b"s:0:61", "does not begin"),
        (b"s:0:", b"s:1:", "list of tasks at the end"),
        (b"\n1:0:0:0.000", b"\n1:0:1:0.000", "no such task or thread"),
        (b"\n1:0:0:0.000", b"\n1:0:0:0:0:0", "no record"),
        (b"\n10:0:0:", b"\n11:0:0:", ""),
    ],
)
def test_damage_is_named(tmp_path: Path, old: bytes, new: bytes, reason: str) -> None:
    content = SMALL.read_bytes()
    assert old in content
    (tmp_path / "trace.dim").write_bytes(content.replace(old, new, 1))
    if reason:
        with pytest.raises(InputError, match=reason):
            dimemas.advisor_read(tmp_path / "trace.dim")
    else:
        notes = {note.name for note in dimemas.advisor_read(tmp_path / "trace.dim").notes}
        assert "records not used" in notes


def test_a_packed_trace_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "trace.dim.gz").write_bytes(gzip.compress(SMALL.read_bytes()))
    assert dimemas.advisor_sniff(tmp_path / "trace.dim.gz") is None
