"""The page of one run: what stands in ``advice.html.j2``, prepared from the advice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from advisor.output import numbers
from advisor.output.clean import clean
from advisor.output.html import figures, filling
from advisor.output.html.grids import Grid, brief, gap_grids, grid, long_names
from advisor.output.words import (
    BASES,
    BOUNDS,
    COUNTS,
    EFFORTS,
    base_bound,
    gap_words,
    grade_words,
    how_words,
    processor_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.records import Advice, Bound, Gap, HowTo, Recommendation
    from advisor.output.html.figures import Picture

#: Width of a bar's picture, in its own units, and the least width that can be seen.
_WIDTH, _THIN = 1000.0, 3.0


def page(advice: Advice, parts: Sequence[Picture] = (), home: str | None = None) -> str:
    """Return the advice as one page of HTML; raises ``AdvisorError`` without the libraries that it is made with.

    ``parts`` become pictures, as do those of the findings; ``home`` is the file of the page that leads to this one.
    """
    return filling.filled("advice.html.j2", _content(advice, parts) | {"home": home})


def _content(advice: Advice, parts: Sequence[Picture]) -> dict[str, Any]:
    parts = [*parts, *(_called(picture, found.plugin) for found in advice.findings for picture in found.pictures)]
    profile = advice.profile
    machine = f", {brief(profile.machine)}" if profile.machine else ""
    elapsed = numbers.seconds(profile.actual_s) if profile.timed else "without times,"
    waterfall = _waterfall(advice)
    shown = "".join(str(row["seconds"]) for row in waterfall)
    count = len(advice.recommendations)
    return {
        "title": brief(profile.program) or "program",
        "lead": f"{elapsed} on {processor_words(profile)}{machine}",
        "run": f"run {brief(profile.run)}" + (f", build {brief(profile.build)}" if profile.build else ""),
        "grade": advice.grade.letter,
        "grade_words": grade_words(advice.grade),
        "notes": [brief(note.text) for note in advice.grade.notes],
        "actual": numbers.seconds(profile.actual_s),
        "waterfall": waterfall,
        "legend": "; ".join(words for mark, words in numbers.LEGEND.items() if mark in shown),
        "next_title": f"The {COUNTS.get(count, f'{count} things')} to do next" if count else "What to do next",
        "verdict": _verdict(advice),
        "items": [_item(item) for item in advice.recommendations],
        "figures": figures.within(parts, figures.PICTURES_B),
        "bounds": _bounds(advice.bounds),
        "needs": grid("Facts that rules asked for", ("fact", "command that would provide it"),
                      [(need.fact, need.command) for need in advice.needs]),
        "findings": grid("What plugins noticed", ("plugin", "subject", "finding"),
                         [(found.plugin, found.subject, found.text) for found in advice.findings]),
        "problems": [brief(problem) for problem in advice.problems],
        "long_names": long_names(advice),
    }  # fmt: skip


def _called(picture: Picture, plugin: str) -> Picture:
    return replace(picture, title=f"{plugin}: {picture.title}")


def _waterfall(advice: Advice) -> list[dict[str, Any]]:
    """Return one row per known bound: the lowest one from zero, each other from the one below."""
    known = {bound.name: bound.seconds for bound in advice.bounds if bound.seconds is not None}
    base = base_bound(advice)
    scale = max((abs(value) for value in known.values()), default=0.0)
    shares = numbers.shares([gap.share for gap in advice.gaps])
    rows = []
    if base is not None and base.seconds is not None:
        row = _row(base.name, base.name, BOUNDS.get(base.name, ""), 0.0, base.seconds, scale, "base")
        mark = numbers.MARKS[base.status]
        rows.append(row | {"id": "base", "gap": "", "seconds": mark + numbers.seconds(base.seconds), "share": ""})
    gaps = enumerate(zip(advice.gaps, shares, strict=True))
    return rows + [_gap_row(number, gap, known, scale) | {"share": share} for number, (gap, share) in gaps]


def _gap_row(number: int, gap: Gap, known: dict[str, float], scale: float) -> dict[str, Any]:
    lower, upper = known.get(gap.lower, 0.0), known.get(gap.upper, 0.0)
    kind = "negative" if gap.seconds < 0 else "gap"
    row = _row(gap.upper, gap.name, gap_words(gap), lower, upper, scale, kind)
    texts = [brief(gap.reason)] if gap.reason else []
    return row | {
        "id": f"gap-{number}",
        "gap": gap.name,
        "seconds": numbers.MARKS[gap.status] + numbers.seconds(gap.seconds),
        "texts": [f"from {gap.lower} to {gap.upper}, {gap.status}", *texts],
        "tables": gap_grids(gap),
    }


def _row(bound: str, name: str, words: str, lower: float, upper: float, scale: float, kind: str) -> dict[str, Any]:
    low, high = sorted((lower, upper))
    stretch = _WIDTH / scale if scale > 0 else 0.0
    width = max((high - low) * stretch, _THIN if high > low else 0.0)
    return {
        "bound": bound,
        "name": name,
        "words": words,
        "upper": repr(float(upper)),
        "kind": kind,
        "x": round(min(max(low * stretch, 0.0), _WIDTH - width), 2),
        "width": round(width, 2),
        "label": f"{name}, {words}: from {numbers.seconds(lower)} to {numbers.seconds(upper)}",
        "texts": [],
        "tables": [],
    }


def _verdict(advice: Advice) -> list[str]:
    many = len(advice.recommendations) > 1
    texts = {
        "advice": f"Together they win at most {numbers.seconds(advice.total.ceiling_s)}." if many else "",
        "nothing significant": "Nothing significant: no action of the rules would win enough to be worth it.",
        "insufficient evidence": "There is not enough evidence in this run to advise from.",
    }
    return [text for text in (texts[advice.verdict],) if text]


def _item(item: Recommendation) -> dict[str, Any]:
    phases = [f'phase "{name}"' for name in (item.phase, *item.more_phases) if name]
    places = (item.region, *phases, _place(item), ", ".join(item.processors))
    facts = [("where", "; ".join(brief(place) for place in places if place)), ("why", clean(item.why))]
    for name, effects in (("may help", item.may_help), ("may hurt", item.may_hurt)):
        words = ", ".join(f"{effect.gap} (now {numbers.seconds(effect.seconds)})" for effect in effects)
        facts += [(name, words)] if words else []
    facts += [("effort", EFFORTS[item.effort]), ("state", item.state), ("fingerprint", item.fingerprint)]
    return {
        "rank": item.rank,
        "title": clean(item.title),
        "action": f"{item.action}, gap {'+'.join(item.gaps)}",
        "gain": _gain(item),
        "facts": facts,
        "hows": [_how(how) for how in item.how],
        "evidence": grid("", ("fact", "value", "condition", "formula"), [
            (piece.fact, numbers.quantity(piece.value, piece.unit), piece.condition, piece.formula)
            for piece in item.evidence
        ]),
    }  # fmt: skip


def _gain(item: Recommendation) -> str:
    text = f"wins at most {numbers.seconds(item.ceiling_s)}"
    if item.expected_s is None:
        return text
    span = f" ({numbers.interval(item.interval_s)})" if item.interval_s else ""
    return f"{text}; expected {numbers.seconds(item.expected_s)}{span} {BASES.get(item.basis or '', '')}"


def _place(item: Recommendation) -> str | None:
    return f"{item.file}:{item.line}" if item.file and item.line else item.file


def _how(how: HowTo) -> dict[str, Any]:
    codes = [(name, code) for name, code in (("before", how.before), ("after", how.after)) if code]
    shown = [(name, "\n".join(clean(row) for row in code.expandtabs(4).splitlines())) for name, code in codes]
    return {"words": how_words(how), "text": clean(how.text), "codes": shown}


def _bounds(bounds: Sequence[Bound]) -> Grid:
    rows = [
        (bound.name, BOUNDS.get(bound.name, ""), numbers.seconds(bound.seconds), bound.status, bound.reason or "",
         bound.collect or "")
        for bound in bounds
    ]  # fmt: skip
    return grid("Lower bounds on the run time", ("bound", "what it holds", "seconds", "status", "why", "command"), rows)
