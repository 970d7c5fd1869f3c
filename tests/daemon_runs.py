"""Daemons for tests: real directories, real children, and what they told."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Self

from patience import PATIENCE_S, wait_until

from advisor.daemon.config import DaemonConfig
from advisor.daemon.daemon import Daemon
from advisor.daemon.events import Backlog, FileSettled, Remark, RunIngested
from advisor.history.database import open_read_only
from advisor.history.file_states import FileStates
from advisor.history.runs import RunStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.daemon.events import Event
    from advisor.history.file_states import State
    from advisor.history.runs import RunEntry

FIG4 = json.loads((Path(__file__).parent / "profiles" / "fig4.json").read_text(encoding="utf-8"))
#: The program of figure 4 with its load spread evenly.
BALANCED = {
    "actual_s": 41, "regions": [{"name": "region 1", "work_s": [[7.5, 5.5], [7.5, 5.5]]},
                                {"name": "region 2", "work_s": [[12.5, 15.5], [12.5, 15.5]]}],
}  # fmt: skip
CONFIG = DaemonConfig(scan_s=0.5, poll_s=0.5, quiet_s=0.2, patience_s=1.0, task_s=PATIENCE_S, nice=0, max_load=inf)


def profile(path: Path, **changed: object) -> Path:
    """Write a profile; ``run`` tells several apart."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(FIG4 | {"run": path.stem} | changed), encoding="utf-8")
    return path


class Watch:
    """A daemon in a thread of its own, over one directory below ``top``."""

    def __init__(self, top: Path, config: DaemonConfig = CONFIG, root: Path | None = None) -> None:
        self.root, self.state = root or top / "runs", top / "state"
        self.root.mkdir(exist_ok=True)
        self.told: list[Event] = []
        self.daemon = Daemon(replace(config, roots=(self.root,)), self.state, self.told.append)
        self._errors: list[BaseException] = []
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        self.until(lambda: any(isinstance(event, Backlog) for event in self.told))
        return self

    def __exit__(self, *_: object) -> None:
        self.daemon.stop()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        try:
            self.daemon.run_daemon()
        except BaseException as error:
            self._errors.append(error)

    def once(self) -> Self:
        """Run until nothing waits any more."""
        self.daemon.run_daemon(once=True)
        return self

    def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something is so, or the daemon failed."""
        wait_until(
            lambda: bool(self._errors) or happened(),
            lambda: f"it never happened; told: {[one for one in self.told if not is_backlog(one)]}",
        )
        assert not self._errors, self._errors

    def scan_again(self, times: int = 2) -> None:
        """Wait until all that lies below the root was looked at so many times more."""
        looker, done = self.daemon._lookers[self.root], 0
        look = looker._scan_requested

        def counted(whole: bool, folders: set[Path], files: dict[Path, set[bytes]]) -> None:
            nonlocal done
            look(whole, folders, files)
            done += whole

        looker._scan_requested = counted  # type: ignore[method-assign]
        self.until(lambda: done >= times)
        looker._scan_requested = look  # type: ignore[method-assign]

    def tried(self, name: str) -> int | None:
        """The bytes that a file had when it was last read in vain; None while that did not happen."""
        return tried(self.state, name)

    @property
    def runs(self) -> list[RunIngested]:
        """The runs that were told of."""
        return [event for event in self.told if isinstance(event, RunIngested)]

    @property
    def settled(self) -> list[FileSettled]:
        """The files that were told of."""
        return [event for event in self.told if isinstance(event, FileSettled)]

    @property
    def remarks(self) -> list[str]:
        """What was said of the daemon itself."""
        return [event.text for event in self.told if isinstance(event, Remark)]

    def counts(self) -> dict[State, int]:
        """The files by state, as the history has them."""
        connection = open_read_only(self.state)
        try:
            return FileStates(connection).count_states()
        finally:
            connection.close()

    def entries(self) -> tuple[RunEntry, ...]:
        """The runs in the history."""
        connection = open_read_only(self.state)
        try:
            return RunStore(connection).list_entries()
        finally:
            connection.close()


def tried(state: Path, name: str) -> int | None:
    """The bytes that a file had when it was last read in vain, by the history in ``state``."""
    connection = open_read_only(state)
    try:
        query = "SELECT size FROM files WHERE name = ? AND state = 'waiting' AND reason IS NOT NULL"
        row = connection.execute(query, (name.encode(),)).fetchone()
    finally:
        connection.close()
    return None if row is None else int(row[0])


def is_backlog(event: Event) -> bool:
    """Whether an event only says how much there is to do."""
    return isinstance(event, Backlog)
