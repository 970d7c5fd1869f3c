"""What an output itself says about how the run could be faster is passed on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from timing_profiles import HERE

import gapwatch

if TYPE_CHECKING:
    from pathlib import Path

SIMD = """Highest SIMD level supported by all nodes in run: AVX2_256
SIMD instructions selected at compile time:       SSE4.1
"""
OTHER = (
    "This program was compiled for different hardware than you are running on,\nwhich could influence performance.\n"
)
NAMES = ("advice of the program", "built for older processors")

#: What the recorded log of GROMACS says of itself.
OWN = re.compile(r"NOTE: The number of threads|Highest SIMD level|SIMD instructions selected|This program was compiled")


@pytest.mark.parametrize(
    ("name", "lines", "told"),
    [
        ("gromacs.log", SIMD + OTHER, "compiled for SSE4.1, but the processors have AVX2_256: build it"),
        ("gromacs.log", SIMD, ""),
        (
            "gromacs.log",
            "WARNING: Oversubscribing the available 8 logical CPU cores with 16 threads.\n",
            "16 threads share 8 logical cores, which costs a lot: start 8 (-nt 8)",
        ),
        (
            "gromacs.log",
            "NOTE: The number of threads is not equal to the number of (logical) cores\n",
            "threads are not pinned to cores, which can cost a lot: run it with -pin on",
        ),
        (
            "OUTCAR",
            "|        NCORE= 4 - approx SQRT( number of cores)       |\n",
            "NCORE = 1 may be grossly inefficient",
        ),
        ("pwscf.out", " suboptimal parallelization: some nodes have no k-points\n", "some pools have no k-points"),
    ],
)
def test_it_is_said_once(name: str, lines: str, told: str, tmp_path: Path) -> None:
    text = OWN.sub("", (HERE / name).read_text())
    (tmp_path / name).write_text(lines + lines + text)
    run = gapwatch.load(tmp_path / name)
    notes = [note.text for note in run.grade.notes if note.name in NAMES]
    assert len(notes) == bool(told)
    assert all(told in note for note in notes)
    shown = " ".join(run.to_text().split())
    assert ("The program itself says: " + told in shown) == bool(told)
    assert run.grade.score == gapwatch.load(HERE / name).grade.score
