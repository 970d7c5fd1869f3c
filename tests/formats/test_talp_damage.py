"""Damaged recordings of TALP: refused, or read with a note."""

from __future__ import annotations

import shutil
from pathlib import Path

import damage
import pytest

from advisor.formats import talp

HERE = Path(__file__).parents[1] / "profiles" / "talp"
JSON = HERE / "faultlab-clean-preload" / "talp.json"
TABLES = HERE / "faultlab-imbalance30-csv"
TEXT = HERE / "faultlab-imbalance30-text" / "stdout.txt"
#: How many of a hundred flips may change the profile without a word: those in names that stand there only once.
SILENT = 2


@pytest.mark.parametrize("path", [JSON, TEXT, TABLES / "talp-process.csv"], ids=lambda path: path.name)
def test_recordings_cut_off_anywhere(tmp_path: Path, path: Path) -> None:
    shutil.copy(TABLES / "talp-pop.csv", tmp_path)
    damage.every_prefix(path, tmp_path, talp.advisor_read)


@pytest.mark.parametrize("path", [JSON, TEXT, TABLES / "talp-process.csv"], ids=lambda path: path.name)
def test_bits_turned_over(tmp_path: Path, path: Path) -> None:
    shutil.copy(TABLES / "talp-pop.csv", tmp_path)
    tried = damage.TRIED
    assert damage.bit_flips(path, tmp_path, talp.advisor_read) <= SILENT / 100 * tried
