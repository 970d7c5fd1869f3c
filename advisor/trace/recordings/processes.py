"""The text that the recorder writes of each process: who it is, and what its numbers stand for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from advisor.model.errors import InputError
from advisor.trace.recordings.layout import MAGIC, map_samples
from advisor.trace.recordings.places import CodePlace

#: Functions, files, communicators and ranks are fewer than this.
_MOST: Final = 1 << 24
#: The members of a communicator, in its order.
Members = range | tuple[int, ...]
#: No clock says more nanoseconds: of sums of two there is room left.
_MOST_NS: Final = 1 << 61
_ESCAPE: Final = re.compile(r"\\x([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class MappedObject:
    """Code of a file in the memory of a process: ``offset`` is where in the file it begins."""

    begin: int
    end: int
    offset: int
    path: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What the kernel counted for a process up to a moment (getrusage): CPU seconds, memory, faults, switches."""

    time_ns: int
    user_s: float
    system_s: float
    peak_resident_B: int
    minor_faults: int
    major_faults: int
    voluntary: int
    involuntary: int


@dataclass(frozen=True, slots=True)
class ThreadSpan:
    """A thread: when it was first and last looked at, and its CPU clock then; the end is None if it was not seen.

    Its records and samples are in the files of the thread ``file``, None for its own, from ``first`` on of each.
    It was asked for at ``created_ns``, None where nobody was seen to create it.
    """

    number: int
    begin_ns: int
    begin_cpu_ns: int
    end_ns: int | None = None
    end_cpu_ns: int | None = None
    file: int | None = None
    first: tuple[int, int] = (0, 0)
    created_ns: int | None = None


class Prices(NamedTuple):
    """What recording costs on a machine, measured when a process begins, seconds each.

    A record, a reading of the CPU clock, a state, a folded call, and a folded call that is only counted.
    """

    record_s: float = 0.0
    reading_s: float = 0.0
    state_s: float = 0.0
    folded_s: float = 0.0
    counted_s: float = 0.0


@dataclass(slots=True)
class Process:
    """One process of a recording; numbers of functions, files and communicators are its own.

    ``communicators`` maps a number to its members as ranks of the world, ``remotes`` that of an intercommunicator to
    those on the other side (``compact_members``); -1 is a process of another world. ``python`` holds places in Python
    programs by their number, ``interpreter`` what runs them. ``machine_begin`` and ``machine_end`` are the seconds
    that all cores of the host had been busy, or taken by a hypervisor. ``children_s`` is the CPU time of its children
    that have ended.
    ``forked_ns`` is when a child of fork began that goes on in its parent's program, None for any other process.
    """

    stem: Path
    pid: int = 0
    parent: int = 0
    host: str = ""
    program: str = ""
    arguments: list[str] = field(default_factory=list)
    clock: str = ""
    real_s: float = 0.0
    monotonic_s: float = 0.0
    rank: int | None = None
    ranks: int = 1
    mpi: str = ""
    cores: int = 0
    affinity: list[int] = field(default_factory=list)
    interpreter: str = ""
    python: dict[int, CodePlace] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    communicators: dict[int, Members] = field(default_factory=dict)
    remotes: dict[int, Members] = field(default_factory=dict)
    objects: dict[int, MappedObject] = field(default_factory=dict)
    threads: dict[int, ThreadSpan] = field(default_factory=dict)
    begin: Usage | None = None
    end: Usage | None = None
    machine_begin: float | None = None
    machine_end: float | None = None
    children_s: float = 0.0
    forked_ns: int | None = None
    samples_per_s: int = 0
    cycle_s: float = 0.0
    subnormal_ratio: float = 0.0
    prices: Prices = field(default_factory=Prices)
    full: tuple[str, int] | None = None
    ended: bool = False

    def thread_file(self, number: int, kind: str) -> Path:
        """Return the file of a thread's ``records``, ``samples`` or ``registers``."""
        return self.stem.with_name(f"{self.stem.name}.{number}.{kind}")

    @property
    def used_s(self) -> float:
        """The CPU seconds of all threads that were seen; of those that were killed, up to their last sample."""
        return sum(self._last_cpu_ns(each) - each.begin_cpu_ns for each in self.threads.values()) / 1e9

    def _last_cpu_ns(self, span: ThreadSpan) -> int:
        if span.end_cpu_ns:
            return span.end_cpu_ns
        if any(each.file == span.number for each in self.threads.values()):
            return span.begin_cpu_ns  # the last samples are those of another thread
        samples = map_samples(self.thread_file(span.number if span.file is None else span.file, "samples"))
        return max(int(samples["cpu_ns"][-1:].max(initial=0)), span.begin_cpu_ns)


