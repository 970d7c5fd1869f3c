"""The programs of examples/real: their manifests, and how advice on them is judged."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from advisor.advice import rules

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("real_judge", ROOT / "examples" / "real" / "judge.py")
assert _SPEC is not None
assert _SPEC.loader is not None
judge: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["real_judge"] = judge
_SPEC.loader.exec_module(judge)


def test_each_program_says_what_is_wrong_and_which_actions_are_right() -> None:
    known = {action.id for action in rules.load_default(examples=False).actions} | {judge.NOTHING}
    pairs = judge.load_pairs()
    assert len(pairs) >= 40
    assert {pair.style.partition(",")[0] for pair in pairs} == {"C", "C++", "Fortran"}
    for pair in pairs:
        assert pair.fault, pair.name
        assert pair.engineer, pair.name
        assert pair.accepted, pair.name
        assert set(pair.accepted) <= known, pair.name
        differs = pair.flags[0] != pair.flags[1] or pair.ranks[0] != pair.ranks[1] or pair.launch[0] != pair.launch[1]
        differs |= pair.threads[0] != pair.threads[1] or pair.fault == "none"
        assert differs or "REPAIRED" in pair.source.read_text(), pair.name


def judged(items: list[Any], won_s: float = 0.3, **changed: object) -> Any:  # noqa: ANN401
    values = {"name": "app", "source": Path("app.c"), "fault": "f", "engineer": "e", "accepted": ("A-28",), **changed}
    return judge.Judgement(judge.Pair(**values), 1.0, won_s, "A", items)


@pytest.mark.parametrize(
    ("items", "won_s", "right", "holds"),
    [
        ([("A-28", (0.2, 0.4))], 0.3, True, True),
        ([("A-28", (0.2, 0.25))], 0.3, True, False),
        ([("A-28", None)], 0.3, True, None),
        ([("A-29", (0.2, 0.4)), ("A-28", (0.2, 0.4))], 0.3, False, True),
        ([], 0.3, False, None),
        ([], 0.01, True, None),
    ],
)
def test_the_first_item_is_judged(items: list[Any], won_s: float, right: bool, holds: bool | None) -> None:
    found = judged([judge.Item(action, "app.c:1", interval) for action, interval in items], won_s)
    assert (found.is_right, found.holds) == (right, holds)


def test_the_table_says_how_many_are_right() -> None:
    right = judged([judge.Item("A-28", "app.c:7", (0.2, 0.4))])
    text = judge.report_judgements([right, judged([])])
    assert text.startswith(
        "First item right: 1 of 2; the gain of the repaired version lies in the interval of 1 of the 1"
    )
    assert "| app | C, serial | f | 1.00 s | 0.30 s | A-28 app.c:7 | 0.20 to 0.40 s | A | right |" in text
    assert "| none  | - | A | wrong |" in text
