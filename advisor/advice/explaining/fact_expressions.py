"""Facts as expressions: those about the loads of processors and the times of phases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.advice.explaining.expressions import (
    ACTUAL,
    largest_of_each_iteration,
    largest_processor,
    processor_seconds,
    sum_over_phases,
)
from advisor.advice.facts.load_facts import EMPTY, NOTICEABLE
from advisor.model import policy
from advisor.trace.regions import is_hand_over, is_interpreter_wait

if TYPE_CHECKING:
    from advisor.advice.explaining.expressions import BoundExpressions, Expression
    from advisor.model.records import Profile

_COUNT: Final[Expression] = ["count", ["profile", "processors"]]
_OF_WALL: Final = {"wait.share": "wait_s", "comm.share": "transfer_s", "sync.share": "sync_s", "io.share": "io_s"}


def fact_expression(name: str, profile: Profile, terms: BoundExpressions, place: tuple[int, ...]) -> Expression | None:
    """Return the expression of a fact in the phases of a place (of the run: all of them), None where it has none."""
    found = {**_run_expressions(profile), **_time_expressions(profile, terms, place)}
    if terms.work is not None and place:
        found |= _load_expressions(profile, terms, place)
    return found.get(name)


def _run_expressions(profile: Profile) -> dict[str, Expression]:
    found: dict[str, Expression] = {"run.wall_s": ACTUAL, "run.processors": _COUNT}
    if profile.cores:
        found["run.cores"] = ["profile", "cores"]
        if not any(is_hand_over(one.name) or is_interpreter_wait(one.name) for one in profile.regions):
            found["run.oversubscription"] = ["/", _COUNT, ["profile", "cores"]]
    for fact, part in (("run.startup_s", "start-up"), ("run.shutdown_s", "shutdown")):
        if part in profile.outside:
            found[fact] = ["mean", ["profile", "outside", part]]
    if "idle" in profile.outside:
        found["run.idle_threads_share"] = ["/", ["sum", ["profile", "outside", "idle"]], ["*", _COUNT, ACTUAL]]
    return found


def _time_expressions(profile: Profile, terms: BoundExpressions, place: tuple[int, ...]) -> dict[str, Expression]:
    found: dict[str, Expression] = {
        name: [
            "/",
            sum_over_phases(place, ["sum", ["own", measure]]),
            sum_over_phases(place, ["sum", ["own", "wall_s"]]),
        ]
        for name, measure in _OF_WALL.items()
        if profile.has_measure("wall_s") and profile.has_measure(measure)
    }
    timed = {phase.duration_s is not None for phase in profile.phases}
    if not profile.has_phases or len(timed) > 1 or not (True in timed or terms.work):
        return found
    lasts = ["sum", "duration_s"] if True in timed else largest_of_each_iteration(terms.work)
    found["phase.share"] = ["/", sum_over_phases(place, lasts), ACTUAL]
    share = profile.actual_s * policy.PLACE_SHARE > policy.PLACE_SECONDS
    least = ["*", policy.PLACE_SHARE, ACTUAL] if share else policy.PLACE_SECONDS
    parallel = [p for p, phase in enumerate(profile.phases) if phase.kind == "parallel"]
    found["phase.phases"] = sum_over_phases(parallel, [">=", lasts, least])
    most = max(place, key=lambda p: profile.phases[p].iterations, default=None)
    if most is not None:
        found["phase.iterations"] = sum_over_phases(
            [most], ["count", "duration_s" if True in timed else largest_processor(terms.work)]
        )
    return found


def _load_expressions(profile: Profile, terms: BoundExpressions, place: tuple[int, ...]) -> dict[str, Expression]:
    total, peaks = processor_seconds(terms.work, place), sum_over_phases(place, largest_of_each_iteration(terms.work))
    everywhere = processor_seconds(terms.work, terms.parallel)
    found: dict[str, Expression] = {
        "phase.imbalance": ["/", ["max", total], ["mean", total]],
        "phase.rank_imbalance": ["/", ["max", ["ranks", total]], ["mean", ["ranks", total]]],
        "phase.dynamic_ratio": ["/", peaks, ["max", total]],
        "phase.work_s": ["max", total],
        "phase.slowest_differs": ["<", ["at", total, ["argmax", everywhere]], ["*", 1 - NOTICEABLE, ["max", total]]],
    }
    if all(profile.phases[p].duration_s is not None for p in place):
        found["sync.empty_phases"] = ["<", peaks, ["*", EMPTY, terms.duration_term(place)]]
    if profile.ranks in (1, len(profile.processors)):
        same = sum_over_phases(place, ["sum", ["==", largest_processor(terms.work), ["argmax", total]]])
        found["phase.slowest_rank_persistence"] = [
            "/",
            same,
            sum_over_phases(place, ["count", largest_processor(terms.work)]),
        ]
    if len(place) == 1:
        found["sync.work_between_s"] = sum_over_phases(place, ["median", ["max", terms.work, "processors"]])
    return found
