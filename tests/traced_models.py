"""Models made of small programs under the tracer."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from compiled_programs import compile_program

from advisor_simulation.model.checks import read_model
from advisor_simulation.program.program_model import fold_program, trace_program, write_program_model

if TYPE_CHECKING:
    from pathlib import Path

    from advisor_simulation.model.records import Model
    from advisor_simulation.program.program_model import FoldedProgram, TracedProgram


def make_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, threads: int, *options: str, compiler: str = "gcc"
) -> tuple[Model, TracedProgram, FoldedProgram, Path]:
    """Return the model of a program of OpenMP; skips the test where QEMU or the compiler is missing."""
    if shutil.which("qemu-x86_64") is None:
        pytest.skip("qemu-x86_64 is not installed: apt-get install qemu-user")
    suffix = {"gcc": ".c", "g++": ".cpp"}[compiler]
    program = compile_program(folder, compiler, source, "-O2", "-g", "-fopenmp", *options, suffix=suffix)
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    run = folder / "run"
    run.mkdir()
    traced = trace_program([str(program)], program, folder, run)
    folded = fold_program(traced, folder)
    path = folder / "made.yaml"
    path.write_text(write_program_model(traced, folded, path), encoding="utf-8")
    return read_model(path), traced, folded, program
