from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from profile_strategies import profiles
from typing_extensions import TypeAliasType

from advisor.model.records import FloatArray, IntArray, Profile
from advisor.support import contract, record_json
from advisor.support.contract import ContractError


@dataclass(frozen=True)
class Leaf:
    name: str
    size: int | None = None


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...] = ()
    kind: Literal["oak", "fir"] = "oak"
    heights: dict[str, float] | None = None
    pair: tuple[int, float] = (1, 1.0)


@settings(max_examples=30, deadline=None)
@given(profiles())
def test_every_profile_that_can_be_stated_keeps_the_contract(profile: Profile) -> None:
    assert contract.require_record(profile, Profile) is profile


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"leaves": (Leaf("a"), ("b",))}, "leaves[1]: expected Leaf, found tuple"),
        ({"leaves": [Leaf("a")]}, "leaves: expected a tuple, found list"),
        ({"kind": "elm"}, "kind: expected one of oak, fir, found elm"),
        ({"kind": 3}, "kind: expected one of oak, fir, found 3"),
        ({"heights": {1: 2.0}}, "heights, a key: expected a string, found int"),
        ({"heights": {"a": float("-inf")}}, "heights.a: expected a finite number, found -inf"),
        ({"heights": 3}, "heights: expected a mapping or None, found int"),
        ({"pair": (1,)}, "pair: a tuple of 1 values is too long or too short"),
        ({"pair": (1.5, 1)}, "pair[0]: expected an integer, found float"),
        ({"pair": (True, 1)}, "pair[0]: expected an integer, found bool"),
        ({"pair": (np.int64(1), 1)}, "pair[0]: expected an integer, found int64"),
    ],
)
def test_a_value_of_another_type_is_named_with_its_place(stated: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError) as caught:
        contract.check_value(Tree(**stated), Tree)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        ("x" * 100_001, str, "a string of 100,001 characters"),
        ((1,) * 1_000_001, tuple[int, ...], "a tuple of 1,000,001 values is too long"),
        ([1.0], FloatArray, "expected an array, found list"),
        (np.zeros(2, np.float32), FloatArray, "expected an array of float64, found float32"),
        (np.zeros(2), IntArray, "expected an array of int64, found float64"),
        (np.array([1, np.nan]), FloatArray, "not all values are finite"),
        (np.array([np.inf, -np.inf]), FloatArray, "not all values are finite"),
        (None, bool, "expected True or False, found NoneType"),
    ],
)
def test_sizes_and_arrays_are_checked(value: object, hint: object, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        contract.check_value(value, hint)


Scalar = TypeVar("Scalar", bound=np.generic)
#: How NumPy spells ``NDArray`` from 2.5 on, whichever version runs the tests.
Spelled = TypeAliasType("Spelled", np.ndarray[tuple[Any, ...], np.dtype[Scalar]], type_params=(Scalar,))
Seconds = TypeAliasType("Seconds", Spelled[np.float64])


@dataclass(frozen=True)
class Aliased:
    counts: Spelled[np.int64]
    seconds: Seconds | None = None


def test_arrays_behind_type_aliases_are_checked_packed_and_unpacked() -> None:
    stated = Aliased(np.array([1, 2]), np.array([0.5]))
    assert contract.require_record(stated, Aliased) is stated
    with pytest.raises(ContractError, match=r"counts: expected an array of int64, found float64"):
        contract.check_value(Aliased(np.zeros(2)), Aliased)
    back = record_json.unpack_record(Aliased, record_json.pack_record(stated))
    assert back.counts.tolist() == [1, 2]
    assert back.seconds is not None
    assert back.seconds.tolist() == [0.5]


def test_an_annotation_that_is_no_alias_stays() -> None:
    assert contract.resolve_alias(int) is int
    assert contract.resolve_alias(tuple[int, ...]) == tuple[int, ...]
