"""Simulation of programs: traces replayed, models executed, and what a change would win."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.commands import Registry


@hookimpl
def advisor_commands(register: Registry) -> None:
    """Register the commands of all parts."""
    from advisor_simulation.mds import commands as mds

    mds.register(register)
