"""``gapwatch parallelism``, ``similar`` and ``suite`` as a user types them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from patience import PATIENCE_S

from advisor.cli import main
from advisor.support.native_tools import find_compiler
from advisor_similarity.library import load_own

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
PROFILES = ROOT / "tests" / "profiles"

needs_tracer = pytest.mark.skipif(
    find_compiler() is None or shutil.which("qemu-x86_64") is None or os.uname().machine != "x86_64",
    reason="needs a C compiler and qemu-x86_64: apt-get install gcc qemu-user",
)


@pytest.fixture(scope="module")
def triad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("triad") / "triad"
    source = ROOT / "examples" / "workloads" / "triad.c"
    subprocess.run(
        [str(find_compiler()), "-O2", "-static", "-o", str(out), str(source)], check=True, timeout=PATIENCE_S
    )
    return out


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def typed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, Any]]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))

    def run(*words: str | Path) -> tuple[int, Any]:
        before, separator, behind = [str(word) for word in words], [], []
        if "--" in before:
            at = before.index("--")
            before, separator, behind = before[:at], ["--"], before[at + 1 :]
        code = main([*before, "--format", "json", *separator, *behind])
        out = capfd.readouterr()
        return code, (json.loads(out.out) if code == 0 else out.err)

    return run


def words_of(report: dict[str, Any]) -> str:
    return json.dumps(report)


@needs_tracer
def test_a_program_is_observed_kept_and_found_again(typed: Callable[..., tuple[int, Any]], triad: Path) -> None:
    code, report = typed("parallelism", "--histogram", "--save", "mine", "--", triad, "5000", "10")
    assert code == 0
    text = words_of(report)
    for part in ("average parallelism", "smoothability", "Centroid", "Mix", "Functions", "Parallelism vector", "main"):
        assert part in text
    code, report = typed("similar", "mine", "--count", "3")
    assert code == 0
    assert "triad 10000 10, gcc -O2" in words_of(report)
    code, report = typed("similar", "mine", "quicksort 5000, gcc -O2", "--by", "centroid")
    assert code == 0
    assert "expression (9)" in words_of(report)


@needs_tracer
def test_a_program_of_its_own_path_is_run_and_compared(typed: Callable[..., tuple[int, Any]], triad: Path) -> None:
    code, report = typed("similar", triad, "--count", "1")
    assert code == 0
    assert "triad" in words_of(report["parts"][1])


@needs_tracer
def test_the_output_of_the_program_stays_out_of_the_report(
    typed: Callable[..., tuple[int, Any]], tmp_path: Path
) -> None:
    data = tmp_path / "input"
    data.write_text("hello\n")
    code, report = typed("parallelism", "--input", data, "--", "cat")
    assert code == 0
    assert "hello" not in words_of(report)


@needs_tracer
def test_sampling_and_its_mistakes(typed: Callable[..., tuple[int, Any]], triad: Path) -> None:
    code, report = typed("parallelism", "--sample", "0.2", "--window", "5000", "--", triad, "5000", "10")
    assert code == 0
    assert "standard error" in words_of(report)
    assert typed("parallelism", "--sample", "2", "--", triad)[0] == 2
    assert typed("parallelism", "--window", "5", "--", triad)[0] == 2


def test_profiles_are_compared_and_kept(typed: Callable[..., tuple[int, Any]]) -> None:
    code, report = typed("similar", PROFILES / "fig4.json", PROFILES / "fig4.json")
    assert code == 0
    assert report["parts"][1]["bars"][0]["value"] == pytest.approx(0, abs=1e-12)
    assert typed("similar", PROFILES / "fig4.json", "--keep", "figure four")[0] == 0
    code, report = typed("similar", PROFILES / "fig5.json")
    assert code == 0
    assert "figure four" in words_of(report)


def test_what_is_neither_file_nor_known_is_refused(typed: Callable[..., tuple[int, Any]]) -> None:
    code, error = typed("similar", "nothing-like-it")
    assert code == 2
    assert "neither a file nor the name" in error


def test_a_program_that_is_missing_is_told(typed: Callable[..., tuple[int, Any]]) -> None:
    code, error = typed("parallelism", "--", "no-such-program-anywhere")
    assert code == 2
    assert "no such program" in error


def test_a_suite_is_covered_thinned_out_and_chosen(typed: Callable[..., tuple[int, Any]]) -> None:
    code, report = typed("suite", "triad", "quicksort", "--representatives", "3")
    assert code == 0
    text = words_of(report)
    assert "24 of 148 known workloads" in text
    assert "Representatives" in text
    assert "could be left out" in text
    assert typed("suite", "nothing-like-it")[0] == 2


def test_a_suite_stands_for_the_mix_of_a_site(typed: Callable[..., tuple[int, Any]]) -> None:
    code, report = typed("suite", "--representatives", "2", "--mix", "fft=3", "quicksort=1")
    assert code == 0
    table = next(part for part in report["parts"] if part["title"].startswith("Representatives"))
    shares = {row[0].split()[0]: row[2] for row in table["rows"]}
    assert shares == {"fft": pytest.approx(0.75), "quicksort": pytest.approx(0.25)}


def test_times_are_noted_compared_and_predicted(typed: Callable[..., tuple[int, Any]]) -> None:
    triad, matmul = "triad 10000 10, gcc -O2", "matmul 60, gcc -O2"
    for name, seconds in ((matmul, "1.0"), ("fft 11 2, gcc -O2", "0.5"), ("cg 30 20, gcc -O2", "0.5")):
        assert typed("similar", name, "--timed", f"epyc={seconds}", "--count", "1")[0] == 0
    assert typed("similar", triad, "--timed", "epyc=0.25", "old=1", "--count", "1")[0] == 0
    text = words_of(typed("similar", triad, "--predict", "epyc")[1])
    assert "took 250 ms on epyc: measured, not predicted" in text
    text = words_of(typed("similar", "spmv 2000 10, gcc -O2", "--predict", "epyc")[1])
    assert "On epyc: about" in text
    assert "from its operations and 4 other programs" in text
    report = typed("similar", triad, matmul)[1]
    table = next(part for part in report["parts"] if part.get("title", "").startswith("Performance similarity"))
    assert [row[:3] for row in table["rows"]] == [["epyc", 0.25, 1.0]]
    code, error = typed("similar", triad, "--predict", "epcy")
    assert code == 2
    assert "no other known program was timed on epcy (did you mean 'epyc'?)" in error


def test_a_team_shares_a_directory_of_workloads(
    typed: Callable[..., tuple[int, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = tmp_path / "team"
    team.mkdir()
    tried = {"actions": ["A-24"], "won": 0.11, "of_ceiling": 0.5}
    entry = {"name": "solver", "program": "solver", "profile": {"gap.L": 1.0}, "tried": [tried]}
    (team / "library.json").write_text(json.dumps([entry]))
    monkeypatch.setenv("GAPWATCH_WORKLOADS", str(team))
    code, _ = typed("similar", "solver", "triad 10000 10, gcc -O2", "--by", "profile")
    assert code == 0
    text = words_of(typed("similar", PROFILES / "fig4.json")[1])
    assert f"solver (from {team / 'library.json'})" in text
    monkeypatch.setenv("GAPWATCH_WORKLOADS", str(tmp_path / "none"))
    code, error = typed("similar", "solver")
    assert code == 2
    assert "is not a directory of workloads (GAPWATCH_WORKLOADS names it)" in error


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("similar", "triad 10000 10, gcc -O2", "--timed", "epyc"), "MACHINE=SECONDS is expected"),
        (("suite", "--mix", "fft=-1"), "NAME=WEIGHT is expected, with a positive number"),
        (("parallelism", "--timed", "epyc", "--", "true"), "--save NAME"),
        (("parallelism", "--function", "a", "--after", "b", "--", "true"), "give one of them"),
        (("parallelism", "--function", "a", "--tracer", "valgrind", "--", "true"), "need --tracer qemu"),
        (("suite", "tirad"), "did you mean 'triad'?"),
        (("suite", "triad", "--near", "5"), "distances are between 0 and 1"),
        (("suite", "triad", "--representatives", "0"), "choose 1 to"),
        (("similar", "triad", "--count", "0"), "show at least 1"),
        (("parallelism", "--functions", "0", "--", "true"), "list at least 1"),
        (("parallelism", "--function", "f", "--save", "x", "--timed", "m", "--", "true"), "rank or region alone"),
        (("parallelism", "--input", "nowhere", "--", "true"), "--input nowhere: there is no such file"),
        (("parallelism", "--", str(PROFILES / "fig4.json")), "may not be executed"),
    ],
)
def test_numbers_and_files_that_make_no_sense_are_refused(
    words: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(words)) == 2
    assert reason in capsys.readouterr().err


def test_a_suite_of_nothing_lists_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite"]) == 0
    text = capsys.readouterr().out
    assert "Known programs" in text
    assert "quicksort" in text


@needs_tracer
def test_a_sample_is_kept_with_the_operations_of_the_whole_run(
    typed: Callable[..., tuple[int, Any]], triad: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    words = ("--", triad, "5000", "10")
    assert typed("parallelism", "--once", "--save", "whole", *words)[0] == 0
    assert typed("parallelism", "--sample", "0.2", "--window", "5000", "--save", "part", *words)[0] == 0
    whole, part = sorted(load_own(tmp_path / "gapwatch"), key=lambda entry: entry.name, reverse=True)
    assert part.operations == pytest.approx(whole.operations, rel=0.02)


@needs_tracer
def test_one_window_is_told_as_a_part_of_the_run(triad: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["parallelism", "--sample", "0.001", "--window", "100000", "--", str(triad), "3000", "10"]
    assert main(words) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert "operations of them were scheduled" in text
    assert "How much windows differ is not known" in text


def test_what_is_kept_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main(["similar", str(PROFILES / "fig4.json"), "--keep", "figure four"]) == 0
    assert "Kept in your library as 'figure four'" in capsys.readouterr().out
    assert main(["similar", str(PROFILES / "fig5.json")]) == 0
    text = capsys.readouterr().out
    assert "figure four" in text
    assert "Kept" not in text
