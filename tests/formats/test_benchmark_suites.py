"""Suites of JMH, BenchmarkDotNet, pyperf, Go, Rust and Catch2: seconds of a call, whatever unit they stand in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.analysis import soundness
from advisor.formats import benchmarks
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import Profile

HERE = Path(__file__).parents[1] / "profiles" / "benchmarks"
#: The seconds of a call of each benchmark in the files.
EXPECTED = {
    "jmh.json": {
        "heat.Stencil.sweep (n=512) [avgt]": 4.05e-3,
        "heat.Stencil.sweep (n=1024) [avgt]": 16.3e-3,
        "heat.Norm.sum [thrpt]": 1 / 805.0,
    },
    "dotnet.json": {"Heat.Bench.Sweep": 412345.5e-9, "Heat.Bench.Norm": 51234.25e-9},
    "pyperf.json": {"sweep": 0.022575, "norm": 0.00104},
    "go.txt": {"BenchmarkSweep/n=512-8": 4102345e-9, "BenchmarkNorm-8": 124512.5e-9},
    "libtest.txt": {"heat::bench_sweep": 4102345e-9, "heat::bench_norm": 124512.5e-9},
    "criterion.txt": {"sweep of the whole grid/512": 4.1023e-3, "norm": 124.51e-6},
    "catch2.txt": {"sweep 512": 4.10234e-3, "norm": 124.512e-6},
}


def read_text(name: str, changes: dict[str, str], tmp_path: Path) -> Profile:
    """The profile of a file in which texts are replaced."""
    text = (HERE / name).read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / name).write_text(text)
    return benchmarks.advisor_read(tmp_path / name)


@pytest.mark.parametrize("name", EXPECTED)
def test_seconds_of_a_call(name: str) -> None:
    assert benchmarks.advisor_sniff(HERE / name) == 1.0
    profile = benchmarks.advisor_read(HERE / name)
    soundness.check_profile(profile)
    calls = profile.parameters["calls of each benchmark"]
    assert isinstance(calls, float)
    wall = profile.phases[0].arrays["wall_s"][:, 0, 0] / calls
    found = {region.name: value for region, value in zip(profile.regions, wall.tolist(), strict=True)}
    assert found == pytest.approx(EXPECTED[name])


def test_what_is_known_of_the_machine() -> None:
    assert benchmarks.advisor_read(HERE / "dotnet.json").cores == 8
    profile = benchmarks.advisor_read(HERE / "pyperf.json")
    assert (profile.cores, profile.processors[0].host) == (4, "node1")
    assert benchmarks.advisor_read(HERE / "go.txt").program == "example.org/heat"


def test_failed_benchmarks_are_named() -> None:
    notes = {note.name: note.text for note in benchmarks.advisor_read(HERE / "dotnet.json").notes}
    assert "Heat.Bench.Bad" in notes["benchmarks failed"]


def test_benchmarks_shorter_than_what_is_printed_are_named(tmp_path: Path) -> None:
    gone = {"124.512 us    123.902 us    125.203 us": "0 ns          0 ns          0 ns"}
    notes = {note.name: note.text for note in read_text("catch2.txt", gone, tmp_path).notes}
    assert notes["benchmarks without time"] == "benchmarks with a time of zero: 1 of 2, such as norm"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("jmh.json", '"ms/op"', '"MB/sec"'),
        ("jmh.json", '"50.0": 4.05', '"50.0": 5.05'),
        ("dotnet.json", '"Median": 412345.5', '"Median": 912345.5'),
        ("criterion.txt", "124.51 µs", "224.51 µs"),
        ("catch2.txt", "4.10234 ms     4.0821 ms", "4.10234 ms     4.9821 ms"),
        ("go.txt", "4102345 ns", "41023450000000000000 ns"),
    ],
)
def test_contradictions_are_refused(name: str, old: str, new: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_text(name, {old: new}, tmp_path)


def test_packages_of_go_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "both.txt").write_text(
        "pkg: a/x\nBenchmarkF-8 10 100 ns/op\nPASS\npkg: a/y\nBenchmarkF-8 10 200 ns/op\nPASS\n"
    )
    names = {region.name for region in benchmarks.advisor_read(tmp_path / "both.txt").regions}
    assert names == {"a/x.BenchmarkF-8", "a/y.BenchmarkF-8"}


def test_a_suite_of_memory_holds_no_seconds(tmp_path: Path) -> None:
    memory = {'"name": "sweep"': '"name": "sweep", "unit": "byte"', '"name": "norm"': '"name": "norm", "unit": "byte"'}
    with pytest.raises(InputError, match="no benchmark that was measured"):
        read_text("pyperf.json", memory, tmp_path)


RAJAPERF = """Min Runtime Report (sec.)  ,  ,  ,  ,
Kernel            , Base_Seq, RAJA_CUDA, RAJA_CUDA,
                  , default , block_128, block_256,
Basic_DAXPY       , 0.250   , 0.050    , Not run  ,
Apps_ENERGY       , 1.500   , -        , 0.400    ,
"""


def test_variants_of_kernels_of_rajaperf(tmp_path: Path) -> None:
    (tmp_path / "RAJAPerf-timing-Minimum.csv").write_text(RAJAPERF)
    assert benchmarks.advisor_sniff(tmp_path / "RAJAPerf-timing-Minimum.csv") == 1.0
    profile = benchmarks.advisor_read(tmp_path / "RAJAPerf-timing-Minimum.csv")
    calls = profile.parameters["calls of each benchmark"]
    seconds = profile.sum_by_region("wall_s").sum(axis=1) / calls
    assert dict(zip((r.name for r in profile.regions), seconds.tolist(), strict=True)) == pytest.approx({
        "Basic_DAXPY Base_Seq default": 0.25, "Basic_DAXPY RAJA_CUDA block_128": 0.05,
        "Apps_ENERGY Base_Seq default": 1.5, "Apps_ENERGY RAJA_CUDA block_256": 0.4,
    })  # fmt: skip
    old = "".join(line for line in RAJAPERF.replace("Min", "Mean").splitlines(keepends=True) if "default" not in line)
    (tmp_path / "old.csv").write_text(old)
    assert {region.name for region in benchmarks.advisor_read(tmp_path / "old.csv").regions} >= {"Basic_DAXPY Base_Seq"}
    (tmp_path / "cut.csv").write_text(RAJAPERF.replace(", -        , 0.400    ,\n", ", -"))
    with pytest.raises(InputError, match=r"line 5.*cut off"):
        benchmarks.advisor_read(tmp_path / "cut.csv")


@pytest.mark.parametrize(("head", "second"), [("Kernel ", "Kernel "), ("Variant", "Tuning ")])
def test_lines_of_tunings_of_rajaperf(tmp_path: Path, head: str, second: str) -> None:
    text = RAJAPERF.replace("Kernel ", head).replace("\n       ", f"\n{second}")
    (tmp_path / "timing.csv").write_text(text)
    assert benchmarks.advisor_sniff(tmp_path / "timing.csv") == 1.0
    names = {region.name for region in benchmarks.advisor_read(tmp_path / "timing.csv").regions}
    assert "Apps_ENERGY RAJA_CUDA block_256" in names
