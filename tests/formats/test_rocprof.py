"""Tables of rocprofv3, written here as documented, whole and damaged."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from advisor.formats.rocprof import advisor_read, advisor_sniff
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


def write_table(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)


def write_process(folder: Path, pid: int, length: int = 10) -> None:
    """Three kernels, each awaited by the host before the next is launched 1 ms later."""
    calls: list[dict[str, object]] = []
    kernels: list[dict[str, object]] = []

    def add_call(name: str, start: int, end: int, link: int) -> None:
        calls.append({
            "Domain": "HIP_RUNTIME_API", "Function": name, "Process_Id": pid, "Thread_Id": pid, "Correlation_Id": link,
            "Start_Timestamp": start, "End_Timestamp": end,
        })  # fmt: skip

    for step in range(3):
        at = (length + 2) * MS * step
        add_call("hipLaunchKernel", at, at + 10_000, 2 * step + 1)
        begin = at + 20_000
        kernels.append({
            "Kind": "KERNEL_DISPATCH", "Agent_Id": "Agent 4", "Queue_Id": 1, "Stream_Id": 0, "Thread_Id": pid,
            "Dispatch_Id": step, "Kernel_Id": 1, "Kernel_Name": "stencil(double*)", "Correlation_Id": 2 * step + 1,
            "Start_Timestamp": begin, "End_Timestamp": begin + length * MS,
        })  # fmt: skip
        add_call("hipDeviceSynchronize", at + 30_000, begin + length * MS + 5000, 2 * step + 2)
    write_table(folder / f"{pid}_hip_api_trace.csv", calls)
    write_table(folder / f"{pid}_kernel_trace.csv", kernels)


def test_seconds_of_two_processes(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    write_process(tmp_path, 101)
    assert advisor_sniff(tmp_path) is not None
    profile = advisor_read(tmp_path)
    use = profile.devices
    assert use is not None
    assert len(use.devices) == 2
    assert sum(each.mean() for each in use.seconds.values()) == pytest.approx(profile.actual_s, rel=1e-9)
    ms = {name: each.round(5).tolist() for name, each in use.seconds.items() if each.any()}
    assert ms["compute"] == [0.03, 0.03]
    assert ms["host"] == [0.00395, 0.00395]  # above 0.25 ms it is no part of the launches
    assert profile.paradigms == ("hip",)


def test_a_table_of_kernels_brings_the_others(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    table = tmp_path / "100_kernel_trace.csv"
    assert advisor_sniff(table) == 1.0
    use = advisor_read(table).devices
    assert use is not None
    assert use.facts["sync_calls"] == 3
    assert advisor_sniff(tmp_path / "100_hip_api_trace.csv") is None


def test_damage_ends_in_a_message(tmp_path: Path) -> None:
    write_process(tmp_path, 100)
    table = tmp_path / "100_kernel_trace.csv"
    whole = table.read_text()
    table.write_text(whole[: len(whole) * 2 // 3].rstrip('"0123456789'))
    with pytest.raises(InputError, match="line"):
        advisor_read(table)
