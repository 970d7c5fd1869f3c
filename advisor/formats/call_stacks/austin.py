"""Austin's samples of Python: folded stacks with process, thread and microseconds, between lines of what was recorded.

The duration at the end of the file closes it. Source: Austin 3's documentation of its collapsed format.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from advisor.formats.call_stacks.stacks import Frame, StackProfile, Unit
from advisor.formats.plain_text import read_plain_text
from advisor.model.errors import InputError

_FACT: Final = re.compile(r"# (\w+): (.*?) *$")
_SAMPLE: Final = re.compile(r"P(\w+);T(\S+?)((?:;.*)?) (\d{1,18})(?:,(\d{1,18}),-?\d{1,18})?$")
_FRAME: Final = re.compile(r"(.*):([^:]*):(\d{1,9})$")
_MODES: Final[dict[str, Unit]] = {"wall": "wall_s", "cpu": "cpu_s", "full": "wall_s"}
_US: Final = 1e-6
_MOST_THREADS: Final = 4096
#: Samples of a thread last no longer than the run, but for the last one.
_ROUNDING: Final = 1.05


def parse(path: Path) -> StackProfile:
    """Return the stacks in the file; raises ``InputError`` with the line of what is none, and without a duration."""
    text = read_plain_text(path)
    facts: dict[str, str] = {}
    threads: dict[tuple[str, str], int] = {}
    samples: list[tuple[tuple[Frame, ...], int, float]] = []
    for number, line in enumerate(text.lines):
        fact, cells = _FACT.match(line), _SAMPLE.match(line)
        if fact:
            facts[fact[1]] = fact[2]
        elif cells:
            thread = threads.setdefault((cells[1], cells[2]), len(threads))
            frames = tuple(map(_parse_frame, filter(None, cells[3].split(";"))))
            samples.append((frames or (Frame("not in Python"),), thread, text.parse_number(cells[4], number) * _US))
        elif line.strip():
            raise text.make_error(number, "no sample of Austin")
        if len(threads) > _MOST_THREADS:
            raise text.make_error(number, f"more than {_MOST_THREADS:,} threads")
    unit = _MODES.get(facts.get("mode", "wall"))
    if unit is None:
        raise InputError(path, f"holds {facts['mode'][:20]}, which does not tell where time passed; record wall time")
    if "duration" not in facts or not text.lines[-1] == "":
        raise InputError(path, "ends before the duration of the run: the file is cut off")
    found = StackProfile(
        "Austin", unit, {}, text.parse_number(facts["duration"], len(text.lines) - 1) * _US,
        threads=max(len(threads), 1), language="python",
    )  # fmt: skip
    spent = [0.0] * found.threads
    for stack, thread, seconds in samples:
        found.add_spent(stack, thread, seconds)
        spent[thread] += seconds
    if max(spent) > _ROUNDING * found.wall_s:
        raise InputError(path, f"a thread spends {max(spent):g} s in a run of {found.wall_s:g} s")
    return found


def _parse_frame(text: str) -> Frame:
    found = _FRAME.match(text)
    return Frame(found[2], found[1], int(found[3])) if found else Frame(text)
