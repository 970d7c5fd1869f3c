"""Rows of a thread that no event stands for take their places between the others: ends of messages, its own ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Kind

if TYPE_CHECKING:
    from advisor.formats.number_lines import Columns
    from advisor.formats.paraver.call_pairing import MessageEnds
    from advisor.model.records import IntArray

#: Classes of rows at one place, in their order.
_BEGIN, _MESSAGE, _END = 0, 1, 2


def message_rows(ends: MessageEnds, messages: Columns, partner: IntArray) -> Columns:
    """Return a row for each end of a message; ``partner`` is the rank at the other end of each of ``messages``.

    What posts a receive tells its request only.
    """
    mine = ends.message
    of_request = ends.kind == Kind.IRECV_POST
    told = {"partner": partner[mine], "size": messages["size"][mine], "tag": messages["tag"][mine]}
    return _make_rows(ends.before, _MESSAGE, ends.ticks) | {
        "kind": ends.kind,
        "region": np.full(len(mine), -1),
        **{name: np.where(of_request, -1, values) for name, values in told.items()},
        "request": messages["number"][mine] + 1,
    }


def thread_rows(rows: int, begin: int, end: int) -> tuple[Columns, Columns]:
    """Return the rows in which a thread of so many ``rows`` begins and ends, in the region of the program."""
    region = {"region": np.zeros(1, dtype=np.int64)}
    first = _make_rows(np.array([0]), _BEGIN, np.array([begin]))
    last = _make_rows(np.array([rows]), _END, np.array([end]))
    return first | region | {"kind": np.array([Kind.ENTER])}, last | region | {"kind": np.array([Kind.LEAVE])}


def _make_rows(before: IntArray, edge: int, ticks: IntArray) -> Columns:
    """Return rows to stand before others, of one class; what is not known of them is -1, and they have no request."""
    nothing = np.full(len(before), -1)
    return {
        "before": before,
        "edge": np.full(len(before), edge),
        "ticks": ticks,
        "request": np.zeros(len(before), dtype=np.int64),
        **dict.fromkeys(("comm", "partner", "size", "tag"), nothing),
    }


def merge_rows(old: Columns, parts: Sequence[Columns]) -> Columns:
    """Return the ``old`` rows of a thread with those of ``parts`` between them."""
    new = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.lexsort((new["request"], new["ticks"], new["edge"], new["before"]))
    before, rows = new["before"][order], np.arange(len(old["kind"]))
    old_place = rows + np.searchsorted(before, rows, side="right")
    new_place = before + np.arange(len(before))
    result = {}
    for name, column in old.items():
        result[name] = np.empty(len(rows) + len(order), dtype=column.dtype)
        result[name][old_place] = column
        result[name][new_place] = new[name][order]
    return result
