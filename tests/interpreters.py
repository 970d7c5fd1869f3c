"""Which of the supported versions of Python are on this machine; run as a script, it prints them for the shell.

Each line is a version and the path of its interpreter, or ``-`` where the machine has none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

#: The versions that gapwatch is for, oldest first; the classifiers of pyproject.toml name those that were tried.
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")


def find_interpreter(version: str) -> Path | None:
    """Return an interpreter of ``version`` that starts and can make environments: on PATH, or one of pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    on_path = shutil.which(f"python{version}")
    candidates = [Path(on_path)] if on_path else []
    candidates += sorted(root.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    return next((path for path in candidates if _is_version(path, version)), None)


def newest_interpreter() -> tuple[str, Path]:
    """Return version and path of the newest supported interpreter on this machine."""
    found = ((version, find_interpreter(version)) for version in reversed(SUPPORTED))
    return next((version, path) for version, path in found if path)


def _is_version(path: Path, version: str) -> bool:
    """Whether the interpreter runs: those that pyenv puts on PATH say no unless their version is chosen."""
    program = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", program], capture_output=True, text=True, timeout=60)
    return done.returncode == 0 and done.stdout.strip() == version


if __name__ == "__main__":
    for each in SUPPORTED:
        print(each, find_interpreter(each) or "-")
