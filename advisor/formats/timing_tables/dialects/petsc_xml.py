"""PETSc: ``-log_view :FILE:ascii_xml``, nested events with least, mean and most over the ranks (``xmlviewer.c``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from advisor.formats.safe_xml import parse_xml
from advisor.formats.timing_tables.dialects.petsc_events import classify_event
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText


@dataclass(slots=True)
class _Event:
    name: str = ""
    parent: int = -1
    percent: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _LogReader:
    """The events as they are read; ``path`` holds the names of the open elements, ``open`` the open events."""

    path: list[str] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    events: list[_Event] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def start_element(self, name: str, _attributes: Mapping[str, str]) -> None:
        """Take the beginning of an element."""
        self.path.append(name)
        if name == "event" and "timertree" in self.path:  # older releases repeat their own times in a second table
            self.events.append(_Event(parent=self.open[-1] if self.open else -1))
            self.open.append(len(self.events) - 1)

    def end_element(self, name: str, text: str) -> None:
        """Take the end of an element, with its text if it holds no other elements."""
        self.path.pop()
        above = self.path[-1] if self.path else ""
        if name == "event" and "timertree" in self.path:
            self.open.pop()
        elif self.open and above == "event" and name == "name":
            self.events[self.open[-1]].name = text.strip()
        elif above == "time" and self.open:
            self.events[self.open[-1]].percent[name] = float(text)
        elif not self.open:
            self.texts[f"{above}/{name}"] = text.strip()


def parse(text: PlainText) -> TimingTable:
    """Return the tree of events; raises ``InputError`` where the document is damaged or holds no times."""
    reader = _LogReader()
    parse_xml("\n".join(text.lines).encode("utf-8", "surrogateescape"), reader, text.path)
    try:
        wall_s = text.parse_number(reader.texts["timertree/totaltime"], 0)
        ranks = int(reader.texts["runspecification/nprocesses"])
        rows = tuple(_build_rows(text, reader, wall_s))
    except (KeyError, ValueError) as error:
        raise InputError(text.path, f"the log lacks {error}") from None
    return TimingTable(
        tool="PETSc",
        program=reader.texts.get("runspecification/executable", "").rsplit("/", 1)[-1],
        wall_s=wall_s,
        rows=rows,
        ranks=ranks,
        shortest_s=wall_s / max(text.parse_number(reader.texts.get("time/ratio", "1"), 0), 1.0),
        started=reader.texts.get("runspecification/date"),
        counts=_collect_messages(text, reader.texts),
    )


def _build_rows(text: PlainText, reader: _LogReader, wall_s: float) -> list[TimingRow]:
    """Return a row for each event but for what events leave to themselves, which is no event."""
    numbers: dict[int, int] = {}
    rows: list[TimingRow] = []
    for number, event in enumerate(reader.events):
        if event.name == "self":
            continue
        shares = event.percent
        mean = shares["avgvalue"] if "avgvalue" in shares else shares["value"]
        least, most = shares.get("minvalue", mean), shares.get("maxvalue", mean)
        for value in (least, mean, most):
            if not 0 <= value <= 101:
                raise InputError(text.path, f"{event.name} takes {value:g} % of the run")
        numbers[number] = len(rows)
        unit = wall_s / 100
        rows.append(
            TimingRow(
                event.name,
                mean * unit,
                least * unit,
                most * unit,
                least_at=int(shares.get("minloc", -1)),
                most_at=int(shares.get("maxloc", -1)),
                parent=numbers.get(event.parent, -1),
                role=classify_event(event.name),
            )
        )
    return rows


def _collect_messages(text: PlainText, texts: Mapping[str, str]) -> dict[str, float]:
    """Return messages and their bytes, of all ranks."""
    found = {}
    for name, key, unit in (("messages", "messagetransfers/total", 1), ("bytes", "messagevolume/total", 1 << 20)):
        if key in texts:
            found[name] = text.parse_number(texts[key], 0) * unit
    return found
