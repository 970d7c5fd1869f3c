"""Damaged mpiP reports: refused, or read with a note; what stands there twice shows what changed."""

from __future__ import annotations

import re
from pathlib import Path

import damage
import pytest

from advisor.formats import mpip

REPORT = next((Path(__file__).parents[1] / "profiles" / "mpip" / "faultlab-imbalance30").glob("*.mpiP"))
#: Lines of which nothing else in the report speaks: names, places and dates.
TOLD_ONCE = re.compile(r"@ .*|@--- .*| *\d+ +\d+ (0x)?\w+[^ ]* .*|-*")


def test_a_report_cut_off_anywhere(tmp_path: Path) -> None:
    damage.every_prefix(REPORT, tmp_path, mpip.advisor_read)


def test_bits_turned_over(tmp_path: Path) -> None:
    tried = damage.TRIED
    assert damage.bit_flips(REPORT, tmp_path, mpip.advisor_read) < 0.12 * tried, "more than names, places and dates"


def numbers() -> list[tuple[int, int]]:
    """Line and column of each digit in the tables of seconds, calls and bytes, without percentages."""
    found = []
    for number, line in enumerate(REPORT.read_text().splitlines()):
        if TOLD_ONCE.fullmatch(line) or "Max" in line or "App%" in line or "Sent%" in line or "AppTime" in line:
            continue
        words = list(re.finditer(r"\S+", line))
        percentages = 0 if "e+" in line or "   *   " in line[:8] else 2
        for word in words[1 : len(words) - percentages] if len(words) > 5 else words[1:3]:
            found += [(number, column) for column in range(*word.span()) if line[column].isdigit()]
    return found


@pytest.mark.parametrize("part", range(4))
def test_another_digit_anywhere_in_the_tables_is_noticed(tmp_path: Path, part: int) -> None:
    whole = mpip.advisor_read(REPORT)
    lines = REPORT.read_text().splitlines(keepends=True)
    silent = []
    places = numbers()
    assert len(places) > 500
    for number, column in places[part :: 4 if damage.FULL else 16]:
        line = lines[number]
        other = str((int(line[column]) + 5) % 10)
        changed = [*lines[:number], line[:column] + other + line[column + 1 :], *lines[number + 1 :]]
        (tmp_path / "report").write_text("".join(changed))
        found = damage._read(mpip.advisor_read, tmp_path / "report")
        if found is not None and not damage.same(found, whole) and not damage._says_more(found, whole):
            silent.append((number + 1, column + 1, line))
    assert not silent
