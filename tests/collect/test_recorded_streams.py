"""Loops under the recorder that wait for memory, and templates of the library in the program's own code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from recorded_runs import compile_program, record_run

from advisor.collect.binaries.program_code import describe_code
from advisor.formats import recording

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="registers are recorded on x86-64 only")


@pytest.mark.parametrize(("numbers", "least", "most"), [("16000000", 0.4, 1.0), ("2000", 0.0, 0.0)])
def test_loops_wait_for_memory_where_arrays_are_larger_than_caches(
    tmp_path: Path, numbers: str, least: float, most: float
) -> None:
    program = compile_program(tmp_path, ("gcc", "-O3"), "streams.c")
    folder, _, err = record_run(tmp_path, str(program), numbers)
    assert "recorded into" in err, err
    counts = describe_code(recording.advisor_read(folder), program).counts
    assert least <= counts["code.streamed_s"].sum() / counts["code.all_s"].sum() <= most
    narrow = counts["code.baseline_s"].sum() / counts["code.all_s"].sum()
    assert narrow < 0.2 if least else narrow > 0.5, "wider vectors win nothing where memory holds a loop up"


@pytest.mark.parametrize(("rows", "least", "most"), [("2900", 0.0, 0.85), ("300", 0.9, 1.0)])
def test_another_order_of_a_sum_does_not_win_what_memory_takes(
    tmp_path: Path, rows: str, least: float, most: float
) -> None:
    program = compile_program(tmp_path, ("gcc", "-O2", "-fno-tree-vectorize"), "rows.c")
    folder, _, err = record_run(tmp_path, str(program), rows)
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    counts = describe_code(profile, program).counts
    at = [region.name for region in profile.regions].index("main")
    assert least <= counts["code.order_s"][at].sum() / counts["code.all_s"][at].sum() <= most


def test_templates_of_the_library_stand_at_the_line_that_calls_them(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("g++", "-O2"), "largest.cpp")
    folder, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    profile = describe_code(recording.advisor_read(folder), program)
    (sort,) = (number for number, region in enumerate(profile.regions) if region.name == "std::sort")
    assert (profile.regions[sort].file, profile.regions[sort].line) == ("largest.cpp", 13)
    assert profile.counts["code.sort_s"][sort].sum() > 0.5 * profile.counts["code.all_s"].sum()
