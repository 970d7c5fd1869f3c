"""Damaged outputs of callgrind: refused, or read with a note that the totals do not fit."""

from __future__ import annotations

import re
from pathlib import Path

import damage
import pytest

from advisor.readers import callgrind

OUTPUT = Path(__file__).parent / "profiles" / "callgrind" / "small" / "callgrind.out.rank0"


def test_an_output_cut_off_anywhere(tmp_path: Path) -> None:
    damage.every_prefix(OUTPUT, tmp_path, callgrind.advisor_read)


def test_one_of_two_outputs_cut_off(tmp_path: Path) -> None:
    other = next(path for path in sorted(OUTPUT.parent.glob("callgrind.out.*")) if path != OUTPUT)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / other.name).write_bytes(other.read_bytes())
    damage.every_prefix(OUTPUT, tmp_path, callgrind.advisor_read, folder)


def test_bits_turned_over(tmp_path: Path) -> None:
    tried = damage.TRIED
    silent = damage.bit_flips(OUTPUT, tmp_path, callgrind.advisor_read)
    assert silent < 0.35 * tried, "more than names, source lines and numbers of calls"


@pytest.mark.parametrize("part", range(4))
def test_another_digit_in_any_count_is_noticed(tmp_path: Path, part: int) -> None:
    whole = callgrind.advisor_read(OUTPUT)
    text = OUTPUT.read_text()
    lines = list(re.finditer(r"^[-+*\d]\S*(?: [-+*\d]\S*)*$", text, re.MULTILINE))
    assert len(lines) > 90
    for line in lines[part::4]:
        at = line.end() - 1
        changed = text[:at] + str((int(text[at]) + 5) % 10 if text[at].isdigit() else 7) + text[at + 1 :]
        (tmp_path / "output").write_text(changed)
        found = damage._read(callgrind.advisor_read, tmp_path / "output")
        assert found is None or damage.same(found, whole) or damage._says_more(found, whole), line[0]
