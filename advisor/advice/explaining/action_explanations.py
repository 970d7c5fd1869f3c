"""Recommendations explained: comparisons with thresholds, ceilings, and the ranking score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.advice.explaining import fact_expressions
from advisor.advice.explaining.expressions import ACTUAL, BoundExpressions, Expression
from advisor.advice.explaining.records import ExplainedNumber, NumberInput
from advisor.advice.ranking.ceilings import IMBALANCE, GapBudget, compute_ceiling
from advisor.advice.rules.matching import match_action
from advisor.model.records import Profile, Status, find_adjacent_bounds

if TYPE_CHECKING:
    from advisor.advice.facts import FactSheet, Site
    from advisor.advice.ranking.drafts import Draft
    from advisor.advice.rules.records import Action
    from advisor.model.gap_parts import GapPart
    from advisor.model.recommendations import Evidence, Recommendation

_CEILING: Final = (
    "of L, M' and D: the B + D of the phases, what making them even wins; of other gaps: what lies in the phases; "
    "never more than the gaps (docs/concepts.md)"
)
_HISTORY: Final = (
    "the mean share of its ceiling that the action has won in this program before × ceiling (docs/rules.md)"
)
_CORRECTED: Final = (
    "the mean of the share that a simulation says and of those that the action has won in this program before, "
    "× ceiling: the conjugate update of a normal distribution, the simulation being one observation (docs/rules.md)"
)
_EXPECTED: Final = {
    "history": _HISTORY,
    "similar": "the share of its ceiling that the action has won in similar programs × ceiling, as a finding tells it",
    "simulation": "simulated by a plugin, at most the ceiling",
    "calibration": "the share that such changes usually win × ceiling, as the rule states it",
    "experiment": "the seconds that an experiment with the program measured, as a finding tells them",
}


def explain_recommendation(
    draft: Draft,
    recommendation: Recommendation,
    budget: GapBudget,
    won: Mapping[str, Sequence[float]],
    terms: BoundExpressions,
) -> Iterator[ExplainedNumber]:
    """Yield the numbers of one recommendation: what speaks for it, then its seconds, then its place in the order."""
    about = f"{recommendation.rank} {recommendation.action} {recommendation.phase or 'the whole run'}"
    for piece in draft.match.outcome.evidence:
        yield _explain_evidence(piece, draft.match.site, budget.sheet, terms, about, draft.match.action.place)
    yield _explain_ceiling(draft, recommendation, budget, about, terms)
    if recommendation.expected_s is not None:
        yield _explain_expected_gain(draft, recommendation, won, about)
    yield _explain_confidence(draft, recommendation, budget, about)
    yield _explain_order(draft, recommendation, about)


def _explain_evidence(
    piece: Evidence, site: Site, sheet: FactSheet, terms: BoundExpressions, about: str, place: str
) -> ExplainedNumber:
    status: Status = "measured"
    inputs: tuple[NumberInput, ...] = ()
    formula: Expression | None = None
    where = site.place.phases if site.place else tuple(range(len(terms.profile.phases)))
    fact = site.vocabulary.get(piece.fact)
    if fact is not None:
        inputs = tuple(NumberInput(name, None, "", "array or count of the profile") for name in fact.needs)
        formula = fact_expressions.fact_expression(piece.fact, terms.profile, terms, where)
    elif piece.fact in site.spans:
        span = site.gap_span(piece.fact)
        exact = span.low == span.high
        part = _gap_at_site(piece.fact, site, terms) if exact else None
        words = "part of the gap that lies at this place"
        inputs = (
            NumberInput(f"{piece.fact} here at least", span.low, "s", words, part),
            NumberInput(f"{piece.fact} here at most", span.high, "s", words, part),
            _explain_run(sheet, terms.profile),
        )
        status = "measured" if exact else "estimated"
        formula = _span_expression(piece, span.low, span.high, sheet.run.run_s)
    return ExplainedNumber(
        "evidence", piece.fact, "what the rule asks for", piece.value, piece.unit, status, piece.formula, inputs,
        about=about, condition=piece.condition, place=place, expression=formula,
    )  # fmt: skip


def _explain_run(sheet: FactSheet, profile: Profile) -> NumberInput:
    """Return the seconds that shares of gaps are shares of."""
    if sheet.run.run_s == profile.actual_s:
        return NumberInput("run", sheet.run.run_s, "s", "actual_s", ACTUAL)
    return NumberInput("run", sheet.run.run_s, "s", "actual_s without what other programs took of it")


def _gap_at_site(letter: str, site: Site, terms: BoundExpressions) -> Expression | None:
    """Return the seconds of a gap at a site; in the run it is the whole gap."""
    if site.place is not None:
        return terms.part_expression(letter, site.place.phases)
    return terms.gap_expression(*find_adjacent_bounds(letter))


def _span_expression(piece: Evidence, low: float, high: float, actual_s: float) -> Expression | None:
    """Return which of the limits was compared with the threshold, as a share of the run or in seconds."""
    ways = {
        low / actual_s: ["/", ["input", 0], ["input", 2]], high / actual_s: ["/", ["input", 1], ["input", 2]],
        low: ["input", 0], high: ["input", 1],
    }  # fmt: skip
    return ways.get(piece.value) if isinstance(piece.value, float) else None


def _explain_ceiling(
    draft: Draft, recommendation: Recommendation, budget: GapBudget, about: str, terms: BoundExpressions
) -> ExplainedNumber:
    if draft.part is not None:
        return _explain_part_ceiling(draft.part, recommendation, about, draft.match.action.place)
    uneven = dict.fromkeys(site for site, name in draft.claims if site >= 0 and name in IMBALANCE)
    others = [claim for claim in dict.fromkeys(draft.claims) if claim[0] not in uneven or claim[1] not in IMBALANCE]
    names = dict.fromkeys(name for _, name in draft.claims)
    inputs = [
        *(NumberInput(_site_label(budget, site), budget.imbalance_s(site), "s", "B + D of its phases",
        _imbalance_expression(budget, site, terms))
          for site in uneven),
        *(NumberInput(f"{n} in {_site_label(budget, at)}", budget.part_seconds(n, at), "s", f"part of gap {n}",
        _part_expression(budget, at, n, terms))
          for at, n in others),
        *(NumberInput(f"gap {n}", budget.gap_seconds(n), "s", "the whole gap: no action wins more of it",
        _total_expression(budget, n, terms))
          for n in names),
    ]  # fmt: skip
    formula, expression = _CEILING, _ceiling_expression([name for _, name in others], len(uneven), list(names))
    share = _explain_share(draft, recommendation, compute_ceiling(budget, draft.claims))
    if share is not None:
        formula, expression = f"{_CEILING}; of that, the share below", ["*", expression, ["input", len(inputs)]]
        inputs.append(share)
    return ExplainedNumber(
        "ceiling", "at most", "upper limit of the saving", recommendation.ceiling_s, "s", "estimated", formula,
        tuple(inputs), about=about, place=draft.match.action.place, expression=expression,
    )  # fmt: skip


def _explain_share(draft: Draft, recommendation: Recommendation, whole_s: float) -> NumberInput | None:
    """Return how much of the ``whole_s`` seconds at its places an action is about; None where it is about all."""
    if recommendation.ceiling_s == whole_s or whole_s <= 0.0:
        return None
    calibration = draft.match.action.gain
    if calibration is not None and calibration.of.startswith("code."):
        source = f"what {calibration.of} says, on the processor that spends most in such code"
    elif calibration is not None and recommendation.ceiling_s < whole_s:
        source = f"what {calibration.of} says"
    else:
        source = (
            "a replay shows that the waits of others vanish as well"
            if recommendation.ceiling_s > whole_s
            else "its places"
        )
    return NumberInput("share", recommendation.ceiling_s / whole_s, "share", source)


def _explain_part_ceiling(part: GapPart, recommendation: Recommendation, about: str, place: str) -> ExplainedNumber:
    """Return the ceiling of an action against a part of a gap: the upper end of the part, within the gap."""
    low, high = part.interval_s or (part.seconds, part.seconds)
    inputs = (
        NumberInput(part.cause, part.seconds, "s", f"{part.basis}: {part.source}"),
        NumberInput("lowest", low, "s", "lower end of its interval"),
        NumberInput("highest", high, "s", "upper end of its interval"),
    )
    return ExplainedNumber(
        "ceiling", "at most", "upper limit of the saving", recommendation.ceiling_s, "s", part.basis,
        f"the most that the part of {part.gap} is, as a finding tells it, and never more than the gap", inputs,
        about=about, place=place,
    )  # fmt: skip


def _ceiling_expression(parts: Sequence[str], uneven: int, names: Sequence[str]) -> Expression:
    """Return the ceiling as an expression of its inputs: uneven phases, parts of other gaps, whole gaps."""
    gaps = {name: ["input", uneven + len(parts) + at] for at, name in enumerate(names)}
    terms: list[Expression] = []
    if uneven:
        most = ["+", *(gap for name, gap in gaps.items() if name in IMBALANCE)]
        terms.append(["least", ["+", *(["input", at] for at in range(uneven))], most])
    for name in dict.fromkeys(parts):
        held = [["input", uneven + at] for at, other in enumerate(parts) if other == name]
        terms.append(["least", ["+", *held], gaps[name]])
    return ["+", *terms]


def _imbalance_expression(budget: GapBudget, site: int, terms: BoundExpressions) -> Expression | None:
    place = budget.sheet.sites[site].place
    return ["+", terms.steady_term(place.phases), terms.dynamic_term(place.phases)] if place else None


def _part_expression(budget: GapBudget, site: int, name: str, terms: BoundExpressions) -> Expression | None:
    span = budget.sheet.sites[site].gap_span(name.split("+")[0]) if site >= 0 else None
    exact = span is not None and span.low == span.high and "+" not in name and not budget.explained.get(name)
    part = _gap_at_site(name, budget.sheet.sites[site], terms) if exact else None
    return None if part is None else ["most", 0.0, part]


def _total_expression(budget: GapBudget, name: str, terms: BoundExpressions) -> Expression | None:
    known = budget.gaps.get(name) if not budget.explained.get(name) else None
    gap = terms.gap_expression(known.lower, known.upper) if known else None
    return None if gap is None else ["most", 0.0, gap]


def _site_label(budget: GapBudget, site: int) -> str:
    place = budget.sheet.sites[site].place if site >= 0 else None
    return "no phase" if place is None else f"phase {place.name}"


def _explain_expected_gain(
    draft: Draft, recommendation: Recommendation, won: Mapping[str, Sequence[float]], about: str
) -> ExplainedNumber:
    low, high = recommendation.interval_s or (None, None)
    inputs = [
        NumberInput("lowest", low, "s", "lower end of the interval"),
        NumberInput("highest", high, "s", "upper end of it"),
    ]
    corrected = recommendation.basis == "history" and draft.said_s is not None and recommendation.ceiling_s > 0.0
    if corrected:
        inputs.append(
            NumberInput("simulated", (draft.said_s or 0.0) / recommendation.ceiling_s, "share", "by a plugin / ceiling")
        )
    if recommendation.basis == "history":
        inputs += [
            NumberInput(f"share {number}", share, "share", "seconds won / ceiling, from the history")
            for number, share in enumerate(won.get(recommendation.action, ()), 1)
        ]
    formula = _CORRECTED if corrected else _EXPECTED[recommendation.basis or "simulation"]
    inputs.append(NumberInput("ceiling", recommendation.ceiling_s, "s", "at most, above"))
    return ExplainedNumber(
        "expected", "expected", "gain", recommendation.expected_s, "s", "modelled", formula, tuple(inputs), about=about,
        expression=_history_gain_expression(recommendation, len(inputs)),
    )  # fmt: skip


def _history_gain_expression(recommendation: Recommendation, inputs: int) -> Expression | None:
    """Return the gain expected from history as an expression of its inputs: lowest, highest, shares, ceiling."""
    shares = [["input", at] for at in range(2, inputs - 1)]
    return (
        ["/", ["*", ["+", *shares], ["input", inputs - 1]], len(shares)] if recommendation.basis == "history" else None
    )


def _explain_confidence(draft: Draft, recommendation: Recommendation, budget: GapBudget, about: str) -> ExplainedNumber:
    names = [name for name in recommendation.gaps if name in budget.gaps] or list(recommendation.gaps)
    statuses = [f"{name} is {budget.gaps[name].status}" for name in names if name in budget.gaps]
    if draft.part is not None:
        statuses = [f"the part of {draft.part.gap} is {draft.part.basis}"]
    grade = budget.grade.score if budget.grade else 1.0
    surety = draft.match.outcome.surety
    noise = recommendation.ceiling_s / (recommendation.ceiling_s + budget.noise_s) if budget.noise_s > 0 else 1.0
    rest = grade * surety * noise
    inputs = (
        NumberInput(
            "status",
            recommendation.confidence / rest if rest else 0.0,
            "",
            "; ".join(statuses) or "only a limit is known",
        ),
        NumberInput("grade", grade, "", "score of the profile"),
        NumberInput("clearness", surety, "", "0.5 at a threshold, 1 from twice its size on"),
        NumberInput(
            "noise", noise, "", f"ceiling / (ceiling + {budget.noise_s:.3g} s by which runs of one build differ)"
        ),
    )
    return ExplainedNumber(
        "confidence", "confidence", "0 to 1", recommendation.confidence, "", "estimated",
        "status of the least sure gap × grade × clearness × noise, to three digits (docs/rules.md)", inputs,
        about=about, expression=["round", ["*", *(["input", at] for at in range(len(inputs)))], 3],
    )  # fmt: skip


def _explain_order(draft: Draft, recommendation: Recommendation, about: str) -> ExplainedNumber:
    stated = f"stated by the rule {recommendation.rule_place}"
    if recommendation.expected_s is None:
        inputs = [NumberInput("ceiling", recommendation.ceiling_s, "s", "at most, above")]
    else:
        inputs = [NumberInput("expected", recommendation.expected_s, "s", f"above, from {recommendation.basis}")]
    if recommendation.basis in (None, "simulation"):
        inputs.append(
            NumberInput(
                "typical fraction",
                draft.match.action.typical_fraction,
                "share",
                f"what of that usually comes true, {stated}",
            )
        )
    inputs.append(NumberInput("confidence", recommendation.confidence, "", "above"))
    inputs.append(
        NumberInput("1 / effort", 1 / recommendation.effort, "", f"effort {recommendation.effort} of 1 to 5, {stated}")
    )
    return ExplainedNumber(
        "order", "score", "the largest comes first", draft.score, "s", "estimated",
        "seconds expected from history or an experiment, or typical fraction × those of a simulation, "
        "or those expected from similar programs, or "
        "typical fraction × ceiling; × confidence / effort",
        tuple(inputs), about=about, place=recommendation.rule_place,
        expression=["*", *(["input", at] for at in range(len(inputs)))],
    )  # fmt: skip


def explain_missing_recommendation(
    action: Action, sheet: FactSheet, terms: BoundExpressions
) -> Iterator[ExplainedNumber]:
    """Yield why an action is not recommended: at each place the comparisons that decide, or what is not known."""
    found = False
    for match in match_action(action, sheet):
        found = True
        where = match.site.place.name if match.site.place else "the whole run"
        about = f"{action.id} {where}"
        if match.outcome.truth is None:
            for need in match.outcome.needs:
                note = f"not known; to record it: {need.command}" if need.command else "not known"
                yield ExplainedNumber(
                    "evidence", need.fact, "what the rule asks for", None, "", "unavailable", "", about=about,
                    place=action.place, notes=(note,),
                )  # fmt: skip
        for piece in match.outcome.evidence:
            recommendation = _explain_evidence(piece, match.site, sheet, terms, about, action.place)
            verdict = "so the rule fires here" if match.outcome.truth else "so the rule is silent here"
            yield replace(recommendation, notes=(verdict,))
    if not found:
        yield ExplainedNumber(
            "evidence", "applies_to", "programming model", sheet.model, "", "measured",
            "the rule applies to other programming models", about=action.id, place=action.place,
            condition=f"one of {', '.join(action.applies_to)}",
        )  # fmt: skip
