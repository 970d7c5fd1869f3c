"""``gapwatch bisect``: the search under noise, and commits of a real repository in worktrees."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
from typing import TYPE_CHECKING, cast

import pytest
from command_line import ROOT

import gapwatch
from advisor import cli
from advisor.cli.bisect import build_report
from advisor.experiments.change_point import FoundChange, choose_version, compute_posterior, find_change
from advisor.experiments.commit_search import Commit, FoundCommit, compare_with_parent
from advisor.experiments.commits import list_commits
from advisor.experiments.paired_test import Contrast, Point
from advisor.model.errors import AdvisorError, UsageError
from advisor.model.reports import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from advisor.analysis.comparison import Comparison
    from advisor.experiments.commits import CommitRunner
    from advisor.model.records import Advice

RECORDED = ROOT / "examples" / "tutorial" / "recorded"
SCRIPT = "import time; time.sleep({seconds})\n"


def history(seed: int, first: int, step: float, noise: float = 0.02) -> Callable[[int], float]:
    """The log of the run time of each version: noise, drift, one run in ten disturbed, and the step."""
    choose = random.Random(seed)
    runs = iter(range(10**6))

    def measure(version: int) -> float:
        disturbed = choose.random() if choose.random() < 0.1 else 0.0
        seconds = (1 + step * (version >= first)) * (1 + disturbed) * (1 + 0.0005 * next(runs))
        return math.log(seconds) + choose.gauss(0, noise)

    return measure


@pytest.mark.parametrize("seed", range(10))
def test_the_commit_is_found_in_histories_of_32_with_noise(seed: int) -> None:
    first = random.Random(1000 + seed).randint(1, 32)
    found = find_change(history(seed, first, 0.05), 32, 400)
    assert (found.version, found.reason) == (first, None)
    assert found.change is not None
    assert found.change.difference == pytest.approx(math.log(1.05), abs=found.change.half_width(1))


def gap_history(seed: int, first: int, step: float) -> Callable[[int], float]:
    """The seconds of a gap of 0.4 s in a run of 1 s: noise of both, drift, one run in ten disturbed, and the step."""
    choose = random.Random(seed)
    runs = iter(range(10**6))

    def measure(version: int) -> float:
        disturbed = 0.3 * choose.random() if choose.random() < 0.1 else 0.0
        gap_s = 0.4 * (1 + step * (version >= first)) * (1 + 0.0005 * next(runs))
        return gap_s * math.exp(choose.gauss(0, 0.02)) + disturbed

    return measure


@pytest.mark.parametrize("seed", range(10))
def test_the_commit_that_moved_a_gap_is_found_in_histories_of_32(seed: int) -> None:
    """A gap is measured in seconds, and its change of 5 % may be of either sign."""
    first = random.Random(2000 + seed).randint(1, 32)
    step = 0.05 if seed % 2 else -0.05
    found = find_change(gap_history(seed, first, step), 32, 400)
    assert (found.version, found.reason) == (first, None)
    assert found.change is not None
    assert found.change.difference == pytest.approx(0.4 * step, abs=found.change.half_width(1))


def test_noise_alone_is_no_change() -> None:
    found = [find_change(history(seed, 99, 0.05), 32, 60) for seed in range(10)]
    assert sum(one.version is not None for one in found) == 0
    assert found[0].reason == "first and last version do not differ beyond noise"


def test_versions_that_do_not_build_are_left_out() -> None:
    measure = history(1, 20, 0.3)
    found = find_change(lambda version: None if version in (5, 18, 19) else measure(version), 32, 400)
    assert found.version in found.candidates
    assert found.candidates == (18, 19, 20)
    none = find_change(lambda _: None, 32, 400)
    assert none.version is None


def test_a_budget_ends_the_search_with_what_is_known() -> None:
    found = find_change(history(3, 7, 0.2), 64, 14)
    assert found.runs <= 16
    assert found.reason is not None
    assert found.version is None or 7 in found.candidates


def test_the_posterior_sums_to_one_and_splits_evenly_where_nothing_was_run() -> None:
    points = [
        Point(f"{version}", block, value)
        for block in range(4)
        for version, value in ((0, 0.0), (8, 1.0 + 0.01 * block))
    ]
    posterior = compute_posterior(points, 8)
    assert posterior.sum() == pytest.approx(1)
    assert posterior[1:] == pytest.approx([1 / 8] * 8)
    assert choose_version(posterior, set()) == 4
    assert choose_version(posterior, {4}) in (3, 5)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight commits of a program; the sixth makes it slow, the third does not build."""
    if shutil.which("git") is None or shutil.which("sh") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    run("git", "init", "-q", "-b", "main")
    for number in range(9):
        seconds = 0.4 if number >= 6 else 0.02
        (folder / "app.py").write_text(SCRIPT.format(seconds=seconds), encoding="utf-8")
        (folder / "build.sh").write_text("exit 1\n" if number == 3 else "exit 0\n", encoding="utf-8")
        (folder / "note").write_text(f"{number}", encoding="utf-8")
        run("git", "add", "-A")
        run("git", "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", f"change {number}")
        run("git", "tag", f"v{number}")
    return folder


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def refuse_recording(*_: object) -> Comparison:
    raise AdvisorError("not in this test")


