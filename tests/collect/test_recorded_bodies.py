"""Bodies of parallel regions under the recorder: their code is found, whatever line their call has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from recorded_runs import SOURCES, compile_program, record_run

from advisor.collect.binaries.elf_files import Symbol
from advisor.collect.binaries.inlined_regions import find_enclosing_function
from advisor.collect.binaries.program_code import describe_code
from advisor.formats import recording
from advisor.trace.recordings.layout import REGISTER_NAMES

if TYPE_CHECKING:
    from pathlib import Path

LINES = (SOURCES / "strided_product.c").read_text("ascii").splitlines()


def test_the_code_of_a_region_is_its_body_where_the_call_has_another_line(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-O2", "-fopenmp"), "strided_product.c")
    folder, _, err = record_run(tmp_path, str(program), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    (region,) = (region for region in profile.regions if region.name == "omp parallel")
    assert LINES[(region.line or 0) - 1] == "#pragma omp parallel for"
    counts = describe_code(profile, program).counts
    assert counts["code.strided_s"].sum() > 0.8 * counts["code.all_s"].sum() > 0


def test_registers_are_kept_with_the_samples_of_the_program(tmp_path: Path) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("registers are recorded on x86-64 only")
    folder = tmp_path / "new\nline"
    folder.mkdir()
    program = compile_program(folder, ("gcc", "-O2", "-fopenmp"), "strided_product.c")
    recorded, _, err = record_run(tmp_path, str(program), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    profile = recording.advisor_read(recorded)
    places = dict(profile.sampled_code)
    assert set(profile.sampled_registers) == set(places)
    assert all(values.shape[1] == len(REGISTER_NAMES) for values in profile.sampled_registers.values())
    assert all(len(values) <= places[place] for place, values in profile.sampled_registers.items())
    stack = np.concatenate([*profile.sampled_registers.values()])[:, REGISTER_NAMES.index("rsp")]
    assert (stack > 1 << 32).all(), "addresses of the stack"
    assert profile.sampled_pairs, "of both threads at the same places"
    assert all(pair.shape == (2, pair.shape[1], len(REGISTER_NAMES)) for pair in profile.sampled_pairs.values())
    first, second = np.concatenate([*profile.sampled_pairs.values()], axis=1)[:, :, REGISTER_NAMES.index("rsp")]
    assert not np.isin(first // (1 << 20), second // (1 << 20)).any(), "each thread has a stack of its own"


def test_what_qsort_calls_within_the_library_is_qsort(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-O2"), "sorted_blocks.c")
    recorded, _, err = record_run(tmp_path, str(program))
    assert "recorded into" in err, err
    profile = describe_code(recording.advisor_read(recorded), program)
    names = {region.name for region, row in zip(profile.regions, profile.counts["samples"], strict=True) if row.any()}
    assert {"qsort", "compare"} <= names
    assert not {name for name in names if "sort" in name} - {"qsort"}
    assert profile.counts["code.sort_s"].sum() > 0.1 * profile.counts["code.all_s"].sum()


@pytest.mark.parametrize(
    ("samples", "body"), [((), "larger"), (((0x120, 1),), "larger"), (((0x120, 1), (0x310, 5)), "ran")]
)
def test_of_the_bodies_of_a_template_the_one_that_ran_is_meant(samples: tuple[tuple[int, int], ...], body: str) -> None:
    """The line is in two bodies, and in the function that starts one of them."""
    symbols = {
        "larger": Symbol("_Z6smoothIfEvv._omp_fn.0", 0x100, 0x200),
        "ran": Symbol("_Z6smoothIdEvv._omp_fn.0", 0x300, 0x400),
        "starts": Symbol("_Z6smoothIdEvv", 0x500, 0x600),
    }

    class Image:
        def find_function(self, address: int) -> Symbol | None:
            return next((one for one in symbols.values() if one.begin <= address < one.end), None)

    spans = [(0x110, 0x140), (0x310, 0x320), (0x510, 0x5F0)]
    assert find_enclosing_function(spans, cast("Any", Image()), samples) == symbols[body]
