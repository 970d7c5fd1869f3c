"""Timing tables that libraries and applications print by themselves (see ``docs/formats/timing_tables.md``)."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.model.errors import InputError
from advisor.model.records import DEVICES_UNSEEN, Profile

if TYPE_CHECKING:
    from advisor.formats.timing_tables.table import TimingTable
    from advisor.trace.callpaths.records import CallPaths

#: Less sure than of a file that is nothing else: a table stands somewhere in the output of a program.
_SURE: Final = 0.9
#: What helps where an output lacks its times, unlike one that is damaged.
_RECORD: Final = "; to know where its time goes, record the run: gapwatch run -- mpirun -n RANKS ./PROGRAM"


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return how sure it is that the output at ``path`` holds a timing table; None where it holds none."""
    from advisor.formats.plain_text import read_ends
    from advisor.formats.timing_tables.dialect_list import find_dialect

    return _SURE if find_dialect(read_ends(path)) else None


def _read_table(path: Path) -> TimingTable:
    from advisor.formats.plain_text import read_ends, read_plain_text
    from advisor.formats.timing_tables.dialect_list import find_dialect
    from advisor.formats.timing_tables.own_advice import find_own_advice
    from advisor.formats.timing_tables.unseen_devices import note_unseen_devices

    dialect = find_dialect(read_ends(path))
    if dialect is None:
        raise InputError(path, "holds no timing table of a library that is known here")
    text = read_plain_text(path)
    try:
        table = dialect.parse(text)
    except InputError as error:
        if error.place is not None:
            raise
        raise InputError(path, f"{error.reason}{_RECORD}") from error
    return replace(table, notes=(*note_unseen_devices(text, table), *find_own_advice(text)))


def read_call_paths(path: Path) -> CallPaths:
    """Return the timing table in the file at ``path``; raises ``InputError`` with the line of what is damaged."""
    from advisor.formats.timing_tables.call_path_builder import build_call_paths

    return build_call_paths(_read_table(path), path)


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run that the timing table at ``path`` tells of; raises ``InputError`` where it is damaged."""
    from advisor.formats.timing_tables.call_path_builder import build_call_paths
    from advisor.formats.timing_tables.unknown_balance import drop_unknown_times
    from advisor.trace.callpaths.profile import from_call_paths

    table = _read_table(path)
    profile = from_call_paths(build_call_paths(table, path), path)
    share = table.communication_s / table.wall_s
    return drop_unknown_times(
        replace(profile, command=table.command),
        hides_waiting=table.hides_waiting,
        first_rank=table.first_rank,
        communication_share=share,
        off_core_share=table.off_core_share,
        idle_share=math.nan if any(note.name == DEVICES_UNSEEN for note in table.notes) else table.idle_share,
    )
