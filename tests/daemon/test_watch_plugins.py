"""What plugins do to their process happens to a child of the daemon; others' results stay as they were."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from daemon_runs import CONFIG, Watch, profile
from patience import PATIENCE_S
from site_folder import plugin

from advisor.daemon.events import FileSettled, RunIngested

GOOD = """
    @hookimpl
    def advisor_findings(profile):
        return [Finding("", "seen", profile.program, "all is well")]
"""

#: What a plugin may do when it is asked for its findings.
FAULTS = {
    "pl2_raise": "raise ValueError('no idea')",
    "pl10_print": "print('x' * 100_000); import os; os.write(1, b'raw'); return []",
    "pl9_wander": "import os; os.chdir('/'); os.umask(0o777); return []",
    "pl9_mute": "import sys; sys.stdout = None; return []",
    "pl7_nonsense": "return [float('nan')]",
}
FATAL = {
    "pl3_exit": "import os; os._exit(0)",
    "pl3_crash": "import os; os.abort()",
    "pl4_hang": "import time; time.sleep(3600)",
    "pl5_eat": "x = []\n        while True: x.append(bytearray(1 << 24))",
}


def watch(tmp_path: Path, body: str, task_s: float = PATIENCE_S) -> Watch:
    """A daemon with a good plugin and one that does what ``body`` says."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "a_good", GOOD)
    plugin(folder, "bad", f"\n    @hookimpl\n    def advisor_findings(profile):\n        {body}\n")
    plugin(folder, "z_good", GOOD)
    return Watch(tmp_path, replace(CONFIG, plugins=(folder,), task_s=task_s, memory_B=1 << 30))


@pytest.mark.parametrize("fault", FAULTS)
def test_pl2_pl7_pl9_pl10_a_plugin_that_fails_loses_only_its_own_result(tmp_path: Path, fault: str) -> None:
    here, mask = Path.cwd(), os.umask(0o22)
    os.umask(mask)
    daemon = watch(tmp_path, FAULTS[fault])
    for number in range(2):
        profile(daemon.root / f"{number}.json")
    daemon.once()
    assert [[one.plugin for one in run.advice.findings] for run in daemon.runs] == [["a_good", "z_good"]] * 2
    assert Path.cwd() == here
    assert os.umask(mask) == mask


@pytest.mark.parametrize("fault", FATAL)
def test_pl3_pl4_pl5_a_plugin_that_ends_its_process_ends_no_other(tmp_path: Path, fault: str) -> None:
    daemon = watch(tmp_path, FATAL[fault], 20.0 if fault == "pl4_hang" else PATIENCE_S)
    profile(daemon.root / "a.json")
    (daemon.root / "notes.txt").write_text("nothing")
    daemon.once()
    counts = daemon.counts()
    assert (counts["ingested"], counts["ignored"], sum(counts.values())) == (1, 1, 2)
    assert [[one.plugin for one in run.advice.findings] for run in daemon.runs] == [["a_good", "z_good"]]


def test_pl6_a_plugin_that_kills_its_process_is_left_out_after_three_times(tmp_path: Path) -> None:
    daemon = watch(tmp_path, FATAL["pl3_exit"])
    profile(daemon.root / "a.json")
    daemon.once()
    assert [[one.plugin for one in run.advice.findings] for run in daemon.runs] == [["a_good", "z_good"]]
    assert any("bad" in problem for run in daemon.runs for problem in run.advice.problems)


def test_a_plugin_that_touches_what_it_reads_does_not_keep_a_single_pass_busy(tmp_path: Path) -> None:
    daemon = watch(tmp_path, f"import os; os.utime({str(tmp_path / 'runs' / 'a.json')!r}); return []")
    profile(daemon.root / "a.json")
    profile(daemon.root / "other" / "b.json")
    told = daemon.once().told
    assert [one.path.name for one in told if isinstance(one, RunIngested)] == ["b.json"]
    [left] = [one for one in told if isinstance(one, FileSettled)]
    assert (left.path.name, left.state, left.reason) == ("a.json", "waiting", "changed 10 times while it was read")
