"""Sums of kernels and copies by nvprof and ``nsys stats``."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import gapwatch
from advisor.advice.hot_spots import describe_hot_spots
from advisor.formats import nsys
from advisor.model.errors import InputError

HERE = Path(__file__).parents[1] / "profiles" / "device_sums"
CSV = """==9245== Profiling result:
"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"
,%,ms,,ms,ms,ms,
"GPU activities",75.000000,30.000000,100,0.300000,0.290000,0.310000,"relax(double*, int)"
"GPU activities",25.000000,10.000000,2,5.000000,4.000000,6.000000,"[CUDA memcpy HtoD]"
"API calls",100.000000,90.000000,2,45.000000,1.000000,89.000000,"cudaMalloc"
"""


@pytest.mark.parametrize(
    ("name", "seconds"), [("nvprof.txt", [0.025, 0.011, 0.004]), ("nsys-stats.txt", [0.075, 0.025])]
)
def test_kernels_and_copies_have_their_seconds(name: str, seconds: list[float]) -> None:
    assert nsys.advisor_sniff(HERE / name) == pytest.approx(0.9)
    profile = nsys.advisor_read(HERE / name)
    assert profile.counts["device_s"].sum(axis=1)[: len(seconds)] == pytest.approx(seconds)
    assert not profile.has_run_time
    assert "sums of device activities" in {note.name for note in profile.notes}


def test_csv(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text(CSV)
    profile = nsys.advisor_read(tmp_path / "out.csv")
    assert [region.name for region in profile.regions] == ["relax(double*, int)", "[CUDA memcpy HtoD]", "cudaMalloc"]
    assert profile.counts["device_s"].sum() == pytest.approx(0.04)


def test_csv_with_a_unit_in_each_cell(tmp_path: Path) -> None:
    """Then names with commas are not quoted, and what follows the rows of the device is no part of them."""
    (tmp_path / "out.csv").write_text("""Time(%),Time,Calls,Avg,Min,Max,Name
75.00%,30.000ms,100,300.00us,290.00us,310.00us,relax(double*, int)
25.00%,10.000ms,2,5.0000ms,4.0000ms,6.0000ms,[CUDA memcpy HtoD]

