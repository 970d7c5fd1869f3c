"""Advice and comparisons as answers to an agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from advisor.agents.answers import DATA, Json, quote_data, quote_value, round_number
from advisor.analysis.disturbance import disturbance_seconds, doubtful_seconds
from advisor.model import policy
from advisor.output.wording import (
    BOUNDS,
    EFFORTS,
    describe_gap,
    describe_grade,
    describe_unanswered_gap,
    find_base_bound,
)

if TYPE_CHECKING:
    from advisor.analysis.comparison import Change, Comparison
    from advisor.model.gap_parts import GapPart
    from advisor.model.recommendations import HowTo, Recommendation
    from advisor.model.records import Advice, Gap, Note, Profile
    from advisor.pipeline import Study

#: A gap below this share of the run is not listed, nor is a place below this share of its gap.
_LEAST_SHARE: Final = 0.01
_LEAST_PART: Final = 0.1
#: So many regions are named that compute most.
_PLACES: Final = 3
#: What a proof calls the changed build.
_NEW_BUILD: Final = "changed"
#: So many runs of a build usually tell a change from noise.
_REPEATS: Final = 5
#: Doubts about a run are cut to so many characters.
_DOUBT: Final = 200
#: Reasons and code of rules are cut to so many characters.
_REASON, _CODE = 320, 700
#: In an answer about one action alone there is room for all that its rule says, caveats too.
_WHOLE_REASON: Final = 1500


def build_advice_answer(
    advice: Advice, study: Study, limit: int, language: str | None = None, measured: Sequence[str] | None = None
) -> Json:
    """Return verdict, grade, gaps and the first ``limit`` items; the first of them with reason, code and proof.

    ``study`` is what the advice is made of. ``measured`` is the command of the run where it may be measured again, and
    then is part of the proof.
    """
    profile = advice.profile
    items = [
        _build_item(item, language or profile.language, whole=number == 0)
        for number, item in enumerate(advice.recommendations[:limit])
    ]
    base = find_base_bound(advice)
    return {
        "note": DATA,
        "program": quote_data(profile.program),
        "build": quote_data(profile.build),
        "run_time_s": round_number(profile.actual_s),
        "processors": len(profile.processors),
        "grade": describe_grade(advice.grade),
        "doubts": [quote_data(note.text, _DOUBT) for note in _select_doubts(advice)],
        "verdict": advice.verdict,
        "meaning": _explain_verdict(advice),
        "lowest_bound": base and {
            "bound": base.name, "is": BOUNDS.get(base.name, base.name), "seconds": round_number(base.seconds),
            "status": base.status,
        },
        "computation": _list_computation(study),
        "gaps": [
            _build_gap(gap, profile) for gap in sorted(advice.gaps, key=lambda gap: -gap.seconds)
            if gap.share >= _LEAST_SHARE
        ],
        "explained": [_build_part(part) for account in advice.accounts for part in account.parts[:2]][:4],
        "items": items,
        "items_in_all": len(advice.recommendations),
        "needs": [{"fact": need.fact, "command": quote_data(need.command, 300)} for need in advice.needs[:2]],
        "prove": _describe_proof(advice, measured),
        "command": quote_data(_command(advice), 300),
    }  # fmt: skip


def _select_doubts(advice: Advice) -> list[Note]:
    """Return the notes that took most off the grade."""
    notes = sorted(advice.grade.notes, key=lambda note: -note.penalty)
    return [note for note in notes if note.penalty > 0][:2]


def _explain_verdict(advice: Advice) -> str:
    if advice.verdict == "advice":
        most_s = max(item.ceiling_s for item in advice.recommendations)
        own_s = advice.profile.actual_s - disturbance_seconds(advice.profile)  # others may have held it up as long
        if most_s < policy.NOTABLE_GAIN * own_s:
            share = most_s / advice.profile.actual_s
            return f"no item saves more than {share:.1%} of the run: most of its time is where computation and gaps say"
        return "carry out the first item"
    if advice.verdict == "nothing significant":
        if describe_unanswered_gap(advice):
            return "no action fits the largest gap: measure more, or look at the code that it names"
        return "no gap is large enough to act on: change nothing"
    if advice.grade.letter == "F":
        return "the run was disturbed or recorded in part: measure again, with nothing else on the machine"
    largest = max(advice.gaps, key=lambda gap: gap.seconds, default=None)
    if largest is not None and _doubtful_s(largest, advice.profile) > policy.DOUBTFUL_GAP * largest.seconds:
        return (
            f"other programs may have made most of the largest gap, {largest.name}: measure again, with nothing else "
            "on the machine; only computation is sure"
        )
    return "no rule decides without what is under needs; begin where the largest gap lies"


def _list_computation(study: Study) -> list[str | None]:
    """Return the regions that compute most, with their shares of the lowest known bound, as the mean of processors."""
    spread = study.loads.spreads.get("I")
    if spread is None:
        return []
    profile = study.advice.profile
    numbers = [number for phase in profile.phases for number in phase.regions]
    seconds: Counter[int] = Counter()
    for number, value in zip(numbers, spread.regions.tolist(), strict=True):
        seconds[number] += value
    return [
        _describe_place(profile.regions[number].name, profile.regions[number].file, profile.regions[number].line, value)
        for number, value in seconds.most_common(_PLACES)
        if value > _LEAST_SHARE * profile.actual_s
    ]


def _describe_place(name: str, file: str | None, line: int | None, seconds: float) -> str | None:
    place = f" at {file}:{line}" if file and line else ""
    return quote_data(f"{seconds:.3g} s in {name}{place}")


def _build_gap(gap: Gap, profile: Profile) -> Json:
    """Return a gap with the two places and the cause that take most of it, and what of it need not come back."""
    answer = {
        "gap": gap.name, "is": describe_gap(gap), "seconds": round_number(gap.seconds),
        "share": round_number(gap.share), "status": gap.status, "doubtful_s": round_number(_doubtful_s(gap, profile)),
        "where": [
            _describe_place(part.name, part.file, part.line, part.seconds)
            for part in gap.regions[:2] if part.seconds > _LEAST_PART * gap.seconds
        ],
        "cause": quote_data(gap.causes[0].name) if gap.causes else None,
    }  # fmt: skip
    return {name: value for name, value in answer.items() if value}


def _doubtful_s(gap: Gap, profile: Profile) -> float:
    """Return the seconds of a gap that other programs, or cores of different speed, may have made."""
    doubtful_s = max((doubtful_seconds(profile, letter) for letter in gap.members), default=0.0)
    return min(doubtful_s, max(gap.seconds, 0.0))


def _build_part(part: GapPart) -> Json:
    return {
        "gap": part.gap, "cause": quote_data(part.cause), "seconds": round_number(part.seconds), "basis": part.basis,
    }  # fmt: skip


def _describe_proof(advice: Advice, measured: Sequence[str] | None) -> Json | str:
    """Return the calls that tell whether a change helped."""
    build = advice.profile.build
    if measured is None or build is None:
        return "change the code, measure the same command under a new build name, then compare both builds"
    return {
        "measure": {"command": list(measured), "build": _NEW_BUILD, "repeats": _REPEATS},
        "compare": {"before": quote_data(build), "after": _NEW_BUILD},
    }


def _command(advice: Advice) -> str | None:
    stated = advice.profile.parameters.get("command")
    return stated if isinstance(stated, str) else None


def _build_item(item: Recommendation, language: str | None, *, whole: bool) -> Json:
    place = item.file and (f"{item.file}:{item.line}" if item.line else item.file)
    answer: Json = {
        "action": item.action,
        "title": item.title,
        "at": quote_data(place),
        "region": quote_data(item.region),
        "phase": quote_data(item.phase),
        "gaps": list(item.gaps),
        "ceiling_s": round_number(item.ceiling_s),
        "expected_s": round_number(item.expected_s),
        "interval_s": item.interval_s and [round_number(value) for value in item.interval_s],
        "basis": item.basis or "ceiling only",
        "confidence": round_number(item.confidence),
        "effort": f"{item.effort} of 5: {EFFORTS[item.effort]}",
        "fingerprint": item.fingerprint[:12],
        "state": item.state,
    }
    if whole:
        answer |= {
            "why": _shorten_words(item.why, _REASON),
            "evidence": [
                f"{piece.fact} {piece.relation} {quote_value(piece.value)} {piece.unit}".rstrip()
                + f", threshold {piece.condition}"
                for piece in item.evidence[:3]
            ],
            "may_hurt": [effect.gap for effect in item.may_hurt],
            "do": [_build_instruction(how) for how in choose_instructions(item.how, language)[:1]],
        }
    return {name: value for name, value in answer.items() if value is not None}


def choose_instructions(instructions: Sequence[HowTo], language: str | None) -> list[HowTo]:
    """Return how to carry out an action, what fits the language first, and what has code before what has none."""
    return sorted(
        instructions,
        key=lambda how: (how.language not in (language, None), how.after is None, how.language != language),
    )


def _build_instruction(how: HowTo, longest: int = _REASON) -> Json:
    fields = {"model": how.model, "language": how.language, "text": _shorten_words(how.text, longest)}
    code = {"before": how.before and how.before[:_CODE], "after": how.after and how.after[:_CODE]}
    return {name: value for name, value in (fields | code).items() if value}


def build_action_answer(action: str, title: str, why: str, instructions: Sequence[HowTo], language: str | None) -> Json:
    """Return the reason and the code of an action."""
    chosen = choose_instructions(instructions, language)
    return {
        "action": action,
        "title": title,
        "why": _shorten_words(why, _WHOLE_REASON),
        "do": [_build_instruction(how, _WHOLE_REASON) for how in chosen],
    }


def build_comparison_answer(found: Comparison) -> Json:
    """Return whether the change helped, hurt or is noise, and which gaps moved."""
    verdict, advice = judge_change(found)
    least_s = _LEAST_SHARE * max(found.actual.before_s, found.actual.after_s)
    large = [change for change in found.changes if max(abs(change.before_s), abs(change.after_s)) >= least_s]
    moved = sorted(large, key=lambda change: -abs(change.delta_s))[:5]
    return {
        "note": DATA,
        "verdict": verdict,
        "meaning": advice,
        "program": quote_data(found.program),
        "before": quote_data(found.before),
        "after": quote_data(found.after),
        "runs": list(found.runs),
        "left_out_as_disturbed": list(found.disturbed),
        "run_time": _build_change(found.actual),
        "speedup": round_number(found.actual.before_s / found.actual.after_s) if found.actual.after_s else None,
        "gaps": [_build_change(change) for change in moved],
    }


def judge_change(found: Comparison) -> tuple[str, str]:
    """Return ``helped``, ``hurt``, ``noise``, ``unsure`` or ``unknown`` for the run time, and what to do about it."""
    actual = found.actual
    if actual.beyond_noise is None:
        return "unknown", "no build ran more than once, so the noise is unknown: measure both builds again"
    if actual.beyond_noise:
        return ("helped", "keep the change") if actual.delta_s < 0 else ("hurt", "take the change back")
    again = f"measure both builds again, until each has {max(_REPEATS, 2 * min(found.runs))} runs or more"
    if found.is_undecided(actual):
        return "unsure", f"the change is larger than the noise seems, but too few repeats tell it: {again}"
    hidden_s = policy.UNDECIDED_CHANGE * (actual.noise_s or 0.0)  # so much of a gap the run time need not show
    if moved := [change for change in found.changes if change.beyond_noise and abs(change.delta_s) <= hidden_s]:
        largest = max(moved, key=lambda change: abs(change.delta_s))
        how = f"{largest.name} {'shrank' if largest.delta_s < 0 else 'grew'} by {abs(largest.delta_s):.3g} s"
        return "unsure", f"{how}, beyond its noise, but the run time is too noisy to show it: {again}"
    return "noise", "no change beyond noise: take it back, or measure both builds more often"


def _build_change(change: Change) -> Json:
    answer: Json = {
        "name": change.name,
        "before_s": round_number(change.before_s),
        "after_s": round_number(change.after_s),
        "change_s": round_number(change.delta_s),
        "noise_s": round_number(change.noise_s),
        "beyond_noise": change.beyond_noise,
    }
    where = [quote_data(name) for name, _ in change.places[:2]]
    return answer | {"where": where} if where else answer


def _shorten_words(text: str, longest: int) -> str:
    """Return prose as one line, cut at a word."""
    words = " ".join(text.split())
    return words if len(words) <= longest else words[:longest].rsplit(" ", 1)[0] + " …"
