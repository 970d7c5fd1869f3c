"""ST2 on a real file system: images of a mounted disk, as a power loss leaves it, mounted again and looked into.

Needs root and loop devices; what is written but not yet on the disk is not in the image that is copied.
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
from typing import TYPE_CHECKING

import pytest
from native_documents import PROFILES
from patience import PATIENCE_S
from power_loss import WORKLOAD, check_image

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMAGES = 6
SIZE_B = 64 << 20


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems: run the tests as root")
def test_st2_what_was_acknowledged_is_in_every_image_of_a_mounted_disk(tmp_path: Path) -> None:
    disk, log, chance = tmp_path / "disk", tmp_path / "log", random.Random(2)
    with disk.open("wb") as file:
        file.truncate(SIZE_B)
    run_tool("mkfs.ext4", "-q", disk)
    with mounted(disk, tmp_path / "mounted") as place:
        code = (
            "import os\ndef acknowledge(text):\n    with open(os.environ['LOG'], 'a') as out: out.write(text + '\\n')\n"
        )
        command = [sys.executable, "-c", code + WORKLOAD, place / "state", PROFILES / "fig4.json", "10000"]
        log.touch()
        writer = subprocess.Popen(command, env={**os.environ, "LOG": str(log)})
        try:
            for number in range(IMAGES):
                before = len(log.read_text().splitlines())
                while len(log.read_text().splitlines()) < before + chance.randrange(3, 40):
                    assert writer.poll() is None
                    time.sleep(0.01)
                writer.send_signal(signal.SIGSTOP)
                told = log.read_text().splitlines()
                shutil.copyfile(disk, tmp_path / f"image-{number}")
                (tmp_path / f"told-{number}").write_text("\n".join(told))
                writer.send_signal(signal.SIGCONT)
        finally:
            writer.kill()
            writer.wait()
    for number in range(IMAGES):
        with mounted(tmp_path / f"image-{number}", tmp_path / "again") as place:
            check_image(place / "state", (tmp_path / f"told-{number}").read_text().splitlines())
