"""The page that leads to the pages of many runs: a section for each program, a line for each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from advisor.model.units import format_count
from advisor.output import numbers
from advisor.output.history_series import build_history_series
from advisor.output.html import figures, templates
from advisor.output.html.templates import clean_and_shorten

if TYPE_CHECKING:
    from advisor.history.program_views import ProgramRuns, RunOverview
    from advisor.model.records import Advice

_HEADS: Final = (
    "run",
    "build",
    "started",
    "ranks",
    "run time",
    "evidence",
    "largest gap",
    "to do first",
    "since the build before",
)


def render_index_page(programs: Sequence[ProgramRuns], problems: Sequence[str] = ()) -> str:
    """Return the page; raises ``AdvisorError`` without the libraries that it is made with."""
    many = sum(len(program.runs) for program in programs)
    room = figures.PICTURES_B // max(1, len(programs))
    content = {
        "title": "Programs and builds",
        "lead": f"{format_count(len(programs), 'program')}, {format_count(many, 'run')}",
        "programs": [_build_program(program, number, room) for number, program in enumerate(programs, 1)],
        "problems": [clean_and_shorten(problem) for problem in problems],
    }
    return templates.render_template("index.html.j2", content)


def _build_program(program: ProgramRuns, number: int, room: int) -> dict[str, Any]:
    over = build_history_series([run.advice for run in program.runs])
    drawn = figures.build_figures([over], room) if over else []
    runs = [_build_run_row(run) for run in reversed(program.runs)]
    heads: tuple[str, ...] = _HEADS
    if not any(row["cells"][-1] for row in runs):  # one build: nothing to compare it with
        heads = _HEADS[:-1]
        runs = [row | {"cells": row["cells"][:-1]} for row in runs]
    return {
        "id": f"program-{number}",
        "name": clean_and_shorten(program.name) or "a program without a name",
        "figure": drawn[0] if drawn else None,
        "heads": heads,
        "runs": runs,
    }


def _build_run_row(one: RunOverview) -> dict[str, Any]:
    advice, profile = one.advice, one.advice.profile
    cells = (
        clean_and_shorten(profile.build or "unknown"), clean_and_shorten((profile.started or "")[:16].replace("T",
        " ")), str(profile.ranks),
        numbers.format_duration(profile.actual_s) if profile.has_run_time else "not known", advice.grade.letter,
        _describe_largest_gap(advice), _describe_first_item(advice), _describe_change(one),
    )  # fmt: skip
    worse = one.change is not None and bool(one.change.significant_increases)
    return {"file": one.file, "name": clean_and_shorten(profile.run) or "a run", "cells": cells, "worse": worse}


def _describe_largest_gap(advice: Advice) -> str:
    gap = max(advice.gaps, key=lambda gap: gap.seconds, default=None)
    return f"{gap.name}: {numbers.format_duration(gap.seconds)}, {numbers.format_percentage(gap.share)}" if gap else ""


def _describe_first_item(advice: Advice) -> str:
    item = next(iter(advice.recommendations), None)
    if item is None:
        return advice.verdict
    gain = f"at most {numbers.format_duration(item.ceiling_s)}"
    if item.expected_s is not None:
        gain = f"expected {numbers.format_duration(item.expected_s)}"
    return clean_and_shorten(f"{item.title} [{item.action}], {gain}")


def _describe_change(one: RunOverview) -> str:
    if one.change is None:
        return ""
    actual = one.change.actual
    sign = "+" if actual.delta_s > 0 else "-" if actual.delta_s < 0 else "±"
    words = f"run time {sign}{numbers.format_duration(abs(actual.delta_s))}"
    if actual.noise_s is None:
        return f"{words}; noise unknown"
    grown = ", ".join(
        f"{change.name} +{numbers.format_duration(change.delta_s)}" for change in one.change.significant_increases
    )
    if grown:
        return f"{words}; worse: {grown}"
    unsure = actual.delta_s > 0 and one.change.is_undecided(actual)
    return f"{words}; {'too few runs to separate from noise' if unsure else 'nothing grew by more than noise'}"
