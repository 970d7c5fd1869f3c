"""Which build a run is of: by git, by a stamp, by what the daemon is told of the source."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from daemon_runs import BALANCED, CONFIG, Watch, profile

from advisor import cli
from advisor.collect import builds
from advisor.history.database import NAME, open_read_only
from advisor.history.items import ItemStore, sum_gap_seconds
from advisor.history.runs import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.history.items import Item


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with one commit."""
    needs_git()
    root = tmp_path / "source"
    root.mkdir()
    (root / "solve.c").write_text("int main(void) { return 0; }\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    return root


def needs_git() -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git here: apt-get install git")


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def test_a_build_is_the_commit_and_what_was_changed_since(source: Path) -> None:
    commit = git(source, "rev-parse", "HEAD")[:12]
    assert builds.identify_build(source) == commit
    (source / "notes.txt").write_text("untracked files are no part of a build")
    assert builds.identify_build(source) == commit
    (source / "solve.c").write_text("int main(void) { return 1; }\n")
    first = builds.identify_build(source)
    (source / "solve.c").write_text("int main(void) { return 2; }\n")
    second = builds.identify_build(source)
    assert first is not None
    assert second is not None
    assert first != second
    assert first.startswith(f"{commit}+")


def test_without_a_commit_or_repository_there_is_no_build(tmp_path: Path) -> None:
    assert builds.identify_build(tmp_path) is None
    needs_git()
    git(tmp_path, "init", "-q")
    assert builds.identify_build(tmp_path) is None
    assert builds.identify_build(tmp_path / "nowhere") is None


def test_a_stamp_is_written_beside_what_is_there(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    assert (
        cli.main(["stamp", str(runs), "--source", str(source), "--parameter", "N=64", "--parameter", "mode=fast"]) == 0
    )
    commit = git(source, "rev-parse", "HEAD")[:12]
    assert capsys.readouterr().out.endswith(f"build {commit}\n")
    numbers = ["--parameter", "N=128", "--parameter", "limit=inf"]
    assert cli.main(["stamp", str(runs), "--build", "v2", *numbers]) == 0
    said = json.loads((runs / "gapwatch.json").read_text())
    assert said == {
        "schema": "gapwatch/sidecar/1", "parameters": {"N": 128.0, "mode": "fast", "limit": "inf"}, "build": "v2",
    }  # fmt: skip


def test_a_stamped_command_knows_its_build(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["stamp", str(tmp_path), "--build", "v3", "--", "sh", "-c", "echo $GAPWATCH_BUILD; exit 7"])
    assert (code, capfd.readouterr().out) == (7, "v3\n")
    assert cli.main(["stamp", str(tmp_path), "--build", "v3", "--", "no-such-program"]) == 2


def test_without_a_name_and_a_repository_nothing_is_stamped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GAPWATCH_BUILD", raising=False)
    assert cli.main(["stamp", str(tmp_path / "runs"), "--source", str(tmp_path)]) == 2
    assert "name the build with --build" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_damaged_stamp_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "gapwatch.json").write_text('{"build": ')
    assert cli.main(["stamp", str(tmp_path), "--build", "v2"]) == 2
    assert (tmp_path / "gapwatch.json").read_text() == '{"build": '


def test_the_daemon_takes_the_build_of_the_source_where_nobody_names_one(source: Path, tmp_path: Path) -> None:
    watch = Watch(tmp_path, replace(CONFIG, source=source))
    profile(watch.root / "a.json")
    profile(watch.root / "b.json", build="named")
    watch.once()
    assert [entry.build for entry in watch.entries()] == [git(source, "rev-parse", "HEAD")[:12], "named"]


def commit(root: Path, message: str) -> str:
    with (root / "solve.c").open("a") as file:
        file.write("\n")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", message)
    return git(root, "rev-parse", "HEAD")[:12]


def test_commits_say_which_actions_they_carry_out(source: Path) -> None:
    first = git(source, "rev-parse", "HEAD")[:12]
    commit(source, "Balance the load\n\nGapwatch-Applied: A-29 solve\nGapwatch-Applied: G-4")
    second = commit(source, "Tidy\n\nGapwatch-Applied: A-29 solve\nGapwatch-Applied: rm -rf /")
    assert builds.find_applied_actions(source, second, first) == (("A-29", "solve"), ("G-4", None))
    assert builds.find_applied_actions(source, f"{second}+12345678", first) == (("A-29", "solve"), ("G-4", None))
    assert builds.find_applied_actions(source, second, None) == (("A-29", "solve"),)
    assert builds.find_applied_actions(source, second, second) == ()
    assert builds.find_applied_actions(source, "v2", first) == ()


def test_advice_that_a_commit_carries_out_is_applied_and_then_resolved(source: Path, tmp_path: Path) -> None:
    """Three runs of each build; the second build's commit says what it does, and its runs what that has won."""
    for name in ("old", "new"):
        watch = Watch(tmp_path, replace(CONFIG, source=source))
        for number in range(3):
            profile(watch.root / f"{name}{number}.json", **({} if name == "old" else BALANCED))
        watch.once()
        if name == "old":
            action, promised = first_action(tmp_path)
            commit(source, f"Balance\n\nGapwatch-Applied: {action}")
    (item,) = [one for one in items(tmp_path) if one.action == action]
    assert item.state == "resolved"
    assert item.promised_s == promised
    assert item.realised_s == pytest.approx(held_before(tmp_path, item))
    with sqlite3.connect(tmp_path / "state" / NAME) as connection:
        steps = connection.execute(
            "SELECT state FROM steps WHERE fingerprint = ? ORDER BY id", (item.fingerprint,)
        ).fetchall()
    connection.close()
    assert [state for (state,) in steps] == ["new", "open", "applied", "resolved"]


def items(tmp_path: Path) -> tuple[Item, ...]:
    connection = open_read_only(tmp_path / "state")
    try:
        return ItemStore(connection).items_of_program("fig4")
    finally:
        connection.close()


def first_action(tmp_path: Path) -> tuple[str, float]:
    (first, *_) = [one for one in items(tmp_path) if one.state == "open"]
    return first.action, first.ceiling_s if first.expected_s is None else first.expected_s


def held_before(tmp_path: Path, item: Item) -> float:
    """What an action about several regions has won: all seconds of its gaps."""
    connection = open_read_only(tmp_path / "state")
    try:
        before, after = (
            sum_gap_seconds(RunStore(connection).load_advice(number), item, whole=True) for number in (1, 6)
        )
        return before - after
    finally:
        connection.close()


#: What the configuration of a repository may name to be run, each a command that leaves a mark.
RUNS = {
    "filter.x.clean": "touch {mark}; cat", "filter.x.process": "touch {mark}", "filter.x.smudge": "touch {mark}; cat",
    "diff.x.command": "touch {mark}", "diff.x.textconv": "touch {mark}; cat", "diff.external": "touch {mark}",
    "core.fsmonitor": "touch {mark}", "core.pager": "touch {mark}", "core.hooksPath": "hooks",
    "core.sshCommand": "touch {mark}", "gpg.program": "{program}", "log.showSignature": "true",
    "diff.submodule": "diff", "credential.helper": "!touch {mark}", "core.editor": "touch {mark}",
    "core.alternateRefsCommand": "touch {mark}", "diff.ignoreSubmodules": "none",
}  # fmt: skip


def test_nothing_that_a_repository_names_is_run(source: Path, tmp_path: Path) -> None:
    mark, program = tmp_path / "mark", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    (source / "hooks").mkdir()
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(program, source / "hooks" / hook)
    (source / ".gitattributes").write_text("* filter=x diff=x\n")
    inner = source / "inner"
    shutil.copytree(source, inner, ignore=shutil.ignore_patterns("inner"))
    git(source, "-c", "protocol.file.allow=always", "add", ".")
    git(source, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "second\n\nGapwatch-Applied: A-28 solve")
    for root in (source, inner):
        for name, value in RUNS.items():
            git(root, "config", name, value.format(mark=mark, program=program))
        (root / "solve.c").write_text("int main(void) { return 3; }\n")
    assert not mark.exists()
    subprocess.run(["git", "-C", source, "diff", "HEAD"], check=False, capture_output=True)
    assert mark.exists(), "git itself runs it"
    mark.unlink()
    build = builds.identify_build(source)
    assert build is not None
    assert "+" in build
    assert builds.find_applied_actions(source, build, None) == (("A-28", "solve"),)
    assert not mark.exists()


def test_a_linked_working_tree_and_a_subdirectory_have_their_build(source: Path, tmp_path: Path) -> None:
    git(source, "worktree", "add", "-q", str(tmp_path / "linked"))
    commit = git(source, "rev-parse", "HEAD")[:12]
    (tmp_path / "linked" / "deep").mkdir()
    assert builds.identify_build(tmp_path / "linked" / "deep") == commit
    (tmp_path / "linked" / "solve.c").write_text("int main(void) { return 3; }\n")
    assert str(builds.identify_build(tmp_path / "linked" / "deep")).startswith(f"{commit}+")
    assert builds.identify_build(source) == commit
