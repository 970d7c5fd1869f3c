"""The lines of an output of callgrind or cachegrind, read in large pieces.

Lines of counts, most of the file, are read all at once as columns of numbers; lines that name something one by one.
The format is described in the manual of Valgrind, chapter "Callgrind Format Specification".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.valgrind.byte_lines import NotANumberError, are_digits, find_words, parse_integers, split_lines
from advisor.formats.valgrind.header import DumpHeader
from advisor.formats.valgrind.line_errors import MistakeError
from advisor.formats.valgrind.name_table import NameContext, NameTable
from advisor.formats.valgrind.sums import PlaceSums

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.valgrind.byte_lines import ByteLines
    from advisor.formats.valgrind.name_table import Function
    from advisor.model.records import FloatArray, IntArray

_COUNTS: Final = np.frombuffer(b"0123456789+-*", dtype=np.uint8)
#: Lines that begin so name something (``fn=``, ``cob=``, ``jcnd=``) or are calls; all others are ``key: text``.
_NAMING: Final = np.frombuffer(b"foj", dtype=np.uint8)
#: The second letters of ``cfn=``, ``cob=`` and ``calls=``, but not of ``cmd:`` and ``creator:``.
_CALLED: Final = np.frombuffer(b"fao", dtype=np.uint8)


class LineError(MistakeError):
    """A mistake and the number of its line (0-based) in the piece of text that was given."""

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        super().__init__(reason)


#: From which line on counts belong to which place: line, place, source file, whether that is the function's own.
_Span = tuple[int, int, int, bool]


class DumpScanner:
    """Takes in a file piece by piece and adds up what was counted."""

    def __init__(self, numbered: bool) -> None:
        self.header = DumpHeader()
        self.names = NameTable(numbered)
        self.sums: PlaceSums | None = None
        self.totals: FloatArray | None = None
        self.off = 0.0
        self._numbered = numbered
        self._context = NameContext()
        self._since: FloatArray = np.zeros(0)
        self._line = 0

    def feed_text(self, text: bytes) -> int:
        """Take in whole lines and return their number; raises ``LineError``."""
        lines = split_lines(text)
        first, second = lines.bytes_at(0), lines.bytes_at(1)
        counts = np.isin(first, _COUNTS)
        naming = np.isin(first, _NAMING) | ((first == ord("c")) & np.isin(second, _CALLED))
        silent = (first == ord("\n")) | (first == ord("#"))
        done = 0
        for line in [*np.flatnonzero(~counts & ~naming & ~silent).tolist(), len(lines)]:
            if line > done:
                part = slice(done, line)
                try:
                    self._take_part(
                        lines.slice_lines(done, line), np.flatnonzero(counts[part]), np.flatnonzero(naming[part])
                    )
                except LineError as mistake:
                    raise LineError(done + mistake.line, str(mistake)) from mistake
            if line < len(lines):
                self._take_header(lines, line)
            done = line + 1
        return len(lines)

    def check_end(self) -> None:
        """Raise ``MistakeError`` where the file ends too early."""
        if self.totals is None or self._since.any():
            raise MistakeError("the file ends before its totals")

    def _take_header(self, lines: ByteLines, line: int) -> None:
        key, colon, text = lines[line].partition(b":")
        try:
            if not colon:
                raise MistakeError(f"unknown line {lines[line][:50]!r}")
            if key in (b"totals", b"summary"):
                self._compare_totals(key, text)
            else:
                self.header.add_line(key.decode("utf-8", "replace"), text.strip().decode("utf-8", "surrogateescape"))
        except MistakeError as mistake:
            raise LineError(line, str(mistake)) from mistake
        if key == b"events" and self.sums is None:
            self.sums = PlaceSums(len(self.header.events))
            self._since = np.zeros(len(self.header.events))

    def _compare_totals(self, key: bytes, text: bytes) -> None:
        """Compare the totals of the file with the sums; callgrind's summary stands in front and also counts its end."""
        words = text.split()
        if not all(word.isdigit() and len(word) <= 15 for word in words) or len(words) > len(self._since):
            raise MistakeError("the totals are not event counts")
        if key == b"summary" and self._numbered:
            return
        stated = np.zeros(len(self._since))
        stated[: len(words)] = [int(word) for word in words]
        self.off = max(self.off, float(np.abs(stated - self._since).max(initial=0.0)))
        self.totals = stated if self.totals is None else self.totals + stated
        self._since = np.zeros_like(stated)

    def _take_part(self, lines: ByteLines, costs: IntArray, names: IntArray) -> None:
        """Take in lines among which there are no headers: those of counts, and those with names."""
        if self.sums is None and len(costs) + len(names):
            raise LineError(int(min([*costs[:1], *names[:1]])), "counts before the names of the events (events:)")
        spans, called = self._take_names(lines, names)
        inclusive = self._take_calls(lines, names, costs, called)
        if len(costs):
            self._take_counts(lines, costs, spans, inclusive)

    def _take_names(self, lines: ByteLines, names: IntArray) -> tuple[list[_Span], dict[int, int | Function]]:
        """Return where the counts belong, and the functions that single lines call, by line."""
        is_call = (lines.bytes_at(0)[names] == ord("c")) & (lines.bytes_at(1)[names] == ord("a"))
        spans: list[_Span] = []
        called: dict[int, int | Function] = {}
        self._add_span(spans, 0)
        for line in names[~is_call & ~self._is_plain_call(lines, names)].tolist():
            key, _, text = lines[line].partition(b"=")
            if key in (b"jump", b"jcnd"):
                continue
            try:
                function = self.names.add_line(key, text, self._context)
            except MistakeError as mistake:
                raise LineError(line, str(mistake)) from mistake
            if function is not None:
                called[line] = function
            elif key in (b"fn", b"fi", b"fe"):
                self._add_span(spans, line)
        return spans, called

    def _add_span(self, spans: list[_Span], line: int) -> None:
        if self._context.function is not None and self.sums is not None:
            spans.append((line, *self.sums.number_place(self._context.current_cell())))

    def _is_plain_call(self, lines: ByteLines, names: IntArray) -> npt.NDArray[np.bool_]:
        """Return which lines only name what is called, by a number: ``cfn=(12)``, ``cob=(3)``, ``cfi=(4)``."""
        start, end, code = lines.start[names], lines.end[names], lines.code
        if not self._numbered:
            return np.zeros(len(names), dtype=bool)
        plain: npt.NDArray[np.bool_] = (code[start] == ord("c")) & (end - start > 6) & (code[end - 1] == ord(")"))
        plain[plain] = code[start[plain] + 4] == ord("(")
        plain[plain] = are_digits(code, start[plain] + 5, end[plain] - 1)
        return plain

    def _take_calls(
        self, lines: ByteLines, names: IntArray, costs: IntArray, called: dict[int, int | Function]
    ) -> npt.NDArray[np.bool_]:
        """Count the calls; return which lines of counts hold what was counted in callees, once more."""
        calls = names[(lines.bytes_at(0)[names] == ord("c")) & (lines.bytes_at(1)[names] == ord("a"))]
        inclusive = np.isin(costs, calls + 1)
        wrong = calls[~np.isin(calls + 1, costs) | ~np.isin(calls - 1, names)]
        if len(wrong):
            raise LineError(int(wrong[0]), "calls= stands between the function called (cfn=) and the counts")
        begin, end, words = find_words(lines, calls)
        first = np.cumsum(words) - words
        number = self._parse_integers(lines, begin[first] + len("calls="), end[first], calls)
        plain = self._is_plain_call(lines, calls - 1)
        for at in np.flatnonzero(~plain).tolist():
            function = called.get(int(calls[at]) - 1)
            if function is None:
                raise LineError(int(calls[at]), "calls= without the function called (cfn=)")
            if isinstance(function, tuple):
                self.names.count_named(function, int(number[at]))
            else:
                self.names.count_calls(np.array([function]), number[at : at + 1])
        by_number = calls[plain] - 1
        function_numbers = self._parse_integers(lines, lines.start[by_number] + 5, lines.end[by_number] - 1, by_number)
        some, which = np.unique(function_numbers, return_inverse=True)
        self.names.count_calls(some, np.bincount(which, weights=number[plain]).astype(np.int64))
        return inclusive

    def _take_counts(
        self, lines: ByteLines, costs: IntArray, spans: list[_Span], inclusive: npt.NDArray[np.bool_]
    ) -> None:
        """Add up the counts on lines ``costs``, without those that are ``inclusive``."""
        if not spans or self.sums is None:
            raise LineError(int(costs[0]), "counts before the first function (fn=)")
        begin, end, words = find_words(lines, costs)
        first = np.cumsum(words) - words
        positions, events = len(self.header.positions), self.sums.events
        if words.max() > positions + events:
            raise LineError(int(costs[words.argmax()]), "more counts than there are events")
        if words.min() < positions:
            raise LineError(int(costs[words.argmin()]), "a line without its position")
        number = self._source_lines(lines, begin, end, first, costs)
        row = np.repeat(np.arange(len(costs)), words)
        column = np.arange(len(begin)) - first[row] - positions
        is_count = (column >= 0) & ~inclusive[row]
        row, column = row[is_count], column[is_count]
        table = np.zeros((len(costs), events))
        table[row, column] = self._parse_integers(lines, begin[is_count], end[is_count], costs[row])
        place = np.array(spans, dtype=np.int64)[np.searchsorted([span[0] for span in spans], costs, side="right") - 1]
        own = np.flatnonzero(~inclusive)
        self._since += table.sum(axis=0)
        try:
            self.sums.add_table(place[own, 1], place[own, 2], place[own, 3], number[own], table[own])
        except MistakeError as mistake:
            raise LineError(int(costs[0]), str(mistake)) from mistake

    def _source_lines(
        self, lines: ByteLines, begin: IntArray, end: IntArray, first: IntArray, line: IntArray
    ) -> IntArray:
        """Return the source line of each line of counts: stated, or by how far it is from the one before."""
        if "line" not in self.header.positions:
            return np.zeros(len(first), dtype=np.int64)
        word = first + self.header.positions.index("line")
        begin, end = begin[word], end[word]
        sign = lines.code[begin]
        same, relative = sign == ord("*"), (sign == ord("+")) | (sign == ord("-"))
        step = np.zeros(len(begin), dtype=np.int64)
        told = ~same
        step[told] = self._parse_integers(lines, begin[told] + relative[told], end[told], line[told])
        step = np.where(sign == ord("-"), -step, step)
        # Where a line is stated, the steps before it do not count.
        absolute = ~same & ~relative
        sums = np.cumsum(np.where(absolute, 0, step))
        last = np.maximum.accumulate(np.where(absolute, np.arange(len(step)), -1))
        found = np.where(last < 0, self._line + sums, step[last] + sums - sums[last])
        if found.min() < 0 or found.max() >= 2**31:
            raise LineError(int(line[(found < 0) | (found >= 2**31)][0]), "the source line is impossible")
        self._line = int(found[-1])
        return found

    def _parse_integers(self, lines: ByteLines, begin: IntArray, end: IntArray, line: IntArray) -> IntArray:
        try:
            return parse_integers(lines.code, begin, end)
        except NotANumberError as mistake:
            word = lines.text[begin[mistake.index] : end[mistake.index]][:50].decode("utf-8", "replace")
            raise LineError(int(line[mistake.index]), f"expected a count, found {word!r}") from mistake
