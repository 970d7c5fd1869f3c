"""Running the command as a user does, in a process and a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_S

ROOT = Path(__file__).parents[1]


def environment(home: Path, **more: str) -> dict[str, str]:
    """An environment without the settings of whoever runs the tests; ``more`` comes on top."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH") if name in os.environ}
    return kept | {"HOME": str(home), "LANG": "C.UTF-8"} | more


def run(
    *arguments: str, home: Path, stdout: int = subprocess.PIPE, code: str | None = None, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """Run ``gapwatch ARGUMENTS`` (or the Python ``code`` with these arguments)."""
    what = ["-c", code] if code else ["-m", "gapwatch"]
    return subprocess.run(
        [sys.executable, *what, *arguments], stdout=stdout, stderr=subprocess.PIPE, cwd=home,
        env=environment(home, **more), timeout=PATIENCE_S, check=False,
    )  # fmt: skip
