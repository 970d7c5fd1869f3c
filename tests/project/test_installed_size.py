"""How large an installation without extras is. Needs an index of packages that pip reaches; skipped without one."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from installed import ROOT, build
from interpreters import newest_interpreter

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes of site-packages that an installation may take.
LARGEST: Final = 110_000_000


def test_an_installation_without_extras_is_small(tmp_path: Path) -> None:
    version, interpreter = newest_interpreter()
    wheel = build(ROOT, "wheel", tmp_path / "wheel")
    folder = tmp_path / "environment"
    subprocess.run([interpreter, "-m", "venv", folder], check=True, timeout=120)
    command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary", ":all:"]
    site = next(folder.glob("lib/python*/site-packages"))
    before = size(site)
    done = subprocess.run([*command, wheel], capture_output=True, text=True, timeout=600)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"no index of packages with wheels for Python {version} is reached")
    assert done.returncode == 0, done.stderr
    assert size(site) - before <= LARGEST, {path.name: size(path) for path in site.iterdir() if path.is_dir()}


def size(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
