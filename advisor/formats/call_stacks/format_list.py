"""The formats of call stacks, and what tells them: the module that reads one is imported when a file is in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.plain_text import HEAD
from advisor.formats.protobuf_wire import LONGEST, WireError, read_varint

if TYPE_CHECKING:
    from advisor.formats.call_stacks.stacks import StackProfile

#: A folded stack and its number; a semicolon before the number is one of a table.
STACK_LINE: Final = re.compile(r"(\S[^\r]*?)(?<!;) +(\d{1,18}(?:\.\d{1,9})?)$")
#: How many lines are looked at for folded stacks, and how many must be there.
_GLANCE: Final = 200
_ENOUGH: Final = 3
_SPEEDSCOPE: Final = b"https://www.speedscope.app/file-format-schema.json"
_PYINSTRUMENT: Final = (b'"sample_count"', b'"duration"')
_PYINSTRUMENT_FRAMES: Final = (b'"root_frame"', b'"frame_tree"', b'"frame_records"')
_SCALENE: Final = (b'"elapsed_time_sec"', b'"files"')
_LINES: Final = re.compile(rb"^Line # +Hits +Time +Per Hit +% Time +Line Contents", re.M)
#: A pickle of line_profiler's class.
_LINE_STATISTICS: Final = re.compile(rb"\x80[\x02-\x05].{0,20}line_profiler[.\w]{0,40}.{0,8}LineStats", re.S)
_CPROFILE: Final = b"ncalls  tottime  percall  cumtime  percall filename:lineno(function)"
#: The fields of a profile of pprof and their wire types: numbers, and messages or texts with their length.
_LENGTH: Final = 2
_PPROF_FIELDS: Final = {n: _LENGTH if n in (1, 2, 3, 4, 5, 6, 11) else 0 for n in range(1, 16)}
_LONGEST_KIND: Final = 8
#: V8 writes its nodes first; the times between samples are last, and of a long run more than is looked at.
_V8: Final = re.compile(
    rb'\s*\{[^\[{]{0,100}"nodes"\s*:\s*\[\s*\{.{0,200}?"callFrame"\s*:\s*\{.{0,200}?"functionName"', re.S
)
#: The Firefox Profiler writes its facts first, or last; an interval is of samples alone.
_FIREFOX: Final = re.compile(rb'"meta"\s*:\s*\{.*?"(?:preprocessedProfileVersion|interval)"\s*:', re.S)
_FLIGHT: Final = b"FLR\0"
_RPROF: Final = re.compile(rb"(?:(?:memory|GC|line) profiling: )*sample\.interval=\d+\r?\n")
_PERF_REPORT: Final = re.compile(
    rb"^# (?:Children +Self|Overhead) +(?:Samples +)?(?:Command|Shared Object|Symbol)\b", re.M
)
#: A table of pprof with its columns, or with the sum of all samples above numbers and shares.
_PPROF_TEXT: Final = re.compile(
    rb"^ *flat +flat% +sum% +cum +cum%|^Total: \d+ samples\r?\n *\d+ +[\d.]+% +[\d.]+% +\d+ +[\d.]+% ", re.M
)
_PERF_ANNOTATE: Final = re.compile(rb"^ *Percent *\|\s*Source code & Disassembly of ", re.M)
#: Statistics of cProfile: a dictionary whose first key is a tuple of three, the first of them a text.
_DICT, _TUPLE, _TEXTS = b"{", b")\x03", b"zZaAu"
_PYTHON_2: Final = re.compile(rb"\{\(\x03\0\0\0[st].{3}\0", re.S)


class StackFormat(NamedTuple):
    """A format: the module that reads it, what recognizes the two ends of a file, and how sure that is."""

    module: str
    match_ends: Callable[[bytes], bool]
    sure: float

    def parse(self, path: Path) -> StackProfile:
        """Return the stacks in the file at ``path``; raises ``InputError`` with the place of what is damaged."""
        reader = import_module(f"advisor.formats.call_stacks.{self.module}")
        found: StackProfile = reader.parse(path)
        return found


def find_format(ends: bytes) -> StackFormat | None:
    """Return the format that the two ends of a file are in; None where there is none."""
    return next((each for each in FORMATS if each.match_ends(ends)), None)


def _begins_with_statistics(ends: bytes) -> bool:
    """Return whether the file begins as a dictionary of functions: file, line and name."""
    bare = bytes(code & 0x7F for code in ends[:4])
    if _PYTHON_2.match(ends):
        return True
    return bare[:1] == _DICT and bare[1:3] == _TUPLE and bare[3:4] in [bytes([text]) for text in _TEXTS]


def _begins_as_session(ends: bytes) -> bool:
    """Return whether the file is a session of pyinstrument in any of its forms."""
    return all(mark in ends for mark in _PYINSTRUMENT) and any(mark in ends for mark in _PYINSTRUMENT_FRAMES)


def _begins_as_threads(ends: bytes) -> bool:
    """Return whether the file is a profile of the Firefox Profiler: an object with facts of how it was recorded."""
    return ends[:HEAD].lstrip()[:1] == b"{" and _FIREFOX.search(ends) is not None


def _begins_with_profile(ends: bytes) -> bool:
    """Return whether the file begins with fields of pprof's message, in any order, kinds of samples among them."""
    place = found = 0
    kinds = False
    head = ends[:HEAD]
    while place < len(head):
        number, kind = head[place] >> 3, head[place] & 7
        if _PPROF_FIELDS.get(number) != kind:
            break
        try:
            value, place = read_varint(head, place + 1)
        except WireError:
            if len(head) - place > LONGEST:
                break
            value, place = 0, len(head)  # the head ends within it
        if kind == _LENGTH:
            kinds |= number == 1 and head[place : place + 1] == b"\x08" and 2 <= value <= _LONGEST_KIND
            place += value
        found += 1
    # a tail may follow the head, and then the last field is not whole
    return kinds and found >= _ENOUGH and (place >= len(head) - 1)


