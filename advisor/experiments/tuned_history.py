"""What tuning won, in the history: the run before, the item as applied, and a recorded run of the winner."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.collect import sidecar
from advisor.experiments.processes import record_run
from advisor.history.access import open_writer
from advisor.history.run_storage import store_run
from advisor.history.runs import ProfileUnit

if TYPE_CHECKING:
    from advisor.experiments.settings import Setting
    from advisor.experiments.trials import TrialRunner
    from advisor.history.location import HistoryLocation
    from advisor.model.records import Advice


def store_tuned_run(
    runner: TrialRunner,
    advice: Advice,
    best: Setting,
    recorded: Path,
    state: HistoryLocation,
    study: Callable[[Path], Advice],
    limit_s: float,
) -> None:
    """Store the run that was advised on, mark items that the winner carries out, and store a run of the winner.

    Its build is that of the start with ``+tuned``. Raises ``AdvisorError``.
    """
    target = recorded / "tuned" / secrets.token_hex(4)
    target.parent.mkdir(exist_ok=True)
    sidecar.write_sidecar(target.parent, {"build": f"{advice.profile.build}+tuned"}, {})
    tree = runner.find_tree(best, limit_s)
    record_run(best.change_command(tree.words), tree.folder, target, limit_s, best.variables)
    after = study(target)
    writer = open_writer(state, watches=False)
    now = datetime.now(UTC)
    applied = [(one.action, one.region) for one in advice.recommendations if one.action in best.actions]
    try:
        with writer.transaction() as connection:
            store_run(connection, advice, [ProfileUnit(recorded / "start", advice.profile.reader, "")], now)
            store_run(
                connection,
                after,
                [ProfileUnit(target, after.profile.reader, "")],
                now,
                applied,
                "set by gapwatch tune in",
            )
    finally:
        writer.close()
