"""ST2 on a real file system: images of a mounted disk, as a power loss leaves it, mounted again and looked into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mounted_disk import check_mounted_images

if TYPE_CHECKING:
    from pathlib import Path


def test_st2_what_was_acknowledged_is_in_every_image_of_a_mounted_disk(tmp_path: Path) -> None:
    """Six of the thousand of ``tests/crashes.py``; needs root and loop devices."""
    assert check_mounted_images(tmp_path, images=6, seed=2)["acknowledged"] > 0
