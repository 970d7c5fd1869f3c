"""A history that is asked several things for one run is opened once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from run_history import add_runs, make_run

from advisor.history import database
from advisor.history.history_queries import StoredHistory
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_history_that_is_held_open_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_runs(tmp_path, [make_run(build="v1", run=str(number)) for number in range(3)])
    opened, really = [], database.open_read_only

    def count_opened(folder: Path) -> object:
        opened.append(folder)
        return really(folder)

    monkeypatch.setattr(database, "open_read_only", count_opened)
    stored = StoredHistory(tmp_path)
    with stored.hold_open() as held:
        assert held == stored
        assert len(held.load_advice("jacobi")) == len(held.load_run_times("jacobi", 4)) == 3
        assert held.load_won_shares("jacobi") == {}
        assert held.find_applied_actions() == ()
        add_runs(tmp_path, [make_run(build="v2")])
        assert len(held.load_advice("jacobi")) == 4, "what is added meanwhile is seen"
    assert len(opened) == 1


def test_a_history_that_cannot_be_opened_says_so_when_it_is_asked(tmp_path: Path) -> None:
    with StoredHistory(tmp_path).hold_open() as held:
        assert held.load_advice("jacobi") == ()
    (tmp_path / database.NAME).write_bytes(b"no database at all" * 100)
    with StoredHistory(tmp_path).hold_open() as held, pytest.raises(StoreError, match="is damaged"):
        held.load_advice("jacobi")
