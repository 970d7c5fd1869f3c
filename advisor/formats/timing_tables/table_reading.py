"""Tables of a known form (``table_forms``) as rows: what stands in the lines, checked against what they say twice."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from advisor.formats.rank_extremes import CALLS
from advisor.formats.timing_tables.flat_timers import nest_timers
from advisor.formats.timing_tables.rank_counts import find_rank_count
from advisor.formats.timing_tables.row_roles import classify_row
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.formats.timing_tables.templates import compile_template, find_digits, parse_time
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText
    from advisor.formats.timing_tables.table_forms import TableForm

_ANY_WORD: Final = re.compile(r".*[A-Za-z0-9]")
_SECONDS: Final[tuple[str, ...]] = ("mean", "least", "most", "inclusive", "inclusive_most", "deviation")
#: Between a title and the first row are names of columns, and at most one number.
_NUMBERS: Final = re.compile(r".*\s\(?\d\S*\s.*\s\(?\d")
_HEAD: Final = 12
#: Shares are of a run that is printed with few digits, too.
_SLACK: Final = 1.01
_SHARE: Final = 1e-3
#: A run is printed to a tenth of a second at the worst, where rows are printed in shares of it.
_WALL_S: Final = 0.06


@dataclass(frozen=True, slots=True)
class _Line:
    """A row as it is printed; ``seconds`` are in seconds, and one that is not printed is NaN."""

    number: int
    indent: int
    name: str
    fields: dict[str, str]
    seconds: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.seconds.get(name, math.nan)

    def find_count(self, name: str, absent: int) -> int:
        """Return the whole number in a field, ``absent`` where the line has none."""
        return int(self.fields.get(name) or absent)


def parse_table(text: PlainText, form: TableForm) -> TimingTable:
    """Return the last table of ``form`` in ``text``; raises ``InputError`` with the line of what is damaged."""
    lines = list(_find_lines(text, form))
    if not lines:
        raise InputError(text.path, f"holds no times of the parts of {form.tool}, or ends before them")
    whole = next((line for line in lines if line.name == form.whole), None) if form.whole else None
    if form.whole and whole is None:
        raise text.make_error(lines[-1].number, f"the row {form.whole!r} is missing")
    ranks, threads = _find_ranks(text, form, lines), _find_count(text, form.threads, "threads")
    wall_s = _find_wall(text, form, lines, whole)
    _check_lines(text, form, lines, wall_s if whole is None or math.isnan(whole["mean"]) else whole["mean"])
    fewest = 1 + max(max(line.find_count("least_at", 0), line.find_count("most_at", 1)) for line in lines)
    rows = [_make_row(text, form, line, ranks or fewest) for line in _take_steps(form, lines) if line is not whole]
    wall_s, nested, notes = _nest_rows(form, lines, whole, rows, wall_s)
    spread = any(row.is_spread_known for row in rows)
    cpu_s = _find_time(text, (form.cpu,) if form.cpu else (), "cpu")
    return TimingTable(
        tool=form.tool, program=_find_word(text, form.program), rows=nested, ranks=ranks, threads=threads or 1,
        wall_s=wall_s, shortest_s=math.nan if whole is None else whole["least"], hides_waiting=form.hides_waiting,
        first_rank=ranks != 1 and not spread and not form.averages, language=form.language,
        run=_find_word(text, form.run),
        started=_find_word(text, form.started) or None, notes=(*notes, *_check_end(text, form, lines)),
        cpu_s=cpu_s if cpu_s is not None and cpu_s <= (threads or 1) * wall_s * _SLACK else math.nan,
    )  # fmt: skip


def _find_lines(text: PlainText, form: TableForm) -> Iterator[_Line]:
    """Yield the rows of the last table; raises ``InputError`` for a line that is none, and where no end follows."""
    section, end = (compile_template(one) if one else None for one in (form.section, form.end))
    besides = [compile_template(template) for template in form.besides]
    begins = list(text.find_lines(compile_template(form.begin))) if form.begin else []
    if form.begin and not begins:
        return
    last = len(text.lines) - 1  # what stands there has no end
    rows = [compile_template(template) for template in form.rows]
    pattern = next((row for row in rows if text.find_line(row, begins[-1] if begins else 0) is not None), rows[0])
    if not form.begin:
        for number, row in text.find_matches(pattern, 0, last):
            if not any(one.match(text.lines[number]) for one in besides):
                yield _parse_line(text, number, row, form)
        return
    part, found = "", False
    start = begins[0] if section else begins[-1] + 1  # the first line may name the part that follows
    for number in range(start, len(text.lines)):
        content = text.lines[number]
        beside = any(one.match(content) for one in besides)
        cells = None if beside else pattern.match(content)
        ends = bool(end.match(content) and number < last if end else not content.strip())
        if cells is not None:
            found, line = True, _parse_line(text, number, cells, form)
            yield replace(line, name=f"{part}: {line.name}") if part else line
        if found and ends:  # the last row may be the end
            return
        named = section.match(content) if section and cells is None else None
        if named:
            part = named["name"].rstrip(": ")
        elif cells is None and not beside and (_ANY_WORD if found else _NUMBERS).match(content):
            raise text.make_error(number, f"no line of the times of {form.tool}")
        elif not found and number > start + _HEAD:
            raise text.make_error(number, f"no row of the times of {form.tool} follows their title")
    raise text.make_error(len(text.lines) - 1, "the table ends before its closing line")


def _parse_line(text: PlainText, number: int, found: re.Match[str], form: TableForm) -> _Line:
    fields = {name: value for name, value in found.groupdict().items() if value is not None}
    seconds: dict[str, float] = {
        name: form.unit_s * parse_time(text, fields[name], number) for name in _SECONDS if name in fields
    }
    return _Line(number, len(fields.get("indent", "").expandtabs()), fields["name"], fields, seconds)


def _find_ranks(text: PlainText, form: TableForm, lines: Sequence[_Line]) -> int | None:
    """Return the number of ranks; 1 where a program that states it when there are several does not."""
    if "on" in lines[0].fields:
        return max(line.find_count("on", 1) for line in lines)
    stated = _find_count(text, form.ranks, "ranks")
    return stated or (1 if form.ranks else find_rank_count(text, lines[0].number))


def _find_wall(text: PlainText, form: TableForm, lines: Sequence[_Line], whole: _Line | None) -> float | None:
    """Return the time of the run; None where the longest row is the run."""
    if whole is not None:
        return max(value for value in (whole["mean"], whole["most"]) if not math.isnan(value))
    inclusive = [value for line in lines for value in (line["inclusive"], line["inclusive_most"]) if value > 0]
    stated = _find_time(text, form.wall, "wall")
    if not form.wall and form.nesting == "apart" and "share" in lines[0].fields:
        return sum(line["mean"] for line in lines)  # of which the shares are
    if stated is None and form.wall:
        raise InputError(text.path, f"the output ends before the run time of {form.tool}")
    return max(stated or 0.0, *inclusive) if inclusive else stated


def _check_lines(text: PlainText, form: TableForm, lines: Sequence[_Line], wall_s: float | None) -> None:
    """Raise ``InputError`` for a row that contradicts itself, the run, or the sum of all."""
    for line in lines:
        digit = form.unit_s * max((find_digits(line.fields[name]) for name in line.seconds), default=0.0)
        slack = _SLACK * digit + 1e-9
        if line["least"] > line["mean"] + slack or line["mean"] > line["most"] + slack or line["least"] > line["most"]:
            raise text.make_error(line.number, "the mean is not between the least and the most")
        if line["deviation"] > (line["most"] - line["least"]) / 2 + slack:
            raise text.make_error(line.number, "least, most and deviation contradict each other")
        if line["mean"] > line["inclusive"] + slack or line["most"] > line["inclusive_most"] + slack:
            raise text.make_error(line.number, "a row takes longer than with all that it calls")
        for name, unit in (("share", 0.01), ("fraction", 1.0)):
            if name in line.fields and wall_s:
                part = unit * text.parse_number(line.fields[name], line.number)
                room = unit * find_digits(line.fields[name]) + _SHARE
                if abs(line["mean"] - part * wall_s) > room * wall_s + slack + _WALL_S * bool(form.wall):
                    raise text.make_error(line.number, f"{line['mean']:g} s are not {part:.4g} of the run")
    if form.sum:
        found = next(text.find_matches(compile_template(form.sum), lines[-1].number), None)
        if found is None:
            raise text.make_error(lines[-1].number, "the sum of the rows is missing")
        total = parse_time(text, found[1]["sum"], found[0])
        if abs(total - sum(line["mean"] for line in lines)) > find_digits(found[1]["sum"]) * (len(lines) + 1):
            raise text.make_error(found[0], f"the rows do not add up to {total:g} s")


def _take_steps(form: TableForm, lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yield rows with their own seconds, where the program prints how long it has run until their ends."""
    before = 0.0
    for line in lines:
        yield replace(line, seconds={"mean": max(line["mean"] - before, 0.0)}) if form.cumulative else line
        before = line["mean"]


