"""Advice as a code quality report of GitLab: an array of the Code Climate subset that merge requests show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.policy import NOTABLE_GAIN
from advisor.output.advice_document import to_json
from advisor.output.clean import clean_text
from advisor.output.sarif import describe_item

if TYPE_CHECKING:
    from advisor.model.records import Advice
    from advisor.output.source_tree import SourceTree


def render_code_quality(advice: Advice, tree: SourceTree) -> str:
    """Return one entry per recommendation, at its place in the ``tree`` of the sources."""
    actual = advice.profile.actual_s
    entries = []
    for item in advice.recommendations:
        place = tree.choose_place(item.file, item.line)
        entries.append({
            "description": clean_text(describe_item(item)),
            "check_name": item.action,
            "fingerprint": item.fingerprint,
            "severity": "major" if actual > 0 and item.ceiling_s >= NOTABLE_GAIN * actual else "minor",
            "location": {"path": clean_text(str(place.path)), "lines": {"begin": place.line or 1}},
        })  # fmt: skip
    return to_json(entries)
