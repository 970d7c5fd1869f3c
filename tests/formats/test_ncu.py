"""Tables of Nsight Compute in both forms, written here as documented, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.analysis import bounds, gaps
from advisor.extension import host
from advisor.formats.ncu import advisor_read, advisor_sniff
from advisor.model.errors import InputError
from advisor.pipeline import Options, advise

PROFILES = Path(__file__).parents[1] / "profiles"
COLUMNS = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC"
HEAD = ",".join(f'"{name}"' for name in COLUMNS.split(","))
#: Milliseconds, percent of the peak of computation and memory, occupancy, active threads, sectors and those needed.
KERNELS = {"stencil(double*)": (8, 20, 85, 60, 32, 100, 40), "solve(int)": (2, 10, 15, 10, 12, 50, 50)}
RAW = (
    "gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active", "smsp__thread_inst_executed_per_inst_executed.ratio",
    "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal",
)  # fmt: skip


def write_raw(path: Path) -> Path:
    """A row for each kernel, below a row of units, behind what the program printed."""
    lines = ["steps: 10", "==PROF== Connected to process 7 (a.out)"]
    lines.append(HEAD + "".join(f',"{name}"' for name in RAW))
    lines.append('"","","","","","","","","","",""' + ',"us","%","%","%","","",""')
    for number, (name, (ms, *values)) in enumerate(KERNELS.items()):
        start = f'"{number}","7","a.out","h","{name}","1","7","(256, 1, 1)","(64, 1, 1)","0","9.0"'
        lines.append(f'{start},"{ms * 1000:,}"' + "".join(f',"{value}"' for value in values))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_details(path: Path) -> Path:
    """A row for each metric."""
    names = (
        "Duration",
        "Compute (SM) Throughput",
        "Memory Throughput",
        "Achieved Occupancy",
        "Avg. Active Threads Per Warp",
    )
    units = ("msecond", "%", "%", "%", "")
    lines = [HEAD + ',"Section Name","Metric Name","Metric Unit","Metric Value"']
    for number, (kernel, values) in enumerate(KERNELS.items()):
        start = f'"{number}","7","a.out","h","{kernel}","1","7","(256, 1, 1)","(64, 1, 1)","0","9.0"'
        for name, unit, value in zip(names, units, values, strict=False):
            lines.append(f'{start},"Section","{name}","{unit}","{value}"')
        lines.append(f'{start},"Memory","Memory Throughput","Gbyte/second","812.4"')
        lines.append(f'{start},"Launch Statistics","# SMs","SM","132"')
        lines.append(f'{start},"Launch Statistics","Grid Size","","{66 if number else 1000}"')
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("write", [write_raw, write_details])
def test_seconds_of_kernels(tmp_path: Path, write: object) -> None:
    file = write(tmp_path / "kernels.csv")  # type: ignore[operator]
    assert advisor_sniff(file) == 1.0
    profile = advisor_read(file)
    use = profile.devices
    assert use is not None
    assert profile.actual_s == pytest.approx(0.010)
    assert use.peak_s is not None
    assert float(use.peak_s[0]) == pytest.approx(0.008 * 0.20 + 0.002 * 0.10)
    assert use.facts["bandwidth_bound_share"] == pytest.approx(0.8)
    assert use.facts["latency_bound_share"] == pytest.approx(0.2)
    assert use.facts["low_occupancy_share"] == pytest.approx(0.2)
    assert use.facts["divergent_share"] == pytest.approx(0.2)
    if write is write_raw:
        assert use.facts["excess_sector_share"] == pytest.approx(60 / 150)
    else:
        assert use.facts["small_grid_share"] == pytest.approx(0.2)
    found = gaps.attribute_gaps(profile, bounds.compute_bounds(profile))
    kernels = next(gap for gap in found if gap.name == "kernels")
    assert kernels.seconds == pytest.approx(0.010 - 0.0018)
    assert kernels.regions[0].name == "stencil(double*) (memory)"
    assert sum(share.seconds for share in kernels.regions) == pytest.approx(kernels.seconds)


def test_pages_of_text(tmp_path: Path) -> None:
    file = PROFILES / "device_sums" / "ncu-details.txt"
    assert advisor_sniff(file) == 1.0
    use = advisor_read(file).devices
    assert use is not None
    assert use.peak_s is not None
    assert float(use.peak_s[0]) == pytest.approx(0.008 * 0.20 + 0.002 * 0.10)
    assert use.facts["bandwidth_bound_share"] == pytest.approx(0.8)  # not the 301.27 GB/s of another section
    assert use.facts["small_grid_share"] == pytest.approx(0.2)
    assert use.facts["low_occupancy_share"] == pytest.approx(0.2)
    old = file.read_text().replace(" (64, 64, 1)x(16, 16, 1), Context", ", 2021-Nov-12 09:38:11, Context")
    (tmp_path / "old.txt").write_text("\n".join(line for line in old.splitlines() if "Metric Name" not in line))
    assert advisor_sniff(tmp_path / "old.txt") == 1.0
    assert advisor_read(tmp_path / "old.txt").actual_s == pytest.approx(0.010)
    (tmp_path / "notes.txt").write_text("    Section: results\nContext 1, Stream 7\n")
    assert advisor_sniff(tmp_path / "notes.txt") is None


def test_a_kernel_whose_counting_was_stopped_is_not_missed(tmp_path: Path) -> None:
    text = (PROFILES / "device_sums" / "ncu-details.txt").read_text()
    stopped = '==PROF== Profiling "stencil" - 2: 0%....==PROF== Trying to shutdown target application\n'
    (tmp_path / "stopped.txt").write_text(text.replace("==PROF== Disconnected", f"{stopped}==PROF== Disconnected"))
    assert advisor_read(tmp_path / "stopped.txt").actual_s == pytest.approx(0.010)
    (tmp_path / "cut.txt").write_text(
        text.replace("==PROF== Disc", stopped.replace("0%....", "100%") + "==PROF== Disc")
    )
    with pytest.raises(InputError, match="cut off"):
        advisor_read(tmp_path / "cut.txt")


def test_counted_kernels_have_no_noise(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text(
        (PROFILES / "device_sums" / "ncu-details.txt").read_text().replace("8,000.00", "4,000.00")
    )
    advice = advise([tmp_path / "short.txt"], Options(), host.load_plugins())
    assert advice.profile.actual_s == pytest.approx(0.006)
    assert advice.grade.letter in "AB"
    assert "D-33" in {each for item in advice.recommendations for each in (item.action, *item.alternatives)}


def test_advice_on_counted_kernels(tmp_path: Path) -> None:
    file = write_raw(tmp_path / "kernels.csv")
    text = file.read_text()
    file.write_text(text.replace('"8,000"', '"80,000"').replace('"2,000"', '"20,000"'))
    advice = advise([file], Options(), host.load_plugins())
    assert "D-33" in {each for item in advice.recommendations for each in (item.action, *item.alternatives)}


def test_tables_without_durations_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "kernels.csv"
    file.write_text(HEAD + ',"Section Name","Metric Name","Metric Unit","Metric Value"\n')
    with pytest.raises(InputError, match="no durations"):
        advisor_read(file)
    file.write_text("ID;Process ID\n")
    assert advisor_sniff(file) is None
    whole = write_raw(file).read_bytes()
    for at in range(1, 40):
        file.write_bytes(whole[: len(whole) * at // 40])
        try:
            advisor_read(file)
        except InputError:
            continue


def test_metrics_that_a_device_lacks_are_unknown(tmp_path: Path) -> None:
    file = write_raw(tmp_path / "kernels.csv")
    file.write_text(file.read_text().replace('"20","85"', '"n/a","n/a"'))
    use = advisor_read(file).devices
    assert use is not None
    assert use.facts.get("bandwidth_bound_share") is None
