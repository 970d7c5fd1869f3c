"""pprof's profiles (``profile.proto``): samples of call stacks in Go, C++ with gperftools, Rust, Node.js and others."""

from __future__ import annotations

import math
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from advisor.analysis.quality import HIDDEN
from advisor.formats.call_stacks.stacks import Frame, StackProfile, Unit
from advisor.formats.plain_text import read_content
from advisor.formats.protobuf_wire import Fields, WireError, read_fields
from advisor.model.errors import InputError
from advisor.model.records import Note

_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_TIME, _DURATION, _PERIOD_TYPE, _PERIOD = 9, 10, 11, 12
_UNITS: Final = {
    **dict.fromkeys(("nanoseconds", "nanosecond", "ns"), 1e-9),
    **dict.fromkeys(("microseconds", "microsecond", "us", "\u00b5s", "\u03bcs"), 1e-6),
    **dict.fromkeys(("milliseconds", "millisecond", "ms"), 1e-3),
    **dict.fromkeys(("seconds", "second", "s"), 1.0),
}
#: Words in names of kinds of samples that tell where time passed, best first; others are of memory, locks and threads.
_TIMES: Final[tuple[tuple[frozenset[str], Unit], ...]] = (
    (frozenset({"cpu"}), "cpu_s"),
    (frozenset({"wall", "elapsed"}), "wall_s"),
)
_WORD: Final = re.compile(r"[^a-z]+")
_PATH: Final = re.compile(r"[/\\]")
#: Labels of samples that name the thread, as writers call it.
_THREAD_LABELS: Final = frozenset({"thread id", "thread_id", "tid", "thread"})
_LATEST_S: Final = 1 << 34
#: Nothing runs for ten years: some converters write when a recording ended where its length belongs.
_LONGEST_S: Final = 10 * 365 * 86400.0
_MOST_THREADS: Final = 4096
_UNKNOWN: Final = "fields that the format does not have"
_TWICE: Final = "ids that stand there twice"
_PERIODS: Final = "samples whose number times the period is not their time"
#: What a line of a location refers to whose function is not known.
_NO_FUNCTION: Final = Fields()
#: Samples miss or exceed the duration of the run by no more than this share.
ROUNDING: Final = 1.05
_NO_NAMES: Final = Note(
    "functions without names",
    "most samples hold addresses and no names of functions: they are shown by library",
    0.2,
    "pprof -proto ./PROGRAM PROFILE > named.pb.gz",
)
_WAITING: Final = "what threads wait for each other cannot be told from samples of those that run"
_TOGETHER: Final = "the samples of all threads are added up and exceed the time of the run"
#: The largest number of a field in each message (``profile.proto``): damage makes others of them.
_MOST_FIELDS: Final = {_SAMPLE_TYPE: 2, _SAMPLE: 3, _MAPPING: 10, _LOCATION: 5, _FUNCTION: 5}
_MOST_PROFILE_FIELDS, _MOST_LINE_FIELDS, _MOST_LABEL_FIELDS = 15, 3, 4
_NO_DURATION: Final = Note("duration not stated", "the profile does not state how long the run took", 0.1)


def parse(path: Path) -> StackProfile:
    """Return the stacks in the profile; raises ``InputError`` for what is damaged or tells nothing of time."""
    content = read_content(path)
    try:
        return _Profile(read_fields(content), path).build_stacks()
    except WireError as error:
        raise InputError(path, f"damaged: {error}", f"byte {error.offset}") from None


def strip_folders(path: str) -> str:
    """Return the last part of a path of any system."""
    return _PATH.split(path)[-1]


def describe_added_threads(cores: float) -> tuple[Note, Note]:
    """Return the doubts of samples of all threads together, of which so many ran in the mean."""
    text = f"{cores:.3g} threads ran in the mean; functions have their shares of the run"
    return Note("threads added up", f"{_TOGETHER}: {text}", 0.1), Note(HIDDEN, _WAITING, 0.1)


