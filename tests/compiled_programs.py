"""Small programs that tests compile, where there is a compiler."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_S = 120


def compile_program(folder: Path, compiler: str, source: str, *options: str, suffix: str = ".c") -> Path:
    """Return a program made of one source; skips the test where the compiler is missing."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    file = folder / f"program{suffix}"
    file.write_text(source, encoding="utf-8")
    program = folder / f"{compiler}{''.join(options).replace('/', '')}"
    subprocess.run(
        [compiler, *options, file.name, "-o", program.name, "-lm"],
        check=True, capture_output=True, timeout=LIMIT_S, cwd=folder,
    )  # fmt: skip
    return program
