"""The JSON document of advice, ``gapwatch/advice/1``; its schema lies beside this file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import resources
from numbers import Integral
from typing import TYPE_CHECKING, Any

from advisor.output.wording import EFFICIENCIES

if TYPE_CHECKING:
    from advisor.model.gap_parts import GapPart
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Advice, Finding, Gap

SCHEMA = "gapwatch/advice/1"

Json = dict[str, Any]


def load_schema() -> Json:
    """Return the JSON Schema of the document."""
    text = (resources.files("advisor.output") / "gapwatch-advice-1.json").read_text("utf-8")
    parsed: Json = json.loads(text)
    return parsed


def build_advice_document(advice: Advice) -> Json:
    """Return the advice as plain dicts, lists, strings and finite numbers (``gapwatch-advice-1.json``)."""
    profile = advice.profile
    described = {
        **_select_fields(profile, "program", "run", "build"),
        "processors": len(profile.processors), "regions": len(profile.regions),
        **_select_fields(profile, "actual_s", "reader"),
        "grade": advice.grade.letter, "quality": _to_plain(advice.grade.notes),
    }  # fmt: skip
    missing = {name: {"value": None, "status": "unavailable"} for name in EFFICIENCIES}
    document = {
        "schema": SCHEMA,
        "profile": described,
        "bounds": _to_plain(advice.bounds),
        "gaps": [_build_gap(gap) for gap in advice.gaps],
        "efficiencies": missing
        | {efficiency.name: _select_fields(efficiency, "value", "status") for efficiency in advice.efficiencies},
        "findings": [_build_finding(finding) for finding in advice.findings],
        "recommendations": [_build_recommendation(item) for item in advice.recommendations],
        **_select_fields(advice, "total", "steps_to_revisit", "needs", "verdict", "problems"),
    }
    if advice.accounts:
        document["explained"] = [
            _select_fields(account, "gap", "seconds") | {"parts": _build_parts(account.parts)}
            | _select_fields(account, "unexplained_s") for account in advice.accounts
        ]  # fmt: skip
    return document | ({"dismissed": _to_plain(advice.dismissed)} if advice.dismissed else {})


def _build_finding(finding: Finding) -> Json:
    document = _select_fields(finding, "plugin", "kind", "subject", "measures", "text")
    return document | ({"explains": _build_parts(finding.explains)} if finding.explains else {})


def _build_parts(parts: Sequence[GapPart]) -> list[Json]:
    names = ("gap", "cause", "seconds", "interval_s", "basis", "source", "regions", "actions")
    return [_select_fields(part, *names) for part in parts]


def _build_gap(gap: Gap) -> Json:
    places = {"regions": ("phase", "file", "line"), "processors": (), "iterations": ("phase",), "causes": ()}
    return {
        **_select_fields(gap, "name", "members"), "from": gap.lower, "to": gap.upper,
        **_select_fields(gap, "seconds", "share", "status", "reason"),
        **{
            kind: [_select_fields(share, "name", *more, "seconds") for share in getattr(gap, kind)]
            for kind, more in places.items()
        },
    }  # fmt: skip


def _build_recommendation(item: Recommendation) -> Json:
    return {
        **_select_fields(item, "rank", "action", "title", "step", "issue", "gaps"),
        "region": {"name": item.region, **_select_fields(item, "phase", "file", "line")},
        **_select_fields(
            item, "processors", "ceiling_s", "expected_s", "interval_s", "basis", "confidence", "effort", "may_help",
            "may_hurt", "conflicts", "alternatives", "more_phases", "how", "evidence", "state", "fingerprint",
        ),
        **_select_fields(item, *(name for name in ("more_regions", "target") if getattr(item, name))),
    }  # fmt: skip


def _select_fields(record: object, *names: str) -> Json:
    """Return fields of a record, in this order, as plain values."""
    return {name: _to_plain(getattr(record, name)) for name in names}


def _to_plain(value: object) -> Any:  # noqa: ANN401
    """Return a value as what JSON can hold: records and mappings as dicts, and None for numbers that are not finite."""
    if is_dataclass(value):
        return {field.name: _to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _to_plain(content) for name, content in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(content) for content in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
