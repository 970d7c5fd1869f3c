"""The table of speeds: what is on the page is understood again, and rows that became slower are named."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import speed_table
from speed_table import Measured


def test_a_row_that_takes_more_of_the_machine_than_the_page_says_is_named() -> None:
    rows = [
        Measured("reading", 1.0, 0.01, 1e6, ("otf2-print", 2.0), "1.00 in events"),
        Measured("replay", 0.002, 0.001, 1e6),
        Measured("new", 5.0, 0.001, 1e6),
    ]
    page = speed_table.render(rows[:2])
    assert "otf2-print 2.00 s: 2.00x" in page
    assert speed_table.describe_machine() in page
    assert speed_table.find_slower(rows, page) == []
    slow = [Measured("reading", 1.3, 0.01, 1e6), Measured("replay", 0.0023, 0.001, 1e6), rows[2]]
    assert speed_table.find_slower(slow, page) == ["reading: 130 limits, and 100 before"]


def test_what_slows_machine_and_program_alike_is_no_loss() -> None:
    page = speed_table.render([Measured("reading", 1.0, 0.01, 1e6)])
    assert speed_table.find_slower([Measured("reading", 3.0, 0.03, 1e6)], page) == []


def test_the_page_holds_a_table_of_all_rows() -> None:
    page = speed_table.PAGE.read_text()
    assert page.index(speed_table.BEGIN) < page.index("| what |") < page.index(speed_table.END)


def test_growth_is_a_power() -> None:
    assert speed_table.exponent(1.0, 4.0, 4.0) == "1.00"
    assert speed_table.exponent(1.0, 1.0, 16.0) == "0.00"
