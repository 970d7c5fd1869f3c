"""Recordings of Java Flight Recorder: samples, threads and times are those that were written, and those Java prints."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import damage
import jfr_recordings
import pytest
from jfr_recordings import Recording

import gapwatch
from advisor.analysis import soundness
from advisor.formats import call_stacks
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

RUNNING = "STATE_RUNNABLE"
SOLVE, MAIN = "org/example/Solver.solve", "org/example/Heat.main"
SAMPLES = [(11, (SOLVE, MAIN), RUNNING)] * 30 + [(12, (MAIN,), RUNNING)] * 10


def read(path: Path, *chunks: Recording) -> Profile:
    path.write_bytes(b"".join(chunk.write() for chunk in chunks))
    assert call_stacks.advisor_sniff(path) == 1.0
    profile = call_stacks.advisor_read(path)
    soundness.check_profile(profile)
    return profile


def cpu_seconds(profile: Profile) -> dict[str, list[float]]:
    rows = zip(profile.regions, profile.phases[0].arrays["cpu_s"][:, :, 0], strict=True)
    return {region.name: [round(second, 6) for second in row.tolist()] for region, row in rows if row.any()}


def notes(profile: Profile) -> set[str]:
    return {note.name for note in profile.notes}


def test_samples_are_seconds_of_their_threads(tmp_path: Path) -> None:
    profile = read(tmp_path / "a.jfr", Recording(SAMPLES))
    assert (profile.program, profile.language, profile.actual_s) == ("Heat", "java", 1.0)
    assert profile.started == "2023-11-14T22:13:20+00:00"
    assert cpu_seconds(profile) == {"org.example.Solver.solve": [0.3, 0], "org.example.Heat.main": [0, 0.1]}
    assert {region.file for region in profile.regions} >= {"org/example/Solver.java"}


def test_threads_that_sleep_hold_no_cores(tmp_path: Path) -> None:
    path = tmp_path / "a.jfr"
    read(path, Recording(SAMPLES, duration_s=4))
    assert "G-111" not in [one.action for one in gapwatch.load(path).recommendations]


def test_chunks_follow_each_other_and_sleeping_threads_do_not_run(tmp_path: Path) -> None:
    asleep = [(11, (SOLVE, MAIN), "STATE_SLEEPING")] * 5
    profile = read(tmp_path / "a.jfr", Recording(SAMPLES), Recording(SAMPLES + asleep, duration_s=2, period="20000000"))
    assert profile.actual_s == 3
    assert cpu_seconds(profile)["org.example.Solver.solve"][0] == pytest.approx(1.2), "the last period holds for all"


def test_more_threads_than_java_samples_at_a_time(tmp_path: Path) -> None:
    """Ten threads ran all the time, and five of them were sampled in each period."""
    samples = [(thread, (SOLVE, MAIN), RUNNING) for thread in range(10) for _ in range(50)]
    for load in (1.0, 0.7, 0.5, 0.1):
        profile = read(tmp_path / "a.jfr", Recording(samples, load=load, processors=10))
        assert profile.phases[0].arrays["cpu_s"].sum() == pytest.approx(max(10 * load, 5))


def test_other_work_of_the_process_and_pauses_are_said(tmp_path: Path) -> None:
    profile = read(tmp_path / "a.jfr", Recording(SAMPLES, load=1.0, pauses_s=0.2))
    assert {"part of the processor time", "pauses of the collector"} <= notes(profile)
    assert not {"part of the processor time", "pauses of the collector"} & notes(
        read(tmp_path / "b.jfr", Recording(SAMPLES))
    )


def test_recordings_that_cannot_be_read(tmp_path: Path) -> None:
    whole = Recording(SAMPLES).write()
    path = tmp_path / "a.jfr"
    old = whole[:4] + b"\0\0\0\x09" + whole[8:]
    for content, reason in ((old, "Java 9"), (whole[:-3], "not finished"), (Recording([]).write(), "no samples")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=reason):
            call_stacks.advisor_read(path)


@pytest.mark.parametrize(
    ("kind", "name", "fields", "reason"),
    [
        (105, "jdk.JVMInformation", (("startTime", 7, ""), ("javaArguments", 7, "")), "an event holds"),
        (103, "jdk.CPULoad", (("startTime", 7, ""), ("jvmUser", 26, "*"), ("jvmSystem", 26, "*")), "an event holds"),
        (23, "jdk.types.StackFrame", (), "values without bytes"),
        (101, "jdk.ExecutionSample", tuple((str(n), 7, "") for n in range(9)), "of 9 bytes holds"),
    ],
)
def test_types_that_are_not_those_of_java(
    kind: int, name: str, fields: jfr_recordings.Fields, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(jfr_recordings.TYPES, kind, (name, fields))
    (tmp_path / "a.jfr").write_bytes(Recording(SAMPLES).write())
    with pytest.raises(InputError, match=reason):
        call_stacks.advisor_read(tmp_path / "a.jfr")


def test_constants_follow_each_other_backwards(tmp_path: Path) -> None:
    """Others could be read again and again."""
    content = Recording(SAMPLES).write()
    (at,) = struct.unpack_from(">Q", content, 16)
    for back in (1, 0x7F):
        (tmp_path / "a.jfr").write_bytes(content[: at + 7] + bytes([back]) + content[at + 8 :])
        with pytest.raises(InputError, match="in one another"):
            call_stacks.advisor_read(tmp_path / "a.jfr")


def test_recordings_cut_off_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "whole.jfr"
    path.write_bytes(Recording(SAMPLES[::7]).write())
    (tmp_path / "damaged").mkdir()
    damage.every_prefix(path, tmp_path / "damaged", call_stacks.advisor_read)


def test_bits_turned_over(tmp_path: Path) -> None:
    """Numbers stand there once: a turned bit in one goes unnoticed, but nothing ends in an error of Python."""
    path = tmp_path / "whole.jfr"
    path.write_bytes(Recording(SAMPLES[::7]).write())
    (tmp_path / "damaged").mkdir()
    assert damage.bit_flips(path, tmp_path / "damaged", call_stacks.advisor_read) <= 0.3 * damage.TRIED


@pytest.mark.skipif(shutil.which("java") is None or shutil.which("jfr") is None, reason="needs java and jfr")
def test_samples_are_as_many_as_java_prints(tmp_path: Path) -> None:
    (tmp_path / "Busy.java").write_text(
        "public class Busy { static double x; static void spin(long ms) { long end = System.nanoTime() + ms * 1000000L;"
        " while (System.nanoTime() < end) x += Math.sin(x); }"
        " public static void main(String[] a) { spin(1500); System.out.println(x); } }"
    )
    recording = tmp_path / "busy.jfr"
    command = ["java", f"-XX:StartFlightRecording=filename={recording},settings=profile", tmp_path / "Busy.java"]
    subprocess.run(command, check=True, capture_output=True)
    printed = subprocess.run(
        ["jfr", "print", "--json", "--events", "jdk.ExecutionSample", recording], check=True, capture_output=True
    )
    events = json.loads(printed.stdout)["recording"]["events"]
    tops = [event["values"]["stackTrace"]["frames"][0]["method"]["name"] for event in events]
    profile = call_stacks.advisor_read(recording)
    cpu = profile.phases[0].arrays["cpu_s"]
    spin = cpu[[region.name.endswith(".spin") for region in profile.regions]].sum()
    assert spin / cpu.sum() == pytest.approx(tops.count("spin") / len(tops), abs=1e-6)
