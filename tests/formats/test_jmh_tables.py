"""JMH's tables, printed and as CSV: means of a call, whatever mode, unit and decimal point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from advisor.analysis import soundness
from advisor.formats import benchmarks
from advisor.formats.benchmarks.measured_suite import read_suite
from advisor.formats.benchmarks.tool_marks import find_tool
from advisor.formats.plain_text import read_ends
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.benchmarks.benchmark_records import MeasuredSuite

PRINTED = """# JMH version: 1.37
# Benchmark mode: Average time, time/op
Iteration   1: 4.000 ms/op

# Run complete. Total time: 00:01:25

Benchmark          (kind)  (n)   Mode  Cnt    Score    Error   Units
Norm.sum              N/A    8  thrpt    5  800.000 ±  0.500   ops/s
Norm.sum:gc.alloc     N/A    8  thrpt    5    9.000 ±  0.100  MB/sec
Norm.sum:stack        N/A    8  thrpt           NaN              ---
Stencil.sweep        dense  512   avgt    5    4.000 ±  1.000   ms/op
Stencil.sweep   not square  512   avgt         16.300           ms/op
Stencil.tiny         dense  512   avgt    5   ≈ 10⁻³           ms/op

Benchmark result is saved to out.csv
"""
CSV = """"Benchmark","Mode","Threads","Samples","Score","Score Error (99.9%)","Unit","Param: n"
"heat.Stencil.sweep","avgt",1,5,4.000000,0.010000,"ms/op",512
"heat.Stencil.sweep","avgt",1,1,16.300000,NaN,"ms/op",1024
"heat.Stencil.sweep:gc.alloc.rate","avgt",1,5,1.000000,0.010000,"MB/sec",512
"heat.Norm.sum","avgt",1,5,2.0,0.01,"us/op",
"heat.Norm.slow","avgt",1,5,0.000000,0.0,"ops/ns",
"""


def read(tmp_path: Path, text: str) -> MeasuredSuite:
    path = tmp_path / "jmh.txt"
    path.write_text(text)
    assert benchmarks.advisor_sniff(path) == 1.0
    tool = find_tool(read_ends(path))
    assert tool is not None
    return read_suite(path, tool)


def list_seconds(suite: MeasuredSuite) -> dict[str, float]:
    return {each.name: each.wall_s for each in suite.benchmarks}


def test_printed_table(tmp_path: Path) -> None:
    suite = read(tmp_path, PRINTED)
    assert list_seconds(suite) == pytest.approx({
        "Norm.sum (kind=N/A, n=8) [thrpt]": 1 / 800, "Stencil.sweep (kind=dense, n=512) [avgt]": 4e-3,
        "Stencil.sweep (kind=not square, n=512) [avgt]": 16.3e-3,
    })  # fmt: skip
    # 1 = 8.610 (99.95 % of Student's t with 4 degrees of freedom) · s / √5
    assert suite.benchmarks[1].spread == pytest.approx(5**0.5 / 8.6103 / 4, rel=1e-4)
    assert suite.benchmarks[2].spread is None
    profile = benchmarks.advisor_read(tmp_path / "jmh.txt")
    soundness.check_profile(profile)
    notes = {note.name: note.text for note in profile.notes}
    assert "Stencil.tiny (kind=dense, n=512) [avgt]" in notes["benchmarks without a number"]
    assert notes["suite of benchmarks"].endswith("from the mean of JMH")


def test_digits_that_are_not_printed_are_noise(tmp_path: Path) -> None:
    rows = ("a.b  avgt  15  0,004 ± 0,001  us/op", "a.c avgt 9 0.002 \ufffd 0.000 us/op")
    suite = read(tmp_path, "\n".join(("Benchmark  Mode  Cnt  Score   Error  Units", *rows, "")))
    assert list_seconds(suite) == pytest.approx({"a.b": 4e-9, "a.c": 2e-9})
    assert [each.spread for each in suite.benchmarks] == pytest.approx([0.234, 0.25], rel=0.01)


@pytest.mark.parametrize(
    "text",
    [
        "[info] Benchmark  Mode  Samples  Score  Score error  Units\n"
        "[info] a.b  thrpt  10  500.0  20.0  ops/ms\n[info] \n",
        "Benchmark  Mode Thr Count  Sec  Mean  Mean error  Units\na.b  thrpt  2  10  5  500.0  20.0  ops/ms\n",
        "Benchmark  Mode  Cnt  Score  Error  Units\na.b  thrpt  500.0  ops/ms\n",
        "Benchmark;Mode;Threads;Samples;Score;Score Error (99,9%);Unit\na.b;thrpt;1;10;500,0;20,0;ops/ms\n",
        '"Benchmark","Mode","Threads","Samples","Score","Score Error (99,9%)","Unit"\n'
        '"a.b","thrpt",1,5,"500,0",NaN,"ops/ms"\n',
    ],
)
def test_other_forms(tmp_path: Path, text: str) -> None:
    assert list_seconds(read(tmp_path, text)) == pytest.approx({"a.b": 2e-6})


def test_csv(tmp_path: Path) -> None:
    suite = read(tmp_path, CSV)
    assert list_seconds(suite) == pytest.approx({
        "heat.Stencil.sweep (n=512)": 4e-3, "heat.Stencil.sweep (n=1024)": 16.3e-3, "heat.Norm.sum": 2e-6,
    })  # fmt: skip
    assert suite.unstated == ("heat.Norm.slow",)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (',2.0,0.01,"us/op",', ",2.0", r"line 5.*cells"),
        (",2.0,", ",-2.0,", r"line 5.*impossible"),
        ('"us/op"', '"B/op"', r"line 5.*no time"),
        ('"Unit"', '"Units"', r"line 1.*missing"),
    ],
)
def test_damaged_csv_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read(tmp_path, CSV.replace(old, new))


def test_a_row_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cut off"):
        read(tmp_path, PRINTED[: PRINTED.index("16.300")] + "ms/op")
