"""A run as the history stores it, and writers of the history that are killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from native_documents import PROFILES

from advisor.extension.host import load_plugins
from advisor.history.database import HistoryWriter
from advisor.history.runs import ProfileUnit
from advisor.pipeline import Options, advise

ADVICE = advise([PROFILES / "fig4.json"], Options(), load_plugins())
KILLED = """
import sys
from pathlib import Path
from advisor.history.database import HistoryWriter
made = HistoryWriter(Path(sys.argv[1]))
print(made.connection.execute("SELECT count(*) FROM folders").fetchone()[0], flush=True)
while True:
    with made.transaction() as connection:
        count = made.connection.execute("SELECT count(*) FROM folders").fetchone()[0]
        rows = [(b"%d-%d" % (count, n),) for n in range(5000)]
        connection.executemany("INSERT INTO folders (path) VALUES (?)", rows)
    print("stored", flush=True)
"""


def unit(name: str, digest: str = "d") -> ProfileUnit:
    return ProfileUnit(Path("/data") / name, "native", digest)


def kill_repeatedly(folder: Path, times: int, seed: int) -> int:
    """Kill writers in the midst of large transactions; return how many transactions they had acknowledged."""
    chance, acknowledged = random.Random(seed), 0
    for _ in range(times):
        process = subprocess.Popen([sys.executable, "-c", KILLED, folder], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert int(process.stdout.readline()) >= 5000 * acknowledged
        time.sleep(chance.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().count("stored")
        process.stdout.close()
        process.wait()
        made = HistoryWriter(folder)
        assert made.set_aside is None
        (rows,) = made.connection.execute("SELECT count(*) FROM folders").fetchone()
        assert rows >= 5000 * acknowledged
        assert rows % 5000 == 0
        acknowledged = rows // 5000
        made.close()
    return acknowledged
