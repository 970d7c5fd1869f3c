"""Expected gains of the remedies of recorded faults, against what switching the faults off really won."""

from __future__ import annotations

import importlib.util
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from advisor import cli, pipeline
from advisor.extension import host
from advisor_simulation.whatif import expected_gain, trial

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def gains() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gains", ROOT / "examples" / "faults" / "gains.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gains"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def judged(gains: ModuleType) -> list[Any]:
    found: list[Any] = gains.judged()
    return found


def test_every_case_with_a_fault_that_a_trace_shows_was_measured(gains: ModuleType) -> None:
    measured = {(row["case"], row["fault"]) for row in gains.measured()}
    assert measured == {(pair.case, pair.fault) for pair in gains.pairs()}
    assert len(measured) >= 60


def test_expected_gains_are_near_the_real_ones(gains: ModuleType, judged: list[Any]) -> None:
    assert statistics.median(one.error for one in judged) <= 0.10
    assert gains.correlation(judged) >= 0.9
    assert 0.70 <= sum(one.held for one in judged) / len(judged) <= 0.90


def test_the_page_says_what_the_program_does(gains: ModuleType, judged: list[Any]) -> None:
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    assert gains.table(judged) in page
    assert gains.table(gains.predicted()) in page


def test_cases_that_nobody_had_looked_at_are_all_there(gains: ModuleType) -> None:
    assert [(one.case, one.fault) for one in gains.predicted()] == [
        (pair.case, pair.fault) for pair in gains.pairs("unseen.yaml")
    ]


def test_advice_on_a_trace_with_one_imbalanced_phase_says_what_it_wins(gains: ModuleType) -> None:
    case = ROOT / "tests" / "profiles" / "faults" / "straggler-15"
    advice = pipeline.advise([case], pipeline.Options(), host.load_plugins())
    first = advice.recommendations[0]
    assert first.basis == "simulation"
    assert first.expected_s is not None
    assert first.interval_s is not None
    assert first.interval_s[0] <= first.expected_s <= first.interval_s[1] <= first.ceiling_s
    (row,) = (each for each in gains.measured() if each["case"] == "straggler-15")
    won_s = row["with_s"] - row["without_s"]
    assert 0.8 * won_s < first.expected_s < 1.2 * won_s
    assert won_s <= first.ceiling_s < 1.25 * won_s
    assert advice.total.expected_s is not None


def test_a_run_that_names_its_model_is_simulated_by_it(tmp_path: Path) -> None:
    """Two processors in a loop whose front of work moves, 1 s in all: the model has it, and what chunks would win."""
    text = (
        "aml: 1\nname: front\nunit: s\ndomains: {cells: {size: 64}}\ncosts: {barrier: 0}\ncontrol:\n"
        "  - {loop: time, times: 20, do: [{parallel: work, over: cells, weight: '0.0005 + 0.0025 * (i < 16)'}]}\n"
    )
    model, saved = tmp_path / "front.yaml", tmp_path / "run.json"
    model.write_text(text, encoding="utf-8")
    words = ["simulate", str(model), "--machine", "convex-spp1600", "--processors", "4", "--save", str(saved)]
    assert cli.main(words) == 0
    advice = pipeline.advise([saved], pipeline.Options(), host.load_plugins())
    first = advice.recommendations[0]
    assert first.action == "A-29"
    assert first.basis == "simulation"
    # 16 cells of 3 ms on one processor; handed out in chunks each has about 18 ms of all 72
    assert first.expected_s == pytest.approx(20 * (0.048 - 0.018), rel=0.1)
    model.unlink()
    expected_gain._Latest.profile = None
    by_phases = pipeline.advise([saved], pipeline.Options(), host.load_plugins()).recommendations[0]
    assert by_phases.expected_s == pytest.approx(20 * (0.048 - 0.018), rel=0.01)


def test_what_is_simulated_is_told_while_it_is() -> None:
    told: list[str] = []
    case = ROOT / "tests" / "profiles" / "faults" / "straggler-15"
    advice = pipeline.advise([case], pipeline.Options(stage=told.append), host.load_plugins())
    assert f"simulating what {advice.recommendations[0].action} would win" in told
    assert "asking plugins about stencil" in told


def test_simulations_of_one_run_end_at_their_budget_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "LEAST_ROWS", trial.MOST_ROWS)
    case = ROOT / "tests" / "profiles" / "faults" / "imbalance+late"
    advice = pipeline.advise([case], pipeline.Options(), host.load_plugins())
    assert [one.basis == "simulation" for one in advice.recommendations].count(True) <= 1
    assert not advice.problems


def test_a_clean_run_is_not_promised_anything() -> None:
    case = ROOT / "tests" / "profiles" / "faults" / "clean-4"
    advice = pipeline.advise([case], pipeline.Options(), host.load_plugins())
    assert advice.total.expected_s is None
    assert not advice.problems
