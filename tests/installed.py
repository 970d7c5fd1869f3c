"""Fresh environments with what was built from this repository installed in them; no network is needed.

The dependencies come from the environment that runs the tests: its packages stand behind the new environment's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patience import PATIENCE_S

ROOT = Path(__file__).parents[1]

#: What an installed gapwatch finds of itself, as JSON.
_FOUND = """
import json, gapwatch
gapwatch.bind_own_package()
import advisor
from advisor.extension import host
from advisor.support import bundled
def names(folder):
    return sorted(entry.name for entry in bundled.find_data_folder(folder).iterdir() if entry.name.endswith(".yaml"))
loaded = host.load_plugins()
print(json.dumps({
    "advisor": advisor.__file__,
    "plugins": {one.name: [one.origin, one.problem] for one in loaded.plugins},
    "commands": [one.name for one in loaded.collect_commands()],
    "facts": [one.name for one in loaded.collect_facts()],
    "rules": names("rules"),
    "machine_models": names("machine_models"),
    "schema": __import__("advisor.formats.native", fromlist=["load_schema"]).load_schema()["title"],
}))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment; its programs see nothing of the variables of Python's that the tests run under."""

    folder: Path

    def run(self, program: str, *arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=cwd,
            env={**inherited, "HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache"), **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def found(self, **variables: str) -> dict[str, Any]:
        """What gapwatch finds of itself."""
        done = self.run("python", "-c", _FOUND, cwd=self.folder, **variables)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def environment(folder: Path, *what: str) -> Environment:
    """Make an environment and install wheels or, after ``-e``, a source tree."""
    venv.create(folder, symlinks=True)
    own = next(folder.glob("lib/python*/site-packages"))
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed", "--disable-pip-version-check"]
    _succeed([sys.executable, "-m", "pip", "--python", str(folder), "install", "-q", *offline, *what], folder)
    return Environment(folder)


def build(source: Path, target: str, into: Path) -> Path:
    """Build the ``wheel`` or ``sdist`` of a source tree and return its path."""
    _succeed([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)], source)
    (built,) = into.iterdir()
    return built


def _succeed(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
