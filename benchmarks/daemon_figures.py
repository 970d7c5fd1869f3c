"""What a daemon costs and how fast it is, as a process of its own: ``python benchmarks/daemon_figures.py WHAT [N]``.

``rest``      N files (1,000,000) that are known already: memory, and CPU time of a minute in which nothing happens
``latency``   N small profiles (200), one after the other: from the rename into place to the line with the advice
``stopped``   N files (20,000) written while the daemon is stopped: all of them accounted for
``backlog``   N small profiles (10,000) that lie there already: profiles a second, and CPU time for each
``flat``      N small profiles (20,000) of 20 programs, in parts: memory, and CPU time for each, as the history grows
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

from advisor.history.database import open_read_only
from advisor.history.file_states import FileStates
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

FIG4 = json.loads((Path(__file__).parents[1] / "tests" / "profiles" / "fig4.json").read_text(encoding="utf-8"))
#: Files in each directory, and for how long the daemon is left alone, seconds.
FOLDER = 1000
ALONE_S = 60.0
#: Programs of which profiles come, and into how many parts these are divided.
PROGRAMS = 20
PARTS = 20


class Daemon:
    """``gapwatch watch`` over ``runs`` in a directory; ends with the block. Its lines are read if it is ``heard``."""

    def __init__(self, top: Path, *arguments: str, settings: str = "", heard: bool = True) -> None:
        self.top, self.runs = top, top / "runs"
        self.runs.mkdir(exist_ok=True)
        (top / "gapwatch.toml").write_text(settings)
        command = [sys.executable, "-m", "gapwatch", "watch", "runs", "--format", "lines", "--state", "state"]
        self.process = subprocess.Popen(
            [*command, "--config", "gapwatch.toml", *arguments], cwd=top, text=True,
            stdout=subprocess.PIPE if heard else subprocess.DEVNULL,
        )  # fmt: skip
        self.seen = psutil.Process(self.process.pid)

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate()

    def line(self) -> str:
        """Return the next line that it writes."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def counts(self) -> dict[str, int]:
        """Return the files by state."""
        try:
            connection = open_read_only(self.top / "state")
        except StoreError:
            return {}
        try:
            return {str(state): count for state, count in FileStates(connection).count_states().items()}
        finally:
            connection.close()

    def until(self, number: int) -> float:
        """Wait until so many files have found their state; return the largest memory that it had meanwhile, MiB."""
        most = 0
        while (counts := self.counts()).get("waiting", 1) or sum(counts.values()) != number:
            most = max(most, self.seen.memory_info().rss)
            time.sleep(0.5)
        return most / 2**20


