"""Runs of samples in a history made for a test."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import advice_samples as samples

from advisor.history.database import HistoryWriter
from advisor.history.run_storage import store_run
from advisor.history.runs import ProfileUnit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.records import Advice

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def make_run(program: str = "jacobi", build: str | None = "v1", run: str = "1", actual_s: float = 47.0) -> Advice:
    """The advice of ``samples.full`` on another run; what it took longer stands in its last gap."""
    advice = samples.full()
    more = actual_s - advice.profile.actual_s
    gaps = (*advice.gaps[:-1], replace(advice.gaps[-1], seconds=advice.gaps[-1].seconds + more))
    bounds = (*advice.bounds[:-1], replace(advice.bounds[-1], seconds=(advice.bounds[-1].seconds or 0.0) + more))
    profile = replace(advice.profile, program=program, build=build, run=run, actual_s=actual_s)
    items = tuple(replace(item, fingerprint=f"{item.fingerprint}-{item.rank}") for item in advice.recommendations)
    return replace(advice, profile=profile, gaps=gaps, bounds=bounds, recommendations=items)


def add_runs(state: Path, runs: Sequence[Advice]) -> None:
    """Add runs to the history in ``state``."""
    writer = HistoryWriter(state)
    try:
        for at, advice in enumerate(runs):
            name = f"{advice.profile.program}-{advice.profile.build}-{advice.profile.run}"
            with writer.transaction() as connection:
                unit = ProfileUnit(Path("/data") / name, "native", name)
                store_run(connection, advice, [unit], NOW + timedelta(seconds=at))
    finally:
        writer.close()
