"""PyTorch's table of operators, recorded, and Caliper's report of regions, as its documentation shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from timing_profiles import HERE, gap_of, seconds

import gapwatch
from advisor.formats import timing_tables
from advisor.model.errors import InputError
from advisor.model.records import DEVICES_UNSEEN

if TYPE_CHECKING:
    from pathlib import Path

RULE = "-" * 20 + ("  " + "-" * 12) * 9 + "  \n"
#: The columns that a run with a device has.
DEVICE = (
    RULE
    + "                Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self CUDA"
    + "   Self CUDA %    CUDA total    # of Calls  \n"
    + RULE
    + "        aten::linear        20.00%     400.000ms        20.00%     400.000ms       4.000ms     100.000ms"
    + "        10.00%     100.000ms           100  \n"
    + "cudaDeviceSynchronize        70.00%        1.400s        70.00%        1.400s      14.000ms       0.000us"
    + "         0.00%       0.000us           100  \n"
    + RULE
    + "Self CPU time total: 2.000s\nSelf CUDA time total: 1.000s\n\n"
)
REGIONS = """Path              Min time/rank Max time/rank Avg time/rank Time %
main                   0.100000      0.120000      0.110000  1.447368
  mainloop             1.200000      1.900000      1.500000 19.736842
    compute            4.000000      6.000000      5.000000 65.789474
    MPI_Allreduce      0.100000      1.900000      0.890000 11.710526
  init                 0.100000      0.100000      0.100000  1.315789

"""


def test_operators_take_their_own_time() -> None:
    profile = timing_tables.advisor_read(HERE / "pytorch.txt")
    found = seconds(profile)
    assert profile.actual_s == pytest.approx(3.769)
    assert (found["aten::mm"], found["step"]) == pytest.approx((2.238, 0.089765))
    assert sum(found.values()) == pytest.approx(3.769, rel=1e-3), "rows that are not listed are in the run's own time"
    assert gapwatch.load(HERE / "pytorch.txt").verdict == "nothing significant"


def test_the_host_waits_for_its_device(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(DEVICE)
    profile = timing_tables.advisor_read(tmp_path / "a.txt")
    assert gap_of(profile, "W+X").seconds == pytest.approx(1.4)
    assert any(note.name == DEVICES_UNSEEN and "1.00 s in all" in note.text for note in profile.notes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Self CPU time total: 2.000s\n", "", "ends before the total"),
        ("400.000ms        20.00%     400.000ms", "400.000ms", "cells below"),
        ("20.00%     400.000ms        20.00%", "20.00%     500.000ms        20.00%", "are not 20.00%"),
    ],
)
def test_mistakes(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in DEVICE
    (tmp_path / "a.txt").write_text(DEVICE.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        timing_tables.advisor_read(tmp_path / "a.txt")


def test_regions_of_caliper_add_up_to_the_run(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(REGIONS)
    profile = timing_tables.advisor_read(tmp_path / "a.txt")
    assert profile.actual_s == pytest.approx(7.6, rel=0.02)
    assert seconds(profile)["compute"] == pytest.approx(5.0)
    assert gap_of(profile, "L").seconds == pytest.approx(0.79)
    (tmp_path / "a.txt").write_text(REGIONS.replace("65.789474", "45.789474"))
    with pytest.raises(InputError, match="line 4"):
        timing_tables.advisor_read(tmp_path / "a.txt")
