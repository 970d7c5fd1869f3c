"""The JSON document of advice, ``gapwatch/advice/1``; its schema lies beside this file."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from numbers import Integral
from typing import TYPE_CHECKING, Any

from advisor.output.wording import EFFICIENCIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.model.gap_parts import GapPart
    from advisor.model.records import Advice, Effect, Gap, HowTo, Note, Profile, Recommendation, Share

SCHEMA = "gapwatch/advice/1"

Json = dict[str, Any]


def load_schema() -> Json:
    """Return the JSON Schema of the document."""
    text = (files("advisor.output") / "gapwatch-advice-1.json").read_text("utf-8")
    parsed: Json = json.loads(text)
    return parsed


def build_advice_document(advice: Advice) -> Json:
    """Return the advice as plain dicts, lists, strings and finite numbers (``gapwatch-advice-1.json``)."""
    return {
        "schema": SCHEMA,
        "profile": _build_profile(advice.profile)
        | {"grade": advice.grade.letter, "quality": _build_notes(advice.grade.notes)},
        "bounds": [
            {
                "name": bound.name,
                "seconds": bound.seconds,
                "status": bound.status,
                "reason": bound.reason,
                "collect": bound.collect,
            }
            for bound in advice.bounds
        ],
        "gaps": [_build_gap(gap) for gap in advice.gaps],
        "efficiencies": _build_efficiencies(advice),
        "findings": [
            {
                "plugin": finding.plugin,
                "kind": finding.kind,
                "subject": finding.subject,
                "measures": {name: _finite_or_none(value) for name, value in finding.measures.items()},
                "text": finding.text,
            }
            | ({"explains": [_build_part(part) for part in finding.explains]} if finding.explains else {})
            for finding in advice.findings
        ],
        "recommendations": [_build_recommendation(item) for item in advice.recommendations],
        "total": {
            "ceiling_s": advice.total.ceiling_s,
            "expected_s": advice.total.expected_s,
            "interval_s": _pair_or_none(advice.total.interval_s),
        },
        "steps_to_revisit": list(advice.steps_to_revisit),
        "needs": [{"fact": need.fact, "command": need.command} for need in advice.needs],
        "verdict": advice.verdict,
        "problems": list(advice.problems),
        **_explained(advice),
        **_dismissed(advice),
    }


def _explained(advice: Advice) -> Json:
    """Return what findings explain of the gaps; nothing where they explain nothing."""
    listed = [
        {
            "gap": account.gap,
            "seconds": account.seconds,
            "parts": [_build_part(part) for part in account.parts],
            "unexplained_s": account.unexplained_s,
        }
        for account in advice.accounts
    ]
    return {"explained": listed} if listed else {}


def _build_part(part: GapPart) -> Json:
    return {
        "gap": part.gap,
        "cause": part.cause,
        "seconds": part.seconds,
        "interval_s": _pair_or_none(part.interval_s),
        "basis": part.basis,
        "source": part.source,
        "regions": list(part.regions),
        "actions": list(part.actions),
    }


def _dismissed(advice: Advice) -> Json:
    """Return the changes that would not help; nothing where none was simulated."""
    if not advice.dismissed:
        return {}
    listed = [
        {"action": one.action, "title": one.title, "phase": one.phase, "gain_s": one.gain_s} for one in advice.dismissed
    ]
    return {"dismissed": listed}


def to_json(value: object) -> str:
    """Return JSON in pure ASCII, so that no name can act on a terminal; raises ``ValueError`` for NaN or infinity."""
    text = json.dumps(_to_json_value(value), indent=2, ensure_ascii=True, allow_nan=False)
    return text.replace("\x7f", "\\u007f") + "\n"


def _to_json_value(value: object) -> object:
    """Return the value fit for JSON: undecodable bytes in names become visible escapes, it has no lone surrogates."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):  # numpy's own integers too
        return int(value)
    if isinstance(value, dict):
        return {str(_to_json_value(key)): _to_json_value(content) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_value(content) for content in value]
    return value


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _pair_or_none(values: tuple[float, float] | None) -> list[float] | None:
    return None if values is None else list(values)


def _build_profile(profile: Profile) -> Json:
    return {
        "program": profile.program,
        "run": profile.run,
        "build": profile.build,
        "processors": len(profile.processors),
        "regions": len(profile.regions),
        "actual_s": _finite_or_none(profile.actual_s),
        "reader": profile.reader,
    }


def _build_notes(notes: Sequence[Note]) -> list[Json]:
    return [{"name": note.name, "text": note.text, "penalty": note.penalty, "collect": note.collect} for note in notes]


def _build_gap(gap: Gap) -> Json:
    return {
        "name": gap.name,
        "members": list(gap.members),
        "from": gap.lower,
        "to": gap.upper,
        "seconds": gap.seconds,
        "share": gap.share,
        "status": gap.status,
        "reason": gap.reason,
        "regions": [_build_share(part, "phase", "file", "line") for part in gap.regions],
        "processors": [_build_share(part) for part in gap.processors],
        "iterations": [_build_share(part, "phase") for part in gap.iterations],
        "causes": [_build_share(part) for part in gap.causes],
    }


def _build_share(part: Share, *more: str) -> Json:
    return {"name": part.name, **{key: getattr(part, key) for key in more}, "seconds": part.seconds}


def _build_efficiencies(advice: Advice) -> Mapping[str, Json]:
    """Return every efficiency; those that nobody computed are unavailable."""
    missing = {name: {"value": None, "status": "unavailable"} for name in EFFICIENCIES}
    return missing | {part.name: {"value": part.value, "status": part.status} for part in advice.efficiencies}


def _build_recommendation(item: Recommendation) -> Json:
    return {
        "rank": item.rank,
        "action": item.action,
        "title": item.title,
        "step": item.step,
        "issue": item.issue,
        "gaps": list(item.gaps),
        "region": {"name": item.region, "phase": item.phase, "file": item.file, "line": item.line},
        "processors": list(item.processors),
        "ceiling_s": item.ceiling_s,
        "expected_s": item.expected_s,
        "interval_s": _pair_or_none(item.interval_s),
        "basis": item.basis,
        "confidence": item.confidence,
        "effort": item.effort,
        "may_help": _build_effects(item.may_help),
        "may_hurt": _build_effects(item.may_hurt),
        "conflicts": list(item.conflicts),
        "alternatives": list(item.alternatives),
        "more_phases": list(item.more_phases),
        "how": [_build_instruction(how) for how in item.how],
        "evidence": [
            {
                "fact": piece.fact,
                "value": _finite_or_none(piece.value) if isinstance(piece.value, float) else piece.value,
                "unit": piece.unit,
                "condition": piece.condition,
                "formula": piece.formula,
            }
            for piece in item.evidence
        ],
        "state": item.state,
        "fingerprint": item.fingerprint,
        **({"more_regions": list(item.more_regions)} if item.more_regions else {}),
        **({"target": {"point": item.target.point, "seconds": item.target.seconds}} if item.target else {}),
    }


def _build_effects(effects: Sequence[Effect]) -> list[Json]:
    return [{"gap": effect.gap, "seconds": effect.seconds} for effect in effects]


def _build_instruction(how: HowTo) -> Json:
    return {"model": how.model, "text": how.text, "language": how.language, "before": how.before, "after": how.after}
