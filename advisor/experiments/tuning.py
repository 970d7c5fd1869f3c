"""Tuning without an edit: settings run in turns with the start, losers dropped soon, winners kept when certain.

The first block runs the start twice, around one run of each setting. What gains less than half of what the two starts
differ by, or less than ``WORTH``, is dropped: that may miss a small gain, but never recommends anything. The rest runs
in turns with the start until the test of ``paired_test`` is certain, no gain is left to hope for, or the budget is
spent. Of each kind the best winner is kept, and the winners together are tried as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from advisor.experiments.paired_test import Effect, Timing, estimate_effects
from advisor.experiments.settings import Setting, combine_settings
from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    from advisor.experiments.trials import Trial

#: Settings that gain less in their first run are not tried again.
WORTH: Final = 0.03
#: Where the first two runs of the start differ by more than that, gains of settings that ran once are within noise.
ROUGH: Final = 0.25
#: A setting that takes so many times as long as the start is ended.
TOO_SLOW: Final = 2.0
START: Final = Setting("start")
#: A run of the start before all others, which tells which results differ from run to run by themselves.
REFERENCE: Final = Setting("reference")
_DROPPED: Final = "no gain in the first run"
_NOISE: Final = "within noise"
_CUT_SHORT: Final = "one run: not decided"


class SettingRunner(Protocol):
    """Runs settings; ``trials.TrialRunner`` does it with processes."""

    @property
    def varying_lines(self) -> Sequence[int]:
        """The lines of the results that differ between runs of the command as it is."""

    def run_trial(self, setting: Setting, limit_s: float) -> Trial:
        """Return the next run of a setting, ended after ``limit_s`` seconds."""


Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TriedSetting:
    """What became of a setting; ``effect`` is None where it broke before it could be timed."""

    setting: Setting
    effect: Effect | None
    verdict: str
    median_s: float | None


@dataclass(frozen=True, slots=True)
class TuningResult:
    """All settings with their effects, and the ``best``.

    Without a best one there is nothing to win, or the work was ``stopped`` before that was known. ``start_s`` is None
    where no run of the start counts. ``spread`` is how much longer the slower of its first two runs took, relative to
    the faster.
    """

    tried: tuple[TriedSetting, ...]
    best: TriedSetting | None
    start_s: float | None
    runs: int
    stopped: str | None
    spread: float = 0.0

    @property
    def hides_gains(self) -> bool:
        """Whether so much noise is in the runs that a gain worth having may not show."""
        return self.spread > ROUGH

    @property
    def undecided_setting(self) -> TriedSetting | None:
        """The setting that seems fastest of those that the budget left within noise."""
        open_ones = [
            one for one in self.tried
            if self.stopped and one.verdict in (_NOISE, _CUT_SHORT) and one.effect and one.effect.ratio < 1 - WORTH
        ]  # fmt: skip
        return min(open_ones, key=lambda one: one.effect.ratio if one.effect else 1.0, default=None)


@dataclass
class _Race:
    """The runs so far; ``broken`` settings with the reason, ``suspects`` with the lines of results that differ."""

    runner: SettingRunner
    most_runs: int
    until: float
    limit_s: float
    tell: Tell
    timings: list[Timing] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    suspects: dict[str, tuple[int, ...]] = field(default_factory=dict)
    block: int = 0
    runs: int = 0
    spread: float = 0.0
    stopped: str | None = None

    def run_setting(self, setting: Setting) -> Timing | None:
        """Run a setting once in the present block; None where it broke or the budget is spent."""
        if self.stopped is None and self.runs >= self.most_runs:
            self.stopped = f"the budget of {self.most_runs} runs is used up"
        left_s = self.until - time.monotonic()
        if self.stopped is None and left_s < (self.limit_s if self.runs else 0.0):  # else it might cut this run short
            self.stopped = "the time budget is used up"
        if self.stopped or setting.name in self.broken:
            return None
        trial = self.runner.run_trial(setting, left_s if setting is START else self.limit_s)
        self.runs += 1
        self.tell(f"{self.runs}/{self.most_runs} {setting.name}: {trial.failure or f'{trial.seconds:.4g} s'}")
        if setting is START and trial.timed_out:  # its limit is the end of the budget
            self.stopped = "the time budget is used up"
            return None
        if trial.failure and trial.lines and self.block == 0:
            self.suspects[setting.name] = trial.lines
        elif trial.failure:
            self._drop_setting(setting.name, trial.failure)
            return None
        timing = Timing(setting.name, self.block, trial.seconds)
        self.timings.append(timing)
        return timing

    def _drop_setting(self, name: str, failure: str) -> None:
        self.broken[name] = failure
        self.timings = [one for one in self.timings if one.setting != name]

    def settle_suspects(self) -> None:
        """Drop settings whose results differ in lines that runs of the start write alike."""
        for name, lines in self.suspects.items():
            wrong = sorted(set(lines) - set(self.runner.varying_lines))
            if wrong:
                self._drop_setting(name, f"wrong result: line {wrong[0]} differs")

    def stop_without_start(self) -> bool:
        """Return whether the command as it is failed by now: then nothing can be compared with it."""
        if START.name not in self.broken:
            return False
        self.stopped = f"the command as it is does not always work: {self.broken[START.name]}"
        self.timings = []
        return True

    def median_s(self, name: str) -> float | None:
        times = sorted(one.seconds for one in self.timings if one.setting == name)
        return times[len(times) // 2] if times else None


def tune_command(
    runner: SettingRunner, settings: Sequence[Setting], most_runs: int, budget_s: float, tell: Tell
) -> TuningResult | None:
    """Try the settings and return what they win; None where the command as it is fails or its check does.

    ``tell`` is told of each run. Raises ``AdvisorError`` where the budget ends before the command does.
    """
    race = _Race(runner, most_runs, time.monotonic() + budget_s, budget_s, tell)
    first = race.run_setting(START)
    if first is None and race.stopped:
        raise AdvisorError("the budget ran out before the command ended once; increase --budget")
    if first is None:
        return None
    race.limit_s = TOO_SLOW * first.seconds + 1.0
    left = _run_first_block(race, settings, first)
    if race.stop_without_start():
        return _conclude(race, settings, {})
    effects: dict[str, Effect] = {}
    tests = len(settings) + 1
    while left and race.stopped is None:
        left = _run_block(race, left)
        if race.stop_without_start():
            return _conclude(race, settings, {})
        effects = estimate_effects(race.timings, START.name, tests)
        left = _drop_decided(left, settings, effects)
    winners = choose_winners(settings, effects)
    if len(winners) > 1:
        combination = combine_settings(winners)
        while race.stopped is None and combination.name not in race.broken:
            _run_block(race, [winners[0], combination])
            if race.stop_without_start():
                return _conclude(race, settings, {})
            effects = estimate_effects(race.timings, START.name, tests)
            if combination.name not in effects or effects[combination.name].is_faster:
                break
            if effects[combination.name].ratio > effects[winners[0].name].ratio and effects[combination.name].runs > 2:
                break
        settings = (*settings, combination)
    return _conclude(race, settings, effects)


def _run_first_block(race: _Race, settings: Sequence[Setting], first: Timing) -> list[Setting]:
    """Run each setting once and the start again; return those that gain more than the starts differ, and ``WORTH``."""
    timings = {setting.name: race.run_setting(setting) for setting in settings}
    again = race.run_setting(START) or first
    race.settle_suspects()
    slow, fast = max(first.seconds, again.seconds), min(first.seconds, again.seconds)
    race.spread = slow / fast - 1
    most = fast * (1 - max(WORTH, min(0.5, race.spread) / 2))
    return [
        one for one in settings
        if one.name not in race.broken and (timing := timings[one.name]) is not None and timing.seconds < most
    ]  # fmt: skip


def _run_block(race: _Race, left: Sequence[Setting]) -> list[Setting]:
    """Run the start and what is left once, beginning with another one each time; return what is not broken."""
    race.block += 1
    order = [START, *left]
    shift = race.block % len(order)
    for setting in (*order[shift:], *order[:shift]):
        race.run_setting(setting)
    return [one for one in left if one.name not in race.broken and race.median_s(one.name) is not None]


def _drop_decided(left: Sequence[Setting], settings: Sequence[Setting], effects: dict[str, Effect]) -> list[Setting]:
    """Return what is still worth a run: neither certain, nor without hope, nor behind a winner of its kind."""
    best = {one.kinds[0]: effects[one.name].ratio for one in choose_winners(settings, effects)}
    return [
        one
        for one in left
        if not (effects[one.name].is_faster or effects[one.name].is_slower)
        and effects[one.name].ratio < min(1 - WORTH, best.get(one.kinds[0], 1.0))
    ]


def choose_winners(settings: Sequence[Setting], effects: dict[str, Effect]) -> list[Setting]:
    """Return certain winners that share no kind, the best of all first."""
    certain = [one for one in settings if one.name in effects and effects[one.name].is_faster]
    best: dict[str, Setting] = {}
    for one in sorted(certain, key=lambda one: effects[one.name].ratio):
        if not set(one.kinds) & best.keys():
            best |= dict.fromkeys(one.kinds, one)
    return list({one.name: one for one in best.values()}.values())


def _conclude(race: _Race, settings: Sequence[Setting], effects: dict[str, Effect]) -> TuningResult:
    tried = []
    single = estimate_effects(race.timings, START.name, len(settings)) if race.timings else {}
    won = {one.kinds[0] for one in choose_winners(settings, effects)}
    for one in settings:
        effect = effects.get(one.name, single.get(one.name))
        verdict = _judge(race, one, effect)
        once = effect is not None and effect.runs == 1 and one.name not in race.broken
        if effect is not None and once and effect.ratio < 1 - WORTH and one.kinds[0] in won:
            verdict = "slower than another of its kind"
        tried.append(TriedSetting(one, effect, verdict, race.median_s(one.name)))
    certain = [one for one in tried if one.verdict == "faster" and one.effect is not None]
    best = min(certain, key=lambda one: one.effect.ratio if one.effect else 1.0, default=None)
    return TuningResult(tuple(tried), best, race.median_s(START.name), race.runs, race.stopped, race.spread)


def _judge(race: _Race, setting: Setting, effect: Effect | None) -> str:
    if setting.name in race.broken:
        lines = race.suspects.get(setting.name, ())
        if lines and set(lines) <= set(race.runner.varying_lines):  # as later runs of the start told
            return f"not tried again: line {lines[0]} of its results differs, as it does from run to run"
        return race.broken[setting.name]
    if effect is None:
        return "not known" if START.name in race.broken else "not tried: the budget is used up"
    if effect.is_faster:
        return "faster"
    if effect.is_slower:
        return "no gain"
    if effect.runs > 1:
        return _NOISE
    if effect.ratio >= 1 - WORTH:
        return _DROPPED
    return _CUT_SHORT if race.stopped else _NOISE
