"""Code quality reports: every entry has what GitLab demands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePosixPath

import advice_samples as samples

from advisor.output.sarif import render_code_quality
from advisor.output.source_tree import SourcePlace, SourceTree

TREE = SourceTree(None, SourcePlace(PurePosixPath("Makefile"), 3))


def test_an_entry_for_each_recommendation_at_its_place() -> None:
    advice = samples.full()
    entries = json.loads(render_code_quality(advice, TREE))
    assert [entry["fingerprint"] for entry in entries] == [item.fingerprint for item in advice.recommendations]
    for entry, item in zip(entries, advice.recommendations, strict=True):
        assert entry["check_name"] == item.action
        assert item.title in entry["description"]
        assert entry["severity"] in {"minor", "major"}
        assert entry["location"]["path"] == (item.file or "Makefile")
        assert entry["location"]["lines"]["begin"] == ((item.line or 1) if item.file else 3)


def test_what_saves_much_is_major() -> None:
    advice = samples.full()
    item, actual = advice.recommendations[0], advice.profile.actual_s
    pair = tuple(replace(item, ceiling_s=share * actual) for share in (0.049, 0.05))
    entries = json.loads(render_code_quality(replace(advice, recommendations=pair), TREE))
    assert [entry["severity"] for entry in entries] == ["minor", "major"]


def test_no_advice_is_an_empty_report() -> None:
    assert json.loads(render_code_quality(samples.nothing(), TREE)) == []
