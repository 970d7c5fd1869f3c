"""What others could put in the way of a user: files and links that are not theirs, names that are commands of a CI."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest
from command_line import run
from daemon_runs import Watch, profile
from native_documents import PROFILES

from advisor.output.clean import escape_ci_commands
from advisor.support import disk_cache

if TYPE_CHECKING:
    from pathlib import Path

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away: run the tests as root")
GITHUB = {"GITHUB_ACTIONS": "true"}


def test_fs7_a_link_to_a_file_outside_of_the_root_is_left_alone(tmp_path: Path) -> None:
    profile(tmp_path / "secret" / "a.json")
    watch = Watch(tmp_path)
    profile(watch.root / "real.json")
    (watch.root / "out.json").symlink_to(tmp_path / "secret" / "a.json")
    (watch.root / "in.json").symlink_to("real.json")
    (watch.root / "loop.json").symlink_to("loop.json")
    watch.once()
    counts = watch.counts()
    assert (counts["ingested"], counts["duplicate"]) == (1, 1)
    assert [entry.run for entry in watch.entries()] == ["real"]
    said = run("status", "--state", str(watch.state), home=tmp_path)
    assert b"is a link to a file outside of the watched directory" in b" ".join(said.stdout.split())


@needs_root
def test_a_configuration_of_another_user_is_refused(tmp_path: Path) -> None:
    own = tmp_path / ".config" / "gapwatch" / "gapwatch.toml"
    own.parent.mkdir(parents=True)
    own.write_text("")
    os.chown(own, 65534, 65534)
    made = run("config", "check", home=tmp_path)
    assert (made.returncode, b"it belongs to user 65534" in made.stderr) == (2, True)


def test_a_configuration_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    own = tmp_path / ".config" / "gapwatch" / "gapwatch.toml"
    own.parent.mkdir(parents=True)
    own.write_text("")
    own.chmod(0o666)
    for command in (("config", "check"), ("status",)):
        made = run(*command, home=tmp_path)
        assert (made.returncode, b"chmod o-w" in made.stderr) == (2, True)
    own.chmod(0o664)
    assert run("config", "check", home=tmp_path).returncode == 0, "groups of one user are usual"


@pytest.mark.parametrize("how", ["link", "mode", pytest.param("owner", marks=needs_root)])
def test_a_cache_that_others_could_have_written_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    disk_cache.store_cached("plugins", "key", 1, ["mine"])
    assert disk_cache.load_cached("plugins", "key", 1) == ["mine"]
    (file,) = (tmp_path / "gapwatch").iterdir()
    if how == "link":
        file.symlink_to(file.rename(tmp_path / "elsewhere"))
    elif how == "mode":
        file.chmod(0o666)
    else:
        os.chown(file, 65534, 65534)
    assert disk_cache.load_cached("plugins", "key", 1) is None


def test_pages_and_exports_are_the_user_s_alone_unless_asked_otherwise(tmp_path: Path) -> None:
    Watch(tmp_path).root.joinpath("a.json").write_bytes((PROFILES / "fig4.json").read_bytes())
    Watch(tmp_path).once()
    state, mask = str(tmp_path / "state"), os.umask(0)
    try:
        assert run("report", "--state", state, "-o", "pages", home=tmp_path).returncode == 0
        assert run("report", "--state", state, "-o", "shown", "--mode", "644", home=tmp_path).returncode == 0
        assert run("export", "--state", state, "-o", "all.jsonl", home=tmp_path).returncode == 0
    finally:
        os.umask(mask)

    def modes(name: str) -> set[int]:
        place = tmp_path / name
        return {stat.S_IMODE(path.stat().st_mode) for path in (place.iterdir() if place.is_dir() else [place])}

    assert (modes("pages"), modes("shown"), modes("all.jsonl")) == ({0o600}, {0o644}, {0o600})
    assert stat.S_IMODE((tmp_path / "pages").stat().st_mode) == 0o700
    assert run("report", "--mode", "777", home=tmp_path).returncode == 2


@pytest.mark.parametrize(
    "name", ["::error file=a.c,line=1::broken", "x ##[error]broken", "##vso[task.complete]", "::warning::x"]
)
def test_a_name_forges_no_annotation(tmp_path: Path, name: str) -> None:
    file = profile(tmp_path / "a.json", program=name)
    for form in ("text", "json", "markdown"):
        made = run("advise", str(file), "--format", form, "--fail-on", "L > 1 %", home=tmp_path, **GITHUB)
        assert made.returncode == 1
        for line in (made.stdout + made.stderr).decode().splitlines():
            assert not line.lstrip().startswith("::"), line
            assert "##[" not in line, line
            assert "##vso[" not in line, line
        if form == "json":
            assert json.loads(made.stdout)["profile"]["program"] == name
    plain = run("advise", str(file), home=tmp_path)
    assert name.encode() in plain.stdout, "elsewhere a name is what it is"


def test_names_of_c_plus_plus_stay_as_they_are() -> None:
    text = "::operator new(unsigned long)\n  ::std::sort(int*, int*)\nvoid f<##>()\n"
    assert escape_ci_commands(text, {}) == text
    assert escape_ci_commands(text, GITHUB).count("\n") == 3
    assert escape_ci_commands("::operator new(unsigned long)", GITHUB) == "::operator new(unsigned long)"
