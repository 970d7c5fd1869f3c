from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from site_folder import plugin

from advisor.extension import command_list, host, installed_plugins
from advisor.extension.installed_plugins import PluginEntryPoint

if TYPE_CHECKING:
    from pathlib import Path

SHOW = """
    @hookimpl
    def advisor_commands(register):
        register("show", "{help}", (), print)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gapwatch"


@pytest.fixture
def site(tmp_path: Path, cache: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir(mode=0o755)
    plugin(folder, "own", SHOW.format(help="Shows it."))
    command_list.list_commands([folder])  # importing writes __pycache__ into the folder
    return folder


def commands(site: Path) -> list[tuple[str, str, str]]:
    return [tuple(one) for one in command_list.list_commands([site]) if one.plugin == "own"]


def test_lists_the_commands_of_plugins(site: Path) -> None:
    assert commands(site) == [("show", "Shows it.", "own")]


def test_loads_nothing_while_nothing_changes(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = command_list.list_commands([site])
    monkeypatch.setattr(host, "load_plugins", lambda *_: pytest.fail("plugins were loaded"))
    assert command_list.list_commands([site]) == first


def test_an_edit_of_a_plugin_shows(site: Path) -> None:
    path = plugin(site, "own", SHOW.format(help="Shows more."))
    os.utime(path, ns=(1, 1))
    assert commands(site) == [("show", "Shows more.", "own")]


def test_a_plugin_that_comes_or_goes_shows(site: Path) -> None:
    (site / "own.py").unlink()
    assert commands(site) == []
    plugin(site, "own", SHOW.format(help="Is back."))
    assert commands(site) == [("show", "Is back.", "own")]


def test_a_blocked_plugin_has_no_commands(site: Path) -> None:
    assert command_list.list_commands([site], ["own"]) == tuple(
        one for one in command_list.list_commands([site]) if one.plugin != "own"
    )


def test_nothing_is_kept_while_a_plugin_is_broken(site: Path, cache: Path) -> None:
    for file in cache.iterdir():
        file.unlink()
    plugin(site, "broken", "import no_such_module")
    assert commands(site) == [("show", "Shows it.", "own")]
    assert list(cache.glob("commands-*")) == []


@pytest.mark.parametrize(
    "content", ["", "[1]", '{"times": 1}', '{"times": {}}', "[" * 100_000, '{"times": NaN', "\n\n"]
)
def test_a_damaged_list_is_made_anew(site: Path, cache: Path, content: str) -> None:
    (file,) = cache.glob("commands-*")
    whole = file.read_bytes()
    head = whole.split(b"\n", 1)[0]
    for damaged in (content.encode(), b"%b\n%d\n%b" % (head, crc32(content.encode()), content.encode())):
        file.write_bytes(damaged)
        assert commands(site) == [("show", "Shows it.", "own")]
        assert len(file.read_bytes()) == len(whole)


def test_a_cache_that_can_not_be_written_does_no_harm(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    assert commands(site) == [("show", "Shows it.", "own")]


def test_listing_kept_commands_imports_nothing_heavy(site: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom advisor.extension import command_list\n"
        f"command_list.list_commands([Path({str(site)!r})])\n"
        "print([m for m in ('numpy', 'pluggy', 'yaml', 'rich', 'importlib.metadata') if m in sys.modules])"
    )
    outputs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs[1] == "[]\n"


def test_own_plugins_list_what_they_register() -> None:
    registered = [(c.name, c.help, c.plugin) for c in host.load_plugins().collect_commands()]
    listed, told, _ = command_list.read_listed_commands()
    assert [tuple(one) for one in listed] == registered
    assert {"coupling", "otf2", "scaling"} <= set(told)


def test_a_package_may_list_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in (("acme_listed", "show  say what\n\nodd\n"), ("acme_silent", None)):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('imported')")
        if text is not None:
            (tmp_path / name / "inner" / "commands.txt").write_text(text)
    points = [PluginEntryPoint("a", "acme_listed.inner", "acme", "1"), PluginEntryPoint("b", "acme_silent:x", "b", "1")]
    assert [point.read_commands() for point in points] == [[("show", "say what")], None]
    monkeypatch.setattr(installed_plugins, "load_entry_points", lambda: (points, {}))
    assert command_list.read_listed_commands() == ((("show", "say what", "a"),), ("a",), True)
