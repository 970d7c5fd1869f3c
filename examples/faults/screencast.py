"""Record the live screen of the daemon over three builds of the example program, in a terminal of its own.

python examples/faults/screencast.py                 # writes docs/live.cast (asciinema) and docs/live.svg
python examples/faults/screencast.py --out DIR       # writes there

The builds are recordings of tests/profiles/faults: parts of different size and late messages; the parts made even;
messages in time as well. The first build ran five times, so that the noise is known.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
RECORDED: Final = ROOT / "tests" / "profiles" / "faults"
COLUMNS, LINES = 100, 34
#: The builds and the recordings of each.
BUILDS: Final = {
    "v1": ("repeat-1", "repeat-2", "repeat-3", "repeat-4", "repeat-5"),
    "v2": ("late-send-05",),
    "v3": ("clean-send",),
}
SETTINGS: Final = "scan = 0.3\npoll = 0.3\nquiet = 0.1\npatience = 0.5\nnice = 0\nmax_load = inf\n"
#: What a screen begins with, and what gives the terminal back at the end.
HOME: Final = "\x1b[H"
LEFT: Final = "\x1b[?1049l"
#: A bound that only a screen reaches that hangs, however busy the machine is.
PATIENCE_S: Final = 600.0


class Terminal:
    """A process on a terminal of its own, and what it wrote: pairs of seconds since its start and text."""

    def __init__(
        self, command: Sequence[str], folder: Path, env: Mapping[str, str], size: tuple[int, int] = (COLUMNS, LINES)
    ) -> None:
        self._master, slave = pty.openpty()
        self.resize(*size)
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=env, start_new_session=True
        )
        os.close(slave)
        self._begin = time.monotonic()
        self.written: list[tuple[float, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size, as who drags the corner of its window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @property
    def text(self) -> str:
        """All that was written."""
        return "".join(text for _, text in self.written)

    @property
    def frames(self) -> list[str]:
        """What stood on the screen each time it was drawn."""
        drawn = self.text.partition(LEFT)[0].split(HOME)
        return [part for part in drawn if "files: " in part]

    def read(self, seconds: float) -> None:
        """Read what is written within that time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self._master], [], [], left)[0]:
                return
            try:
                found = os.read(self._master, 1 << 16)
            except OSError:
                return
            self.written.append((time.monotonic() - self._begin, found.decode("utf-8", "replace")))

    def until(self, shown: Callable[[str], bool]) -> str:
        """Return the first frame, from the last one on, of which something is so."""
        end = time.monotonic() + PATIENCE_S
        while not (self.frames and shown(self.frames[-1])):
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"the screen never showed it:\n{self.text[-4000:]}")
            self.read(0.1)
        return self.frames[-1]

    def end(self) -> int:
        """Ask the process to end; return its exit code, and read the rest."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Read until the process ends; return its exit code."""
        while self.process.poll() is None:
            self.read(0.1)
        self.read(0.1)
        return self.process.returncode


def environment(top: Path) -> dict[str, str]:
    """Return the variables of a user who has nothing but the directories below ``top``; settles them."""
    for name in ("runs", "config/gapwatch"):
        (top / name).mkdir(parents=True, exist_ok=True)
    (top / "config" / "gapwatch" / "gapwatch.toml").write_text(SETTINGS, encoding="utf-8")
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH") if name in os.environ}
    home = {"HOME": str(top), "XDG_CONFIG_HOME": str(top / "config"), "GAPWATCH_STATE": str(top / "state")}
    return {**kept, **home, "LANG": "C.UTF-8", "TERM": "xterm-256color"}


def add(top: Path, build: str, name: str) -> None:
    """Let a recording appear below ``top``, complete, as one of ``build``."""
    made = top / "making"
    shutil.copytree(RECORDED / name, made)
    sidecar = json.loads((made / "gapwatch.json").read_text(encoding="utf-8"))
    (made / "gapwatch.json").write_text(json.dumps(sidecar | {"build": build}), encoding="utf-8")
    made.rename(top / "runs" / f"{build}-{name}")


def record(top: Path) -> tuple[list[tuple[float, str]], list[str]]:
    """Return what the daemon wrote while the builds came, with times, and the screen after each build."""
    screens = []
    command = [sys.executable, "-m", "gapwatch", "watch", "runs", "--format", "live"]
    with Terminal(command, top, environment(top)) as terminal:
        terminal.until(lambda frame: "Waiting for the first profile" in frame)
        number = 0
        for build, names in BUILDS.items():
            for name in names:
                number += 1
                add(top, build, name)
                shown = terminal.until(partial(settled, number))
            screens.append(shown)
        terminal.end()
    return terminal.written, screens


def settled(number: int, frame: str) -> bool:
    """Return whether a screen shows a run, by its number, and nothing is to be done any more."""
    return f"run {number}," in frame and "reading" not in frame and not re.search(r"\d waiting", frame)


def cast(written: Sequence[tuple[float, str]], title: str = "gapwatch watch over three builds") -> str:
    """Return the recording as asciinema's format, version 2."""
    head = {"version": 2, "width": COLUMNS, "height": LINES, "title": title}
    return "".join(json.dumps(row) + "\n" for row in (head, *([round(at, 3), "o", text] for at, text in written)))


def picture(frames: Sequence[str]) -> str:
    """Return the screens below each other as SVG, in the fonts of whoever looks at it."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    begin, end = CONSOLE_SVG_FORMAT.index("@font-face"), CONSOLE_SVG_FORMAT.index(".{unique_id}-matrix")
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    for frame in frames:
        for line in frame.replace("\r", "").rstrip().split("\n"):
            console.print(Text.from_ansi(line.rstrip()), no_wrap=True, crop=True)
        console.rule(style="dim")
    form = CONSOLE_SVG_FORMAT[:begin] + CONSOLE_SVG_FORMAT[end:]
    return console.export_svg(title="gapwatch watch", code_format=form, unique_id="live")


def main() -> None:
    """Record and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        written, frames = record(Path(top))
    (options.out / "live.cast").write_text(cast(written), encoding="utf-8")
    (options.out / "live.svg").write_text(picture(frames), encoding="utf-8")


if __name__ == "__main__":
    main()
