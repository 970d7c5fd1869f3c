"""Kill two hundred writers of the history in the midst of large transactions: ``python tests/crashes.py``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from stored_runs import kill_repeatedly

TIMES = 200

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        stored = kill_repeatedly(Path(folder) / "state", TIMES, seed=7)
    print(
        f"{TIMES} writers killed; all {stored} transactions of 5,000 rows that they acknowledged are there, none twice"
    )
