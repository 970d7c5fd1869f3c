"""SARIF: valid by the official schema, at the right line, with names that stay names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import advice_samples as samples
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from advisor.output.sarif import FINGERPRINT, render_sarif

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.records import Advice

SCHEMA = Path(__file__).parents[1] / "schemas" / "sarif-schema-2.1.0.json"
CHECK = Draft7Validator(json.loads(SCHEMA.read_text()))
HOSTILE = (
    "operator[]",
    "</script><img onerror=alert(1)>",
    "[/]",
    "\x1b[2J",
    "x" * 5000,
    "größer→",
    "{0}",
    "a](http://x)",
)


def checked(advice: Advice, root: str | None = None) -> dict[str, Any]:
    """Return the run of a log that fits the schema."""
    log = json.loads(render_sarif(advice, root))
    CHECK.validate(log)
    (run,) = log["runs"]
    return dict(run)


@pytest.mark.parametrize("sample", [samples.full, samples.nothing, samples.insufficient, samples.without_phases])
def test_every_verdict_fits_the_official_schema(sample: Callable[[], Advice]) -> None:
    advice = sample()
    run = checked(advice)
    assert len(run["results"]) == len(advice.recommendations)
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].startswith(advice.verdict)


def test_a_result_says_what_where_and_how_much() -> None:
    advice = samples.full()
    run, item = checked(advice, "/home/me/jacobi"), advice.recommendations[0]
    result = run["results"][0]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (rule["id"], result["ruleId"]) == (item.action, item.action)
    assert result["partialFingerprints"] == {FINGERPRINT: item.fingerprint}
    assert result["properties"]["ceiling_s"] == item.ceiling_s
    assert item.title in result["message"]["text"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": item.file, "uriBaseId": "SRCROOT"}
    assert physical["region"] == {"startLine": item.line}
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == "file:///home/me/jacobi/"


@pytest.mark.parametrize(
    ("file", "root", "expected"),
    [
        ("src/a b.c", None, {"uri": "src/a%20b.c", "uriBaseId": "SRCROOT"}),
        ("/w/src/a.c", "/w", {"uri": "src/a.c", "uriBaseId": "SRCROOT"}),
        ("/w/src/a.c", "/v", {"uri": "file:///w/src/a.c"}),
        ("/w/src/a.c", None, {"uri": "file:///w/src/a.c"}),
    ],
)
def test_files_are_relative_to_the_root_of_the_sources(file: str, root: str | None, expected: dict[str, str]) -> None:
    advice = samples.full()
    moved = replace(advice, recommendations=(replace(advice.recommendations[0], file=file),))
    location = checked(moved, root)["results"][0]["locations"][0]
    assert location["physicalLocation"]["artifactLocation"] == expected


def test_actions_that_recur_are_one_rule() -> None:
    advice = samples.full()
    twice = replace(advice, recommendations=(advice.recommendations[0],) * 2)
    run = checked(twice)
    assert len(run["tool"]["driver"]["rules"]) == 1
    assert [result["ruleIndex"] for result in run["results"]] == [0, 0]


@given(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60)))
@settings(deadline=None, max_examples=60)
def test_names_are_verbatim_or_visibly_escaped(name: str) -> None:
    advice = samples.full()
    item = replace(advice.recommendations[0], region=name or None, phase=name or None, file=name.strip("\0/") or None)
    text = render_sarif(replace(advice, recommendations=(item,), problems=(name,)))
    CHECK.validate(json.loads(text))
    assert text.isascii()
    result = json.loads(text)["runs"][0]["results"][0]
    message = result["message"]["text"]
    assert "](http" not in message.replace("\\](", "")
    assert not any(ord(character) < 32 for character in message)
    if name.isalnum() and name.isascii():
        assert name in message


def test_golden(golden: Callable[[str, str], None]) -> None:
    text = render_sarif(samples.full(), "/home/me/jacobi")
    log = json.loads(text)
    log["runs"][0]["tool"]["driver"]["version"] = "VERSION"
    golden(json.dumps(log, indent=1) + "\n", "advice.sarif")
