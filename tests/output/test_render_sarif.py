"""SARIF: valid by the official schema and GitHub's rules, at the right line, with names that stay names."""

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

from advisor.output.sarif import FINGERPRINT, MOST_TAGS, SHORT, render_sarif
from advisor.output.source_tree import SourceTree, open_source_tree

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


def tree(root: str | None = None) -> SourceTree:
    return open_source_tree(Path(root) if root else None, "Makefile:3")


def checked(advice: Advice, root: str | None = None) -> dict[str, Any]:
    """Return the run of a log that fits the schema and what GitHub demands beyond it."""
    log = json.loads(render_sarif(advice, tree(root)))
    CHECK.validate(log)
    (run,) = log["runs"]
    for result in run["results"]:
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uriBaseId"] == "SRCROOT"
        assert not physical["artifactLocation"]["uri"].startswith(("/", "file:", "../"))
        assert physical["region"]["startLine"] >= 1
        assert result["message"]["text"]
    for rule in run["tool"]["driver"]["rules"]:
        assert all(len(rule[part]["text"]) <= SHORT for part in ("shortDescription", "fullDescription"))
        assert rule["help"]["text"]
        assert len(rule["properties"]["tags"]) <= MOST_TAGS
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
        ("src/a b.c", None, "src/a%20b.c"),
        ("./src//a.c", None, "src/a.c"),
        ("/w/src/a.c", "/w", "src/a.c"),
        ("/w/src/a.c", "/v", "Makefile"),
        ("/w/src/a.c", None, "Makefile"),
        ("../a.c", "/w", "Makefile"),
        (None, "/w", "Makefile"),
    ],
)
def test_every_place_is_in_the_checkout(file: str | None, root: str | None, expected: str) -> None:
    advice = samples.full()
    moved = replace(advice, recommendations=(replace(advice.recommendations[0], file=file),))
    (result,) = checked(moved, root)["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": expected, "uriBaseId": "SRCROOT"}
    line = 3 if expected == "Makefile" else advice.recommendations[0].line
    assert physical["region"] == {"startLine": line}
    outside = expected == "Makefile" and file is not None
    assert [place["id"] for place in result.get("relatedLocations", ())] == [1] * outside


def test_a_long_reason_is_cut_to_what_the_host_takes() -> None:
    advice = samples.full()
    item = replace(advice.recommendations[0], why="because " * 400, gaps=tuple(f"G{number}" for number in range(40)))
    (rule,) = checked(replace(advice, recommendations=(item,)))["tool"]["driver"]["rules"]
    assert rule["fullDescription"]["text"].endswith("…")


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
    text = render_sarif(replace(advice, recommendations=(item,), problems=(name,)), tree())
    CHECK.validate(json.loads(text))
    assert text.isascii()
    result = json.loads(text)["runs"][0]["results"][0]
    message = result["message"]["text"]
    assert "](http" not in message.replace("\\](", "")
    assert not any(ord(character) < 32 for character in message)
    if name.isalnum() and name.isascii():
        assert name in message


def test_golden(golden: Callable[[str, str], None]) -> None:
    text = render_sarif(samples.full(), tree("/home/me/jacobi"))
    log = json.loads(text)
    log["runs"][0]["tool"]["driver"]["version"] = "VERSION"
    golden(json.dumps(log, indent=1) + "\n", "advice.sarif")
