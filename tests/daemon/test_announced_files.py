"""What the file system announces costs a look at what it names, however much lies beside that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from daemon_runs import CONFIG, Watch, profile

from advisor.daemon import child_tasks, intake, scan
from advisor.extension.host import load_plugins

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    import pytest

    from advisor.extension.host import PluginHost

#: Nothing but announcements tells of what happens after the first look.
HEARING = replace(CONFIG, scan_s=3600.0, poll_s=3600.0)


def test_a_file_that_is_announced_is_looked_at_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Watch(tmp_path, HEARING) as watch:
        profile(watch.root / "first.json")
        watch.until(lambda: len(watch.runs) == 1)

        def refuse(path: Path) -> object:
            raise AssertionError(f"{path} was listed")

        monkeypatch.setattr(scan, "_scan_folder", refuse)
        profile(watch.root / "second.json")
        watch.until(lambda: len(watch.runs) == 2)
        profile(tmp_path / "elsewhere.json").rename(watch.root / "third.json")
        watch.until(lambda: len(watch.runs) == 3)
        (watch.root / "third.json").rename(watch.root / "fourth.json")
        watch.until(lambda: watch.counts()["duplicate"] == 1)
        assert watch.counts()["ingested"] == 2, "the old name is forgotten"


def test_many_files_that_are_announced_at_once_are_all_found(tmp_path: Path) -> None:
    with Watch(tmp_path, HEARING) as watch:
        for number in range(500):
            (watch.root / f"{number}.log").write_text(f"nothing {number}")
        profile(watch.root / "deep" / "er" / "a.json")
        watch.until(lambda: watch.counts()["ignored"] == 500 and len(watch.runs) == 1)


def test_what_is_announced_of_hidden_directories_is_left_alone(tmp_path: Path) -> None:
    with Watch(tmp_path, HEARING) as watch:
        profile(watch.root / ".hidden" / "a.json", run="hidden")
        profile(watch.root / "b.json", run="seen")
        watch.until(lambda: len(watch.runs) == 1)
        profile(watch.root / ".hidden" / "c.json", run="hidden as well")
        profile(watch.root / "d.json", run="seen, too")
        watch.until(lambda: len(watch.runs) == 2)
    assert sum(watch.counts().values()) == 2
    assert sorted(entry.run for entry in watch.entries()) == ["seen", "seen, too"]


def test_readers_are_asked_about_a_large_directory_once(tmp_path: Path) -> None:
    """Its files come in parts; what was found out for the first holds for the others, unless something changed."""
    asked, host = [], load_plugins()
    for number in range(120):
        profile(tmp_path / f"{number}.json", run=str(number))
    names = [f"{number}.json" for number in range(120)]

    class Host:
        identify_document = staticmethod(lambda path: None)

        def sniff_all(self, path: Path, among: Collection[str] | None = None) -> tuple[tuple[str, float], ...]:
            asked.append((path, among))
            return host.sniff_all(path, among)

    told = cast("PluginHost", Host())
    for begin in (0, 60):
        found = child_tasks.identify_files(told, tmp_path, tmp_path, names[begin : begin + 60])
        assert found == {name: [str(tmp_path / name), "native"] for name in found}
    assert asked.count((tmp_path, {"native"})) == 1, "and only who knows one of the files"
    profile(tmp_path / "70.json", run="otherwise")
    child_tasks.identify_files(told, tmp_path, tmp_path, names[60:])
    assert asked.count((tmp_path, {"native"})) == 2, "a file changed"
    (tmp_path / "new.log").write_text("nothing")
    assert child_tasks.identify_files(told, tmp_path, tmp_path, ["new.log"]) == {"new.log": None}
    assert asked.count((tmp_path, {"native"})) == 2, "nobody knows this file, whoever takes the directory"
    profile(tmp_path / "new.json")
    assert child_tasks.identify_files(told, tmp_path, tmp_path, ["new.json"]) == {
        "new.json": [str(tmp_path / "new.json"), "native"]
    }
    assert asked.count((tmp_path, {"native"})) == 3, "the directory changed"
    assert {among for path, among in asked if path == tmp_path} == {frozenset({"native"})}


def test_of_a_directory_that_is_not_there_nothing_is_told(tmp_path: Path) -> None:
    assert scan.list_named_files(tmp_path / "gone", [b"a"]).closed
    assert scan.list_folder_files(tmp_path / "gone").closed
    found = scan.list_named_files(tmp_path, [b"gone", b".hidden"])
    assert (found.files, found.special, found.unclear, found.closed) == ({}, {}, set(), False)


def test_a_file_whose_mode_is_set_after_it_was_closed_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest, told = intake.UnitIntake.ingest_unit, []

    def change_first(self: intake.UnitIntake, unit: intake.UnitCandidate, *others: object) -> intake.UnitOutcome:
        if not told:
            unit.path.chmod(0o640)  # nothing announces that
        told.append(ingest(self, unit, *others))  # type: ignore[arg-type]
        return told[-1]

    monkeypatch.setattr(intake.UnitIntake, "ingest_unit", change_first)
    with Watch(tmp_path, HEARING) as watch:
        profile(watch.root / "a.json")
        watch.until(lambda: len(watch.runs) == 1)
    assert [one.state for one in told] == ["waiting", "ingested"]
    assert watch.counts()["ingested"] == sum(watch.counts().values()) == 1


def test_a_file_that_goes_while_it_is_read_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = intake.UnitIntake._read_unit

    def move_away(self: intake.UnitIntake, unit: intake.UnitCandidate, *others: object) -> object:
        if unit.path.name == "a.json":
            unit.path.parent.rename(tmp_path / "elsewhere")
        return read(self, unit, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(intake.UnitIntake, "_read_unit", move_away)
    with Watch(tmp_path, replace(CONFIG, patience_s=0.0)) as watch:
        profile(watch.root / "deep" / "a.json")
        watch.until((tmp_path / "elsewhere").is_dir)
        profile(watch.root / "b.json")
        watch.until(lambda: len(watch.runs) == 1 and not watch.counts()["waiting"])
    assert watch.counts()["quarantined"] == 0, "what was moved away says nothing about its content"
