"""The daemon: profiles a second through the whole line, and how long a look at many known files takes.

``GAPWATCH_BACKLOG`` and ``GAPWATCH_FILES`` set the sizes (10,000 profiles and 100,000 files are the goals').
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.daemon.config import DaemonConfig
from advisor.daemon.daemon import Daemon

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

FIG4 = json.loads((Path(__file__).parents[1] / "tests" / "profiles" / "fig4.json").read_text(encoding="utf-8"))
BACKLOG = int(os.environ.get("GAPWATCH_BACKLOG", "300"))
FILES = int(os.environ.get("GAPWATCH_FILES", "20000"))
CONFIG = DaemonConfig(quiet_s=0.1, jobs=2, nice=0)


def test_a_backlog_of_small_profiles(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    for number in range(BACKLOG):
        folder = root / f"{number // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.json").write_text(json.dumps(FIG4 | {"run": str(number)}))
    daemon = Daemon(replace(CONFIG, roots=(root,)), tmp_path / "state", lambda event: None)
    benchmark.pedantic(daemon.run_daemon, kwargs={"once": True}, rounds=1)
    benchmark.extra_info["profiles/s"] = round(BACKLOG / benchmark.stats["mean"], 1)


def test_a_look_at_known_files(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    for number in range(FILES):
        folder = root / f"{number // 1000}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.log").write_text("nothing")
    config = replace(CONFIG, roots=(root,))
    Daemon(config, tmp_path / "state", lambda event: None).run_daemon(once=True)
    benchmark.pedantic(
        lambda: Daemon(config, tmp_path / "state", lambda event: None).run_daemon(once=True), rounds=3, warmup_rounds=1
    )
    benchmark.extra_info["files/s"] = round(FILES / benchmark.stats["mean"])