def test_the_commit_is_found_in_a_repository(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advisor.experiments.commit_search.compare_with_parent", refuse_recording)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = ["python3", "app.py"] if shutil.which("python3") else ["python", "app.py"]
    options = ["v0..v8", "--build", "sh build.sh", "--runs", "80", "--format", "json"]
    assert cli.main(["bisect", *options, "--", *command]) == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert any("change 6" in row for row in parts[0]["rows"])
    left = subprocess.run(["git", "worktree", "list"], check=True, capture_output=True, text=True).stdout
    assert len(left.splitlines()) == 1
    assert not list(tmp_path.glob("gapwatch-bisect-*"))


def test_the_api_searches_as_the_command_does(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.experiments.commit_search.compare_with_parent", refuse_recording)
    told: list[str] = []
    found = gapwatch.bisect("v4..v7", ["python3", "app.py"], build="sh build.sh", runs=60, progress=told.append)
    assert "change 6" in [one.subject for one in found.candidates]
    assert found.gaps is None
    assert found.is_certain == (found.problem == "not in this test"), "on a busy machine several commits remain"
    assert len(told) >= found.change.runs
    for wrong, words in (
        ({"runs": 2}, "runs: expected"),
        ({"gap": "ZZ"}, "gap: no gap 'ZZ'"),
        ({"limit_s": 0}, "limit_s"),
    ):
        with pytest.raises(UsageError, match=words):
            gapwatch.bisect("v4..v7", "true", **wrong)  # type: ignore[arg-type]


def test_spans_that_are_none_are_refused(repository: Path) -> None:
    assert len(list_commits(repository, "v0..v8")) == 9
    for span, words in (
        ("v0", "OLD..NEW"),
        ("v0...v8", "OLD..NEW"),
        ("v8..v0", "ancestor"),
        ("no..v1", "rev-parse"),
        ("v2..v2", "v2 and v2 are the same commit"),
        ("--all..v1", "OLD..NEW"),
    ):
        with pytest.raises(UsageError, match=words):
            list_commits(repository, span)


def test_wrong_usage_says_what_to_do(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, words in (
        (["v0..v8"], "no program given"),
        (["v0..v8", "--runs", "2", "--", "true"], "at least 8"),
        (["v0..v8", "--gap", "ZZ", "--", "true"], "no gap 'ZZ'; the gaps are A, C,"),
        (["v3..v8", "--build", "sh build.sh", "--", "true"], ": the build failed: "),
        (["v0..v8", "--", "false"], "nothing to search between: "),
    ):
        assert cli.main(["bisect", *options]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("runs", [2, 3])
def test_gaps_that_few_runs_leave_open_are_not_called_unmoved(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = {
        version: [gapwatch.load(RECORDED / f"v{version + 1}-{number}").advise() for number in range(1, runs + 1)]
        for version in (0, 1)
    }

    class Recorded:
        def record_commit(self, number: int) -> Advice:
            return recorded[number].pop()

    monkeypatch.setattr("advisor.experiments.commit_search._RECORDED", runs)
    gaps = compare_with_parent(1, cast("CommitRunner", Recorded()))
    change = FoundChange(1, 1.0, Contrast(0.5, 0.01, 9.0, 10), (1,), 20, None)
    table = build_report(FoundCommit(change, (Commit("abc", "A", "slow"),), gaps), None).parts[-1]
    assert isinstance(table, Table)
    rows = {row[0]: row[-1] for row in table.rows}
    assert rows["L"] == ("yes" if runs == 3 else "too few runs tell")
    assert all(row[1] or row[2] for row in table.rows), "gaps that are 0 in both tell nothing"
