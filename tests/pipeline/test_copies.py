"""Copies of a recording are no repeats of its run."""

from __future__ import annotations

import shutil
from pathlib import Path

from advisor import pipeline
from advisor.extension.host.plugin_host import load_plugins

LOG = Path(__file__).parents[1] / "profiles" / "timing_tables" / "lammps.log"


def test_copies_are_named_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    shutil.copy(LOG, tmp_path / "run" / "log.lammps")
    (tmp_path / "run" / "slurm-17.out").write_text("job 17 starts\n" + LOG.read_text() + "job 17 ends\n")
    text = LOG.read_text()
    assert text.count("Loop time of 15.498") == 1
    (tmp_path / "again.log").write_text(text.replace("Loop time of 15.498", "Loop time of 15.499"))
    runs, problems = pipeline.read_runs([tmp_path], pipeline.Options(), load_plugins())
    assert sorted(round(run.actual_s, 1) for run in runs) == [15.5, 15.5]
    assert len(problems) == 1
    assert "slurm-17.out: the same recording as" in problems[0]
