from __future__ import annotations

import re
from pathlib import Path

from advisor.model.records import LEVELS, Status

TEXT = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text(encoding="utf-8")


def test_every_bound_and_gap_is_explained_in_the_order_of_the_hierarchy() -> None:
    rows = re.findall(r"^\| (\S+) \| .*? \| .*? \| (?:(\S+):.*)?\|$", TEXT, re.MULTILINE)
    assert [row for row in rows if row[0] in {level.bound for level in LEVELS}] == [
        (level.bound, level.gap or "") for level in LEVELS
    ]


def test_every_status_is_explained() -> None:
    for status in Status.__args__:
        assert f"\n| {status} | " in TEXT
