"""What callgrind_annotate and cg_annotate print: the counts are those of the files that they were made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor.advice.hot_spots import describe_hot_spots
from advisor.analysis import soundness
from advisor.formats import cachegrind, callgrind
from advisor.formats.valgrind.annotations import read_annotation
from advisor.formats.valgrind.files import read_dump
from advisor.formats.valgrind.functions import OTHERS
from advisor.model.errors import InputError

FOLDER = Path(__file__).parents[1] / "profiles"
TINY = FOLDER / "cachegrind" / "tiny"
RULE = "-" * 80 + "\n"
TABLE = f"""{RULE}Profile data file 'callgrind.out.77' (creator: callgrind-3.19.0)
{RULE}I1 cache:
Timerange: Basic block 0 - 77
Profiled target:  ./heat --size 8 (PID 77, part 1)
Events recorded:  Ir
Events shown:     Ir
Thresholds:       99
{RULE}Ir
{RULE}1,000 (100.0%)  PROGRAM TOTALS

{RULE}Ir              file:function
{RULE}600 (60.0%)  heat.cpp:Heat::solve(int) [/home/me/heat]
300 (30.0%)  ???:0x0000000000001100 [/usr/lib/libm.so.6]

{RULE}-- Auto-annotated source: heat.cpp
{RULE}600 (60.0%)  for (;;)
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("rank", [0, 1])
def test_a_table_of_cachegrind_holds_what_the_file_does(rank: int) -> None:
    path = TINY / f"expected.{rank}.txt"
    assert cachegrind.advisor_sniff(path) == 1.0
    table, dump = read_annotation(path), read_dump(TINY / f"cachegrind.out.{rank}", numbered=False)
    assert (table.events, table.command) == (dump.events, dump.command)
    assert table.counts.sum(axis=0) == pytest.approx(dump.counts.sum(axis=0))
    soundness.check_profile(cachegrind.advisor_read(path))


def test_a_table_of_callgrind(tmp_path: Path) -> None:
    path = written(tmp_path / "callgrind.txt", f"Reading data from 'callgrind.out.77'...\n{TABLE}")
    assert callgrind.advisor_sniff(path) == 1.0
    assert callgrind.advisor_sniff(written(tmp_path / "bare.txt", TABLE)) == 1.0
    profile = callgrind.advisor_read(path)
    soundness.check_profile(profile)
    assert profile.program == "heat"
    assert "./heat --size 8" in profile.parameters.values()
    found = {region.name: counted.sum() for region, counted in zip(
        profile.regions, profile.counts["instructions"], strict=True
    )}  # fmt: skip
    # what is below the threshold is that of other functions
    assert found == {"Heat::solve(int)": 600, "0x0000000000001100 in libm.so.6": 300, OTHERS: 100}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("600 (60.0%)  heat.cpp:H", "1,600 (160.0%)  heat.cpp:H", r"line 16.*--inclusive=no callgrind.out.77 >"),
        ("300 (30.0%)", "3x0 (30.0%)", r"line 19.*0 counts of 1 events"),
        ("heat.cpp:Heat::solve(int) [/home/me/heat]", "heat", r"line 18.*no file and function"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        callgrind.advisor_read(written(tmp_path / "callgrind.txt", TABLE.replace(old, new, 1)))


def test_a_table_without_its_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cut off"):
        callgrind.advisor_read(written(tmp_path / "callgrind.txt", TABLE.split("100 [/usr")[0]))


def test_misses_are_told_with_the_regions_that_have_most() -> None:
    profile = cachegrind.advisor_read(TINY / "cachegrind.out.0")
    found = describe_hot_spots(profile)
    assert found is not None
    accesses = profile.counts["compiled_ops.load"].sum() + profile.counts["compiled_ops.store"].sum()
    first, last = (profile.counts[name].sum() / accesses for name in ("misses.L1", "misses.LL"))
    assert (
        f" Of the loads and stores, {100 * first:.1f} % miss the first cache and {100 * last:.1f} % the" in found.text
    )
    rows = profile.counts["misses.LL"].sum(axis=1)
    top = profile.regions[int(np.argmax(rows))].name
    assert f"({top} {100 * rows.max() / rows.sum():.1f} %" in found.text
