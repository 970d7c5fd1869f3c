"""Looking for profiles in directories: each is found once, by the surest reader, and nothing else is touched."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from native_documents import PROFILES
from site_folder import load

from advisor import pipeline
from advisor.extension.host import load_plugins as installed
from advisor.extension.host import search
from advisor.model.errors import InputError, UnknownFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.extension.host import PluginHost

#: A reader of single files that begin with its word, and one of whole directories of such files.
SINGLE = """
    from advisor.formats import native
    @hookimpl
    def advisor_sniff(path):
        return {sure} if path.is_file() and path.read_bytes().startswith(b"{word}") else None
    @hookimpl
    def advisor_read(path):
        return native.advisor_read(path)
"""
MANY = """
    from advisor.formats import native
    def mine(path):
        return path.is_file() and path.read_bytes().startswith(b"part")
    @hookimpl
    def advisor_sniff(path):
        return 1.0 if mine(path) or (path.is_dir() and any(map(mine, path.iterdir()))) else None
    @hookimpl
    def advisor_read(path):
        return native.advisor_read(path)
"""


def host(tmp_path: Path) -> PluginHost:
    """A host with a reader of ``one …`` files, a less sure one of the same, and one of directories of ``part …``."""
    folder = tmp_path / "site"
    folder.mkdir()
    return load(folder, one=SINGLE.format(sure=0.9, word="one"), less=SINGLE.format(sure=0.5, word="o"), many=MANY)


def found(loaded: PluginHost, path: Path) -> list[tuple[str, str]]:
    return [(str(each.path.relative_to(path)), each.reader) for each in loaded.find_profiles(path)]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_every_profile_below_a_directory_is_found_once(tmp_path: Path) -> None:
    loaded, top = host(tmp_path), tmp_path / "runs"
    write(top / "b" / "second", "one run")
    write(top / "a" / "first", "one run")
    write(top / "a" / "notes.txt", "nothing")
    write(top / "empty", "")
    assert found(loaded, top) == [("a/first", "one"), ("b/second", "one")]


def test_a_reader_of_directories_takes_its_files_and_leaves_those_of_others(tmp_path: Path) -> None:
    loaded, top = host(tmp_path), tmp_path / "runs"
    for name in ("part.0", "part.1", "deeper/part.2"):
        write(top / name, "part of a run")
    write(top / "log", "one run")
    assert found(loaded, top) == [(".", "many"), ("log", "one")]


def test_hidden_linked_and_special_entries_are_left_alone(tmp_path: Path) -> None:
    loaded, top = host(tmp_path), tmp_path / "runs"
    write(tmp_path / "elsewhere" / "run", "one run")
    write(top / ".cache" / "run", "one run")
    os.symlink(tmp_path / "elsewhere", top / "link")
    os.symlink(top, top / "loop")
    os.mkfifo(top / "pipe")
    with pytest.raises(UnknownFormatError, match="is in no format that is known here: less, many, one"):
        loaded.find_profiles(top)


def test_a_large_directory_is_not_searched_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, top = host(tmp_path), tmp_path / "runs"
    for number in range(20):
        write(top / f"{number:02}", "one run")
    monkeypatch.setattr(search, "MOST", 10)
    assert len(loaded.find_profiles(top)) == 10
    assert "only the first 11 files and directories were looked at" in loaded.problems[0]


def test_a_damaged_profile_stops_no_other(tmp_path: Path) -> None:
    loaded = installed()
    shutil.copy(PROFILES / "fig4.json", tmp_path)
    (tmp_path / "half.json").write_bytes((PROFILES / "fig5.json").read_bytes()[:150])
    advice = pipeline.advise([tmp_path], pipeline.Options(), loaded)
    assert advice.profile.program == "fig4"
    assert [problem for problem in advice.problems if "half.json" in problem]
    (tmp_path / "fig4.json").unlink()
    with pytest.raises(InputError, match=r"half\.json"):
        pipeline.advise([tmp_path], pipeline.Options(), loaded)
