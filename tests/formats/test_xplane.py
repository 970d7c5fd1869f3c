"""XPlane recordings of JAX, written here by the schema and as real ones look, whole and damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from damage import damage_evenly
from wire_writing import Field, write_message

from advisor.formats.protobuf_wire import WireError, iterate_fields
from advisor.formats.xplane import advisor_read, advisor_sniff

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000_000  # picoseconds
NAMES = {1: "correlation_id", 2: "kernel_details", 3: "memcpy_details", 4: "core_count", 5: "step_num"}


def named(number: int, names: dict[int, str]) -> list[Field]:
    return [(number, [(1, key), (2, [(1, key), (2, name)])]) for key, name in names.items()]


def event(kind: int, start: int, length: int, *stats: Field) -> Field:
    return (4, [(1, kind), (2, start * US), (3, length * US), *stats])


def number(name: int, value: int) -> Field:
    return (4, [(1, name), (3, value)])


def text(name: int, value: str) -> Field:
    return (4, [(1, name), (5, value)])


def write_space(path: Path, own_calls: tuple[Field, ...] = ()) -> Path:
    """Three steps of 10 ms: a pageable copy of 1 ms, a kernel of 5 ms on a quarter of the device, a wait."""
    kernels, copies, calls = [], [], [*own_calls]
    for step in range(3):
        at, link = 10_000 * step, 10 * step
        calls.append(event(4, at, 9_500, number(5, step)))
        calls.append(event(3, at, 1_010, number(1, link + 1)))
        details = "kind_src:pageable kind_dst:device size:4000000 dest:0 async:1"
        copies.append(event(2, at + 5, 1_000, number(1, link + 1), text(3, details)))
        calls.append(event(1, at + 1_020, 10, number(1, link + 2)))
        grid = " grid:32,1,1 block:256,1,1 private_mem:0 group_mem:0 occ_pct:50"
        kernels.append(event(1, at + 1_040, 5_000, number(1, link + 2), text(2, grid)))
        calls.append(event(2, at + 1_050, 5_000))
    device: list[Field] = [
        (2, "/device:GPU:0"),
        (3, [(2, "Stream #7(Kernel)"), (3, 1_000_000), *kernels]),
        (3, [(2, "Stream #9(MemcpyH2D)"), (3, 1_000_000), *copies]),
        (3, [(2, "XLA Modules"), (3, 1_000_000), event(1, 0, 30_000)]),
        *named(4, {1: "loop_fusion", 2: "MemcpyH2D"}), *named(5, NAMES), (6, [(1, 4), (3, 128)]),
    ]  # fmt: skip
    host: list[Field] = [
        (2, "/host:CPU"),
        (3, [(2, "python"), (3, 1_000_000), *calls]),
        *named(4, {1: "cuLaunchKernel", 2: "cuStreamSynchronize", 3: "cuMemcpyHtoDAsync", 4: "train"}),
        *named(4, {5: "$profiler.py:101 start_trace", 6: "$profiler.py:193 stop_trace", 7: "$train.py:1 main"}),
        *named(5, NAMES),
    ]  # fmt: skip
    path.write_bytes(write_message([(1, device), (1, host), (1, [(2, "/host:metadata")])]))
    return path


def test_seconds_of_a_recording(tmp_path: Path) -> None:
    file = write_space(tmp_path / "node7.xplane.pb")
    assert advisor_sniff(file) == 1.0
    assert advisor_sniff(tmp_path) == 0.95
    profile = advisor_read(file)
    use = profile.devices
    assert use is not None
    assert sum(each.mean() for each in use.seconds.values()) == pytest.approx(profile.actual_s, rel=1e-9)
    ms = {name: float(each[0]) * 1e3 for name, each in use.seconds.items() if each.any()}
    assert ms["compute"] == pytest.approx(15.0)
    assert ms["copies"] == pytest.approx(3.0, abs=0.1)
    assert use.facts["iterations"] == 3
    assert use.facts["pageable_share"] == 1.0
    assert use.facts["small_grid_share"] == 1.0
    assert use.facts["low_occupancy_share"] == 0.0
    assert use.facts["sync_calls"] == 3


def test_a_copy_is_no_other_rank(tmp_path: Path) -> None:
    content = write_space(tmp_path / "a.xplane.pb").read_bytes()
    (tmp_path / "b.xplane.pb").write_bytes(content)
    profile = advisor_read(tmp_path)
    assert len(profile.processors) == len(advisor_read(tmp_path / "a.xplane.pb").processors)
    assert [(note.text, note.penalty) for note in profile.notes if note.name == "the same file twice"] == [
        ("left out, it holds the same as a.xplane.pb: b.xplane.pb", 0.1)
    ]
    write_space(tmp_path / "b.xplane.pb", (event(7, 0, 5),))
    assert "the same file twice" not in {note.name for note in advisor_read(tmp_path).notes}
    assert advisor_read(tmp_path).ranks == 2


def test_starting_and_ending_the_recording_is_no_part_of_the_run(tmp_path: Path) -> None:
    profiler = (event(7, -900_000, 9_000_000), event(5, -900_000, 899_990), event(6, 30_000, 6_000_000))
    profile = advisor_read(write_space(tmp_path / "node7.xplane.pb", profiler))
    assert profile.actual_s == pytest.approx(0.030, abs=1e-4)
    alone = advisor_read(write_space(tmp_path / "alone.xplane.pb"))
    assert profile.devices is not None
    assert alone.devices is not None
    assert profile.devices.seconds["host"] == pytest.approx(alone.devices.seconds["host"], abs=1e-4)


def test_hosts_of_a_directory_are_ranks(tmp_path: Path) -> None:
    write_space(tmp_path / "node7.xplane.pb")
    write_space(tmp_path / "node8.xplane.pb", (event(7, 0, 5),))  # what two hosts record is never the same
    use = advisor_read(tmp_path).devices
    assert use is not None
    assert len(use.devices) == 2


def test_damage_ends_in_a_message_or_a_run(tmp_path: Path) -> None:
    whole = write_space(tmp_path / "whole.xplane.pb").read_bytes()
    place = tmp_path / "damaged.xplane.pb"
    damage_evenly(whole, place, advisor_read, 100, 0x2A)


def test_fields_of_messages() -> None:
    message = write_message([(1, 300), (2, "words"), (3, [(1, 1)])]) + b"\x25\x01\x02\x03\x04"
    assert dict(iterate_fields(message)) == {1: 300, 2: b"words", 3: b"\x08\x01", 4: b"\x01\x02\x03\x04"}
    for bad in (message[:-1], b"\x0b", b"\x12\x05ab", b"\xff" * 12):
        with pytest.raises(WireError):
            list(iterate_fields(bad))
