"""Lists in sentences name what they are asked to, and count the rest."""

from __future__ import annotations

import pytest

from advisor.model.lists import join_clauses, join_names


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ((), None, ""),
        (("a",), None, "a"),
        (("a", "b"), 2, "a and b"),
        (("a", "b", "c"), None, "a, b and c"),
        (("a", "b", "c"), 3, "a, b and c"),
        (("a", "b", "c"), 2, "a, b and 1 more"),
        (("a", "b", "c"), 1, "a and 2 more"),
        (("a",) * 1235, 1, "a and 1,234 more"),
    ],
)
def test_names_are_joined_and_those_left_out_are_counted(names: tuple[str, ...], most: int | None, text: str) -> None:
    assert join_names(names, most) == text


@pytest.mark.parametrize(("most", "text"), [(3, "a, b; c; d"), (2, "a, b; c; 1 more"), (1, "a, b; 2 more")])
def test_clauses_are_joined_and_those_left_out_are_counted(most: int, text: str) -> None:
    assert join_clauses(("a, b", "c", "d"), most) == text
