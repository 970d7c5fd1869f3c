"""Numbers with commas before their decimals are read as they are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.formats.decimal_commas import use_points
from advisor.formats.plain_text import PlainText


def convert(*lines: str) -> list[str]:
    return list(use_points(PlainText(Path("a.txt"), lines)).lines)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (" 0,000000   1.717.401  19", " 0.000000   1,717,401  19"),
        (" 99,8%  72.900,000  kernel_1.2(int, float)", " 99.8%  72,900.000  kernel_1.2(int, float)"),
        ("v1.2.3 of 8.100", "v1.2.3 of 8,100"),
        ("1.234.5 1,2,3", "1.234.5 1,2,3"),
    ],
)
def test_points_and_commas_change_places_in_numbers_alone(line: str, meant: str) -> None:
    assert convert(line, "0,5", "0,25") == [meant, "0.5", "0.25"]


@pytest.mark.parametrize("line", ["1,717,401 0.5", "99.8% 72,900.000", "12,345", "a,b 0.5"])
def test_other_texts_stay_as_they_are(line: str) -> None:
    assert convert(line) == [line]
