"""What ``gapwatch scale`` reports on profiles, and its tables."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaling_runs import Serving

from advisor.model.reports import Table
from advisor_scaling import command

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.model.reports import Report


def asked(**given: Any) -> Namespace:  # noqa: ANN401
    options: dict[str, Any] = {
        "paths": [Path("runs")], "predict": None, "level": 0.8, "sensitivity": False, "next": False, "check": False,
        "export": None, "only": None, "model": None, "machine": None, "plot": None, "linear": False,
        "price": None, "offers": None, "budget": None, "count": None, "at": None, "command": [],
    }  # fmt: skip
    return Namespace(**{**options, **given})


def report(profiles: list[Profile], **given: Any) -> Report:  # noqa: ANN401
    return command.run_scale(asked(**given), Serving(profiles))


def table(found: Report, title: str) -> dict[str, tuple[Any, ...]]:
    part = next(part for part in found.parts if isinstance(part, Table) and part.title == title)
    return {str(row[0]): row for row in part.rows}


def table_rows(found: Report, title: str) -> tuple[tuple[Any, ...], ...]:
    return next(part.rows for part in found.parts if isinstance(part, Table) and part.title == title)
