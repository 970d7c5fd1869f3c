"""Images of what a power loss leaves of the history on a disk, and what must be in them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from lossy_disk import LossyDisk, record_program, restore_image

from advisor.history import database
from advisor.history.items import ItemStore
from advisor.history.runs import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    from lossy_disk import DiskStep

#: Stores runs as the daemon does, and says things of items as users do, each acknowledged when it is done.
WORKLOAD = """
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from advisor.extension.host import load_plugins
from advisor.history import database
from advisor.history.file_states import FileSignature, FileStates
from advisor.history.items import ItemStore
from advisor.history.runs import ProfileUnit, RunStore
from advisor.pipeline import Options, advise

folder, source, many = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
now = datetime(2026, 11, 21, 12, tzinfo=UTC)
advice = advise([source], Options(), load_plugins())
place = Path("/data")
for session in range(2):
    writer = database.HistoryWriter(folder)
    for number in range(many):
        name = f"{session}-{number}"
        signature = {name.encode(): FileSignature(1, 2, 3, 4, 5)}
        with writer.transaction(lasting=False) as connection:
            FileStates(connection).store_files(place, signature, "waiting")
        with writer.transaction() as connection:
            units = [ProfileUnit(place / name, "native", name)]
            run = RunStore(connection).add_run(replace(advice, profile=replace(advice.profile, run=name)), units, now)
            ItemStore(connection).update_items(run, advice, (), now)
            FileStates(connection).store_files(place, signature, "ingested", None, run)
        acknowledge(f"run {run} {name}")
        if number % 10 == 3:
            with database.open_transaction(folder) as connection:
                item = ItemStore(connection).items_of_program("fig4")[0]
                ItemStore(connection).mark_item(item, "suppressed", now, reason=name, until="2027-01-01")
            acknowledge(f"suppressed {item.fingerprint} {name}")
        if number % 10 == 7:
            with database.open_transaction(folder) as connection:
                item = ItemStore(connection).items_of_program("fig4")[-1]
                ItemStore(connection).mark_item(item, "acknowledged", now, reason=name)
            acknowledge(f"acknowledged {item.fingerprint} {name}")
    writer.close()
"""


def record_history(tmp_path: Path, many: int) -> tuple[Path, list[DiskStep]]:
    """Record what a writer of the history does; return its directory and the steps."""
    from native_documents import PROFILES

    top = tmp_path / "recorded" / "state"
    top.parent.mkdir()
    steps = record_program(WORKLOAD, top, tmp_path / "log", [top, PROFILES / "fig4.json", many])
    return top, steps


def check_images(tmp_path: Path, images: int, many: int, seed: int) -> dict[str, int]:
    """Make so many crash images, and check each; return what was found in them."""
    top, steps = record_history(tmp_path, many)
    chance = random.Random(seed)
    points = sorted(chance.randrange(1, len(steps) + 1) for _ in range(images))
    disk, done, found = LossyDisk(), 0, {"images": 0, "acknowledged": 0, "lost tails": 0}
    for point in points:
        for step in steps[done:point]:
            disk.apply_step(step)
        done = point
        restore_image(disk.leave_image(chance), top, tmp_path / "image")
        check_image(tmp_path / "image", disk.acknowledged)
        found["images"] += 1
        found["acknowledged"] += len(disk.acknowledged)
    return found


def check_image(folder: Path, acknowledged: list[str]) -> None:
    """Open a history and compare it with what was acknowledged."""
    writer = database.HistoryWriter(folder)
    try:
        assert writer.set_aside is None
        runs = RunStore(writer.connection)
        there = [(entry.number, entry.run) for entry in runs.list_entries()]
        told = [line.split() for line in acknowledged]
        assert {(int(number), name) for kind, number, name in told if kind == "run"} <= set(there)
        assert len({name for _, name in there}) == len(there), "twice"
        for number, _ in there[-3:]:
            runs.load_advice(number)
            runs.load_summary(number)
        said = {fingerprint: (kind, name) for kind, fingerprint, name in told if kind != "run"}
        items = {item.fingerprint: item for item in ItemStore(writer.connection).items_of_program("fig4")}
        for fingerprint, (kind, name) in said.items():
            found = items[fingerprint]
            assert (str(found.reason), found.state) == (name, kind) or _order(str(found.reason)) > _order(name)
        assert writer.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        writer.close()


def _order(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split("-")))
