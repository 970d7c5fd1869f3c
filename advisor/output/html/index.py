"""The page that leads to the pages of many runs: a section for each program, a line for each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from advisor.output import numbers, pictures
from advisor.output.html import figures, filling
from advisor.output.html.grids import brief

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.history.overview import Program, Seen
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


def page(programs: Sequence[Program], problems: Sequence[str] = ()) -> str:
    """Return the page; raises ``AdvisorError`` without the libraries that it is made with."""
    many = sum(len(program.runs) for program in programs)
    room = figures.PICTURES_B // max(1, len(programs))
    content = {
        "title": "Programs and builds",
        "lead": f"{_count(len(programs), 'program')}, {_count(many, 'run')}",
        "heads": _HEADS,
        "programs": [_program(program, number, room) for number, program in enumerate(programs, 1)],
        "problems": [brief(problem) for problem in problems],
    }
    return filling.filled("index.html.j2", content)


def _program(program: Program, number: int, room: int) -> dict[str, Any]:
    over = pictures.over_builds([one.advice for one in program.runs])
    drawn = figures.within([over], room) if over else []
    return {
        "id": f"program-{number}",
        "name": brief(program.name) or "a program without a name",
        "figure": drawn[0] if drawn else None,
        "runs": [_run(one) for one in reversed(program.runs)],
    }


def _run(one: Seen) -> dict[str, Any]:
    advice, profile = one.advice, one.advice.profile
    cells = (
        brief(profile.build or "unknown"), brief((profile.started or "")[:16].replace("T", " ")), str(profile.ranks),
        numbers.seconds(profile.actual_s) if profile.timed else "not known", advice.grade.letter,
        _largest(advice), _first(advice), _change(one),
    )  # fmt: skip
    worse = one.change is not None and bool(one.change.grown)
    return {"file": one.file, "name": brief(profile.run) or "a run", "cells": cells, "worse": worse}


def _largest(advice: Advice) -> str:
    gap = max(advice.gaps, key=lambda gap: gap.seconds, default=None)
    return f"{gap.name}: {numbers.seconds(gap.seconds)}, {numbers.share(gap.share)}" if gap else ""


def _first(advice: Advice) -> str:
    item = next(iter(advice.recommendations), None)
    if item is None:
        return advice.verdict
    return brief(f"{item.title} [{item.action}], at most {numbers.seconds(item.ceiling_s)}")


def _change(one: Seen) -> str:
    if one.change is None:
        return ""
    actual = one.change.actual
    sign = "+" if actual.delta_s > 0 else "-" if actual.delta_s < 0 else "±"
    words = f"run time {sign}{numbers.seconds(abs(actual.delta_s))}"
    if actual.noise_s is None:
        return f"{words}; noise is not known"
    grown = ", ".join(f"{change.name} +{numbers.seconds(change.delta_s)}" for change in one.change.grown)
    if grown:
        return f"{words}; worse: {grown}"
    unsure = actual.delta_s > 0 and one.change.unsure(actual)
    return f"{words}; {'too few runs to tell that from noise' if unsure else 'nothing grew by more than noise'}"


def _count(many: int, noun: str) -> str:
    return f"{many} {noun}" if many == 1 else f"{many} {noun}s"
