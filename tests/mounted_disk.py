"""Images of a mounted file system as a power loss leaves it: what is written but not on the disk is not in them.

Needs root and loop devices. A writer of the history is stopped, the file that holds the file system is copied, the copy
is mounted, its journal is replayed, and what was acknowledged must be in the history that lies there.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
from native_documents import PROFILES
from patience import PATIENCE_S
from power_loss import WORKLOAD, check_image

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE_B: Final = 16 << 20
#: So many images are made of one file system; then another one begins with an empty history.
EACH: Final = 50
_ACKNOWLEDGE: Final = """
import os
def acknowledge(text):
    with open(os.environ["LOG"], "a") as out: out.write(text + "\\n")
"""


def run_tool(*command: object) -> None:
    """Run a tool of the system; skip where it is not there or not allowed."""
    try:
        subprocess.run([*map(str, command)], check=True, capture_output=True, timeout=PATIENCE_S)
    except FileNotFoundError:
        pytest.skip(f"there is no {command[0]} here: apt-get install e2fsprogs mount")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this system refuses {command[0]}: {error.stderr.decode().strip()}")


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[Path]:
    """Mount an image, its journal replayed."""
    place.mkdir(exist_ok=True)
    run_tool("mount", "-o", "loop", image, place)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=False, capture_output=True)


def check_mounted_images(tmp_path: Path, images: int, seed: int) -> dict[str, int]:
    """Make so many images, and check each; return what was found in them. Skips where file systems can't be mounted."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount file systems: run this as root")
    found, chance = {"images": 0, "acknowledged": 0}, random.Random(seed)
    while found["images"] < images:
        _check_disk(tmp_path, min(EACH, images - found["images"]), chance, found)
    return found


def _check_disk(tmp_path: Path, images: int, chance: random.Random, found: dict[str, int]) -> None:
    """Check images of one file system."""
    disk, log, image = tmp_path / "disk", tmp_path / "log", tmp_path / "image"
    with disk.open("wb") as file:
        file.truncate(SIZE_B)
    run_tool("mkfs.ext4", "-q", "-F", disk)
    log.write_text("")
    with mounted(disk, tmp_path / "mounted") as place:
        command = [sys.executable, "-c", _ACKNOWLEDGE + WORKLOAD, place / "state", PROFILES / "fig4.json", "10000"]
        writer = subprocess.Popen(command, env={**os.environ, "LOG": str(log)})
        try:
            for _ in range(images):
                until = len(log.read_text().splitlines()) + chance.randrange(1, 12)
                while len(log.read_text().splitlines()) < until:
                    assert writer.poll() is None
                    time.sleep(0.002)
                writer.send_signal(signal.SIGSTOP)
                told = log.read_text().splitlines()
                shutil.copyfile(disk, image)
                with mounted(image, tmp_path / "again") as again:
                    check_image(again / "state", told)
                writer.send_signal(signal.SIGCONT)
                found["images"] += 1
                found["acknowledged"] += len(told)
        finally:
            writer.kill()
            writer.wait()
