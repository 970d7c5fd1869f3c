"""Let every plugin misbehave in every command, then take the power from writers and daemons, seed after seed, until it
is stopped: ``make soak`` (from ``SEED``).
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "daemon"))

from power_loss import check_images
from simulated_daemon import simulate_daemon
from stored_runs import kill_repeatedly
from test_crashing_daemon import crash_daemons

if __name__ == "__main__":
    folder = Path(__file__).parent / "extension"
    deeds = [str(folder / f"test_{name}.py") for name in ("misbehaving_plugins", "single_misbehaviours")]
    command = [sys.executable, "-m", "pytest", "-q", *deeds]
    subprocess.run(command, env={**os.environ, "GAPWATCH_DEEDS": "all"}, check=True)
    for seed in itertools.count(int(os.environ.get("SEED", "0"))):
        with tempfile.TemporaryDirectory() as name:
            top = Path(name)
            killed = kill_repeatedly(top / "killed", 10, seed)
            (top / "images").mkdir()
            found = check_images(top / "images", images=200, many=40, seed=seed)
            (top / "daemons").mkdir()
            told = crash_daemons(top / "daemons", seed, points=10, profiles=12)
            simulated = [simulate_daemon(1000 * seed + number) for number in range(1000)]
            told += sum(runs for runs, _ in simulated)
            kills = sum(kills for _, kills in simulated)
        print(
            f"seed {seed}: {killed} transactions of killed writers, {found['images']} images with "
            f"{found['acknowledged']} acknowledged changes, {told} runs of daemons that were killed {kills} times: "
            "none lost, none twice",
            flush=True,
        )
