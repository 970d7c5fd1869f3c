"""Kill two hundred writers of the history in the midst of large transactions, and take the power from a thousand disks
below it, recorded ones and, by root, mounted ones: ``python tests/crashes.py [WRITERS [IMAGES]]``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from mounted_disk import check_mounted_images
from power_loss import check_images
from stored_runs import kill_repeatedly

WRITERS, IMAGES = 200, 1000


def take_power(writers: int, images: int) -> None:
    """Print what was found; raises ``AssertionError`` where anything that was acknowledged is lost."""
    with tempfile.TemporaryDirectory() as folder:
        stored = kill_repeatedly(Path(folder) / "state", writers, seed=7) if writers else 0
    print(f"{writers} writers killed; all {stored} transactions of 5,000 rows that they acknowledged are there, once")
    for what, check in (
        ("recorded disk", lambda place: check_images(place, images, many=100, seed=11)),
        ("mounted file system", lambda place: check_mounted_images(place, images, seed=13)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = check(Path(folder))
            except pytest.skip.Exception as skipped:
                print(f"no images of a {what}: {skipped}")
                continue
        print(
            f"{found['images']} images of a {what} after a power loss: {found['acknowledged']} acknowledged runs, "
            "acknowledgements and suppressions in them, none lost, no history set aside",
            flush=True,
        )


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:]]
    take_power(*sizes, *(WRITERS, IMAGES)[len(sizes) :])