def process_files(folder: Path) -> list[Path]:
    """Return the process files of a recording, in the order of their names."""
    return sorted(folder.glob("*.process"))


def read_process(path: Path) -> Process:
    """Return what a process file says; raises ``InputError`` with the line that is damaged.

    The last line may be cut off, as the process may have been killed.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
    lines = text.split("\n")[:-1]
    if not lines or lines[0] != MAGIC:
        raise InputError(path, f"does not begin with {MAGIC!r}", "line 1")
    process = Process(path.with_suffix(""))
    for number, line in enumerate(lines[1:], 2):
        key, _, rest = line.partition(" ")
        take = _LINES.get(key)
        try:
            if take:
                take(process, rest)
        except (ValueError, IndexError, KeyError, ZeroDivisionError) as error:
            raise InputError(path, f"not understood: {line[:80]!r}", f"line {number}") from error
    return process


def _text(rest: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), rest)


def _named(rest: str) -> tuple[int, str]:
    number, _, name = rest.partition(" ")
    return _small(number), _text(name)


def _small(text: str) -> int:
    """Return a number that tables may have room for; raises ``ValueError`` for others."""
    number = int(text)
    if not -1 <= number < _MOST:
        raise ValueError(f"{number} is out of range")
    return number


def _nanoseconds(text: str) -> int:
    """Return a time that differences and offsets of times have room for; raises ``ValueError`` for others."""
    number = int(text)
    if not 0 <= number < _MOST_NS:
        raise ValueError(f"{number} is out of range")
    return number


def _seconds(text: str) -> float:
    """Return the same in seconds."""
    seconds = float(text)
    if not 0 <= seconds < _MOST_NS / 1e9:
        raise ValueError(f"{seconds} is out of range")
    return seconds


def _take_text(name: str) -> Callable[[Process, str], None]:
    return lambda process, rest: setattr(process, name, _text(rest))


def _take_numbers(process: Process, rest: str) -> None:
    process.pid, process.parent = (int(word) for word in rest.split())


def _take_fork(process: Process, rest: str) -> None:
    process.forked_ns = _nanoseconds(rest)


def _take_rank(process: Process, rest: str) -> None:
    process.rank, process.ranks = (_small(word) for word in rest.split())


def _take_time(process: Process, rest: str) -> None:
    process.real_s, process.monotonic_s = (_seconds(word) for word in rest.split())


def _take_python(process: Process, rest: str) -> None:
    number, line, name, file = rest.split(" ", 3)
    process.python[_small(number)] = CodePlace(_text(name), _text(file), int(line))


def _take_object(process: Process, rest: str) -> None:
    begin, end, offset, path = rest.split(" ", 3)
    path = path.replace(r"\012", "\n")  # as the kernel writes it
    found = MappedObject(int(begin, 16), int(end, 16), int(offset, 16), path)
    if not 0 <= found.begin <= found.end < 1 << 64:
        raise ValueError("addresses are out of range")
    process.objects[found.begin] = found


def compact_members(ranks: Members | list[int]) -> Members:
    """Return ranks as a range where they lie at equal distances, else as a tuple: equal ranks are equal values.

    Of 4096 ranks each lists all of them, for each communicator.
    """
    if isinstance(ranks, range):
        return ranks
    step = ranks[1] - ranks[0] if len(ranks) > 1 else len(ranks)
    if step:
        span = range(ranks[0], ranks[0] + step * len(ranks), step)
        if all(rank == member for rank, member in zip(ranks, span, strict=True)):
            return span
    return tuple(ranks)


def share_members(process: Process, lists: dict[Members, Members]) -> Process:
    """Return the process with lists of members that are those of other processes where they are equal (``lists``)."""
    for table in (process.communicators, process.remotes):
        for number, members in table.items():
            table[number] = lists.setdefault(members, members)
    return process


def _take_members(of: str) -> Callable[[Process, str], None]:
    def add_members(process: Process, rest: str) -> None:
        number, *words = rest.split()
        members = process.remotes if of == "remotes" else process.communicators
        key = _small(number)
        parts = [members[key]] if key in members else []
        parts += [_span(word, process.ranks) for word in words]
        members[key] = compact_members(parts[0] if len(parts) == 1 else [rank for part in parts for rank in part])

    return add_members


def _span(word: str, ranks: int) -> range:
    """Return some ranks; raises ``ValueError`` for a span of more than there are: it would take memory without end."""
    first, dash, last = word.partition("-") if not word.startswith("-") else (word, "", "")
    span = range(_small(first), _small(last if dash else first) + 1)
    if len(span) > ranks:
        raise ValueError(f"{word} are more than {ranks} ranks")
    return span


def _take_thread(process: Process, rest: str) -> None:
    word, _, begin, cpu = rest.split()
    number = _small(word)
    process.threads[number] = ThreadSpan(number, _nanoseconds(begin), _nanoseconds(cpu))


def _take_thread_end(process: Process, rest: str) -> None:
    number, end, cpu = rest.split()
    span = process.threads[int(number)]
    process.threads[int(number)] = replace(span, end_ns=_nanoseconds(end), end_cpu_ns=_nanoseconds(cpu))


def _take_created(process: Process, rest: str) -> None:
    number, created = rest.split()
    process.threads[int(number)] = replace(process.threads[int(number)], created_ns=_nanoseconds(created))


def _take_stored(process: Process, rest: str) -> None:
    number, file, record, sample = (int(word) for word in rest.split())
    if file not in process.threads or record < 0 or sample < 0:
        raise ValueError(f"no thread {file}")
    process.threads[number] = replace(process.threads[number], file=file, first=(record, sample))


def _take_usage(process: Process, rest: str) -> None:
    when, time, user, system, peak, *counts = rest.split()
    found = Usage(int(time), float(user), float(system), int(peak) << 10, *(int(count) for count in counts))
    if when == "begin":
        process.begin = found
    else:
        process.end = found


def _take_machine(process: Process, rest: str) -> None:
    when, *counts = rest.split()
    user, nice, system, _, _, interrupts, soft, steal, per_s = (int(word) for word in counts)
    seconds = (user + nice + system + interrupts + soft + steal) / per_s
    if when == "begin":
        process.machine_begin = seconds
    else:
        process.machine_end = seconds


def _take_prices(process: Process, rest: str) -> None:
    record, reading, state, folded, *counted = (int(word) / 1e12 for word in rest.split())
    process.prices = Prices(record, reading, state, folded, *(counted or [folded]))


def _take_full(process: Process, rest: str) -> None:
    why, time = rest.split()
    process.full = process.full or (why, _nanoseconds(time))


_LINES: Final[dict[str, Callable[[Process, str], None]]] = {
    "pid": _take_numbers,
    "host": _take_text("host"),
    "program": _take_text("program"),
    "argument": lambda process, rest: process.arguments.append(_text(rest)),
    "clock": _take_text("clock"),
    "time": _take_time,
    "forked": _take_fork,
    "rank": _take_rank,
    "mpi": _take_text("mpi"),
    "cores": lambda process, rest: setattr(process, "cores", int(rest)),
    "affinity": lambda process, rest: process.affinity.extend(int(word) for word in rest.split()),
    "interpreter": _take_text("interpreter"),
    "python": _take_python,
    "function": lambda process, rest: process.functions.update([_named(rest)]),
    "file": lambda process, rest: process.files.update([_named(rest)]),
    "communicator": _take_members("communicators"),
    "intercommunicator": _take_members("communicators"),
    "remote": _take_members("remotes"),
    "object": _take_object,
    "thread": _take_thread,
    "thread-end": _take_thread_end,
    "created": _take_created,
    "stored": _take_stored,
    "usage": _take_usage,
    "cycle": lambda process, rest: setattr(process, "cycle_s", 1e-12 * int(rest)),
    "subnormal": lambda process, rest: setattr(process, "subnormal_ratio", int(rest) / 100),
    "sampling": lambda process, rest: setattr(process, "samples_per_s", int(rest)),
    "machine": _take_machine,
    "children": lambda process, rest: setattr(process, "children_s", _seconds(rest)),
    "prices": _take_prices,
    "full": _take_full,
    "end": lambda process, rest: setattr(process, "ended", True),
}
