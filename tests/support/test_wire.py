"""What is packed comes back the same, and nothing else can be made of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from native_documents import PROFILES
from profile_strategies import plain, profiles

from advisor.extension.host import load_plugins
from advisor.model.records import Advice, Profile, Region
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


@pytest.mark.parametrize(
    "damaged",
    [{}, [], None, {"name": "a"}, {"name": 3, "file": None, "line": None, "threaded": False},
     {"name": "a", "file": None, "line": "x", "threaded": False}],
    ids=repr,
)  # fmt: skip
def test_what_was_not_packed_is_refused(damaged: object) -> None:
    with pytest.raises(ContractError):
        record_json.unpack_record(Region, damaged)
