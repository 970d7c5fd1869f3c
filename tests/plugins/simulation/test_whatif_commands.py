"""The commands model, simulate and whatif, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aml_models import FIGURE_4, small

from advisor import cli

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests" / "profiles" / "faults"
MACHINE = ("--machine", "convex-spp1600")


def said(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """Return the report of a command, as data."""
    assert cli.main([*map(str, words), "--format", "json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def text_of(report: dict[str, Any]) -> str:
    return json.dumps(report)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.yaml"
    path.write_text(small('  - {parallel: p, over: line, weight: 5, reads: ["A[i]"], writes: ["F[i]"]}'))
    return path


def test_simulate_shows_gaps_and_caches(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = said(capsys, "simulate", model, *MACHINE, "--processors", 4)
    assert "Where the seconds go" in text_of(report)
    assert "Working sets, by processor" in text_of(report)


def test_simulate_writes_a_profile_that_advise_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, saved = tmp_path / "figure4.yaml", tmp_path / "run.json"
    path.write_text(FIGURE_4)
    said(capsys, "simulate", path, *MACHINE, "--processors", 2, "--save", saved)
    assert cli.main(["advise", str(saved), "--format", "json"]) == 0
    advice = json.loads(capsys.readouterr().out)
    found = {one["name"]: one["seconds"] for one in advice["gaps"]}
    assert (found["L"], found["M'"], found["D"]) == (1, 4, 1)


def test_simulate_writes_addresses(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "addresses.txt"
    said(capsys, "simulate", model, *MACHINE, "--processors", 2, "--addresses", out)
    lines = [line.split("\t") for line in out.read_text().splitlines()]
    assert len(lines) == 16
    assert lines[0] == ["p", "0", "R", "0", "32"]
    assert lines[1] == ["p", "0", "W", "256", "8"]
    assert {line[1] for line in lines} == {"0", "1"}


def test_mistakes_in_a_model_are_shown_with_their_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(small("  - {parallel: p, over: lin}"))
    assert cli.main(["simulate", str(path), *MACHINE]) == 2
    assert "wrong.yaml:9:" in capsys.readouterr().err


def test_a_model_without_a_clock_needs_one(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = tmp_path / "slow.yaml"
    machine.write_text("name: slow\ntitle: t\ndescription: d\nsources: {}\n")
    assert cli.main(["simulate", str(model), "--machine", str(machine)]) == 2
    assert "knows no clock" in capsys.readouterr().err


def test_model_writes_what_simulate_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "made.yaml"
    said(capsys, "model", CASES / "imbalance-15", "--save", saved)
    assert "holes:" in saved.read_text()
    report = said(capsys, "simulate", saved, *MACHINE, "--processors", 4)
    assert "stencil on 4 processors" in text_of(report)


def test_whatif_tries_one_action_and_shows_what_it_does_to_the_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    report = said(capsys, "whatif", CASES / "imbalance-15", "--action", "A-29", "--region", "compute_fluxes")
    assert "What A-29 does to the gaps" in text_of(report)
    assert '"A-29"' in text_of(report)


def test_whatif_tries_what_the_rules_propose_alone_together_and_as_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    report = text_of(said(capsys, "whatif", CASES / "imbalance+late", "--plan"))
    assert "one by one they add up to" in report
    assert '"replay"' in report
    assert '"Plan"' in report


def test_whatif_says_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    case = str(CASES / "imbalance-15")
    assert cli.main(["whatif", case, "--action", "A-290"]) == 2
    assert "did you mean 'A-29'?" in capsys.readouterr().err
    assert cli.main(["whatif", case, "--region", "compute_flux"]) == 2
    assert "did you mean 'compute_fluxes'?" in capsys.readouterr().err
    report = text_of(said(capsys, "whatif", case, "--action", "G-12"))
    assert "no recording tells where data lie" in report


def test_whatif_on_a_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = text_of(said(capsys, "whatif", model, *MACHINE, "--processors", 4, "--action", "A-29"))
    assert "loops handed out in chunks" in report
    report = text_of(said(capsys, "whatif", model, *MACHINE, "--processors", 4, "--action", "A-2", "A-3"))
    assert "A-2 can't be tried on a model: a model has one memory" in report
    assert cli.main(["whatif", str(model), *MACHINE, "--action", "A-200"]) == 2
    assert "there is no action 'A-200'" in capsys.readouterr().err


def test_whatif_on_a_model_tries_several_together(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "examples" / "crash" / "crash-SD.yaml"
    report = text_of(said(capsys, "whatif", path, *MACHINE, "--processors", 4, "--action", "G-12", "G-14"))
    assert "G-12, G-14 together win" in report
    report = text_of(said(capsys, "whatif", path, *MACHINE, "--processors", 4, "--action", "G-14", "A-31"))
    assert "A-31 and G-14 are in conflict" in report
    assert "A-31, G-14 together" not in report


def test_whatif_maps_ranks_to_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    network = ("--latency", "200 us", "--bandwidth", "1 GB/s")
    report = said(capsys, "whatif", CASES / "late-send-15", "--ranks-per-node", 2, *network)
    rows = {row[0]: row[1:] for row in report["parts"][1]["rows"]}
    order, robin, best = (rows[name] for name in ("in the order of ranks", "round robin", "by what they exchange"))
    assert robin[0] > order[0]
    assert robin[2] == 3 * order[2]  # of three borders in a chain all cross nodes, not one
    assert best[0] <= order[0]
    assert "; between nodes 200 us and 1.00 GB/s." in report["parts"][0]["text"]
    assert cli.main(["whatif", str(CASES / "late-send-15"), "--ranks-per-node", "2"]) == 2
    assert "--latency and --bandwidth, or --machine" in capsys.readouterr().err


def test_whatif_with_another_machine(capsys: pytest.CaptureFixture[str]) -> None:
    report = said(capsys, "whatif", CASES / "messages-15", "--network", 2)
    rows = next(part for part in report["parts"] if part.get("title", "").startswith("Gains"))["rows"]
    assert 0.015 < rows[0][1] < 0.022  # half of 38 ms of messages
    assert cli.main(["whatif", str(CASES / "messages-15"), "--processor", "0"]) == 2
    assert "above zero" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--processors", "4"), "--processors is asked of application models"),
        (("--finite",), "--finite is asked of application models"),
        (("--latency", "2 us"), "--latency belongs to --ranks-per-node"),
        (("--network", "2", "--plan"), "--plan can't be combined with --network"),
        (("--network", "inf"), "a number above zero"),
        (("--ranks-per-node", "2", "--action", "A-29"), "--action can't be combined with --ranks-per-node"),
    ],
)
def test_whatif_refuses_what_it_would_ignore(
    words: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["whatif", str(CASES / "imbalance-15"), *words]) == 2
    assert reason in capsys.readouterr().err


def test_whatif_of_a_model_refuses_what_is_asked_of_runs(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["whatif", str(model), "--network", "2"]) == 2
    assert "--network is asked of recorded runs" in capsys.readouterr().err


def test_whatif_says_where_intervals_lack_the_scatter(capsys: pytest.CaptureFixture[str]) -> None:
    assert "which are too narrow" in text_of(said(capsys, "whatif", ROOT / "tests" / "profiles" / "fig4.json"))
    report = text_of(said(capsys, "whatif", CASES / "imbalance-15", "--action", "A-29"))
    assert "too narrow" not in report


def test_whatif_says_where_nothing_is_proposed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing to plan" in text_of(said(capsys, "whatif", CASES / "clean-1", "--plan"))


def test_what_a_model_lacks_is_told_where_it_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "made.yaml"
    said(capsys, "model", CASES / "imbalance-15", "--save", saved)
    assert "schedules can't cut it finer" in text_of(said(capsys, "simulate", saved, *MACHINE))
    report = text_of(said(capsys, "whatif", saved, *MACHINE, "--action", "A-29"))
    assert "schedules can't cut it finer" in report
    assert "together win" not in report


def test_a_model_that_does_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("aml: 1\nname: x\ncontrol: []\n")
    assert cli.main(["simulate", str(path), *MACHINE]) == 2
    assert "this model does nothing" in capsys.readouterr().err


def test_shares_of_simulated_gaps_have_no_negative_zero(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", str(model), *MACHINE, "--processors", "1"]) == 0
    text = capsys.readouterr().out
    assert "on 1 processor of" in text
    assert "-0.0" not in text


def test_a_model_of_a_run_knows_how_many_processors_it_holds_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "made.yaml"
    said(capsys, "model", ROOT / "tests" / "profiles" / "fig5.json", "--save", saved)
    assert "fig5 on 2 processors" in text_of(said(capsys, "simulate", saved, *MACHINE))
    assert "on 2 processors" in text_of(said(capsys, "whatif", saved, *MACHINE, "--action", "A-29"))
    for words in (["simulate", str(saved), *MACHINE], ["whatif", str(saved), *MACHINE]):
        assert cli.main([*words, "--processors", "1"]) == 2
        assert "holds for no other number" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--save", "--addresses"])
def test_files_that_cannot_be_written_are_named(
    model: Path, tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "nowhere" / "file"
    assert cli.main(["simulate", str(model), *MACHINE, option, str(missing)]) == 2
    assert capsys.readouterr().err == f"gapwatch: {option} {missing}: No such file or directory\n"
    if option == "--save":
        assert cli.main(["model", str(CASES / "imbalance-15"), option, str(missing)]) == 2
        assert capsys.readouterr().err == f"gapwatch: {option} {missing}: No such file or directory\n"
