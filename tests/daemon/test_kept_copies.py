"""What was read once is not lost when another run takes its place: its copies, and its other recordings, are read."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from daemon_runs import CONFIG, Watch, profile
from site_folder import plugin

TOGETHER = Path(__file__).parents[1] / "profiles" / "together"


def test_fs18_a_copy_takes_over_where_the_original_is_written_anew(tmp_path: Path) -> None:
    """A program writes its profile under one name; who wants to keep a run copies it before the next one."""
    with Watch(tmp_path) as watch:
        profile(watch.root / "out.json", run="first")
        watch.until(lambda: len(watch.runs) == 1)
        shutil.copy(watch.root / "out.json", watch.root / "kept.json")
        watch.until(lambda: watch.counts()["duplicate"] == 1)
        profile(watch.root / "out.json", run="second")
        watch.until(lambda: watch.counts() == {**dict.fromkeys(watch.counts(), 0), "ingested": 2})
    assert [(entry.number, entry.run) for entry in watch.entries()] == [(1, "first"), (2, "second")]


def test_pc15_what_two_tools_write_anew_is_one_run_again(tmp_path: Path) -> None:
    """While only one of them has written, the other one's file is of the run before, and belongs to none."""
    root = tmp_path / "runs"
    shutil.copytree(TOGETHER, root, ignore=shutil.ignore_patterns("stencil_trace"))
    assert [entry.reader for entry in Watch(tmp_path).once().entries()] == ["perf+callgrind"]
    with (root / "perf.txt").open("a") as file:
        file.write("\n")
    assert [entry.reader for entry in Watch(tmp_path).once().entries()] == ["perf"]
    for part in (root / "callgrind").iterdir():
        part.write_text(part.read_text() + "\n")
    assert [entry.reader for entry in Watch(tmp_path).once().entries()] == ["perf+callgrind"]


def test_pc13_what_no_reader_knew_is_looked_at_again_when_there_are_more(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    (watch.root / "own.profile").write_text("nobody reads this yet")
    assert watch.once().counts()["ignored"] == 1
    (tmp_path / "plugins").mkdir()
    body = """
    @hookimpl
    def advisor_sniff(path):
        return 1.0 if path.suffix == ".profile" else None
    @hookimpl
    def advisor_read(path):
        from advisor.model.errors import InputError
        raise InputError(str(path), "read by the new reader")
    """
    plugin(tmp_path / "plugins", "newreader", body)
    newer = Watch(tmp_path, replace(CONFIG, plugins=(tmp_path / "plugins",))).once()
    assert [one.reason for one in newer.settled] == [f"{watch.root}/own.profile: read by the new reader"]
