"""What the recorder sees of the numbers themselves: too small ones, data that come again, comparisons for a sort."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from recorded_runs import LIBRARIES, SOURCES, compile_program, record_run

from advisor.collect.binaries.executables import attach_executable
from advisor.formats import recording
from advisor.formats.recording import sampling
from advisor.formats.recording.contents import read_recording
from advisor.formats.recording.sampling import SLOW_RATIO
from advisor.trace.counts import COMPARISON_SECONDS, REPEATED_SECONDS
from advisor.trace.recordings.layout import REPEATED, SUBNORMAL

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="registers are looked into on x86-64")


def seconds_of(profile: Profile, count: str, name: str) -> tuple[float, float]:
    """The seconds of a count, and all that was computed, in the functions of a name."""
    rows = [row for row, region in enumerate(profile.regions) if region.name == name]
    return float(profile.counts[count][rows].sum()), float(profile.sum_by_region("cpu_s")[rows].sum())


def test_samples_tell_where_numbers_are_too_small(tmp_path: Path) -> None:
    folder, _, err = record_run(tmp_path, str(compile_program(tmp_path, ("gcc",), "subnormal.c")))
    assert "recorded into" in err, err
    samples = read_recording(folder).threads[0].samples
    assert ((samples["state"] & SUBNORMAL) > 0).any()
    profile = recording.advisor_read(folder)
    ratio = read_recording(folder).threads[0].process.subnormal_ratio
    assert ratio > 0.9, "measured on this processor"
    if ratio < SLOW_RATIO:
        assert "code.subnormal_s" not in profile.counts, "this processor takes no longer for small numbers"
        return
    small, whole = seconds_of(profile, "code.subnormal_s", "decay")
    assert small > 0.5 * whole > 0
    normal, elsewhere = seconds_of(profile, "code.subnormal_s", "grow")
    assert elsewhere > 0
    assert normal < 0.2 * elsewhere


@pytest.mark.parametrize(("ratio", "counted"), [(0.0, 2), (1.1, 0), (SLOW_RATIO - 0.1, 0), (SLOW_RATIO, 2), (40.0, 2)])
def test_small_numbers_count_where_they_take_longer(ratio: float, counted: int) -> None:
    """In recordings that do not say how long they take, too."""
    thread: Any = SimpleNamespace(
        samples={"state": np.array([SUBNORMAL, 0, SUBNORMAL])}, process=SimpleNamespace(subnormal_ratio=ratio)
    )
    places: Any = None
    assert sampling._find_subnormal(thread, places).sum() == counted


@pytest.mark.parametrize("library", LIBRARIES)
def test_broadcasts_of_the_same_data_are_marked(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    folder, _, err = record_run(
        tmp_path, *launcher, "-n", "2", str(compile_program(tmp_path, (compiler,), "repeated.c"))
    )
    assert "recorded into" in err, err
    lines = [
        at for at, line in enumerate((SOURCES / "repeated.c").read_text("ascii").splitlines(), 1) if "Bcast(" in line
    ]
    profile = recording.advisor_read(folder)
    repeated = {
        region.line: float(profile.counts[REPEATED_SECONDS][row].sum())
        for row, region in enumerate(profile.regions)
        if region.name == "MPI_Bcast"
    }
    same, changed, few, alike = (repeated[line] for line in lines)
    assert same > 0
    assert (changed, few, alike) == (0.0, 0.0, 0.0)
    for thread in read_recording(folder).threads[:2]:
        assert int((thread.records["tag"] == REPEATED).sum()) == 19


def test_functions_that_compare_are_part_of_sorting(tmp_path: Path) -> None:
    folder, _, err = record_run(tmp_path, str(compile_program(tmp_path, ("gcc",), "compared.c")))
    assert "recorded into" in err, err
    profile = attach_executable(recording.advisor_read(folder), None, (tmp_path,))
    compared, whole = seconds_of(profile, COMPARISON_SECONDS, "compare")
    assert compared == pytest.approx(whole)
    assert compared > 0
    sorting = profile.counts["code.sort_s"]
    rows = [row for row, region in enumerate(profile.regions) if region.name in ("compare", "qsort")]
    assert np.allclose(sorting[rows].sum(), profile.counts["code.all_s"][rows].sum())
