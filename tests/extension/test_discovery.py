from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from site_folder import load, plugin, problem

from advisor.extension import host
from advisor.support import disk_cache

if TYPE_CHECKING:
    from pathlib import Path

FINDS = """
    @hookimpl
    def advisor_findings():
        return []
"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
        ("def broken(:", "SyntaxError"),
        ("x = 1", "implements no hook"),
        ("@hookimpl\ndef advisor_findngs(): ...", "advisor_findngs is not a hook (did you mean 'advisor_findings'?)"),
        ("@hookimpl\ndef advisor_findings(profile, bonds): ...", "bonds"),
        ("def advisor_findings(): ...", "advisor_findings is not marked with @hookimpl"),
        ("@hookimpl(wrapper=True)\ndef advisor_findings():\n    return (yield)", "is a wrapper"),
        ("@hookimpl(hookwrapper=True)\ndef advisor_findings():\n    yield", "is a wrapper"),
        ("@hookimpl\ndef advisor_sniff(): ...", "implements both advisor_sniff and advisor_read"),
        ("advisor_api = 0" + FINDS.replace("\n    ", "\n"), "is written for plugin API 0; this gapwatch speaks 1"),
        ("advisor_api = '1'" + FINDS.replace("\n    ", "\n"), "is written for plugin API '1'"),
    ],
)
def test_a_broken_plugin_is_a_line_in_the_list(tmp_path: Path, body: str, reason: str) -> None:
    loaded = load(tmp_path, a=FINDS, broken=body, z=FINDS)
    assert [(one.name, one.hooks) for one in loaded.plugins] == [
        ("a", ("advisor_findings",)),
        ("broken", ()),
        ("z", ("advisor_findings",)),
    ]
    assert reason in (problem(loaded, "broken") or "")
    assert loaded.problems == (f"plugin broken ({tmp_path / 'broken.py'}): {problem(loaded, 'broken')}",)
    assert "_advisor_site_broken" not in sys.modules or "Error" not in reason


def test_a_plugin_may_say_which_api_it_speaks(tmp_path: Path) -> None:
    assert load(tmp_path, good="advisor_api = 1" + FINDS.replace("\n    ", "\n")).problems == ()


def test_the_second_plugin_of_a_name_is_not_loaded(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        plugin(tmp_path / folder, "same", FINDS)
    loaded = host.load_plugins([tmp_path / "one", tmp_path / "two"], entry_points=False)
    assert [one.problem for one in loaded.plugins] == [
        None,
        f"a plugin of this name is already loaded from {tmp_path / 'one' / 'same.py'}",
    ]


def test_a_blocked_plugin_is_not_even_imported(tmp_path: Path) -> None:
    plugin(tmp_path, "bad", "raise SystemExit")
    assert host.load_plugins([tmp_path], blocked=["bad"], entry_points=False).plugins == ()


def test_our_own_readers_come_through_the_same_door() -> None:
    loaded = host.load_plugins()
    own = {one.name: one for one in loaded.plugins if one.origin == "gapwatch"}
    assert own["native"].problem is None
    assert own["native"].hooks == ("advisor_read", "advisor_sniff")
    assert own["native"].version


def distribution(folder: Path, name: str, entry_points: bytes, **modules: str) -> None:
    """Put an installed package into a directory that is on ``sys.path``."""
    info = folder / f"{name}-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.5\n", encoding="utf-8")
    (info / "entry_points.txt").write_bytes(entry_points)
    for module, body in modules.items():
        plugin(folder, module, body)


def test_plugins_of_installed_packages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "acme", b"[advisor]\nacme = acme_gaps\nlost = acme_lost\n", acme_gaps=FINDS)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {one.name: one for one in host.load_plugins().plugins if one.origin == "acme"}
    assert (found["acme"].version, found["acme"].problem) == ("2.5", None)
    assert "No module named 'acme_lost'" in (found["lost"].problem or "")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gapwatch"


def unsearched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.distributions", lambda: pytest.fail("packages were looked through"))


def test_packages_are_looked_through_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = host.load_plugins().plugins
    unsearched(monkeypatch)
    assert host.load_plugins().plugins == first
    assert {"native", "coupling"} <= {one.name for one in first}


def test_a_package_that_came_or_went_is_noticed(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(packages))
    before = host.load_plugins().plugins
    distribution(packages, "acme", b"[advisor]\nacme = acme_gaps\n", acme_gaps=FINDS)
    (came,) = (one for one in host.load_plugins().plugins if one not in before)
    assert (came.name, came.origin, came.version, came.problem) == ("acme", "acme", "2.5", None)
    shutil.rmtree(packages / "acme-2.5.dist-info")
    assert host.load_plugins().plugins == before


@pytest.mark.parametrize("content", [{}, [], None, "native", [[]], [["native", "os"]], [1]])
def test_a_kept_list_that_is_none_is_made_anew(cache: Path, monkeypatch: pytest.MonkeyPatch, content: object) -> None:
    first = host.load_plugins().plugins
    disk_cache.store_cached("plugins", sys.path, list(map(disk_cache.change_time_ns, sys.path)), content)
    assert host.load_plugins().plugins == (first if content != [] else ())
    (cache / "plugins-00000000.json").write_bytes(b"damaged")
    for file in cache.glob("plugins-*.json"):
        file.write_bytes(file.read_bytes()[:-1])
    assert host.load_plugins().plugins == first


def test_a_damaged_package_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "damaged", b"[advisor]\n\xff\xfe = \xff\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded = host.load_plugins()
    assert "native" in [one.name for one in loaded.plugins if one.problem is None]
    assert any("damaged-2.5" in text and "can't be read" in text for text in loaded.problems)


def test_nobody_displaces_our_own_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "aaa", b"[advisor]\nnative = thief\n", thief=FINDS)
    monkeypatch.syspath_prepend(str(tmp_path))
    native = [one for one in host.load_plugins().plugins if one.name == "native"]
    assert [(one.origin, one.problem) for one in native] == [
        ("gapwatch", None),
        ("aaa", "a plugin of this name is already loaded from gapwatch"),
    ]
