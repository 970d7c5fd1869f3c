"""What a process of ours started ends with it, also what starts others anew."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from patience import PATIENCE_S

from advisor.support import containment

#: Ten pairs of processes, half of them in sessions of their own: the first starts the second anew whenever it ends.
PAIRS = f"""
import os, time
from advisor.support import containment
containment.die_with_parent()
end = time.monotonic() + {PATIENCE_S}
for pair in range(10):
    if os.fork() == 0:
        if pair % 2:
            os.setsid()
        while time.monotonic() < end:
            if os.fork() == 0:
                time.sleep({PATIENCE_S})
            os.wait()
        os._exit(0)
"""


def start(then: str, mark: str) -> subprocess.Popen[str]:
    """Start the pairs in a session of their own, where ``mark`` tells them from all other processes."""
    command = [sys.executable, "-c", f"{PAIRS}\n{then}", mark]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def count_processes(mark: str) -> int:
    """Return how many processes have ``mark`` in their command; those that ended have none."""
    count = 0
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            count += entry.isdigit() and mark.encode() in Path("/proc", entry, "cmdline").read_bytes()
    return count


def test_what_starts_others_anew_is_killed_with_its_parent(tmp_path: Path) -> None:
    with start("print('started', flush=True); time.sleep(60)", str(tmp_path)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        containment.kill_tree(process.pid)
    assert not count_processes(str(tmp_path))


def test_what_starts_others_anew_is_killed_by_its_parent(tmp_path: Path) -> None:
    with start("containment.kill_descendants(); print('killed', flush=True); time.sleep(9)", str(tmp_path)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "killed\n"
        assert count_processes(str(tmp_path)) == 1
        process.kill()
