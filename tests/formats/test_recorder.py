"""Recorder's traces: calls, bytes, offsets and times of a program that is known."""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

import damage
import numpy as np
import pytest

from advisor.analysis import soundness
from advisor.formats import recorder
from advisor.formats.recorder import files
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

HERE = Path(__file__).parents[1] / "profiles" / "recorder"
BY_RANK = HERE / "node-user-iotest-9765-060453.040"
TOGETHER = HERE / "node-user-iotest-9788-060454.136"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return Path(shutil.copytree(BY_RANK, tmp_path / BY_RANK.name))


@pytest.mark.parametrize("folder", [BY_RANK, TOGETHER], ids=["by rank", "together"])
def test_traces_are_read(folder: Path) -> None:
    assert recorder.advisor_sniff(folder) == 1
    profile = recorder.advisor_read(folder)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert (profile.program, profile.ranks, profile.ranks_expected) == ("iotest", 2, 2)
    assert profile.started is not None
    assert profile.started.startswith("2026-11-23T06:04:5")


@pytest.mark.parametrize("folder", [BY_RANK, TOGETHER], ids=["by rank", "together"])
def test_operations_and_bytes_are_those_of_the_program(folder: Path) -> None:
    """Each rank writes 200 x 1 KiB and 1 MiB, reads 50 x 512 B; MPI-IO writes 5 x 64 KiB on each."""
    profile = recorder.advisor_read(folder)
    rows = [region.name for region in profile.regions]
    read, write = rows.index("POSIX read"), rows.index("POSIX write")
    assert profile.counts["io_operations"][read].tolist() == [50, 50]
    assert profile.counts["io_bytes"][read].tolist() == [50 * 512] * 2
    assert profile.counts["io_random_operations"][read].tolist() == [2, 2], "places follow from lseek, and wrap twice"
    written = profile.counts["io_bytes"][write]  # the pieces of MPI-IO are counted where POSIX writes them
    assert written.tolist() == pytest.approx([200 * 1024 + (1 << 20) + 5 * 65536] * 2, abs=64)
    assert profile.counts["calls"][rows.index("MPI-IO independent write")].tolist() == [4, 4]
    assert profile.causes is not None
    assert any(target.endswith("out.0.dat") for target in profile.causes.targets)
    assert any(target.endswith("shared.dat") for target in profile.causes.targets), "handles have the name of the file"


def test_communication_is_named() -> None:
    notes = {note.name: note.text for note in recorder.advisor_read(BY_RANK).notes}
    assert "in other calls of MPI" in notes["communication counts as the program"]


def test_patterns_become_findings() -> None:
    profile = recorder.advisor_read(BY_RANK)
    assert {finding.plugin for finding in recorder.advisor_findings(profile)} <= {"recorder"}


def test_a_missing_rank_is_noticed(trace: Path) -> None:
    (trace / "1.ts").unlink()
    profile = recorder.advisor_read(trace)
    assert profile.ranks == 1
    assert profile.ranks_expected == 2
    assert "ranks missing" in {note.name for note in profile.notes}


def test_other_versions_are_refused_by_name(trace: Path) -> None:
    (trace / "VERSION").write_text("3.0.0")
    with pytest.raises(InputError, match=r"written by Recorder 3.0.0; versions 2.3 to 2.5 are read"):
        recorder.advisor_read(trace)


def test_version_2_3_has_shorter_headers(trace: Path) -> None:
    """Up to 2.3.3 signatures have no rank and no count, and the header has no word on compression."""
    (trace / "VERSION").write_text("2.3.3")
    header = (trace / "recorder.mt").read_bytes()
    (trace / "recorder.mt").write_bytes(header[:32] + header[40:])
    for path in trace.glob("*.cst"):
        content = path.read_bytes()
        (count,) = struct.unpack_from("<i", content)
        place, new = 4, content[:4]
        for _ in range(count):
            terminal, _, size, _ = struct.unpack_from("<4i", content, place)
            new += struct.pack("<2i", terminal, size) + content[place + 16 : place + 16 + size]
            place += 16 + size
        path.write_bytes(new)
    assert damage.same(recorder.advisor_read(trace), recorder.advisor_read(BY_RANK))


def test_long_pauses_within_a_call_wrap_once(tmp_path: Path) -> None:
    (tmp_path / "0.ts").write_bytes(struct.pack("<4I", 10, 5, 20, 40))
    begin, end = files.read_times(tmp_path / "0.ts", 2, 1e-7)
    assert np.rint(begin * 1e7).tolist() == [10, 30]
    assert np.rint(end * 1e7).tolist() == [5 + (1 << 32), 50]


@pytest.mark.parametrize("name", ["recorder.mt", "0.cst", "0.cfg", "0.ts", "VERSION"])
def test_files_cut_off_anywhere(trace: Path, name: str) -> None:
    content = (trace / name).read_bytes()
    whole = recorder.advisor_read(trace)
    lengths = range(len(content))
    for length in random.Random(1).sample(lengths, min(damage.TRIED // 5, len(content))):
        (trace / name).write_bytes(content[:length])
        try:
            found = recorder.advisor_read(trace)
        except InputError:
            continue
        soundness.check_profile(found)
        assert damage.same(found, whole), f"cut after byte {length}: no word of it"


@pytest.mark.parametrize("name", ["recorder.mt", "0.cst", "0.cfg", "0.ts", "VERSION"])
def test_bits_turned_over(trace: Path, name: str, tmp_path: Path) -> None:
    content = (trace / name).read_bytes()
    for bit in random.Random(2).sample(range(8 * len(content)), min(damage.TRIED // 5, 8 * len(content))):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        (trace / name).write_bytes(changed)
        try:
            found = recorder.advisor_read(trace)
        except InputError:
            continue
        contract.check_value(found, Profile)
        soundness.check_profile(found)


def test_a_turned_bit_in_the_times_shows_or_changes_next_to_nothing(trace: Path) -> None:
    whole = recorder.advisor_read(trace)
    content = (trace / "1.ts").read_bytes()
    for bit in random.Random(6).sample(range(8 * len(content)), 60):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        (trace / "1.ts").write_bytes(changed)
        found = recorder.advisor_read(trace)
        said = {note.name for note in found.notes} & {"contradictory times", "ranks unlike"}
        seconds = [float(profile.phases[0].arrays["io_s"].sum()) for profile in (found, whole)]
        assert said or seconds[0] == pytest.approx(seconds[1], rel=1e-2)
        assert said or found.actual_s == pytest.approx(whole.actual_s, rel=1e-2)


def test_a_rank_in_another_unit_is_not_believed(trace: Path) -> None:
    ticks = np.frombuffer((trace / "1.ts").read_bytes(), dtype="<u4")
    (trace / "1.ts").write_bytes((ticks // 1000).astype("<u4").tobytes())
    assert "ranks unlike" in {note.name for note in recorder.advisor_read(trace).notes}
