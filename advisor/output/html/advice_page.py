"""The page of one run: what stands in ``advice.html.j2``, prepared from the advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from advisor.model.gap_parts import describe_cause
from advisor.model.records import WAITING_UNKNOWN, Advice, Bound, Gap
from advisor.output import numbers
from advisor.output.clean import clean_text
from advisor.output.explanation_text import select_parts
from advisor.output.history_series import build_history_series
from advisor.output.html import figures, templates
from advisor.output.html.templates import Grid, build_gap_grids, build_grid, clean_and_shorten, find_long_names
from advisor.output.recommendation_text import describe_expected_gain, describe_total, format_evidence_value
from advisor.output.wording import (
    BOUNDS,
    COUNTS,
    EFFORTS,
    describe_bound,
    describe_gap,
    describe_grade,
    describe_hot_spots,
    describe_how,
    describe_length,
    describe_processors,
    find_base_bound,
    select_command,
)

if TYPE_CHECKING:
    from advisor.model.recommendations import HowTo, Recommendation
    from advisor.model.reports import Picture

#: Width of a bar's picture, in its own units, and the least width that can be seen.
_WIDTH, _THIN = 1000.0, 3.0


def render_advice_page(advice: Advice, earlier: Sequence[Advice] = (), home: str | None = None) -> str:
    """Return the advice as one page of HTML; raises ``AdvisorError`` without the libraries that it is made with.

    ``earlier`` are runs of the same program, the oldest first; ``home`` is the file of the page that leads to this one.
    """
    return templates.render_template("advice.html.j2", _build_content(advice, earlier) | {"home": home})


def _build_content(advice: Advice, earlier: Sequence[Advice]) -> dict[str, Any]:
    series = build_history_series((*earlier, advice))
    of_findings = (_prefix_title(picture, found.plugin) for found in advice.findings for picture in found.pictures)
    parts = [*([series] if series else []), *advice.pictures, *of_findings]
    profile, drawn = advice.profile, _build_timeline(advice)
    machine = f", {clean_and_shorten(profile.machine)}" if profile.machine else ""
    elapsed = describe_length(profile, "without times,")
    waterfall = _build_waterfall(advice)
    shown = "".join(str(row["seconds"]) for row in waterfall)
    count = len(advice.recommendations)
    return {
        "title": clean_and_shorten(profile.program) or "program",
        "lead": f"{elapsed} on {describe_processors(profile)}{machine}",
        "run": f"run {clean_and_shorten(profile.run)}" + (f", build "
        f"{clean_and_shorten(profile.build)}" if profile.build else ""),
        "grade": advice.grade.letter,
        "grade_words": describe_grade(advice.grade),
        "notes": [clean_and_shorten(note.text) for note in advice.grade.notes],
        "actual": numbers.format_duration(profile.actual_s),
        "waterfall": waterfall,
        "legend": "; ".join(words for mark, words in numbers.LEGEND.items() if mark in shown),
        "next_title": f"The {COUNTS.get(count, f'{count} things')} to do next" if count else "What to do next",
        "verdict": _describe_verdict(advice),
        "items": [_build_item(item) for item in advice.recommendations],
        "command": clean_text(select_command(advice) or ""),
        "timeline": drawn,
        "figures": figures.build_figures(parts, figures.PICTURES_B - (drawn["size"] if drawn else 0)),
        "bounds": _build_bound_grid(advice.bounds),
        "needs": build_grid("Facts that rules asked for", ("fact", "command that would provide it"),
                      [(need.fact, need.command) for need in advice.needs]),
        "explained": build_grid("What explains the gaps", ("gap", "cause", "seconds", "how that is known"),
                          [(one.gap, describe_cause(one.part), numbers.format_duration(one.part.seconds),
                            f"{one.part.basis}: {one.part.source}") for one in select_parts(advice, None)]),
        "findings": build_grid("What plugins noticed", ("plugin", "subject", "finding"),
                         [(found.plugin, found.subject, found.text) for found in advice.findings]),
        "problems": [clean_and_shorten(problem) for problem in advice.problems],
        "long_names": find_long_names(advice),
    }  # fmt: skip


def _build_timeline(advice: Advice) -> dict[str, Any] | None:
    """Return the run over time, if the profile knows when its phases were."""
    if advice.timeline is None:
        return None
    drawn = figures.build_timeline_figure(advice.timeline)
    paths = [(css, name, templates.mark_safe(path)) for css, name, path in drawn.paths]
    return {field.name: getattr(drawn, field.name) for field in fields(drawn)} | {
        "paths": paths, "data": templates.mark_safe(drawn.data),
        "size": len(drawn.data) + sum(len(path) for _, _, path in paths),
    }  # fmt: skip


def _prefix_title(picture: Picture, plugin: str) -> Picture:
    return replace(picture, title=f"{plugin}: {picture.title}")


def _build_waterfall(advice: Advice) -> list[dict[str, Any]]:
    """Return one row per known bound: the lowest one from zero, each other from the one below."""
    known = {bound.name: bound.seconds for bound in advice.bounds if bound.seconds is not None}
    base = find_base_bound(advice)
    scale = max((abs(value) for value in known.values()), default=0.0)
    shares = numbers.format_percentage_column([gap.share for gap in advice.gaps])
    rows = []
    if base is not None and base.seconds is not None:
        row = _build_bar_row(base.name, base.name, BOUNDS.get(base.name, ""), 0.0, base.seconds, scale, "base")
        mark = numbers.MARKS[base.status]
        rows.append(
            row | {"id": "base", "gap": "", "seconds": mark + numbers.format_duration(base.seconds), "share": ""}
        )
    gaps = enumerate(zip(advice.gaps, shares, strict=True))
    return rows + [_build_gap_row(number, gap, known, scale) | {"share": share} for number, (gap, share) in gaps]


def _build_gap_row(number: int, gap: Gap, known: dict[str, float], scale: float) -> dict[str, Any]:
    lower, upper = known.get(gap.lower, 0.0), known.get(gap.upper, 0.0)
    kind = "negative" if gap.seconds < 0 else "gap"
    row = _build_bar_row(gap.upper, gap.name, describe_gap(gap), lower, upper, scale, kind)
    texts = [clean_and_shorten(gap.reason)] if gap.reason else []
    return row | {
        "id": f"gap-{number}",
        "gap": gap.name,
        "seconds": numbers.MARKS[gap.status] + numbers.format_duration(gap.seconds),
        "texts": [f"from {gap.lower} to {gap.upper}, {gap.status}", *texts],
        "tables": build_gap_grids(gap),
    }


def _build_bar_row(
    bound: str, name: str, words: str, lower: float, upper: float, scale: float, kind: str
) -> dict[str, Any]:
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
        "label": f"{name}, {words}: from {numbers.format_duration(lower)} to {numbers.format_duration(upper)}",
        "texts": [],
        "tables": [],
    }


def _describe_verdict(advice: Advice) -> list[str]:
    texts = {
        "advice": f"{total[:1].upper()}{total[1:]}." if (total := describe_total(advice)) else "",
        "nothing significant": "Nothing significant: no action would save enough to be worth it.",
        "insufficient evidence": "Not enough evidence in this run for advice.",
    }
    if advice.verdict == "nothing significant" and any(note.name == WAITING_UNKNOWN for note in advice.grade.notes):
        return ["Nothing significant in input and output, and nothing else was recorded."]
    if advice.verdict == "nothing significant" and (bound := describe_bound(advice)):
        return [f"No gap above the computation calls for an action. {clean_text(bound)}"]
    return [text for text in (texts[advice.verdict], clean_text(describe_hot_spots(advice))) if text]


def _build_item(item: Recommendation) -> dict[str, Any]:
    phases = [f'phase "{name}"' for name in (item.phase, *item.more_phases) if name]
    source = f"{item.file}:{item.line}" if item.file and item.line else item.file
    regions = [f"{item.region} at {source}" if item.region and source else item.region or source, *item.more_regions]
    places = (*regions, *phases, ", ".join(item.processors))
    facts = [("where", "; ".join(clean_and_shorten(place) for place in places if place)), ("why", clean_text(item.why))]
    for name, effects in (("may reduce", item.may_help), ("may increase", item.may_hurt)):
        words = ", ".join(f"{effect.gap} (now {numbers.format_duration(effect.seconds)})" for effect in effects)
        facts += [(name, words)] if words else []
    facts += [("effort", EFFORTS[item.effort]), ("state", item.state), ("fingerprint", item.fingerprint)]
    return {
        "rank": item.rank,
        "title": clean_text(item.title),
        "action": f"{item.action}, gap {'+'.join(item.gaps)}",
        "gain": _describe_gain(item),
        "facts": facts,
        "hows": [_build_instruction(how) for how in item.how],
        "evidence": build_grid("", ("fact", "value", "condition", "formula"), [
            (piece.fact, format_evidence_value(piece), piece.condition, piece.formula)
            for piece in item.evidence
        ]),
    }  # fmt: skip


def _describe_gain(item: Recommendation) -> str:
    expected = describe_expected_gain(item)
    return f"expected {expected}" if expected else f"at most {numbers.format_duration(item.ceiling_s)}"


def _build_instruction(how: HowTo) -> dict[str, Any]:
    codes = [(name, code) for name, code in (("before", how.before), ("after", how.after)) if code]
    shown = [(name, "\n".join(clean_text(row) for row in code.expandtabs(4).splitlines())) for name, code in codes]
    return {"words": describe_how(how), "text": clean_text(how.text), "codes": shown}


def _build_bound_grid(bounds: Sequence[Bound]) -> Grid:
    rows = [
        (bound.name, BOUNDS.get(bound.name, ""), numbers.format_duration(bound.seconds), bound.status,
        bound.reason or "",
         bound.collect or "")
        for bound in bounds
    ]  # fmt: skip
    return build_grid(
        "Lower bounds on the run time", ("bound", "what it holds", "seconds", "status", "why", "command"), rows
    )
