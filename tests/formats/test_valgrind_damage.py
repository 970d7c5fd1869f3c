"""Damaged outputs of cachegrind and callgrind: refused, or read with a note that the totals do not fit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import damage
import pytest

from advisor.formats import cachegrind, callgrind

if TYPE_CHECKING:
    from types import ModuleType

PROFILES = Path(__file__).parents[1] / "profiles"
OUTPUTS = {
    cachegrind: PROFILES / "cachegrind" / "tiny" / "cachegrind.out.0",
    callgrind: PROFILES / "callgrind" / "small" / "callgrind.out.rank0",
}
BOTH = pytest.mark.parametrize(("reader", "output"), OUTPUTS.items(), ids=("cachegrind", "callgrind"))


@BOTH
def test_an_output_cut_off_anywhere(reader: ModuleType, output: Path, tmp_path: Path) -> None:
    damage.every_prefix(output, tmp_path, reader.advisor_read)


@BOTH
def test_one_of_two_outputs_cut_off(reader: ModuleType, output: Path, tmp_path: Path) -> None:
    other = next(path for path in sorted(output.parent.glob("*grind.out.*")) if path != output)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / other.name).write_bytes(other.read_bytes())
    damage.every_prefix(output, tmp_path, reader.advisor_read, folder)


@BOTH
def test_bits_turned_over(reader: ModuleType, output: Path, tmp_path: Path) -> None:
    tried = damage.TRIED
    silent = damage.bit_flips(output, tmp_path, reader.advisor_read)
    assert silent < 0.35 * tried, "more than names, source lines and numbers of calls"


@BOTH
@pytest.mark.parametrize("part", range(4))
def test_another_digit_in_any_count_is_noticed(reader: ModuleType, output: Path, tmp_path: Path, part: int) -> None:
    whole = reader.advisor_read(output)
    text = output.read_text()
    lines = list(re.finditer(r"^[-+*\d]\S*(?: [-+*\d]\S*)*$", text, re.MULTILINE))
    assert len(lines) > 90
    for line in lines[part::4]:
        at = line.end() - 1
        changed = text[:at] + str((int(text[at]) + 5) % 10 if text[at].isdigit() else 7) + text[at + 1 :]
        (tmp_path / "output").write_text(changed)
        found = damage._read(reader.advisor_read, tmp_path / "output")
        assert found is None or damage.same(found, whole) or damage._says_more(found, whole), line[0]
