"""Bodies of parallel regions under the recorder: their code is found, whatever line their call has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recorded_runs import SOURCES, compile_program, record_run

from advisor.collect.binaries.program_code import describe_code
from advisor.formats import recording

if TYPE_CHECKING:
    from pathlib import Path

LINES = (SOURCES / "strided_product.c").read_text("ascii").splitlines()


def test_the_code_of_a_region_is_its_body_where_the_call_has_another_line(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("gcc", "-O2", "-fopenmp"), "strided_product.c")
    folder, _, err = record_run(tmp_path, str(program), OMP_NUM_THREADS="2")
    assert "recorded into" in err, err
    profile = recording.advisor_read(folder)
    (region,) = (region for region in profile.regions if region.name == "!$omp parallel")
    assert LINES[(region.line or 0) - 1] == "#pragma omp parallel for"
    counts = describe_code(profile, program).counts
    assert counts["code.strided_s"].sum() > 0.8 * counts["code.all_s"].sum() > 0
