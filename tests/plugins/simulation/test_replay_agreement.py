"""The script that compares replays with recorded runs, on two of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[3]


def test_recorded_runs_come_back_and_predict_their_other_half(capsys: pytest.CaptureFixture[str]) -> None:
    script = runpy.run_path(str(ROOT / "examples" / "replay" / "agreement.py"))
    script["main"](
        [str(ROOT / "tests" / "profiles" / "otf2" / name) for name in ("scorep-multiphase", "eztrace-imbalance")]
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [cells[1] for cells in rows] == ["2", "2"]
    for cells in rows:
        assert float(cells[3]) < 1e-9
        assert abs(float(cells[4].removesuffix(" %"))) < 2.0
