"""The tables of the page on similarity are those of the workloads that come along."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]
TABLE = runpy.run_path(str(ROOT / "examples" / "workloads" / "table.py"))


def test_the_page_holds_what_the_script_says() -> None:
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    assert TABLE["BEGIN"] + TABLE["tables"]() + TABLE["END"] in page


def test_the_nearest_workload_is_of_the_same_program_nine_times_in_ten() -> None:
    rows = [line for line in TABLE["tables"]().splitlines() if line.startswith("| `")]
    found = {row.split("`")[1]: [float(cell) for cell in row.split("|")[2:-1]] for row in rows}
    assert all(of_all >= 0.9 for of_all, *_ in found.values())
    assert found["mix"][1] >= 0.9
