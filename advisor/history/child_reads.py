"""The past of a run for a child that reaches no server: it asks its parent, which answers a few questions only.

A child reads files that nobody vouches for, and has no connection of its own. What it may ask are the statements by
which advice on a new run looks at earlier ones, word by word; they only read.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from advisor.history import items, runs
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from advisor.history.dialect import HistoryConnection

Document = dict[str, object]
_ALLOWED: Final = frozenset(
    (
        runs.ENTRIES_OF_PROGRAM, runs.LATEST_RUNS, runs.ADVICE_OF_RUN, runs.STAMP_OF_RUN, runs.SUMMARY_OF_RUN,
        runs.RUN_OF_PATH, items.ITEMS_OF_PROGRAM, items.ANY_GAIN, items.ITEMS_WITH_GAINS,
    )
)  # fmt: skip


def answer_question(connection: HistoryConnection, question: object) -> Document:
    """Return the rows that a child asks for, or that it may not; raises ``StoreLost`` where the server is away."""
    statement = question.get("statement") if isinstance(question, dict) else None
    if not isinstance(question, dict) or not isinstance(statement, str) or statement not in _ALLOWED:
        return {"refused": "this is not for a child to ask"}
    values = question.get("values")
    if not isinstance(values, list) or not all(isinstance(value, str | int | dict) for value in values):
        return {"refused": "values of a question are texts, numbers and bytes"}
    try:
        rows = connection.execute(statement, [_unpack_value(value) for value in values]).fetchall()
    except (ValueError, TypeError) as error:
        return {"refused": str(error)}
    return {"rows": [[_pack_value(one) for one in row] for row in rows]}


class ParentConnection:
    """The connection of a child: what it executes is asked of the parent; ``ask`` takes a question to its answer."""

    def __init__(self, ask: Callable[[Document], Document], writer: str) -> None:
        self._ask, self.writer = ask, writer

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> _AnswerRows:
        """Return the rows of a statement that a child may ask; raises ``StoreError`` for another one."""
        answer = self._ask({"statement": statement, "values": [_pack_value(value) for value in values]})
        rows = answer.get("rows")
        if not isinstance(rows, list):
            raise StoreError(f"the history was not told: {answer.get('refused')}")
        return _AnswerRows([tuple(map(_unpack_value, row)) for row in rows])

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> _AnswerRows:
        """Refuse to write."""
        raise StoreError("a child writes nothing")

    def close(self) -> None:
        """Leave the connection to the parent."""


class _AnswerRows:
    rowcount = -1
    lastrowid = None

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows


def _pack_value(value: object) -> object:
    return {"bytes": base64.b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def _unpack_value(value: Any) -> Any:  # noqa: ANN401 - whatever a column holds
    return base64.b64decode(value["bytes"], validate=True) if isinstance(value, dict) else value