def _begins_with_stacks(ends: bytes) -> bool:
    """Return whether the first lines are stacks: all with a number at their end, most with several functions."""
    lines = ends[:HEAD].decode("utf-8", "replace").split("\n")
    stacks = [line for line in lines[:_GLANCE] if line.strip() and not line.strip().isdigit()]
    if len(stacks) > _ENOUGH and not STACK_LINE.match(stacks[-1].strip("\r")):  # cut off, by the file or the glance
        stacks = stacks[:-1]
    if not stacks or not all(STACK_LINE.match(line.strip("\r")) for line in stacks):
        return False
    deep = sum(";" in line for line in stacks)
    return deep * 2 >= len(stacks) if len(stacks) >= _ENOUGH else all(line.count(";") > 1 for line in stacks)


#: The surest to be recognized first.
FORMATS: Final = (
    StackFormat("speedscope", lambda ends: _SPEEDSCOPE in ends, 1.0),
    StackFormat("pyinstrument", _begins_as_session, 1.0),
    StackFormat("scalene", lambda ends: all(mark in ends for mark in _SCALENE), 1.0),
    StackFormat("line_profiler", lambda ends: _LINES.search(ends) is not None, 0.9),
    StackFormat("line_statistics", lambda ends: _LINE_STATISTICS.match(ends) is not None, 1.0),
    StackFormat("cprofile_text", lambda ends: _CPROFILE in ends, 0.9),
    StackFormat("pstats", _begins_with_statistics, 0.8),
    StackFormat("pprof", _begins_with_profile, 0.8),
    StackFormat("jfr", lambda ends: ends.startswith(_FLIGHT), 1.0),
    StackFormat("cpuprofile", lambda ends: _V8.match(ends) is not None, 1.0),
    StackFormat("firefox_profile", _begins_as_threads, 1.0),
    StackFormat("rprof", lambda ends: _RPROF.match(ends) is not None, 1.0),
    StackFormat("perf_report", lambda ends: _PERF_REPORT.search(ends) is not None, 0.9),
    StackFormat("perf_annotate", lambda ends: _PERF_ANNOTATE.search(ends) is not None, 0.9),
    StackFormat("pprof_text", lambda ends: _PPROF_TEXT.search(ends) is not None, 0.9),
    StackFormat("austin", lambda ends: ends.startswith(b"# austin: "), 1.0),
    StackFormat("folded", _begins_with_stacks, 0.6),
)
