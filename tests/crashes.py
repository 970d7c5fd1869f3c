"""Kill two hundred writers of the history in the midst of large transactions, and take the power from a thousand disks
below it: ``python tests/crashes.py``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from test_power_loss import check_images
from test_store import kill_repeatedly

TIMES = 200
IMAGES = 1000

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        stored = kill_repeatedly(Path(folder) / "state", TIMES, seed=7)
    print(
        f"{TIMES} writers killed; all {stored} transactions of 5,000 rows that they acknowledged are there, none twice"
    )
    with tempfile.TemporaryDirectory() as folder:
        found = check_images(Path(folder), IMAGES, many=100, seed=11)
    print(
        f"{found['images']} images of a disk after a power loss; {found['acknowledged']} acknowledged changes in them, "
        "none lost, no history set aside"
    )
