"""Where a user keeps things, also one who has no home: nothing is kept, and nothing is made where one works."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from advisor import cli
from advisor.cli import history_location, user_folders
from advisor.support import disk_cache

FIG4 = Path(__file__).parents[1] / "profiles" / "fig4.json"


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whom the system does not know, as in a container under a foreign number."""

    def unknown(number: int) -> object:
        raise KeyError(number)

    for variable in ("HOME", "XDG_CACHE_HOME", "GAPWATCH_STATE"):
        monkeypatch.delenv(variable)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_home_advice_is_given_and_nothing_is_kept(homeless: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", str(FIG4)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("fig4: 47.0 s")
    assert "home directory" not in said.out + said.err
    assert list(homeless.iterdir()) == []


def test_without_a_home_nothing_is_taken_from_where_one_works(homeless: Path) -> None:
    for name in ("~/.config/gapwatch/plugins", "~/.cache/gapwatch", "~/.local/state/gapwatch"):
        (homeless / name).mkdir(parents=True)
    assert user_folders.plugin_folders() == ()
    assert not user_folders.config_folder().exists()
    assert not disk_cache.user_folder("XDG_CACHE_HOME", "~/.cache").exists()
    assert not Path(str(history_location.locate_default_history())).exists()


def test_a_relative_directory_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The specification of the variables says that relative paths are to be ignored."""
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert not disk_cache.user_folder("XDG_CACHE_HOME", "~/.cache").is_relative_to(Path.cwd())
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/user")
    assert disk_cache.user_folder("XDG_CACHE_HOME", "~/.cache") == Path("/var/cache/user/gapwatch")
