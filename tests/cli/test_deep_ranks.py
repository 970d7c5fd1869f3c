"""Further passes over programs of MPI, whose launchers need the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recorded_runs import LIBRARIES, compile_program, record_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("library", LIBRARIES)
def test_passes_run_the_ranks_again(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler,), "uneven_ranks.c")
    skipped = [word for name in ("machine", "instructions", "source") for word in ("--skip", name)]
    folder, _, err = record_run(tmp_path, *launcher, "-n", "2", str(program), options=("--deep", "--yes", *skipped))
    assert "recorded into" in err, err
    assert "brought nothing" not in err, err
    assert "what is noise" in err, err
    assert (folder / "recording" / "passes.json").is_file()
