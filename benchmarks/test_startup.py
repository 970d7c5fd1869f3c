"""How long the command takes to say its first word, against Python with numpy and rich loaded.

``pytest -s benchmarks/test_startup.py`` prints the milliseconds of ``--help`` and of the advice on a small profile,
with the rules read from their files and with the rules as they were kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

PROFILE = Path(__file__).parents[1] / "tests" / "profiles" / "fig4.json"
ADVISE = (sys.executable, "-m", "gapwatch", "advise", str(PROFILE))
COMMANDS = {
    "python": (sys.executable, "-c", "pass"),
    "python with numpy and rich": (sys.executable, "-c", "import numpy, rich.text"),
    "help": (sys.executable, "-m", "gapwatch", "--help"),
    "advice, rules read": ADVISE,
    "advice, rules kept": ADVISE,
}


@pytest.mark.benchmark(group="start-up")
@pytest.mark.parametrize("name", COMMANDS)
def test_startup(benchmark: BenchmarkFixture, name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def once() -> bytes:
        done = subprocess.run(COMMANDS[name], env=environment, capture_output=True, check=True)
        return done.stdout

    def forget() -> None:
        if name == "advice, rules read":
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)

    said = benchmark.pedantic(once, setup=forget, rounds=15, warmup_rounds=2)
    benchmark.extra_info["least ms"] = round(benchmark.stats.stats.min * 1e3)
    assert said or name.startswith("python")
