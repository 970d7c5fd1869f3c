"""A daemon whose power is taken at any moment, and another that goes on: checked against what a model of it says.

The model is as small as the promise: a profile that lies there ends in one run, whatever crashed before; a run that was
told of keeps its number; a file that is no profile is ignored; nothing is there twice, and nothing waits in the end.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from daemon_runs import Watch, profile
from lossy_disk import LossyDisk, record_program, restore_image

from advisor.history.database import open_read_only
from advisor.history.runs import RunStore

if TYPE_CHECKING:
    from pathlib import Path

#: A daemon that reads what is there, once, and acknowledges each run when it tells of it.
DAEMON = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from daemon_runs import CONFIG
from advisor.daemon.daemon import Daemon
from advisor.daemon.events import RunIngested

def tell(event):
    if isinstance(event, RunIngested):
        acknowledge(f"{event.number} {event.advice.profile.run}")

Daemon(replace(CONFIG, roots=(Path(sys.argv[1]),)), Path(sys.argv[2]), tell).run_daemon(once=True)
"""


@dataclass
class Model:
    """What must be so after any crash: the runs by name, with the number that was told, and the files that are none."""

    runs: dict[str, int | None] = field(default_factory=dict)
    others: int = 0

    def check_history(self, state: Path, counts: dict[str, int]) -> None:
        """Compare with a history after a daemon went through everything."""
        with closing(open_read_only(state)) as connection:
            there = [(entry.run, entry.number) for entry in RunStore(connection).list_entries()]
        assert sorted(name for name, _ in there) == sorted(self.runs), "each once, none lost"
        for name, number in there:
            assert self.runs[name] in (None, number), "a number that was told stays"
        expected = {"waiting": 0, "ingested": len(self.runs), "duplicate": 1, "quarantined": 0, "ignored": self.others}
        assert counts == expected


def crash_daemons(top: Path, seed: int, points: int, profiles: int) -> int:
    """Take the power from a daemon at so many points; return how many runs it had told of by then, all together."""
    chance, root, state, told = random.Random(seed), top / "runs", top / "recorded" / "state", 0
    model = Model({str(number): None for number in range(profiles)}, others=2)
    for number in range(profiles):
        profile(root / f"d{chance.randrange(3)}" / f"{number}.json")
    shutil.copy(next(root.rglob("0.json")), root / "zz copy of the first")
    (root / "notes.txt").write_text("no profile")
    (root / "empty").write_text("")
    state.parent.mkdir()
    steps = record_program(DAEMON, state, top / "log", [root, state, os.path.dirname(os.path.dirname(__file__))])
    for point in (*sorted(chance.randrange(1, len(steps) + 1) for _ in range(points - 1)), len(steps)):
        disk = LossyDisk()
        for step in steps[:point]:
            disk.apply_step(step)
        told += len(disk.acknowledged)
        model.runs = {str(number): None for number in range(profiles)}
        for line in disk.acknowledged:
            number, name = line.split()
            model.runs[name] = int(number)
        image = top / "next"
        restore_image(disk.leave_image(chance), state, image / "state")
        again = Watch(image, root=root).once()
        assert not any("set aside" in text for text in again.remarks), again.remarks
        model.check_history(again.state, dict(again.counts()))
        shutil.rmtree(image)
    return told


@pytest.mark.parametrize("seed", range(3))
def test_st2_st15_the_next_daemon_goes_on_where_the_power_went(tmp_path: Path, seed: int) -> None:
    """A few of the points of ``make soak``."""
    assert crash_daemons(tmp_path, seed, points=4, profiles=8) > 0
