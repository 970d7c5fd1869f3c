"""Damaged reports of gprof: refused with a line, or read with a note; most stands there twice."""

from __future__ import annotations

import re
from pathlib import Path

import damage
import pytest

from advisor.formats import gprof
from advisor.model.errors import InputError

RECORDED = Path(__file__).parents[1] / "profiles" / "gprof"
CYCLES = RECORDED / "cycles" / "gprof.txt"
FAULTLAB = RECORDED / "faultlab-imbalance30" / "gprof.txt"


def test_a_report_cut_off_anywhere(tmp_path: Path) -> None:
    damage.every_prefix(CYCLES, tmp_path, gprof.advisor_read)


def test_bits_turned_over(tmp_path: Path) -> None:
    tried = damage.TRIED
    assert damage.bit_flips(CYCLES, tmp_path, gprof.advisor_read) < 0.02 * tried, "more than letters of headings"


def test_other_seconds_or_calls_are_noticed(tmp_path: Path) -> None:
    text = FAULTLAB.read_text()
    places = [
        place
        for row in re.finditer(r"^ *[0-9.]+ +[0-9.]+ +[0-9.]+  .*[^0-9]$", text, re.MULTILINE)
        for word in list(re.finditer(r"[0-9.]+", row[0]))[2:4]
        for place in range(row.start() + word.start(), row.start() + word.end())
        if text[place].isdigit()
    ]
    assert len(places) > 50
    for place in places:
        other = str((int(text[place]) + 5) % 10)
        (tmp_path / "x.txt").write_text(text[:place] + other + text[place + 1 :])
        found = {note.name for note in gprof.read_call_paths(tmp_path / "x.txt").notes}
        assert "contradictory report" in found, text[place - 40 : place + 40]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("100.15      1.25     1.25", "100.15      1.25     nan", "no line of a flat profile"),
        ("100.15      1.25     1.25", "100.15      1.25     1e9", "no line of a flat profile"),
        ("100.15      1.25     1.25", "100.15      1.25   1.2.5", "'1.2.5' is not a number"),
        ("100.15      1.25     1.25", "100.15      1.25 99999999999", "impossible"),
        ("   20030    62.50", " -20030    62.50", "no line of a flat profile"),
        ("   20030    62.50", " " + "9" * 30 + "    62.50", "impossible"),
        ("Each sample counts as 0.01 seconds.", "Each sample counts as 0.01.0 seconds.", "'0.01.0' is not a number"),
        ("Each sample counts as", "No sample counts as", "expected the head of a flat profile"),
        ("granularity: each", "granularity: no", "expected the head of a call graph"),
        ("[2]    100.0    1.25", "[2]    999.0    1.25", "can't be"),
        ("[2]    100.0    1.25", "[1]    100.0    1.25", "no line of a call graph"),
        ("<spontaneous>", "<by itself>", "no line of a call graph"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = CYCLES.read_text()
    assert old in text
    (tmp_path / "x.txt").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=reason) as caught:
        gprof.read_call_paths(tmp_path / "x.txt")
    assert caught.value.place is not None
    assert caught.value.place.startswith("line ")


def test_no_functions_no_profile(tmp_path: Path) -> None:
    head = "Flat profile:\n\nEach sample counts as 0.01 seconds.\n no time accumulated\n\n"
    text = head + "  %   cumulative\n time   seconds\n"
    (tmp_path / "x.txt").write_text(text)
    assert gprof.advisor_sniff(tmp_path / "x.txt") == 1.0
    with pytest.raises(InputError, match="holds no functions"):
        gprof.read_call_paths(tmp_path / "x.txt")


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "no report"), (b"words\n", "no report"), (b"x", "middle of a line")]
)
def test_foreign_files_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x.txt").write_bytes(content)
    with pytest.raises(InputError, match=reason):
        gprof.read_call_paths(tmp_path / "x.txt")
    with pytest.raises(InputError, match="No such file"):
        gprof.read_call_paths(tmp_path / "none.txt")


def test_a_flat_profile_alone_may_lack_its_end() -> None:
    assert "no call graph" in {note.name for note in gprof.read_call_paths(RECORDED / "parts" / "flat.txt").notes}
