"""What the tests run under instead of the host's settings: variables, home, time zone, umask, load and machine."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from advisor.analysis.machines import local_machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

#: The variables that a test may see of whoever runs it: where programs and libraries are, and what steers the tests.
KEPT = {
    "CC", "CI", "CXX", "FC", "GAPWATCH_DAMAGE", "GAPWATCH_DEEDS", "GAPWATCH_FUZZ", "GAPWATCH_SEEDS", "LD_LIBRARY_PATH",
    "MPIRUN", "PATH", "PYENV_ROOT", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV",
}  # fmt: skip
KEPT_PREFIXES = ("COVERAGE_", "COV_CORE_", "HYPOTHESIS_", "PYTEST_")
#: What stands in for all others.
GIVEN = {"LANG": "C.UTF-8", "TZ": "UTC0"}
#: Set for the workers of pytest-xdist, which share the home and what they compile.
HOME_VARIABLE = "PYTEST_GAPWATCH_HOME"
_UMASK = 0o022
_CPUS = "sys/devices/system/cpu"
_CACHES = (("1", "Data", "48K", "0"), ("2", "Unified", "2048K", "0"), ("3", "Unified", "64M", "0-3"))


def kept_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those variables that are none of the settings of a user, a terminal, a locale or a library."""
    return {name: value for name, value in variables.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}


def isolate(patch: pytest.MonkeyPatch) -> ExitStack:
    """Leave the host's settings behind; closing what is returned, and undoing ``patch``, brings them back."""
    closing = ExitStack()
    closing.callback(os.umask, os.umask(_UMASK))
    home = os.environ.get(HOME_VARIABLE)
    if home is None:
        home = tempfile.mkdtemp(prefix="gapwatch-tests-")
        closing.callback(shutil.rmtree, home, ignore_errors=True)
        write_machine(Path(home, "machine"))
    given = GIVEN | {"HOME": home, "XDG_CACHE_HOME": os.path.join(home, ".cache"), HOME_VARIABLE: home}
    wanted = kept_variables(os.environ) | given
    for name in os.environ.keys() - wanted.keys():
        patch.delenv(name)
    for name, value in wanted.items():
        patch.setenv(name, value)
    time.tzset()
    closing.callback(time.tzset)
    patch.setattr(psutil, "getloadavg", lambda: (0.0, 0.0, 0.0))
    for function in (local_machine.detect_machine, local_machine.identify_processor):
        patch.setattr(function, "__defaults__", (Path(home, "machine"),))
    return closing


def write_machine(root: Path) -> None:
    """Write what Linux says of a machine with four cores at 2 GHz, whose processor no model describes."""
    files = {"proc/cpuinfo": "processor\t: 0\nmodel name\t: Machine of the tests @ 2.00GHz\nflags\t\t: fpu sse2 avx2"}
    for cpu in range(4):
        files[f"{_CPUS}/cpu{cpu}/topology/physical_package_id"] = "0"
        files[f"{_CPUS}/cpu{cpu}/topology/thread_siblings_list"] = str(cpu)
    for index, values in enumerate(_CACHES):
        for name, value in zip(("level", "type", "size", "shared_cpu_list"), values, strict=True):
            files[f"{_CPUS}/cpu0/cache/index{index}/{name}"] = value
        files[f"{_CPUS}/cpu0/cache/index{index}/coherency_line_size"] = "64"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="ascii")
