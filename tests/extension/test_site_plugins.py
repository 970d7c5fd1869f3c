from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from site_folder import load, plugin, problem

from advisor.extension import host
from advisor.extension.host import discovery
from advisor.model.errors import PluginError

if TYPE_CHECKING:
    from pathlib import Path

FINDS = """
    @hookimpl
    def advisor_findings():
        return []
"""


def test_modules_and_packages_are_plugins_and_nothing_else(tmp_path: Path) -> None:
    for name in ("b", "a", "_helper", ".hidden"):
        plugin(tmp_path, name, FINDS)
    package = tmp_path / "pack"
    package.mkdir(mode=0o755)
    plugin(package, "__init__", FINDS + "\n    from .inner import NAME")
    plugin(package, "inner", "NAME = 'inner'")
    (tmp_path / "folder").mkdir(mode=0o755)
    (tmp_path / "folder.py").mkdir(mode=0o755)
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    assert [entry.name for entry in discovery.find_candidates(tmp_path)] == ["a.py", "b.py", "pack"]
    loaded = host.load_plugins([tmp_path], entry_points=False)
    assert [(one.name, one.problem) for one in loaded.plugins] == [("a", None), ("b", None), ("pack", None)]


def test_a_name_that_is_none_is_a_problem(tmp_path: Path) -> None:
    loaded = load(tmp_path, **{"not-a-name": FINDS})
    assert problem(loaded, "not-a-name") == "'not-a-name.py' is not a valid module name; rename it"


def test_a_directory_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    loaded = host.load_plugins([tmp_path / "none"], entry_points=False)
    assert problem(loaded, "none") == f"{tmp_path / 'none'}: No such file or directory"


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    loaded = load(tmp_path, trap="raise SystemExit")
    tmp_path.chmod(mode)
    loaded = host.load_plugins([tmp_path], entry_points=False)
    assert [one.name for one in loaded.plugins] == [tmp_path.name]
    assert f"others may write to {tmp_path}" in loaded.problems[0]


def test_a_parent_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir(mode=0o755)
    plugin(folder, "trap", "raise SystemExit")
    tmp_path.chmod(0o777)
    with pytest.raises(PluginError, match="others may write to"):
        discovery.find_candidates(folder)
    tmp_path.chmod(0o1777)  # as /tmp: nobody can replace what is not theirs
    assert [entry.name for entry in discovery.find_candidates(folder)] == ["trap.py"]


def test_a_file_that_others_can_write_to_is_refused_alone(tmp_path: Path) -> None:
    plugin(tmp_path, "good", FINDS)
    plugin(tmp_path, "trap", "raise SystemExit").chmod(0o666)
    loaded = host.load_plugins([tmp_path], entry_points=False)
    assert problem(loaded, "good") is None
    assert "others may write to" in (problem(loaded, "trap") or "")


def test_a_file_inside_a_package_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    plugin(package, "__init__", FINDS)
    plugin(package, "inner", "").chmod(0o666)
    assert "inner.py" in (problem(host.load_plugins([tmp_path], entry_points=False), "pack") or "")


def test_compiled_files_that_others_can_write_to_are_refused(tmp_path: Path) -> None:
    plugin(tmp_path, "good", FINDS)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__").chmod(0o777)
    assert "__pycache__" in (problem(host.load_plugins([tmp_path], entry_points=False), "good") or "")


def test_a_link_to_a_place_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "plugins").mkdir(mode=0o755)
    plugin(tmp_path / "open", "trap", "raise SystemExit")
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "plugins" / "trap.py").symlink_to(tmp_path / "open" / "trap.py")
    assert "others may write to" in (
        problem(host.load_plugins([tmp_path / "plugins"], entry_points=False), "trap") or ""
    )


def test_a_plugin_of_a_stranger_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plugin(tmp_path, "planted", "raise SystemExit")
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(PluginError, match="belongs to user"):
        discovery.load_module(path)
