"""Records are dataclasses in all that anybody can see of them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import TYPE_CHECKING

import pytest

from advisor.model import record_class

if TYPE_CHECKING:
    from collections.abc import Callable


def define(dataclass: Callable[..., Callable[[type], type]], **settings: bool) -> type:
    class Thing:
        """One of everything."""

        name: str
        size: float = 1.5
        parts: list[int] = field(default_factory=list)
        note: str = field(default="", compare=False, repr=False)
        seen: list[str] = field(init=False, default_factory=list, compare=False)
        later: int = field(init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError("a size below zero")

    made = dataclass(slots=True, **settings)(Thing)
    made.__qualname__ = "Thing"
    return made


@pytest.fixture(params=[{"frozen": True}, {}], ids=["frozen", "open"])
def both(request: pytest.FixtureRequest) -> tuple[type, type]:
    return define(record_class.dataclass, **request.param), define(dataclasses.dataclass, **request.param)


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    name: str
    size: int = 0


@record_class.dataclass(frozen=True, slots=True)
class Record:
    name: str
    size: int = 0


def test_values_texts_and_comparisons_are_those_of_dataclasses(both: tuple[type, type]) -> None:
    seen = []
    for made in both:
        one, same, other = made("a", 2.0, [1]), made(name="a", size=2.0, parts=[1], note="not compared"), made("b")
        seen.append((repr(one), str(other), one == same, one != other, one == ("a", 2.0, [1]), other.parts, other.size))
        assert made("x").parts is not made("x").parts
    assert seen[0] == seen[1]


def test_tools_for_dataclasses_take_records(both: tuple[type, type]) -> None:
    for made in both:
        assert dataclasses.is_dataclass(made)
        assert [each.name for each in dataclasses.fields(made)] == ["name", "size", "parts", "note", "seen", "later"]
        changed = dataclasses.replace(made("a", 2.0), name="b")
        object.__setattr__(changed, "later", 3)
        assert dataclasses.asdict(changed) == {
            "name": "b", "size": 2.0, "parts": [], "note": "", "seen": [], "later": 3,
        }  # fmt: skip
        assert made.__match_args__ == ("name", "size", "parts", "note")


def test_wrong_arguments_and_values_are_refused(both: tuple[type, type]) -> None:
    for made in both:
        for arguments in ((), ("a", 1.0, [], "", 5)):
            with pytest.raises(TypeError, match="argument"):
                made(*arguments)
        with pytest.raises(TypeError, match="unknown"):
            made("a", unknown=1)
        with pytest.raises(ValueError, match="below zero"):
            made("a", -1.0)


def test_frozen_records_do_not_change_and_have_a_hash() -> None:
    one = Record("a", 1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'size'"):
        one.size = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'size'"):
        del one.size  # type: ignore[misc]
    assert {one: 1}[Record("a", 1)] == 1
    assert hash(one) == hash(Plain("a", 1))
    assert not hasattr(one, "__dict__")


def test_open_records_change_and_have_no_hash() -> None:
    made = define(record_class.dataclass)
    one = made("a")
    one.size = 3.0
    assert one.size == 3.0
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_equal(copied: Callable[[Record], Record]) -> None:
    assert copied(Record("a", 3)) == Record("a", 3)


def test_records_that_contain_themselves_have_a_text() -> None:
    made = define(record_class.dataclass)
    one = made("a")
    one.parts.append(one)
    assert repr(one) == "Thing(name='a', size=1.5, parts=[...], seen=[])"


def test_methods_of_the_class_itself_stay() -> None:
    @record_class.dataclass(frozen=True, slots=True)
    class Named:
        name: str

        def __repr__(self) -> str:
            return self.name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named)

        def __hash__(self) -> int:
            return 7

    assert (repr(Named("a")), Named("a") == Named("b"), hash(Named("a"))) == ("a", True, 7)


def test_nothing_is_compiled_before_the_first_record_is_made() -> None:
    made = define(record_class.dataclass, frozen=True)
    late = made.__init__
    made("a")
    assert made.__init__ is not late
    assert made.__init__.__code__.co_varnames[:3] == ("self", "name", "size")