def _make_row(text: PlainText, form: TableForm, line: _Line, ranks: int) -> TimingRow:
    """Return a row over all ranks; those that it does not run on spend nothing in it.

    Where the table holds no mean it is the one that leaves the least imbalance: of work all ranks but one take the
    most, in communication all but one the least.
    """
    roles = (Role[role] for begin, role in form.roles if re.match(begin, line.name))
    role = next(roles, classify_row(line.name))
    first, last = line.find_count("first", 0), line.find_count("last", -1)
    on = line.find_count("on", last - first + 1 or ranks)
    if not 1 <= on <= ranks or line.find_count("most_at", 0) >= ranks or line.find_count("least_at", 0) >= ranks:
        raise text.make_error(line.number, f"more ranks than the {ranks} of the run")
    mean, least, most = line["mean"], line["least"], line["most"]
    if math.isnan(mean):
        usual, other = (least, most) if role in CALLS else (most, least)
        mean = usual if math.isnan(other) else usual + (other - usual) / on
    calls = line.fields.get("calls", "")  # a number that did not fit is printed as stars, none as -1
    return TimingRow(
        line.name, mean * on / ranks, least if on == ranks else 0.0, most, role=role,
        least_at=line.find_count("least_at", -1) if on == ranks else -1, most_at=line.find_count("most_at", -1),
        calls=math.nan if calls.strip("*") in {"", "-1"} else text.parse_number(calls, line.number) * on / ranks,
    )  # fmt: skip


