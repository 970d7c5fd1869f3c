"""The beginning of a Paraver trace: how long it is, who ran where, and who talks to whom."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from advisor.formats.number_lines import LONGEST_LINE, convert_read_errors
from advisor.model.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

#: Threads of all processes that are believed.
MOST_THREADS: Final = 1_000_000
#: Ticks in a second by the suffix of the duration; ticks are microseconds without one.
_UNITS: Final = {"": 1e6, "ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
_FIRST: Final = re.compile(r"#Paraver \(([^)]*)\):(\d{1,18})(?:_([a-z]+))?:(\d+)(?:\(([\d,]*)\))?:(\d+):(.*)")
_APPLICATION: Final = re.compile(r"(\d+)\(((?:\d+:\d+,?)*)\)(?:,(\d+))?(?::|$)")
_COMMUNICATOR: Final = re.compile(r"c:\d+:\d+:\d+(?::\d+)*")


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """What stands before the records.

    ``ticks`` is the duration, ``per_second`` the ticks in a second. Threads are numbered over all applications and
    tasks: ``rank``, ``thread``, ``node`` and ``title`` (application, task, thread from 1 on) describe each; a rank
    counts tasks likewise. ``tasks_before`` (applications + 1,) and ``threads_before`` (ranks + 1,) are sums.
    ``communicators`` maps (application, id) to ranks; ``declared`` is how many of them the first line announces, or
    None. ``lines`` is the number of lines read.
    """

    date: str
    ticks: int
    per_second: float
    rank: IntArray
    thread: IntArray
    node: IntArray
    title: tuple[tuple[int, int, int], ...]
    tasks_before: IntArray
    threads_before: IntArray
    communicators: dict[tuple[int, int], tuple[int, ...]]
    declared: int | None
    lines: int

    def find_locations(self, application: IntArray, task: IntArray, thread: IntArray) -> npt.NDArray[np.int32]:
        """Return the number of each thread, -1 where there is no such thread; all counted from 1 on."""
        known = (application >= 1) & (application < len(self.tasks_before)) & (task >= 1) & (thread >= 1)
        application = np.where(known, application, 1)
        rank = self.tasks_before[application - 1] + task - 1
        known &= rank < self.tasks_before[application]
        rank = np.where(known, rank, 0)
        place = self.threads_before[rank] + thread - 1
        known &= place < self.threads_before[rank + 1]
        return np.where(known, place, -1).astype(np.int32)


def read_header(stream: IO[bytes], path: Path) -> tuple[TraceHeader, bytes]:
    """Return the header and the first line behind it; raises ``InputError`` where it is damaged."""
    first = _read_line(stream, path, 1)
    found = _FIRST.fullmatch(first)
    if not found or (found[3] or "") not in _UNITS:
        raise InputError(path, "no header of a Paraver trace", "line 1")
    tasks, declared = _parse_applications(found[7], int(found[6]), path)
    before = np.cumsum([0, *(len(each) for each in tasks)])
    communicators: dict[tuple[int, int], tuple[int, ...]] = {}
    number = 1
    while True:
        number += 1
        text = _read_line(stream, path, number)
        if not text.startswith("c"):
            break
        _add_communicator(communicators, text, before, path, number)
    threads = [count for each in tasks for count, _ in each]
    header = TraceHeader(
        date=found[1],
        ticks=int(found[2]),
        per_second=_UNITS[found[3] or ""],
        rank=np.repeat(np.arange(len(threads)), threads),
        thread=np.concatenate([np.arange(count) for count in threads]),
        node=np.repeat([node for each in tasks for _, node in each], threads),
        title=tuple(
            (application, task, thread)
            for application, each in enumerate(tasks, 1)
            for task, (count, _) in enumerate(each, 1)
            for thread in range(1, count + 1)
        ),
        tasks_before=before,
        threads_before=np.cumsum([0, *threads]),
        communicators=communicators,
        declared=declared,
        lines=number - 1,
    )
    return header, f"{text}\n".encode("utf-8", "surrogateescape") if text else b""


def _read_line(stream: IO[bytes], path: Path, number: int) -> str:
    """Return the next line without its end, nothing at the end of the file."""
    with convert_read_errors(path):
        line = stream.readline(LONGEST_LINE)
    if line and not line.endswith(b"\n"):
        raise InputError(path, "the line is not complete: the file is cut off", f"line {number}")
    return line.removesuffix(b"\n").decode("utf-8", "surrogateescape")


def _parse_applications(text: str, count: int, path: Path) -> tuple[list[list[tuple[int, int]]], int | None]:
    """Return threads and node of each task of each application, and how many communicators are announced."""
    found, place = [], 0
    declared: int | None = None
    while place < len(text) and (part := _APPLICATION.match(text, place)):
        pairs = [pair.split(":") for pair in part[2].split(",") if pair]
        if int(part[1]) != len(pairs):
            raise InputError(path, f"damaged: {part[1]} tasks announced, {len(pairs)} listed", "line 1")
        found.append([(int(threads), int(node)) for threads, node in pairs])
        declared = (declared or 0) + int(part[3]) if part[3] else declared
        place = part.end()
    if place < len(text) or len(found) != count:
        raise InputError(path, "damaged: the list of applications is not complete", "line 1")
    threads = [threads for each in found for threads, _ in each]
    if not threads or not 0 < sum(threads) <= MOST_THREADS or min(threads) < 1:
        raise InputError(path, "damaged: an impossible number of threads", "line 1")
    return found, declared


def _add_communicator(
    known: dict[tuple[int, int], tuple[int, ...]], text: str, before: IntArray, path: Path, line: int
) -> None:
    numbers = [int(part) for part in text.split(":")[1:]] if _COMMUNICATOR.fullmatch(text) else []
    if len(numbers) < 3 or len(numbers) != 3 + numbers[2] or not 1 <= numbers[0] < len(before):
        raise InputError(path, "damaged: no list of a communicator's members", f"line {line}")
    application, identity = numbers[:2]
    first, end = int(before[application - 1]), int(before[application])
    members = tuple(first + task - 1 for task in numbers[3:])
    if len(set(members)) != len(members) or any(not first <= rank < end for rank in members):
        raise InputError(path, "damaged: a member of a communicator is not a task", f"line {line}")
    if known.setdefault((application, identity), members) != members:
        raise InputError(path, "damaged: a communicator stands twice with other members", f"line {line}")
