"""tools/mutate.py tells changes that a test notices from those that none does and from those that run on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import mutate

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "advisor" / "model" / "numbers_of_a_test.py"
TEST = "from advisor.model.numbers_of_a_test import double\n\ndef test_double():\n    assert double(2) == 4\n"


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("return 2 * x", mutate.Outcome.SURVIVED),
        ("return x + 3", mutate.Outcome.NOTICED),
        ("while True: pass", mutate.Outcome.TIMED_OUT),
    ],
)
def test_a_change_is_noticed_or_survives_or_times_out(tmp_path: Path, body: str, outcome: mutate.Outcome) -> None:
    test = tmp_path / "test_double.py"
    test.write_text(TEST)
    limit_s = 3 if outcome is mutate.Outcome.TIMED_OUT else mutate.LIMIT_S
    assert mutate.try_text(MODULE, f"def double(x):\n    {body}\n", (str(test),), limit_s) is outcome
