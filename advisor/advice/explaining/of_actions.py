"""Recommendations explained: what was compared with which threshold, what can be won at most, and what orders them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.advice.explaining import of_facts
from advisor.advice.explaining.expressions import ACTUAL
from advisor.advice.explaining.records import Input, Number
from advisor.advice.ranking.ceilings import IMBALANCE, ceiling
from advisor.advice.rules.matching import matches_of
from advisor.model.records import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from advisor.advice.explaining.expressions import Expression, Terms
    from advisor.advice.facts import FactSheet, Site
    from advisor.advice.ranking.ceilings import Ledger
    from advisor.advice.ranking.drafts import Draft
    from advisor.advice.rules.records import Action
    from advisor.model.records import Evidence, Recommendation, Status

_CEILING: Final = (
    "of L, M' and D: the B + D of the phases, what making them even wins; of other gaps: what lies in the phases; "
    "never more than the gaps (docs/concepts.md)"
)
_HISTORY: Final = (
    "the mean share of its ceiling that the action has won in this program before × ceiling (docs/rules.md)"
)
_EXPECTED: Final = {
    "history": _HISTORY,
    "similar": "the share of its ceiling that the action has won in similar programs × ceiling, as a finding tells it",
    "simulation": "simulated by a plugin, at most the ceiling",
}


def explained(
    draft: Draft, made: Recommendation, book: Ledger, won: Mapping[str, Sequence[float]], terms: Terms
) -> Iterator[Number]:
    """Yield the numbers of one recommendation: what speaks for it, then its seconds, then its place in the order."""
    about = f"{made.rank} {made.action} {made.phase or 'the whole run'}"
    for piece in draft.match.outcome.evidence:
        yield _piece(piece, draft.match.site, book.sheet, terms, about, draft.match.action.place)
    yield _ceiling(draft, made, book, about, terms)
    if made.expected_s is not None:
        yield _expected(made, won, about)
    yield _confidence(draft, made, book, about)
    yield _order(draft, made, about)


def _piece(piece: Evidence, site: Site, sheet: FactSheet, terms: Terms, about: str, place: str) -> Number:
    status: Status = "measured"
    inputs: tuple[Input, ...] = ()
    formula: Expression | None = None
    where = site.place.phases if site.place else tuple(range(len(terms.profile.phases)))
    fact = site.vocabulary.get(piece.fact)
    if fact is not None:
        inputs = tuple(Input(name, None, "", "array or count of the profile") for name in fact.needs)
        formula = of_facts.expression(piece.fact, terms.profile, terms, where)
    elif piece.fact in site.spans:
        span = site.gap(piece.fact)
        exact = span.low == span.high
        part = _here(piece.fact, site, terms) if exact else None
        words = "part of the gap that lies at this place"
        inputs = (
            Input(f"{piece.fact} here at least", span.low, "s", words, part),
            Input(f"{piece.fact} here at most", span.high, "s", words, part),
            Input("run", sheet.run.actual_s, "s", "actual_s", ACTUAL),
        )
        status = "measured" if exact else "estimated"
        formula = _of_span(piece, span.low, span.high, sheet.run.actual_s)
    return Number(
        "evidence", piece.fact, "what the rule asks for", piece.value, piece.unit, status, piece.formula, inputs,
        about=about, condition=piece.condition, place=place, expression=formula,
    )  # fmt: skip


def _here(letter: str, site: Site, terms: Terms) -> Expression | None:
    """Return the seconds of a gap at a site; in the run it is the whole gap."""
    if site.place is not None:
        return terms.part(letter, site.place.phases)
    at = next(number for number, level in enumerate(LEVELS) if level.gap == letter)
    return terms.gap(LEVELS[at - 1].bound, LEVELS[at].bound)


def _of_span(piece: Evidence, low: float, high: float, actual_s: float) -> Expression | None:
    """Return which of the limits was compared with the threshold, as a share of the run or in seconds."""
    ways = {
        low / actual_s: ["/", ["input", 0], ["input", 2]], high / actual_s: ["/", ["input", 1], ["input", 2]],
        low: ["input", 0], high: ["input", 1],
    }  # fmt: skip
    return ways.get(piece.value) if isinstance(piece.value, float) else None


def _ceiling(draft: Draft, made: Recommendation, book: Ledger, about: str, terms: Terms) -> Number:
    uneven = dict.fromkeys(site for site, name in draft.claims if site >= 0 and name in IMBALANCE)
    others = [claim for claim in dict.fromkeys(draft.claims) if claim[0] not in uneven or claim[1] not in IMBALANCE]
    names = dict.fromkeys(name for _, name in draft.claims)
    inputs = [
        *(Input(_where(book, site), book.uneven_s(site), "s", "B + D of its phases", _uneven(book, site, terms))
          for site in uneven),
        *(Input(f"{n} in {_where(book, at)}", book.part(n, at), "s", f"part of gap {n}", _part(book, at, n, terms))
          for at, n in others),
        *(Input(f"gap {n}", book.total(n), "s", "the whole gap: no action wins more of it", _total(book, n, terms))
          for n in names),
    ]  # fmt: skip
    return Number(
        "ceiling", "at most", "what this can win at most", ceiling(book, draft.claims), "s", "estimated", _CEILING,
        tuple(inputs), about=about, place=draft.match.action.place,
        expression=_least([name for _, name in others], len(uneven), list(names)),
        notes=() if ceiling(book, draft.claims) == made.ceiling_s else (f"shown as {made.ceiling_s:.9g} s",),
    )  # fmt: skip


def _least(parts: Sequence[str], uneven: int, names: Sequence[str]) -> Expression:
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


def _uneven(book: Ledger, site: int, terms: Terms) -> Expression | None:
    place = book.sheet.sites[site].place
    return ["+", terms.steady(place.phases), terms.dynamic(place.phases)] if place else None


def _part(book: Ledger, site: int, name: str, terms: Terms) -> Expression | None:
    span = book.sheet.sites[site].gap(name.split("+")[0]) if site >= 0 else None
    exact = span is not None and span.low == span.high and "+" not in name
    part = _here(name, book.sheet.sites[site], terms) if exact else None
    return None if part is None else ["most", 0.0, part]


def _total(book: Ledger, name: str, terms: Terms) -> Expression | None:
    known = book.gaps.get(name)
    gap = terms.gap(known.lower, known.upper) if known else None
    return None if gap is None else ["most", 0.0, gap]


def _where(book: Ledger, site: int) -> str:
    place = book.sheet.sites[site].place if site >= 0 else None
    return "no phase" if place is None else f"phase {place.name}"


def _expected(made: Recommendation, won: Mapping[str, Sequence[float]], about: str) -> Number:
    low, high = made.interval_s or (None, None)
    inputs = [Input("lowest", low, "s", "lower end of the interval"), Input("highest", high, "s", "upper end of it")]
    if made.basis == "history":
        inputs += [
            Input(f"share {number}", share, "share", "seconds won / ceiling, from the history")
            for number, share in enumerate(won.get(made.action, ()), 1)
        ]
    formula = _EXPECTED[made.basis or "simulation"]
    inputs.append(Input("ceiling", made.ceiling_s, "s", "at most, above"))
    return Number(
        "expected", "expected", "gain", made.expected_s, "s", "modelled", formula, tuple(inputs), about=about,
        expression=_realised(made, len(inputs)),
    )  # fmt: skip


def _realised(made: Recommendation, inputs: int) -> Expression | None:
    """Return the gain expected from history as an expression of its inputs: lowest, highest, shares, ceiling."""
    shares = [["input", at] for at in range(2, inputs - 1)]
    return ["/", ["*", ["+", *shares], ["input", inputs - 1]], len(shares)] if made.basis == "history" else None


def _confidence(draft: Draft, made: Recommendation, book: Ledger, about: str) -> Number:
    names = [name for name in made.gaps if name in book.gaps] or list(made.gaps)
    statuses = [f"{name} is {book.gaps[name].status}" for name in names if name in book.gaps]
    grade = book.grade.score if book.grade else 1.0
    surety = draft.match.outcome.surety
    noise = made.ceiling_s / (made.ceiling_s + book.noise_s) if book.noise_s > 0 else 1.0
    rest = grade * surety * noise
    inputs = (
        Input("status", made.confidence / rest if rest else 0.0, "", "; ".join(statuses) or "only a limit is known"),
        Input("grade", grade, "", "score of the profile"),
        Input("clearness", surety, "", "0.5 at a threshold, 1 from twice its size on"),
        Input("noise", noise, "", f"ceiling / (ceiling + {book.noise_s:.3g} s by which runs of one build differ)"),
    )
    return Number(
        "confidence", "confidence", "0 to 1", made.confidence, "", "estimated",
        "status of the least sure gap × grade × clearness × noise, to three digits (docs/rules.md)", inputs,
        about=about, expression=["round", ["*", *(["input", at] for at in range(len(inputs)))], 3],
    )  # fmt: skip


def _order(draft: Draft, made: Recommendation, about: str) -> Number:
    stated = f"stated by the rule {made.rule_place}"
    if made.expected_s is None:
        inputs = [Input("ceiling", made.ceiling_s, "s", "at most, above")]
    else:
        inputs = [Input("expected", made.expected_s, "s", f"above, from {made.basis}")]
    if made.basis not in ("history", "similar"):
        inputs.append(Input("prior", draft.match.action.prior, "share", f"what of that usually comes true, {stated}"))
    inputs.append(Input("confidence", made.confidence, "", "above"))
    inputs.append(Input("1 / effort", 1 / made.effort, "", f"effort {made.effort} of 1 to 5, {stated}"))
    return Number(
        "order", "score", "the largest comes first", draft.score, "s", "estimated",
        "seconds expected from history, or prior × those of a simulation, or those expected from similar programs, or "
        "prior × ceiling; × confidence / effort",
        tuple(inputs), about=about, place=made.rule_place,
        expression=["*", *(["input", at] for at in range(len(inputs)))],
    )  # fmt: skip


def silent(action: Action, sheet: FactSheet, terms: Terms) -> Iterator[Number]:
    """Yield why an action is not recommended: at each place the comparisons that decide, or what is not known."""
    found = False
    for match in matches_of(action, sheet):
        found = True
        where = match.site.place.name if match.site.place else "the whole run"
        about = f"{action.id} {where}"
        if match.outcome.truth is None:
            for need in match.outcome.needs:
                note = f"not known; to record it: {need.command}" if need.command else "not known"
                yield Number(
                    "evidence", need.fact, "what the rule asks for", None, "", "unavailable", "", about=about,
                    place=action.place, notes=(note,),
                )  # fmt: skip
        for piece in match.outcome.evidence:
            made = _piece(piece, match.site, sheet, terms, about, action.place)
            verdict = "so the rule fires here" if match.outcome.truth else "so the rule is silent here"
            yield replace(made, notes=(verdict,))
    if not found:
        yield Number(
            "evidence", "applies_to", "programming model", sheet.model, "", "measured",
            "the rule applies to other programming models", about=action.id, place=action.place,
            condition=f"one of {', '.join(action.applies_to)}",
        )  # fmt: skip
