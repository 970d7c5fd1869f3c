"""How ``gapwatch tune`` compares results."""

from __future__ import annotations

import pytest

from advisor.experiments.trials import find_different_lines
from advisor.model.errors import AdvisorError


@pytest.mark.parametrize(
    ("found", "tolerance", "wrong"),
    [
        ("energy 1.0000001 ok\n", 1e-6, []),
        ("energy 1.0000001 ok\n", 1e-9, [1]),
        ("energy 1.0 bad\n", 1.0, [1]),
        ("energy nan ok\n", 0.5, [1]),
        ("energy 1.0D0 ok\n", 0.0, []),
    ],
)
def test_results_are_compared_with_a_tolerance(found: str, tolerance: float, wrong: list[int]) -> None:
    assert find_different_lines("energy 1.0 ok\n", found, tolerance) == wrong
    with pytest.raises(AdvisorError, match="another number of lines"):
        find_different_lines("energy 1.0 ok\n", f"{found}more\n", tolerance)
