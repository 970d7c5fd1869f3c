"""Reading a profile in a process of its own, by gapwatch or by Hatchet: seconds, and the memory it takes at most.

Hatchet is no dependency. The variable ``HATCHET_PYTHON`` names an interpreter that has it:
``python -m venv hatchet && hatchet/bin/pip install llnl-hatchet``, then ``HATCHET_PYTHON=hatchet/bin/python``.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PYTHON: Final = os.environ.get("HATCHET_PYTHON", sys.executable)

#: Reads the path in the last argument; imports are not timed.
_MEASURE: Final = """\
import json, resource, sys, time
{imports}
started = time.perf_counter()
{read}
seconds = time.perf_counter() - started
print(json.dumps({{"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}}))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading took: seconds, and megabytes of resident memory at most."""

    seconds: float
    peak_mb: float


@functools.cache
def _installed() -> bool:
    return subprocess.run([PYTHON, "-c", "import hatchet"], capture_output=True, check=False).returncode == 0


def by_hatchet(method: str, path: Path, options: str = "") -> Cost:
    """Return what ``hatchet.GraphFrame.<method>(path, <options>)`` takes; skips the test where Hatchet is missing."""
    if not _installed():
        pytest.skip("no Hatchet: pip install llnl-hatchet in an environment, HATCHET_PYTHON=that/bin/python")
    return _cost(PYTHON, "import hatchet", f"hatchet.GraphFrame.{method}(sys.argv[1]{options})", path)


def by_gapwatch(reader: str, path: Path) -> Cost:
    """Return what the reader of the module ``advisor.formats.<reader>`` takes from the files to the Profile."""
    imports = f"from pathlib import Path\nimport advisor.trace.callpaths.profile\nfrom advisor.formats import {reader}"
    return _cost(sys.executable, imports, f"{reader}.advisor_read(Path(sys.argv[1]))", path)


def _cost(python: str, imports: str, read: str, path: Path) -> Cost:
    program = _MEASURE.format(imports=imports, read=read)
    command = [python, "-W", "ignore", "-c", program, str(path)]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    found = json.loads(printed.splitlines()[-1])
    return Cost(found["seconds"], found["peak_mb"])
