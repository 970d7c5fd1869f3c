from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import advice_samples as samples
import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model.recommendations import Evidence
from advisor.model.records import BOUND_NAMES
from advisor.output.advice_document import build_advice_document, load_schema, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.records import Advice

SAMPLES = (samples.full, samples.expected, samples.without_phases, samples.nothing, samples.insufficient)


def parsed(advice: Advice) -> dict[str, object]:
    """The document as a reader of its JSON gets it, checked against the schema."""
    read: dict[str, object] = json.loads(to_json(build_advice_document(advice)))
    jsonschema.Draft202012Validator(load_schema()).validate(read)
    return read


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.__name__)
def test_documents_follow_the_schema(sample: Callable[[], Advice]) -> None:
    parsed(sample())


def test_regions_that_have_to_be_changed_as_well_are_listed_where_there_are_some() -> None:
    shown = samples.full()
    first = replace(shown.recommendations[0], more_regions=("smooth", "restrict"))
    listed: Any = parsed(replace(shown, recommendations=(first, *shown.recommendations[1:])))["recommendations"]
    assert listed[0]["more_regions"] == ["smooth", "restrict"]
    assert all("more_regions" not in item for item in listed[1:])


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(load_schema())


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("gaps", 0, "seconds"), None),
        (("gaps", 0, "extra"), 1),
        (("recommendations", 0, "basis"), "guess"),
        (("verdict",), "maybe"),
        (("profile", "grade"), "E"),
        (("bounds", 0, "name"), "IPX"),
        (("total", "interval_s"), [1.0]),
    ],
)
def test_the_schema_refuses_what_is_wrong(keys: tuple[str | int, ...], value: object) -> None:
    read = json.loads(to_json(build_advice_document(samples.full())))
    inner = read
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(load_schema()).validate(read)


def test_keys_are_those_of_the_contract() -> None:
    read = json.loads(to_json(build_advice_document(samples.expected())))
    assert list(read) == ["schema", "profile", "bounds", "gaps", "efficiencies", "findings", "recommendations", "total",
                          "steps_to_revisit", "needs", "verdict", "problems"]  # fmt: skip
    assert read["schema"] == "gapwatch/advice/1"
    assert list(read["profile"]) == ["program", "run", "build", "processors", "regions", "actual_s", "reader", "grade",
                                     "quality"]  # fmt: skip
    assert [bound["name"] for bound in read["bounds"]] == list(BOUND_NAMES)
    gap = next(gap for gap in read["gaps"] if gap["name"] == "L")
    assert (gap["from"], gap["to"], gap["seconds"], gap["share"]) == ("IPCO", "IPCOL", 8.0, 8.0 / 47.0)
    assert gap["regions"][1] == {"name": "smooth", "phase": "MPI_Barrier after smooth", "file": "src/solver.cpp",
                                 "line": 121, "seconds": 2.0}  # fmt: skip
    assert gap["processors"] == [{"name": "rank 3", "seconds": 8.0}]
    assert list(read["efficiencies"]) == ["load_balance", "communication", "parallel", "serialization", "transfer"]
    assert read["efficiencies"]["serialization"] == {"value": None, "status": "unavailable"}
    item = read["recommendations"][0]
    assert list(item) == ["rank", "action", "title", "step", "issue", "gaps", "region", "processors", "ceiling_s",
                          "expected_s", "interval_s", "basis", "confidence", "effort", "may_help", "may_hurt",
                          "conflicts", "alternatives", "more_phases", "how", "evidence", "state",
                          "fingerprint"]  # fmt: skip
    assert item["interval_s"] == [2.5, 3.6]
    assert item["region"]["line"] == 120


def test_numbers_are_written_in_full() -> None:
    advice = samples.full()
    gap = replace(advice.gaps[0], seconds=0.1 + 0.2)
    read = json.loads(to_json(build_advice_document(replace(advice, gaps=(gap,)))))
    assert read["gaps"][0]["seconds"] == 0.1 + 0.2


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden(to_json(build_advice_document(samples.full())), "advice.json")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_that_json_has_not(value: float) -> None:
    item = replace(samples.recommendation(), evidence=(Evidence("f", value, "", "> 1", "x"),))
    read = parsed(replace(samples.full(), recommendations=(item,)))
    assert "null" in json.dumps(read["recommendations"])
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"seconds": value})


def test_numpy_numbers_become_plain_ones() -> None:
    assert json.loads(to_json({"rank": np.int64(3), "seconds": np.float64(0.5), "many": (np.int32(1),)})) == {
        "rank": 3, "seconds": 0.5, "many": [1],
    }  # fmt: skip


@given(st.text(max_size=12))
@settings(max_examples=50, deadline=None)
def test_names_come_back_and_do_nothing_on_a_terminal(name: str) -> None:
    text = to_json(build_advice_document(samples.hostile(name)))
    assert all(c == "\n" or c.isprintable() for c in text)
    assert text.isascii()
    kept = name.encode("utf-8", "backslashreplace").decode()
    assert json.loads(text)["profile"]["program"] == kept
