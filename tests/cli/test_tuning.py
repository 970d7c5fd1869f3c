"""``gapwatch tune``: the race of settings, in virtual time, and the test that tells gains from noise."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from simulated_programs import SimulatedProgram

from advisor import cli
from advisor.experiments.paired_test import Point, Timing, drop_disturbed, estimate_effects
from advisor.experiments.settings import Setting
from advisor.experiments.trials import Trial
from advisor.experiments.tuning import tune_command
from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.experiments.tuning import TuningResult

KINDS = ("flags", "threads", "schedule", "binding", "mpi", "memory")
SETTINGS = [Setting(kind, (kind,)) for kind in KINDS]
#: Programs in virtual time with something to win: how many times as long each setting takes.
WRONG_SETTINGS = [
    {"flags": 0.4}, {"flags": 0.7, "memory": 1.3}, {"threads": 0.5}, {"schedule": 0.6, "binding": 0.9},
    {"binding": 0.7}, {"mpi": 0.7, "memory": 0.97}, {"memory": 0.6}, {"flags": 0.5, "threads": 0.6},
    {"threads": 0.7, "schedule": 1.5, "mpi": 1.2}, {"flags": 0.75, "binding": 0.75},
]  # fmt: skip


def tune(program: SimulatedProgram, settings: list[Setting] = SETTINGS, runs: int = 25) -> TuningResult:
    result = tune_command(program, settings, runs, math.inf, lambda _: None)
    assert result is not None
    return result


def true_ratio(result: TuningResult, ratios: dict[str, float]) -> float:
    parts = result.best.setting.name.split(" + ") if result.best else []
    return math.prod(ratios.get(part, 1.0) for part in parts)


def test_what_is_recommended_is_never_worse_and_wins_where_something_is_wrong() -> None:
    won = []
    for seed, ratios in enumerate(WRONG_SETTINGS):
        program = SimulatedProgram(seed, ratios)
        result = tune(program)
        assert len(program.runs) <= 25
        assert true_ratio(result, ratios) <= 1
        won.append(1 / true_ratio(result, ratios))
    assert sorted(won)[len(won) // 2] >= 1.3


def test_of_a_program_that_is_set_well_nothing_is_recommended() -> None:
    results = [tune(SimulatedProgram(seed, {"memory": 1.1})) for seed in range(40)]
    assert sum(result.best is not None for result in results) <= 1
    assert sorted(result.runs for result in results)[20] <= 10


def test_what_breaks_the_check_is_never_recommended() -> None:
    ratios = {"flags": 0.3, "binding": 0.6}
    result = tune(SimulatedProgram(1, ratios, broken={"flags": "wrong result"}))
    assert result.best is not None
    assert result.best.setting.name == "binding"
    assert {one.setting.name: one.verdict for one in result.tried}["flags"] == "wrong result"


def test_a_command_that_fails_as_it_is_is_not_tuned() -> None:
    program = SimulatedProgram(1, {}, broken={"start": "exit status 1"})
    assert tune_command(program, SETTINGS, 25, math.inf, lambda _: None) is None


def test_budgets_hold() -> None:
    program = SimulatedProgram(1, {"flags": 0.5})
    result = tune(program, runs=5)
    assert len(program.runs) == result.runs == 5
    assert result.best is None
    assert result.stopped == "the budget of 5 runs is used up"
    with pytest.raises(AdvisorError, match="the budget ran out before"):
        tune_command(SimulatedProgram(1, {}), SETTINGS, 25, -1.0, lambda _: None)
    short = tune_command(SimulatedProgram(1, {}), SETTINGS, 25, 2.0, lambda _: None)
    assert short is not None
    assert short.runs == 1, "none begins that the end of the budget might cut short and call too slow"
    assert short.stopped == "the time budget is used up"
    assert {one.verdict for one in short.tried} == {"not tried: the budget is used up"}


def test_the_interval_holds_at_every_look() -> None:
    """Of pairs of equal settings looked at after every block, at most about one in a hundred is ever called faster."""
    alarms = 0
    for seed in range(150):
        choose = random.Random(seed)
        timings: list[Timing] = []
        for block in range(8):
            timings += [Timing(name, block, math.exp(choose.gauss(0.1 * block, 0.05))) for name in ("start", "other")]
            effect = estimate_effects(timings, "start", 1)["other"]
            if effect.is_faster:
                alarms += 1
                break
    assert alarms <= 4


def test_drift_moves_no_ratio_and_one_run_tells_no_noise() -> None:
    timings = [
        Timing(name, block, ratio * 1.3**block) for block in range(4) for name, ratio in (("start", 1), ("b", 0.5))
    ]
    assert estimate_effects(timings, "start", 1)["b"].ratio == pytest.approx(0.5)
    alone = estimate_effects(timings[:2], "start", 1)["b"]
    assert (alone.low, alone.high, alone.is_faster, alone.is_slower) == (0.0, math.inf, False, False)


def test_disturbed_runs_are_left_out() -> None:
    points = [Point("start", block, seconds) for block, seconds in enumerate((1.0, 1.01, 1.02, 3.0))]
    assert [one.value for one in drop_disturbed(points)] == [1.0, 1.01, 1.02]


def test_a_start_that_fails_later_ends_the_race_without_a_winner() -> None:
    class Flaky(SimulatedProgram):
        def run_trial(self, setting: Setting, limit_s: float) -> Trial:
            trial = super().run_trial(setting, limit_s)
            fails = setting.name == "start" and self.runs.count("start") == 3
            return replace(trial, failure="exit status 1") if fails else trial

    result = tune(Flaky(1, {"flags": 0.5}))
    assert result.best is None
    assert result.stopped == "the command as it is does not always work: exit status 1"
    assert result.start_s is None, "unknown is not zero"


def test_a_start_that_the_end_of_the_budget_cuts_short_does_not_fail() -> None:
    """On a busy machine a run may take many times as long as the first did; what was won until then stays."""

    class Slow(SimulatedProgram):
        def run_trial(self, setting: Setting, limit_s: float) -> Trial:
            trial = super().run_trial(setting, limit_s)
            cut = setting.name == "start" and self.runs.count("start") == cut_at
            return replace(trial, failure="did not end within the budget", timed_out=True) if cut else trial

    cut_at = 6
    result = tune(Slow(3, {"flags": 0.5, "memory": 0.93}))
    assert result.stopped == "the time budget is used up"
    assert result.best is not None
    assert result.best.setting.name == "flags"
    cut_at = 1
    with pytest.raises(AdvisorError, match="increase --budget"):
        tune(Slow(1, {"flags": 0.5}))


def test_settings_that_are_no_pair_are_not_combined() -> None:
    settings = [Setting("2 ranks x 2 threads", ("ranks", "threads")), Setting("threads", ("threads",))]
    result = tune(SimulatedProgram(1, {"2 ranks x 2 threads": 0.5, "threads": 0.6}), settings)
    assert result.best is not None
    assert result.best.setting.name == "2 ranks x 2 threads"


def test_lines_that_differ_from_run_to_run_break_no_setting() -> None:
    """What the timer's line of a setting says is suspect until a run of the start writes it otherwise, too."""

    class Timed(SimulatedProgram):
        def run_trial(self, setting: Setting, limit_s: float) -> Trial:
            trial = super().run_trial(setting, limit_s)
            if setting.name == "start" and self.runs.count("start") == 2:
                self.varying_lines = [7]
            lines = {"flags": (7,), "memory": (7, 9)}.get(setting.name, ())
            known = set(lines) <= set(self.varying_lines)
            return trial if known else replace(trial, failure="wrong result: line 7 differs", lines=lines)

    result = tune(Timed(1, {"flags": 0.5, "memory": 0.4}))
    assert result.best is not None
    assert result.best.setting.name == "flags"
    assert {one.setting.name: one.verdict for one in result.tried}["memory"] == "wrong result: line 9 differs"