def _nest_rows(
    form: TableForm, lines: Sequence[_Line], whole: _Line | None, rows: Sequence[TimingRow], wall_s: float | None
) -> tuple[float, tuple[TimingRow, ...], tuple[Note, ...]]:
    """Return the time of the run, the rows below those that contain them, and what is to be said of it."""
    if form.nesting == "unknown" or wall_s is None:
        return nest_timers(_add_up(rows), wall_s)
    if form.nesting == "apart":
        return wall_s, _add_up(rows), ()
    indents = [line.indent for line in lines if line is not whole]
    upwards = form.nesting == "indented upwards"
    order = range(len(rows) - 1, -1, -1) if upwards else range(len(rows))
    open_rows: list[tuple[int, int]] = []  # indent, place among those that are kept
    kept: list[TimingRow] = []
    for place in order:
        while open_rows and open_rows[-1][0] >= indents[place]:
            open_rows.pop()
        kept.append(replace(rows[place], parent=open_rows[-1][1] if open_rows else -1))
        open_rows.append((indents[place], len(kept) - 1))
    return wall_s, tuple(kept), ()


def _add_up(rows: Sequence[TimingRow]) -> tuple[TimingRow, ...]:
    """Return the rows that take time, those of one name as one: which rank is least in both together is not known."""
    found: dict[str, TimingRow] = {}
    for row in rows:
        if row.name in found:
            other = found[row.name]
            row = TimingRow(row.name, row.mean_s + other.mean_s, role=row.role, calls=row.calls + other.calls)
        if row.mean_s > 0:
            found[row.name] = row
    return tuple(found.values())


def _find_count(text: PlainText, templates: Sequence[str], field: str) -> int | None:
    """Return the product of the numbers in the last lines of ``templates``; None without any."""
    found = [list(text.find_matches(compile_template(one)))[-1:] for one in templates]
    counts = [int(match[field]) for lines in found for _, match in lines]
    return (math.prod(counts) or None) if counts else None


def _find_time(text: PlainText, templates: Sequence[str], field: str) -> float | None:
    """Return the time in the last line of the first of ``templates`` that there is, None without."""
    for template in templates:
        found = list(text.find_matches(compile_template(template), 0, len(text.lines) - 1))
        if found:
            return parse_time(text, found[-1][1][field], found[-1][0])
    return None


def _find_word(text: PlainText, template: str) -> str:
    """Return what a line of the output names, or the words themselves where nothing in them is a field."""
    if "{" not in template:
        return template
    found = text.find_match(compile_template(template))
    return found["words"] if found else ""


def _check_end(text: PlainText, form: TableForm, lines: Sequence[_Line]) -> Iterator[Note]:
    """Yield a note where the program did not get to its end behind the table."""
    if form.finish and text.find_line(compile_template(form.finish), lines[-1].number) is None:
        yield Note("the log ends early", f"{form.tool} did not end regularly", 0.2)