def profile(path: Path, run: str, **changes: object) -> None:
    """Write a small profile, which is there at once and whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}")
    part.write_text(json.dumps(FIG4 | {"run": run} | changes))
    part.rename(path)


def rest(top: Path, number: int) -> None:
    """Print what a daemon takes that knows many files and has nothing to do."""
    for each in range(number):
        folder = top / "runs" / f"{each // FOLDER}"
        if each % FOLDER == 0:
            folder.mkdir(parents=True)
        os.close(os.open(folder / f"{each}.log", os.O_CREAT | os.O_WRONLY))
    profile(top / "runs" / "a.json", "a")
    begin = time.monotonic()
    with Daemon(top, settings="nice = 0\n") as daemon:
        most = daemon.until(number + 1)
        print(f"{number:,} files known after {time.monotonic() - begin:.0f} s; the daemon took at most {most:.0f} MiB")
    with Daemon(top) as daemon:
        time.sleep(max(10.0, number / 10_000))
        used, begin = sum(daemon.seen.cpu_times()[:2]), time.monotonic()
        time.sleep(ALONE_S)
        share = (sum(daemon.seen.cpu_times()[:2]) - used) / (time.monotonic() - begin)
        memory = daemon.seen.memory_info().rss / 2**20
        print(f"at rest: {share:.2%} of a core, {memory:.0f} MiB, {daemon.seen.num_fds()} descriptors")
        profile(top / "runs" / "b.json", "b")
        daemon.line()
        children = [child.memory_info().rss >> 20 for child in daemon.seen.children()]
        print(f"after a profile: {daemon.seen.memory_info().rss >> 20} MiB, children {children} MiB")


def latency(top: Path, number: int) -> None:
    """Print how long advice takes after a profile was renamed into place."""
    with Daemon(top, settings="nice = 0\n") as daemon:
        for each in range(7):
            profile(top / "runs" / f"{each}" / "first.json", f"first {each}")
            daemon.line()
        for words, folders in (("directories that are there", 7), ("a new directory each", number)):
            took = []
            for each in range(number):
                name = f"{each % folders}" if folders == 7 else f"new-{each}"
                profile(top / "runs" / name / f"{each}.json", f"{words} {each}")
                begin = time.monotonic()
                daemon.line()
                took.append(time.monotonic() - begin)
            middle, late, last = np.quantile(took, [0.5, 0.99, 1.0])
            print(f"{words}: median {middle:.2f} s, p99 {late:.2f} s, at most {last:.2f} s; load {os.getloadavg()[0]}")


def stopped(top: Path, number: int) -> None:
    """Print what became of files that were written while the daemon was stopped."""
    with Daemon(top, settings="nice = 0\njobs = 2\nscan = 600\n") as daemon:
        profile(top / "runs" / "first.json", "first")
        daemon.line()
        daemon.process.send_signal(signal.SIGSTOP)
        for each in range(number):
            folder = top / "runs" / f"d{each % 40}" / "deep"
            if each % 400 == 0:
                profile(folder / f"{each}.json", str(each))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{each}.log").write_text(f"nothing {each}")
        begin = time.monotonic()
        daemon.process.send_signal(signal.SIGCONT)
        daemon.until(number + 1)
        print(f"{number:,} files, all accounted for {time.monotonic() - begin:.0f} s after SIGCONT: {daemon.counts()}")


def backlog(top: Path, number: int) -> None:
    """Print how fast profiles are read that lie there already, two at a time."""
    for each in range(number):
        profile(top / "runs" / f"{each // 100}" / f"{each}.json", str(each))
    (top / "gapwatch.toml").write_text("nice = 0\njobs = 2\n")
    begin = time.monotonic()
    command = [
        "gapwatch",
        "watch",
        "runs",
        "--once",
        "--format",
        "lines",
        "--state",
        "state",
        "--config",
        "gapwatch.toml",
    ]
    subprocess.run([sys.executable, "-m", *command], cwd=top, stdout=subprocess.DEVNULL, check=True)
    took = time.monotonic() - begin
    used = os.times()
    cpu_ms = 1000 * (used.children_user + used.children_system) / number
    print(f"{number:,} profiles in {took:.0f} s: {number / took:.0f} a second, {cpu_ms:.1f} ms of CPU time for each")


def write_builds(runs: Path, first: int, number: int) -> None:
    """Write profiles of 20 programs, each of which has a new build every fifth run, with other times."""
    chance = np.random.default_rng(first)
    for each in range(first, first + number):
        program, repeat = each % PROGRAMS, each // PROGRAMS
        slower = 1.0 + 0.1 * (repeat // 5 % 3) + 0.002 * chance.standard_normal()
        more = {"program": f"solver-{program}", "build": f"b{repeat // 5}"}
        profile(runs / f"{program}" / f"{each}.json", f"{each}", **more, actual_s=FIG4["actual_s"] * slower)


def flat(top: Path, number: int) -> None:
    """Print for each part of many profiles what one costs, and the memory afterwards."""
    part = max(number // PARTS, 1)
    settings = "nice = 0\njobs = 2\nquiet = 0.1\nmax_load = inf\n"
    with Daemon(top, settings=settings, heard=False) as daemon:
        used = 0.0
        for done in range(part, number + 1, part):
            write_builds(daemon.runs, done - part, part)
            daemon.until(done)
            own = daemon.seen.cpu_times()
            living = daemon.seen.children()
            children = own.children_user + own.children_system + sum(sum(one.cpu_times()[:2]) for one in living)
            cpu_ms = 1000 * (own.user + own.system + children - used) / part
            used = own.user + own.system + children
            print(
                f"{done:,} profiles: {cpu_ms:.1f} ms of CPU time for each of the last {part:,}, "
                f"{own.user + own.system:.0f} s in the daemon so far; "
                f"daemon {daemon.seen.memory_info().rss / 2**20:.1f} MiB, "
                f"children {', '.join(f'{one.memory_info().rss / 2**20:.1f}' for one in living)} MiB; "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


FIGURES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "rest": (rest, 1_000_000),
    "latency": (latency, 200),
    "stopped": (stopped, 20_000),
    "backlog": (backlog, 10_000),
    "flat": (flat, 20_000),
}

if __name__ == "__main__":
    figure, size = FIGURES[sys.argv[1]]
    with tempfile.TemporaryDirectory() as place:
        figure(Path(place), int(sys.argv[2]) if len(sys.argv) > 2 else size)
