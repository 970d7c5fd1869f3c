"""What a user says of items and asks of the history: also beside the daemon, too late, or of what is not there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemon_process import settle
from daemon_runs import profile

from advisor import cli
from advisor.history.database import HistoryWriter
from advisor.history.writer_lock import find_writer

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDED = Path(__file__).parents[2] / "examples" / "tutorial" / "recorded"


class User:
    """Who works in ``top``, where profiles lie below ``runs``."""

    def __init__(self, top: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.top, self.runs, self._capsys = top, top / "runs", capsys

    def asks(self, *arguments: str, code: int = 0) -> str:
        """Return what a command says: what it shows, or its complaint where it fails."""
        assert cli.main(arguments) == code
        said = self._capsys.readouterr()
        return said.out if code == 0 else said.err

    def watches(self) -> str:
        return self.asks("watch", "runs", "--once", "--format", "lines")

    def tables(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the parts of the history, the rows of tables by the names of their columns."""
        parts: list[dict[str, Any]] = json.loads(self.asks("history", *arguments, "--format", "json"))["parts"]
        for part in parts:
            names = [column["name"] for column in part.get("columns", ())]
            part["items"] = [dict(zip(names, row, strict=True)) for row in part.get("rows", ())]
        return parts


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> User:
    for name, value in settle(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return User(tmp_path, capsys)


@pytest.fixture
def advised(user: User) -> User:
    profile(user.runs / "one.json", build="v1")
    user.watches()
    return user


@pytest.fixture
def daemon(advised: User) -> Iterator[HistoryWriter]:
    """Who writes to the history all the time, as a daemon does."""
    writer = HistoryWriter(advised.top / "state")
    try:
        yield writer
    finally:
        writer.close()


def test_items_are_spoken_of_while_the_daemon_writes(advised: User, daemon: HistoryWriter) -> None:
    assert "process" in str(find_writer(advised.top / "state"))
    [item] = advised.tables()[1]["items"]
    assert advised.asks("ack", item["action"]).endswith("acknowledged\n")
    assert advised.tables()[1]["items"][0]["state"] == "acknowledged"
    with daemon.transaction() as connection:
        (count,) = connection.execute("SELECT value FROM meta WHERE name = 'commits'").fetchone()
    counter = advised.top / "state" / "commits"
    assert int.from_bytes(counter.read_bytes(), "little") == count + 1


def test_what_the_counter_of_transactions_misses_is_still_noticed_after_a_word_beside(
    advised: User, daemon: HistoryWriter
) -> None:
    counter = advised.top / "state" / "commits"
    known = int.from_bytes(counter.read_bytes(), "little")
    counter.write_bytes((known + 5).to_bytes(8, "little"))
    advised.asks("ack", advised.tables()[1]["items"][0]["action"])
    assert int.from_bytes(counter.read_bytes(), "little") == known + 5


def test_where_there_is_no_history_nothing_is_made(user: User) -> None:
    for command in ("applied", "ack", "suppress"):
        assert "no history in" in user.asks(command, "A-28", "--state", "mistyped", code=2)
    assert not (user.top / "mistyped").exists()


def test_what_is_said_to_be_applied_when_it_is_gone_gets_what_it_won(user: User) -> None:
    for name in ("v1-1", "v2-1"):
        shutil.copytree(RECORDED / name, user.runs / name)
        user.watches()
    assert "applied, and gone since; it won 17" in user.asks("applied", "A-28")
    for name, build in (("v2-2", "v2"), ("v2-3", "v3")):
        shutil.copytree(RECORDED / name, user.runs / name)
        user.asks("stamp", str(user.runs / name), "--build", build)
        user.watches()
        [item] = user.tables("galaxy")[1]["items"]
        assert item["state"] == "resolved"
        assert item["realised"] == pytest.approx(0.176, rel=0.05)


def test_without_builds_nobody_knows_what_a_resolved_item_won(user: User) -> None:
    for name in ("v1-1", "v2-1"):
        shutil.copytree(RECORDED / name, user.runs / name)
        (user.runs / name / "gapwatch.json").unlink()
        user.watches()
    assert "its gain is unknown" in user.asks("applied", "A-28", code=2)
    assert "A-28 is resolved: the latest run no longer shows it" in user.asks("ack", "A-28", code=2)


def test_items_are_named_with_their_program_and_the_search_that_found_none(user: User) -> None:
    profile(user.runs / "one.json", program="one", build="v1")
    profile(user.runs / "two.json", program="two", build="v1")
    user.watches()
    [one, two] = [part for part in user.tables() if part.get("title", "").startswith("Advice")]
    assert {one["title"], two["title"]} == {"Advice on one", "Advice on two"}
    action = one["items"][0]["action"]
    several = user.asks("ack", action, code=2)
    assert f"{action} of one at" in several
    assert "--program" in several
    assert f"no item named '{action}' of 'three'" in user.asks("ack", action, "--program", "three", code=2)
    assert f"no item named '{action}' at 'loop'" in user.asks("ack", action, "--region", "loop", code=2)


def test_days_reasons_and_what_is_left_out_are_shown(advised: User) -> None:
    action = advised.tables()[1]["items"][0]["action"]
    assert "note" not in advised.tables()[1]["items"][0]
    assert "expected a future day" in advised.asks("suppress", action, "--until", "2020-01-01", code=2)
    said = advised.asks("suppress", action, "--until", "2999-01-01", "--reason", "later")
    assert said.endswith("suppressed until 2999-01-01\n")
    assert advised.tables()[1]["items"][0]["note"] == "until 2999-01-01: later"
    for number in range(3):
        profile(advised.runs / f"{number}.json", build=f"b{number}")
    advised.watches()
    assert "2 older runs are not listed (--limit 4 lists all)" in advised.asks("history", "--limit", "2")
    assert "not listed" not in advised.asks("history")


def test_a_run_that_does_not_say_when_it_started_was_read_then(advised: User) -> None:
    assert advised.tables()[0]["items"][0]["started"].startswith("read 20")


def test_nothing_is_exported_of_a_program_that_never_ran(advised: User) -> None:
    assert "no run of 'nothing' in the history; there are fig4" in advised.asks("export", "nothing", code=2)


def test_two_repeats_are_told_apart_by_the_others(user: User) -> None:
    for number, elapsed in enumerate((47.0, 47.3, 47.1), start=1):
        profile(user.runs / f"{number}.json", build="v1", actual_s=elapsed)
        user.watches()
    shown = user.asks("compare", "1", "2")
    assert shown.startswith("fig4: from run 1 of v1 (1 run) to run 2 of v1 (1 run)")
    assert "unknown" not in shown
    assert "Both are runs of one build, started alike" in shown


def test_a_build_with_the_name_of_a_number_is_not_mixed_with_that_run(user: User) -> None:
    for number, build in enumerate(("3", "3", "4", "5"), start=1):
        profile(user.runs / f"{number}.json", build=build, actual_s=47.0 + 0.1 * number)
        user.watches()
    assert user.asks("compare", "3", "4").startswith("fig4: from 3 (2 runs) to 4 (1 run)")
    assert user.asks("compare", "1", "5").startswith("fig4: from run 1 of 3 (1 run) to 5 (1 run)")
    complaint = user.asks("compare", "3", "9", code=2)
    assert "'9'; the last builds are 3, 4, 5; runs have the numbers 1 to 4" in complaint
    assert "no run of 'nothing' in the history" in user.asks("compare", "3", "4", "--program", "nothing", code=2)


def test_a_change_that_too_few_runs_tell_of_is_not_called_noise(user: User) -> None:
    for name, build, elapsed in (("1", "v1", 47.0), ("2", "v1", 47.01), ("3", "v2", 50.0)):
        profile(user.runs / f"{name}.json", build=build, actual_s=elapsed)
        said = user.watches()
    assert "  since v1: run time +3.00 s, too few runs to separate from noise\n" in said
    shown = user.asks("compare", "v1", "v2")
    assert "unsure" in shown
    assert "too few runs tell: repeat them" in shown
    assert "(too few runs to tell)" in user.asks("compare", "v1", "v2", "--format", "markdown")
    user.asks("report", "-o", "pages")
    assert "run time +3.00 s; too few runs to separate from noise" in (user.top / "pages" / "index.html").read_text()


def test_places_of_a_change_have_the_units_of_the_columns(user: User) -> None:
    for name in ("v1-1", "v2-1"):
        shutil.copytree(RECORDED / name, user.runs / name)
    user.watches()
    assert "galaxy -175 ms" in user.asks("compare", "v1", "v2")


def test_compare_takes_directories_with_the_runs_of_each_build(user: User) -> None:
    for build in ("v1", "v2"):
        for number in ("1", "2", "3"):
            shutil.copytree(RECORDED / f"{build}-{number}", user.top / build / number)
    shown = user.asks("compare", "v1", "v2")
    assert shown.startswith("galaxy: from v1 (3 runs) to v2 (3 runs)")
    assert "galaxy -174 ms" in shown
    assert "L grew by 174 ms, most of it in galaxy" in user.asks("compare", "v2", "v1")
    gate = user.asks("compare", "v2", "v1", "--fail-on", "regression", code=1)
    assert gate.startswith("gapwatch: gate crossed: L grew by 174 ms")
    assert user.asks("compare", "v1", "v3", code=2) == "gapwatch: v3: No such file or directory\n"
    profile(user.runs / "one.json")
    (user.top / "none").mkdir()
    assert user.asks("compare", "v1", "none", code=2) == "gapwatch: none: is an empty directory\n"
    complaint = user.asks("compare", "v1", "runs", code=2)
    assert complaint == "gapwatch: these are runs of different programs: fig4, galaxy\n"


def test_a_run_is_explained_by_the_name_that_its_advice_shows(advised: User) -> None:
    by_number = advised.asks("explain", "1", "L")
    assert advised.asks("explain", "one", "L") == by_number
    assert "elsewhere: No such file" in advised.asks("explain", "elsewhere", code=2)


def test_suppressed_advice_is_no_longer_what_is_to_be_done_first(advised: User) -> None:
    action = advised.tables()[1]["items"][0]["action"]
    advised.asks("ack", action)
    profile(advised.runs / "two.json", build="v2")
    assert f"[{action}]" in advised.watches(), "what is acknowledged stays listed"
    advised.asks("suppress", action)
    profile(advised.runs / "three.json", build="v3")
    assert f"[{action}]" not in advised.watches()
    document = json.loads(advised.asks("advise", "runs/three.json", "--format", "json"))
    assert [one["state"] for one in document["recommendations"] if one["action"] == action] == ["suppressed"]
    assert "| suppressed |" in advised.asks("advise", "runs/three.json", "--format", "markdown")
