"""Record the live screen while the study arrives in a watched directory, file by file, in a terminal of its own.

    python watched.py     writes watched.cast (asciinema) beside this script, prints how soon each finding is shown

Each piece of evidence is renamed into the directory when it is complete, as tools write their results; what is timed is
the way from there to the frame of the screen that shows what it tells.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import study

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

from screencast import Terminal, cast, environment  # the recorder of the live screen, of another example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: What arrives, in which directory of those watched, and words that the screen shows once it is known.
STEPS: Final[tuple[tuple[str, Callable[[Path], None], str, str], ...]] = (
    ("trace", study.write_run, "run", "study: 8.6"),
    ("counts", study.write_counts, "run", "A-21"),
    ("in-core", study.write_incore, "run", "stride of limiter"),
    ("coupling", study.write_coupling, "", "coupling of flux and update"),
    ("library", study.write_library, "", "1 workload (cousin)"),
    ("scaling", study.write_scaling, "", "T-1"),
)


def drop(top: Path, write: Callable[[Path], None], place: str) -> float:
    """Let evidence appear below ``top``, complete; return when its last file did."""
    made = top / "making"
    made.mkdir()
    write(made)
    target = top / "runs" / place
    target.mkdir(exist_ok=True)
    for one in sorted(made.iterdir()):
        one.rename(target / one.name)
    made.rmdir()
    return time.monotonic()


def record(top: Path) -> Iterator[tuple[str, float, Terminal]]:
    """Yield each piece of evidence, the seconds until the screen showed what it tells, and the terminal."""
    env = {**environment(top), "XDG_DATA_HOME": str(top / "data")}
    command = [sys.executable, "-m", "gapwatch", "watch", "runs", "--format", "live", "--machine", study.MACHINE]
    with Terminal(command, top, env) as terminal:
        terminal.until(lambda frame: "Waiting for the first profile" in frame)
        for name, write, place, words in STEPS:
            begin = drop(top, write, place)
            terminal.until(partial(_shows, words))
            yield name, time.monotonic() - begin, terminal
            terminal.read(1.0)
        terminal.end()


def _shows(words: str, frame: str) -> bool:
    return words in " ".join(frame.split())


def main() -> None:
    """Record, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent)
    options = parser.parse_args()
    out = options.out.resolve()
    written: list[tuple[float, str]] = []
    with tempfile.TemporaryDirectory() as top:
        for name, seconds, terminal in record(Path(top)):
            print(f"{name:10} {seconds:.1f} s   load {os.getloadavg()[0]:.1f}", flush=True)
            written = terminal.written
    (out / "watched.cast").write_text(cast(written, "gapwatch watch, a study arrives"), encoding="utf-8")


if __name__ == "__main__":
    main()