class _Profile:
    """The tables of a profile, and the samples in their terms."""

    def __init__(self, fields: Fields, path: Path) -> None:
        self.path = path
        self.fields = fields
        self.strings = [text.decode("utf-8", "surrogateescape") for text in fields.list_messages(_STRING)]
        #: What contradicts the format or itself, and how often.
        self.doubts: Counter[str] = Counter()
        self.used: tuple[set[int], set[int]] = set(), set()
        if not fields.has_only(_MOST_PROFILE_FIELDS) or (self.strings and self.strings[0]):
            self.doubts[_UNKNOWN] += 1
        self.mappings = self._read_table(_MAPPING)
        self.functions = self._read_table(_FUNCTION)
        self.periods: tuple[int, int] | None = None
        self.frames = {number: self._name_frames(place) for number, place in self._read_table(_LOCATION).items()}
        self.unnamed = 0.0

    def _read_table(self, number: int) -> dict[int, Fields]:
        """Return the messages of a table by their id."""
        messages = [read_fields(message) for message in self.fields.list_messages(number)]
        found = {message.find_number(1): message for message in messages}
        self.doubts[_TWICE] += len(messages) - len(found)
        self.doubts[_UNKNOWN] += sum(not message.has_only(_MOST_FIELDS[number]) for message in messages)
        return found

    def _text(self, index: int) -> str:
        if not 0 <= index < len(self.strings):
            raise InputError(self.path, f"damaged: there is no string {index}")
        return self.strings[index]

    def _name_frames(self, place: Fields) -> tuple[tuple[Frame, ...], bool]:
        """Return the functions at a location, outermost first, and whether their names are known."""
        lines = [read_fields(line) for line in place.list_messages(4)]
        frames = []
        for line in reversed(lines):
            number = line.find_number(1)
            self.used[1].add(number)
            self.doubts[_UNKNOWN] += not line.has_only(_MOST_LINE_FIELDS)
            function = self.functions.get(number) if number else _NO_FUNCTION
            if function is None:
                raise InputError(self.path, f"damaged: there is no function {number}")
            name = self._text(function.find_number(2)) or self._text(function.find_number(3))
            start = function.find_number(5)
            frames.append(Frame(name or "not named", self._text(function.find_number(4)) or None, start or None))
        if frames:
            return tuple(frames), True
        mapping = self.mappings.get(place.find_number(2))
        library = self._text(mapping.find_number(5)).rsplit("/", 1)[-1] if mapping else ""
        return (Frame(f"[{library or 'unknown'}]"),), False

    def build_stacks(self) -> StackProfile:
        """Return the samples of the kind that tells best where time passed."""
        column, unit, factor = self._choose_column()
        self.periods = self._find_period(column)
        threads: dict[object, int] = {}
        samples = [self._read_sample(message, column, threads) for message in self.fields.list_messages(_SAMPLE)]
        duration_s = self.fields.find_number(_DURATION) * 1e-9
        duration_s = duration_s if duration_s < _LONGEST_S else 0.0
        total = sum(amount for _, _, amount in samples) * factor
        together = total > duration_s * ROUNDING * max(len(threads), 1) and duration_s > 0
        cores = total / duration_s if together and not threads and unit == "cpu_s" else 1.0
        factor /= cores
        known = duration_s > 0 and unit != "samples" and (cores > 1 or not together)
        found = StackProfile(
            tool="pprof",
            # Wall times of several threads may be added up: without a duration to compare with nobody knows.
            unit="samples" if unit == "wall_s" and (together or duration_s <= 0) else unit,
            spent={},
            # the sampler's clock may be the faster one
            wall_s=max(duration_s, total / cores / max(len(threads), 1)) if known else math.nan,
            threads=max(len(threads), 1),
            program=self._find_program(),
            started=self._find_start(),
            language=self._find_language(),
            notes=tuple(self._describe(together, cores, duration_s, sum(amount for _, _, amount in samples))),
        )
        for stack, thread, amount in samples:
            if amount > 0 and stack:
                found.add_spent(stack, thread, amount * (1.0 if found.unit == "samples" else factor))
        return found

    def _choose_column(self) -> tuple[int, Unit, float]:
        """Return which value of the samples to read, what it is, and the seconds (or samples) of one."""
        types = [read_fields(message) for message in self.fields.list_messages(_SAMPLE_TYPE)]
        kinds = [(self._text(each.find_number(1)), self._text(each.find_number(2))) for each in types]
        for words, unit in _TIMES:
            for column, (kind, measure) in enumerate(kinds):
                if words & set(_WORD.split(kind.lower())) and measure in _UNITS:
                    return column, unit, _UNITS[measure]
        periods = self.fields.list_messages(_PERIOD_TYPE)
        period = read_fields(periods[-1]) if periods else None
        period_kind = (self._text(period.find_number(1)), self._text(period.find_number(2))) if period else ("", "")
        for column, (kind, measure) in enumerate(kinds):
            if kind in ("samples", "sample") and measure == "count":
                if period_kind[0] == "cpu" and period_kind[1] in _UNITS and self.fields.find_number(_PERIOD) > 0:
                    return column, "cpu_s", _UNITS[period_kind[1]] * self.fields.find_number(_PERIOD)
                return column, "samples", 1.0
        named = ", ".join(f"{kind} ({measure})" for kind, measure in kinds) or "nothing"
        raise InputError(self.path, f"holds {named[:200]}, which does not tell where time passed; record a CPU profile")

    def _find_period(self, column: int) -> tuple[int, int] | None:
        """Return the column that counts samples, and the period that makes it the one of CPU time; None without."""
        types = [read_fields(message) for message in self.fields.list_messages(_SAMPLE_TYPE)]
        kinds = [(self._text(each.find_number(1)), self._text(each.find_number(2))) for each in types]
        periods = self.fields.list_messages(_PERIOD_TYPE)
        period = self.fields.find_number(_PERIOD)
        if ("samples", "count") not in kinds or not periods or period <= 0 or kinds[column][0] != "cpu":
            return None
        kind = tuple(self._text(read_fields(periods[-1]).find_number(n)) for n in (1, 2))
        return (kinds.index(("samples", "count")), period) if kind == kinds[column] else None

    def _read_sample(
        self, message: bytes, column: int, threads: dict[object, int]
    ) -> tuple[tuple[Frame, ...], int, float]:
        """Return the stack of a sample, outermost function first, its thread, and its value."""
        sample = read_fields(message)
        values = sample.list_numbers(2)
        if column >= len(values):
            raise InputError(self.path, f"damaged: a sample holds {len(values)} values")
        self.doubts[_UNKNOWN] += not sample.has_only(_MOST_FIELDS[_SAMPLE])
        self.doubts[_PERIODS] += bool(self.periods and values[self.periods[0]] * self.periods[1] != values[column])
        value = float(values[column] - (1 << 64) if values[column] >> 63 else values[column])
        stack: list[Frame] = []
        named = False
        for place in reversed(sample.list_numbers(1)):
            self.used[0].add(place)
            if place not in self.frames:
                raise InputError(self.path, f"damaged: there is no location {place}")
            frames, known = self.frames[place]
            named |= known
            if known or not stack or stack[-1] != frames[-1]:
                stack.extend(frames)
        self.unnamed += 0.0 if named else max(value, 0.0)
        return tuple(stack), self._find_thread(sample, threads), value

    def _find_thread(self, sample: Fields, threads: dict[object, int]) -> int:
        for label in (read_fields(message) for message in sample.list_messages(3)):
            self.doubts[_UNKNOWN] += not label.has_only(_MOST_LABEL_FIELDS)
            if self._text(label.find_number(1)) in _THREAD_LABELS:
                number = threads.setdefault((label.find_number(2), label.find_number(3)), len(threads))
                if number >= _MOST_THREADS:
                    raise InputError(self.path, f"more than {_MOST_THREADS:,} threads")
                return number
        return 0

    def _describe(self, together: bool, cores: float, duration_s: float, total: float) -> list[Note]:
        notes: list[Note] = []
        if cores > 1:
            notes += describe_added_threads(cores)
        elif together:
            notes.append(Note("threads added up", f"{_TOGETHER}: shares are known, seconds of a thread not", 0.2))
        if duration_s <= 0:
            notes.append(_NO_DURATION)
        wrong = [f"{text} ({count})" for text, count in self.doubts.items() if count]
        if wrong:
            notes.append(Note("contradictions in the profile", "; ".join(wrong), 0.3))
        unused = len(self.frames.keys() - self.used[0]) + len(self.functions.keys() - self.used[1])
        if unused:
            text = f"nothing refers to {unused} of the locations and functions: samples were left out, or are damaged"
            notes.append(Note("samples left out", text, 0.05))
        return [*notes, _NO_NAMES] if self.unnamed > 0.5 * total > 0 else notes

    def _find_program(self) -> str:
        first = next(iter(self.mappings.values()), None)
        return strip_folders(self._text(first.find_number(5))) if first else ""

    def _find_start(self) -> str | None:
        seconds = self.fields.find_number(_TIME) * 1e-9
        if not 0 < seconds < _LATEST_S:
            return None
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

    def _find_language(self) -> str | None:
        files = [self._text(function.find_number(4)) for function in self.functions.values()]
        return "go" if any(name.endswith(".go") for name in files) else None
