"""ST2: whatever a power loss leaves of the history on the disk, what was acknowledged is there, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from power_loss import check_images

if TYPE_CHECKING:
    from pathlib import Path


def test_st2_what_was_acknowledged_survives_a_power_loss(tmp_path: Path) -> None:
    """A hundred of the thousand images of tests/crashes.py."""
    found = check_images(tmp_path, images=100, many=30, seed=5)
    assert found["images"] == 100
    assert found["acknowledged"] > 1000