def test_what_the_budget_left_open_is_not_called_nothing_to_win() -> None:
    result = tune(SimulatedProgram(3, {"flags": 0.8}, noise=0.15), SETTINGS[:1], runs=6)
    assert result.best is None
    assert result.undecided_setting is not None
    assert result.undecided_setting.setting.name == "flags"
    decided = tune(SimulatedProgram(3, {"flags": 0.5}))
    assert decided.undecided_setting is None


def test_what_noise_hides_is_not_called_nothing_to_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs of the start that differ by half say little of settings that ran once."""
    seconds = {"start": [1.0, 1.5], "quicker": [0.9], "slower": [1.4]}

    class Runner(SimulatedProgram):
        def run_trial(self, setting: Setting, limit_s: float) -> Trial:
            return Trial(setting.name, seconds[setting.name].pop(0))

    result = tune(Runner(1, {}), [Setting("quicker", ("memory",)), Setting("slower", ("mpi",))])
    assert result.best is None
    assert result.hides_gains
    assert [one.verdict for one in result.tried] == ["within noise", "no gain in the first run"]
    assert not tune(SimulatedProgram(1, {})).hides_gains
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("advisor.experiments.tuning_session.tune_command", lambda *_: result)
    assert cli.main(["tune", "--session", str(tmp_path / "s"), "--", "true"]) == 0
    assert "Not decided after 4 runs: the first two runs of the start differ by 50 %" in capsys.readouterr().out


def test_a_gain_that_the_budget_left_at_one_run_is_not_called_none() -> None:
    result = tune(SimulatedProgram(3, {"flags": 0.3}), SETTINGS[:1], runs=2)
    assert result.stopped is not None
    assert [one.verdict for one in result.tried] == ["one run: not decided"]
    assert result.undecided_setting is not None
