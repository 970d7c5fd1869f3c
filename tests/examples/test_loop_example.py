"""examples/loop: every patch applies and keeps the result, and the scripted agent goes through its rounds."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from command_line import ROOT, environment
from patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("mcp", reason="the extra mcp is not installed")

EXAMPLE = ROOT / "examples" / "loop"
PATCHES = sorted((EXAMPLE / "patches").glob("*.patch"))
TOOLS = ("gcc", "make", "patch")


@pytest.fixture(autouse=True)
def _require_tools() -> None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    return done.stdout


def test_patches_apply_in_any_order_and_keep_the_result(tmp_path: Path) -> None:
    results = []
    for number, order in enumerate(itertools.permutations(PATCHES)):
        folder = tmp_path / f"{number}"
        shutil.copytree(EXAMPLE / "program", folder)
        for patch in order:
            run(folder, "patch", "-p1", "-s", "-i", str(patch))
        if number == 0:
            results.append(patched := (folder / "grid.c").read_text(encoding="utf-8"))
        assert (folder / "grid.c").read_text(encoding="utf-8") == patched
    for folder in (EXAMPLE / "program", tmp_path / "0"):
        copy = tmp_path / f"built-{folder.name}"
        shutil.copytree(folder, copy)
        run(copy, "make", "-s")
        results.append(run(copy, "./grid", "3", "40"))
    assert float(results[1]) == pytest.approx(float(results[2]), rel=1e-9)
    assert len(PATCHES) == 3


def test_the_agent_goes_through_its_rounds(tmp_path: Path) -> None:
    """What is advised depends on what else the machine does; that the loop runs, and what it says, does not."""
    home = tmp_path / "home"
    home.mkdir()
    variables = environment(home, GRID="6 120", REPEATS="2", OMP_NUM_THREADS="2")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "agent.py"), str(tmp_path)], env=variables, capture_output=True, text=True,
        check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("> get_advice") >= 1
    assert done.stdout.count("> measure") == 1 + done.stdout.count("# round")
    assert done.stdout.count("> mark_applied") == done.stdout.count("# round")
    assert "no item that a patch is there for" in done.stdout or done.stdout.count("# round") == 3
