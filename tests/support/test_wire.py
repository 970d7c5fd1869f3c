"""What is packed comes back the same, and nothing else can be made of it."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, replace

import advice_samples
import numpy as np
import pytest
from hypothesis import given
from native_documents import PROFILES
from profile_strategies import plain, profiles

from advisor.extension.host import load_plugins
from advisor.model.gap_parts import GapAccount, GapPart
from advisor.model.records import Advice, Finding, Profile, Region
from advisor.output.advice_document import build_advice_document
from advisor.pipeline import Options, advise
from advisor.support import record_json
from advisor.support.contract import ContractError


@given(profiles())
def test_a_profile_comes_back_as_it_was(profile: Profile) -> None:
    assert plain(record_json.unpack_record(Profile, json.loads(json.dumps(record_json.pack_record(profile))))) == plain(
        profile
    )


def test_advice_comes_back_as_it_was() -> None:
    advice = advise([PROFILES / "fig4.json"], Options(machine="host"), load_plugins())
    back = record_json.unpack_record(Advice, json.loads(json.dumps(record_json.pack_record(advice))))
    assert build_advice_document(back) == build_advice_document(advice)
    assert back.recommendations == advice.recommendations


def test_keys_that_are_numbers_come_back_as_numbers() -> None:
    """A recording holds the registers that samples found, by their place in the program."""
    held = np.array([[1, 2**63]], dtype=np.uint64)
    profile = replace(advice_samples.profile(), sampled_registers={4096: held}, sampled_pairs={4096: held[None]})
    back = record_json.unpack_record(Profile, json.loads(json.dumps(record_json.pack_record(profile))))
    assert {place: one.tolist() for place, one in back.sampled_registers.items()} == {4096: [[1, 2**63]]}
    assert {place: one.tolist() for place, one in back.sampled_pairs.items()} == {4096: [[[1, 2**63]]]}


def test_what_findings_explain_comes_back_and_advice_of_before_has_none() -> None:
    part = GapPart("L", "coupling", 4.4, "an experiment", "measured", (4.1, 4.7), ("flux", "update"), ("K-2",))
    found = Finding("coupling", "coupling", "flux,update", "they hurt each other", explains=(part,))
    advice = replace(advice_samples.full(), findings=(found,), accounts=(GapAccount("L", 8.0, (part,)),))
    packed = json.loads(json.dumps(record_json.pack_record(advice)))
    back = record_json.unpack_record(Advice, packed)
    assert (back.findings, back.accounts) == (advice.findings, advice.accounts)
    del packed["accounts"], packed["findings"][0]["explains"]
    assert record_json.unpack_record(Advice, packed).accounts == ()


def test_advice_of_before_any_field_with_a_default_can_be_read() -> None:
    """Histories outlive versions: what a record got after they were written has its default."""
    advice = advice_samples.full()
    packed = json.loads(json.dumps(record_json.pack_record(advice)))
    removed = 0
    for records, rows in (
        ([advice], [packed]), ([advice.profile], [packed["profile"]]),
        *(([*getattr(advice, name)], packed[name]) for name in ("recommendations", "gaps", "bounds", "findings")),
    ):  # fmt: skip
        for record, row in zip(records, rows, strict=True):
            for field in fields(record):
                if field.default is not MISSING or field.default_factory is not MISSING:
                    removed += row.pop(field.name, None) is not None
    assert removed > 10
    back = record_json.unpack_record(Advice, packed)
    assert [one.fingerprint for one in back.recommendations] == [one.fingerprint for one in advice.recommendations]


@pytest.mark.parametrize(
    "damaged",
    [{}, [], None, {"file": "a.c"}, {"name": 3, "file": None, "line": None, "threaded": False},
     {"name": "a", "file": None, "line": "x", "threaded": False}],
    ids=repr,
)  # fmt: skip
def test_what_was_not_packed_is_refused(damaged: object) -> None:
    with pytest.raises(ContractError):
        record_json.unpack_record(Region, damaged)
