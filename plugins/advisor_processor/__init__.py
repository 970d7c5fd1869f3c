"""How far a program is from what one processor can do, and why: M, MA, MAC, MACS and $ (docs/plugins/processor.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from advisor.reports import Report


@hookimpl
def advisor_services() -> Mapping[str, Callable[..., object]]:
    """Return what others may ask for: to measure this machine."""
    return {"machine_probe": _probe}


def _probe(
    name: str, folder: Path, working: Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
) -> Report:
    from advisor_processor.probe.command import probe

    return probe(name, folder, working)
