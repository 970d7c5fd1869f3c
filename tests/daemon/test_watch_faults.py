"""What file systems, writers and hostile files do to the daemon: nothing is lost, nothing is read twice."""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from daemon_runs import CONFIG, FIG4, Watch, profile
from patience import PATIENCE_S

PROFILES = Path(__file__).parents[1] / "profiles"


def test_every_file_ends_in_one_state_and_the_counts_add_up(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    profile(watch.root / "a.json")
    shutil.copy(watch.root / "a.json", watch.root / "b.json")
    (watch.root / "notes.txt").write_text("nothing to see")
    (watch.root / "empty").touch()
    (watch.root / "half.json").write_bytes((watch.root / "a.json").read_bytes()[:150])
    os.mkfifo(watch.root / "pipe")
    watch.once()
    assert watch.counts() == {"waiting": 0, "ingested": 1, "duplicate": 1, "quarantined": 1, "ignored": 3}
    reasons = {(event.path.name, event.state): event.reason for event in watch.settled}
    assert "the same as" in reasons["b.json", "duplicate"]
    assert "half.json" in reasons["half.json", "quarantined"]


def test_a_second_pass_reads_nothing_again(tmp_path: Path) -> None:
    profile(tmp_path / "runs" / "a.json")
    first = Watch(tmp_path).once()
    second = Watch(tmp_path).once()
    assert (len(first.runs), len(second.runs)) == (1, 0)
    assert len(second.entries()) == 1


def test_fs1_new_nested_directories_with_their_files_are_found(tmp_path: Path) -> None:
    with Watch(tmp_path) as watch:
        for number in range(20):
            profile(watch.root / f"{number}" / "a" / "b" / "c" / f"run{number}.json")
        watch.until(lambda: len(watch.runs) == 20)


def test_fs5_a_tree_that_is_moved_in_is_found(tmp_path: Path) -> None:
    for number in range(5):
        profile(tmp_path / "elsewhere" / "deep" / f"run{number}.json")
    with Watch(tmp_path) as watch:
        os.rename(tmp_path / "elsewhere", watch.root / "moved")
        watch.until(lambda: len(watch.runs) == 5)


def test_fs6_a_root_that_goes_and_comes_back_is_waited_for(tmp_path: Path) -> None:
    with Watch(tmp_path) as watch:
        profile(watch.root / "a.json")
        watch.until(lambda: len(watch.runs) == 1)
        os.rename(watch.root, tmp_path / "away")
        watch.until(lambda: any("it is waited for" in text for text in watch.remarks))
        watch.scan_again()
        assert watch.counts()["ingested"] == 1, "what is away is not forgotten"
        watch.root.mkdir()
        profile(watch.root / "b.json")
        watch.until(lambda: len(watch.runs) == 2)


def test_fs7_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    profile(tmp_path / "outside" / "a.json")
    watch = Watch(tmp_path)
    os.symlink(tmp_path / "outside", watch.root / "link")
    os.symlink(watch.root, watch.root / "loop")
    profile(watch.root / "b.json")
    assert [one.path.name for one in watch.once().runs] == ["b.json"]


def test_fs10_times_of_the_file_server_mean_nothing(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    for name, moment in (("past", 0), ("future", 4_000_000_000)):
        os.utime(profile(watch.root / f"{name}.json"), (moment, moment))
    assert len(watch.once().runs) == 2


def test_fs11_new_content_under_the_same_name_size_and_time_is_seen(tmp_path: Path) -> None:
    with Watch(tmp_path) as watch:
        path = profile(watch.root / "a.json", run="1")
        status = path.stat()
        watch.until(lambda: len(watch.runs) == 1)
        profile(path, run="2")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        watch.until(lambda: len(watch.runs) == 2)
    assert [entry.run for entry in watch.entries()] == ["2"], "it replaces the first"


def test_fs13_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    os.mkfifo(watch.root / "pipe.json")
    os.symlink("/dev/zero", watch.root / "zero.json")
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(watch.root)
        try:
            listener.bind("socket.json")
        finally:
            os.chdir(tmp_path)
        watch.once()
    assert watch.counts()["ignored"] == 3


@pytest.mark.parametrize("name", [b"caf\xe9.json", b"line\nbreak.json", b"\x1b[31m.json", b"-rf", b"x" * 255])
def test_fs14_fs15_names_that_no_text_can_hold_are_kept(tmp_path: Path, name: bytes) -> None:
    watch = Watch(tmp_path)
    source = profile(tmp_path / "a.json")
    os.rename(os.fsencode(source), os.path.join(os.fsencode(watch.root), name))
    watch.once()
    assert [os.fsencode(one.path.name) for one in watch.runs] == [name]


def test_fs18_hard_links_and_copies_are_duplicates(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    profile(watch.root / "a.json")
    os.link(watch.root / "a.json", watch.root / "b.json")
    watch.once()
    assert watch.counts()["duplicate"] == 1
    assert len(watch.entries()) == 1


def test_fs19_its_own_history_is_no_profile(tmp_path: Path) -> None:
    profile(tmp_path / "a.json")
    watch = Watch(tmp_path, root=tmp_path)
    watch.once()
    assert len(watch.runs) == 1
    assert sum(watch.counts().values()) == 1


def test_pc1_a_file_whose_writer_pauses_is_read_when_it_is_complete(tmp_path: Path) -> None:
    text = profile(tmp_path / "a.json").read_text()
    with Watch(tmp_path, replace(CONFIG, patience_s=PATIENCE_S)) as watch:
        with (watch.root / "slow.json").open("w") as file:
            for part in (text[:150], text[150:200], text[200:]):
                file.write(part)
                file.flush()
                if file.tell() < len(text):
                    watch.until(lambda: watch.tried("slow.json") == file.tell())
        watch.until(lambda: bool(watch.runs))
    assert not watch.settled
    assert len(watch.entries()) == 1


def test_what_stays_damaged_is_set_aside_and_read_when_it_is_repaired(tmp_path: Path) -> None:
    with Watch(tmp_path) as watch:
        whole = profile(tmp_path / "a.json").read_bytes()
        (watch.root / "a.json").write_bytes(whole[:200])
        watch.until(lambda: [one.state for one in watch.settled] == ["quarantined"])
        (watch.root / "a.json").write_bytes(whole)
        watch.until(lambda: len(watch.runs) == 1)


def test_an_archive_of_many_files_is_one_run(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    shutil.copytree(PROFILES / "otf2" / "eztrace-imbalance", watch.root / "trace")
    watch.once()
    assert [one.advice.profile.reader for one in watch.runs] == ["otf2"]
    counts = watch.counts()
    assert counts["ingested"] >= 4, "the anchor and its parts"
    assert counts["waiting"] == counts["quarantined"] == 0


def test_a_bad_file_harms_no_other(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    (watch.root / "deep.json").write_text('{"schema": "gapwatch/profile/1", "x": ' + "[" * 100_000)
    (watch.root / "huge.json").write_text('{"schema": "gapwatch/profile/1", "actual_s": ' + "9" * 5000 + "}")
    for number in range(3):
        profile(watch.root / f"good{number}.json")
    watch.once()
    assert len(watch.runs) == 3
    assert watch.counts()["quarantined"] == 2


def test_what_was_waiting_when_the_daemon_ended_is_read_by_the_next(tmp_path: Path) -> None:
    with Watch(tmp_path, replace(CONFIG, quiet_s=30.0)) as watch:
        profile(tmp_path / "a.json").rename(watch.root / "a.json")
        (watch.root / "b.json").write_text(str(FIG4))
        watch.until(lambda: watch.counts()["waiting"] >= 1)
    assert watch.counts()["ingested"] == 0
    assert len(Watch(tmp_path).once().runs) == 1


def test_two_recordings_of_one_run_are_one_entry(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    shutil.copytree(PROFILES / "otf2" / "eztrace-imbalance", watch.root / "trace")
    first = watch.once().entries()
    profile(
        watch.root / "counts.json",
        program="faultlab_so",
        actual_s=0.5,
        processors=2,
        regions=[{"name": "f", "work_s": [0.25, 0.25]}],
    )
    second = Watch(tmp_path).once().entries()
    assert [entry.number for entry in second] == [entry.number for entry in first]
    assert second[0].reader == "otf2+native"
