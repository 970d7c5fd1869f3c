"""The tests see nothing of the host's settings; without that, each of them would depend on who runs it."""

from __future__ import annotations

import locale
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
from isolation import KEPT, KEPT_PREFIXES, kept_variables

from advisor.analysis import machines

SETTINGS = {
    "COLUMNS": "40", "GIT_CONFIG_GLOBAL": "/etc/passwd", "HOME": "/nowhere", "LC_ALL": "C", "NO_COLOR": "1",
    "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "3", "TERM": "dumb", "TZ": "Asia/Kathmandu",
    "XDG_DATA_HOME": "/nowhere",
}  # fmt: skip


def test_settings_of_users_terminals_and_libraries_are_left_behind() -> None:
    assert kept_variables(SETTINGS) == {}
    own = {"HOME", "LANG", "TZ", "XDG_CACHE_HOME", "GAPWATCH_STATE", "NUMBA_CACHE_DIR"}
    assert [name for name in os.environ if not (name in KEPT | own or name.startswith(KEPT_PREFIXES))] == []


def test_what_steers_the_tests_reaches_them() -> None:
    """Else ``make soak`` and its like pass because they leave out what they are for."""
    sources = (path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("*.py"))
    asked = {name for text in sources for name in re.findall(r'os\.environ\.get\("(GAPWATCH_\w+)"', text)}
    assert asked
    assert asked <= KEPT


def test_what_is_run_sees_the_same_as_the_tests() -> None:
    program = "import os, time; print(os.environ['HOME'], time.tzname[0], oct(os.umask(0)))"
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert seen == [os.environ["HOME"], "UTC", "0o22"]


def test_home_can_be_written_to_and_holds_no_settings() -> None:
    home = Path.home()
    assert str(home) == os.environ["HOME"]
    assert os.access(home, os.W_OK)
    assert not (home / ".config" / "gapwatch").exists()


def test_the_machine_has_a_clock_and_nobody_else_works_on_it() -> None:
    assert psutil.getloadavg() == (0.0, 0.0, 0.0)
    found = machines.load_host_machine()
    assert (found.title, found.frequency) == ("Machine of the tests @ 2.00GHz", 2e9)
    assert (found.sockets, found.cores_per_socket, found.threads_per_core) == (1, 4, 1)


def test_times_and_texts_are_those_of_no_country() -> None:
    assert time.tzname[0] == "UTC"
    assert locale.setlocale(locale.LC_NUMERIC) in ("C", "C.UTF-8"), "a library may have taken over LANG"