Time(%),Time,Calls,Avg,Min,Max,Name
100.00%,90.000ms,2,45.000ms,1.0000ms,89.000ms,cudaMalloc
""")
    assert nsys.advisor_sniff(tmp_path / "out.csv")
    profile = nsys.advisor_read(tmp_path / "out.csv")
    assert [region.name for region in profile.regions] == ["relax(double*, int)", "[CUDA memcpy HtoD]"]
    assert profile.counts["device_s"].sum() == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [(",%,ms,,ms,", ",%,min,,min,", "not a unit"), ('"Max","Name"', '"Max","Nom"', "no"), ("Type", "Time", "no")],
)
def test_other_units_and_columns_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "out.csv").write_text(CSV.replace(old, new))
    with pytest.raises(InputError, match=message):
        nsys.advisor_read(tmp_path / "out.csv")


def test_activities_that_took_no_time_have_no_share(tmp_path: Path) -> None:
    lines = (HERE / "nvprof.txt").read_text().splitlines(keepends=True)
    begin = next(number for number, line in enumerate(lines) if "Time(%)" in line) + 1
    nothing = "  0.00%       0ns         1       0ns       0ns       0ns  [CUDA memset]\n"
    (tmp_path / "out.txt").write_text("".join([*lines[:begin], nothing]))
    with pytest.raises(InputError):
        nsys.advisor_read(tmp_path / "out.txt")


def test_missing_rows_are_noticed_by_the_shares(tmp_path: Path) -> None:
    lines = (HERE / "nvprof.txt").read_text().splitlines(keepends=True)
    (tmp_path / "out.txt").write_text("".join(line for line in lines if "HtoD" not in line))
    with pytest.raises(InputError, match="cut off"):
        nsys.advisor_read(tmp_path / "out.txt")


def test_a_second_view_counts_once_and_a_second_run_is_refused(tmp_path: Path) -> None:
    text = (HERE / "nsys-stats.txt").read_text()
    again = text[text.index(" ** CUDA GPU Kernel") :]
    (tmp_path / "out.txt").write_text(text + "\n" + again)
    assert nsys.advisor_read(tmp_path / "out.txt").counts["device_s"].sum() == pytest.approx(0.1)
    other = again
    for once, twice in (
        ("75,000,000", "150,000,000"),
        ("25,000,000", "50,000,000"),
        ("100 ", "200 "),
        (" 50 ", " 100 "),
    ):
        other = other.replace(once, twice)
    (tmp_path / "out.txt").write_text(text + "\n" + other)
    with pytest.raises(InputError, match=r"a second table of 0\.2 s after one of 0\.1 s: give each run a file"):
        nsys.advisor_read(tmp_path / "out.txt")


def test_listed_activities_are_a_run_of_the_device() -> None:
    profile = nsys.advisor_read(HERE / "nvprof-trace.txt")
    assert profile.actual_s == pytest.approx(0.147812, abs=1e-6)
    assert profile.devices is not None
    assert profile.devices.seconds["compute"].sum() == pytest.approx(0.12)
    assert profile.devices.seconds["copies"].sum() == pytest.approx(0.0276515)
    assert profile.phases[0].arrays["wall_s"].sum() > 0.147


def test_lists_of_nsys_stats_have_links_and_names_with_commas() -> None:
    profile = nsys.advisor_read(HERE / "nsys-trace.csv")
    assert profile.actual_s == pytest.approx(0.208)
    assert "relax(double *, int)" in {region.name for region in profile.regions}


COLUMNS = "Start  Duration  Grid Size  Block Size  Device  Context  Stream  Name"


def write_list(rows: list[tuple[str, str, str]]) -> str:
    """A list of kernels: begin, duration, stream."""
    body = "".join(
        f"{start}  {length}  (8 1 1)  (32 1 1)  GPU 0  1  {stream}  step(int) [9]\n" for start, length, stream in rows
    )
    return f"==7== Profiling result:\n   {COLUMNS}\n{body}\n"


def test_a_stream_does_one_thing_after_the_other(tmp_path: Path) -> None:
    """Of three kernels of 400 us whose beginnings are whole milliseconds the second cannot begin with the first."""
    path = tmp_path / "out.txt"
    path.write_text(write_list([("1.000s", "400.00us", "7"), ("1.000s", "400.00us", "7"), ("1.001s", "400.00us", "7")]))
    profile = nsys.advisor_read(path)
    assert profile.actual_s == pytest.approx(1.4e-3)
    assert profile.phases[0].arrays["wall_s"].sum() == pytest.approx(1.2e-3)
    assert "rounded times" in {note.name for note in profile.notes}


def test_calls_listed_between_are_the_hosts(tmp_path: Path) -> None:
    text = write_list([("1.0000s", "400.00ms", "7")])
    text = text.replace("   Start", "    Start", 1).rstrip() + "\n1.5000s  1.0000us  -  -  -  -  -  cudaFree\n\n"
    (tmp_path / "out.txt").write_text(text)
    assert "cudaFree" in {region.name for region in nsys.advisor_read(tmp_path / "out.txt").regions}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("6.4049ms ", "9.4049ms ", "are not"),
        ("189.49ms", "109.49ms", "order"),
        ("14.872ms", "14.872kg", "not a time"),
        (
            "==9260== Profiling result:",
            "==9260== Profiling result:\n   Start  Duration  Name\n\n   Start  Duration  Name\n",
            "second list",
        ),
    ],
)
def test_contradicting_activities_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (HERE / "nvprof-trace.txt").read_text()
    (tmp_path / "out.txt").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        nsys.advisor_read(tmp_path / "out.txt")


def test_the_command_and_calls_of_the_runtime_are_told() -> None:
    profile = nsys.advisor_read(HERE / "nvprof.txt")
    assert profile.program == "heat"
    assert "./heat 4096" in profile.parameters.values()
    calls = dict(zip((r.name for r in profile.regions), profile.counts["runtime_call_s"].sum(axis=1), strict=True))
    assert {name: value for name, value in calls.items() if value} == pytest.approx(
        {"cudaMalloc": 0.16, "cudaMemcpy": 0.04}
    )
    assert profile.counts["device_s"].sum() == pytest.approx(0.04), "calls are no time of the device"
    found = describe_hot_spots(profile)
    assert found is not None
    assert found.text.endswith(" On the host, calls of its runtime took 200 ms: cudaMalloc 160 ms, cudaMemcpy 40.0 ms.")


def test_seconds_of_devices_are_evidence_of_grade_d(tmp_path: Path) -> None:
    advice = gapwatch.load(HERE / "nvprof.txt")
    assert (advice.grade.letter, advice.verdict) == ("D", "insufficient evidence")
    text = (HERE / "nvprof.txt").read_text()
    short = "".join(line.replace("us", "ns").replace("ms", "us") + "\n" for line in text.splitlines())
    (tmp_path / "short.txt").write_text(short)
    assert gapwatch.load(tmp_path / "short.txt").grade.letter == "F"


def test_calls_alone_are_read(tmp_path: Path) -> None:
    lines = (HERE / "nvprof.txt").read_text().splitlines()
    (tmp_path / "calls.txt").write_text("\n".join([*lines[:5], *lines[-2:]]) + "\n")
    profile = nsys.advisor_read(tmp_path / "calls.txt")
    assert "device_s" not in profile.counts
    assert profile.counts["runtime_call_s"].sum() == pytest.approx(0.2)


def test_calls_of_the_operating_system_are_no_calls_of_the_device(tmp_path: Path) -> None:
    text = (HERE / "nsys-stats.txt").read_text()
    (tmp_path / "stats.txt").write_text(text)
    whole = nsys.advisor_read(tmp_path / "stats.txt").counts["runtime_call_s"].sum()
    assert whole == pytest.approx(0.1)
    system = text.replace("cudaMemcpy\n", "pthread_cond_wait\n").replace("cudaLaunchKernel\n", "poll\n")
    (tmp_path / "system.txt").write_text(system)
    assert "runtime_call_s" not in nsys.advisor_read(tmp_path / "system.txt").counts


def test_directives_are_no_second_run_of_their_kernels(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("""Type,Time(%),Time,Calls,Avg,Min,Max,Name
"GPU activities",75.00%,30.000ms,100,300.00us,290.00us,310.00us,"relax(double*, int)"
,25.00%,10.000ms,2,5.0000ms,4.0000ms,6.0000ms,"[CUDA memcpy HtoD]"
"API calls",90.00%,90.000ms,2,45.000ms,1.0000ms,89.000ms,"cuMemAlloc"
,10.00%,10.000ms,1,10.000ms,10.000ms,10.000ms,"cuModuleLoadDataEx"
"OpenACC (excl)",100.00%,70.000ms,2,35.000ms,1.0000ms,69.000ms,"acc_enter_data@heat.c:28"
""")
    profile = nsys.advisor_read(tmp_path / "out.csv")
    assert "acc_enter_data@heat.c:28" not in {region.name for region in profile.regions}
    assert profile.counts["device_s"].sum() == pytest.approx(0.04)
    assert profile.counts["runtime_call_s"].sum() == pytest.approx(0.1)


def test_a_report_without_devices_is_named(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "run.sqlite")
    database.execute("create table StringIds (id, value)")
    database.execute("create table TARGET_INFO_SESSION_START_TIME (utcEpochNs)")
    database.close()
    assert nsys.advisor_sniff(tmp_path / "run.sqlite") == 1.0
    with pytest.raises(InputError, match=r"nothing of devices.*nsys profile -t cuda"):
        nsys.advisor_read(tmp_path / "run.sqlite")
