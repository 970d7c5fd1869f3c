"""Daemons that share a history on a server, all of which are killed at random moments, again and again.

``python tests/site_crashes.py [RUNS [SEED]]``: four daemons on one database, 5,000 runs.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from daemon_process import FAST
from native_documents import PROFILES
from postgres_server import PostgresServer

if TYPE_CHECKING:
    from typing import IO

RUNS, DAEMONS = 5_000, 4
#: So many profiles are written at a time, twenty times a second.
_AT_ONCE: Final = 2
#: Each so many profiles come to two daemons at once, as copies.
_COPIES: Final = 50
#: Between two kills (seconds), and how many kills of daemons come to one of the server.
_PAUSE_S: Final = (1.0, 24.0)
_DAEMON_KILLS: Final = 3
_LEAST_KILLS: Final = 2
_STORED: Final = re.compile(r"run (\d+): (\S+): ")


class SiteDaemon:
    """A daemon over a directory of its own; what it tells goes to a file, whoever kills it."""

    def __init__(self, top: Path, name: str, url: str) -> None:
        self.folder, self._log = top / name / "runs", top / name / "log"
        (top / name / "config" / "gapwatch").mkdir(parents=True)
        (top / name / "config" / "gapwatch" / "gapwatch.toml").write_text(FAST)
        self.folder.mkdir()
        self._env = {
            **os.environ, "XDG_CONFIG_HOME": str(top / name / "config"), "GAPWATCH_STATE": url,
            "XDG_STATE_HOME": str(top / name / "state"), "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] = self._log.open("ab")

    def start(self) -> None:
        """Start it where it is not there; without a server it ends at once."""
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "gapwatch", "watch", str(self.folder), "--format", "lines"]
            self._process = subprocess.Popen(command, env=self._env, stdout=self._output, stderr=self._output)

    def kill(self, how: int = signal.SIGKILL) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()

    def stop(self) -> None:
        """End it for good."""
        self.kill(signal.SIGTERM)
        self._output.close()

    def told(self) -> list[tuple[int, str]]:
        """The runs that it told of so far, by number and program."""
        return [(int(number), name) for number, name in _STORED.findall(self._log.read_text(errors="replace"))]

    def text(self) -> str:
        """All that it wrote."""
        return self._log.read_text(errors="replace")


def check_site(top: Path, runs: int, seed: int, patience_s: float) -> dict[str, int]:
    """Let daemons read ``runs`` profiles while they and the server are killed; return what happened.

    Raises ``AssertionError`` where a run is lost, or twice, or was told of and is not there.
    """
    chance = random.Random(seed)
    text = (PROFILES / "fig4.json").read_text(encoding="utf-8")
    kills = {"daemon": 0, "server": 0}
    with PostgresServer(durable=True) as server:
        database = server.make_database()
        daemons = [SiteDaemon(top, f"d{n}", server.url(database, name=f"d{n}")) for n in range(DAEMONS)]
        try:
            for daemon in daemons:
                daemon.start()
            written, next_kill, end = 0, monotonic() + 3.0, monotonic() + patience_s
            while _count_settled(server, database) < runs + runs // _COPIES or min(kills.values()) < _LEAST_KILLS:
                assert monotonic() < end, [daemon.text()[-2000:] for daemon in daemons]
                for _ in range(min(_AT_ONCE, runs - written)):
                    written += 1
                    _write_profile(text, written, daemons, chance)
                if monotonic() > next_kill:
                    _kill_one(server, daemons, kills, chance)
                    next_kill = monotonic() + chance.uniform(*_PAUSE_S)
                for daemon in daemons:
                    daemon.start()
                sleep(0.05)
        finally:
            for daemon in daemons:
                daemon.stop()
        told = [one for daemon in daemons for one in daemon.told()]
        _check_history(server, database, runs, told)
        assert not any("geheim" in daemon.text() or "Traceback" in daemon.text() for daemon in daemons)
    return {**kills, "runs": runs, "told": len(told), "copies": runs // _COPIES}


def _write_profile(text: str, number: int, daemons: list[SiteDaemon], chance: random.Random) -> None:
    document = {**json.loads(text), "program": f"p{number % 7}", "run": f"r{number}"}
    first = chance.randrange(DAEMONS)
    places = [first, (first + 1) % DAEMONS] if number % _COPIES == 0 else [first]
    for place in places:
        part = daemons[place].folder / f".{number}.part"
        part.write_text(json.dumps(document), encoding="utf-8")
        part.rename(part.with_name(f"{number}.json"))


def _kill_one(server: PostgresServer, daemons: list[SiteDaemon], kills: dict[str, int], chance: random.Random) -> None:
    if sum(kills.values()) % (_DAEMON_KILLS + 1) != 1:
        chance.choice(daemons).kill()
        kills["daemon"] += 1
        return
    server.kill()
    kills["server"] += 1
    sleep(chance.uniform(0.0, 2.0))
    server.start()


def _count_settled(server: PostgresServer, database: str) -> int:
    """Return how many files came to a state that lasts; none before there are tables."""
    with server.connect(database) as connection:
        if connection.execute("SELECT to_regclass('gapwatch.plugin_faults')").fetchone() == (None,):
            return 0
        asked = "SELECT count(*) FROM gapwatch.files WHERE state IN ('ingested', 'duplicate', 'quarantined')"
        return int((connection.execute(asked).fetchone() or (0,))[0])


def _check_history(server: PostgresServer, database: str, runs: int, told: list[tuple[int, str]]) -> None:
    with server.connect(database) as connection:
        stored = connection.execute("SELECT id, program, run FROM gapwatch.runs").fetchall()
        states = dict(connection.execute("SELECT state, count(*) FROM gapwatch.files GROUP BY state").fetchall())
        units = connection.execute("SELECT count(*), count(DISTINCT run) FROM gapwatch.units WHERE run IS NOT NULL")
        assert units.fetchone() == (runs, runs)
    assert sorted(name for *_, name in stored) == sorted(f"r{number}" for number in range(1, runs + 1))
    assert states == {"ingested": runs, "duplicate": runs // _COPIES} or not runs // _COPIES
    programs = {number: program for number, program, _ in stored}
    assert all(programs.get(number) == program for number, program in told), "a run that was told of is not there"
    assert len(told) == len({number for number, _ in told}), "a run was told of twice"


if __name__ == "__main__":
    sizes = [int(word) for word in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as place:
        print(check_site(Path(place), *(sizes or [RUNS])[:1], *(sizes[1:2] or [7]), patience_s=3 * 3600.0))
