"""The statistics that ``python -m cProfile -o FILE`` writes: calls and seconds of each function, and by whom called."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from advisor.formats.call_stacks.known_code import is_compiling
from advisor.formats.call_stacks.marshal_reader import MarshalReader
from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_content
from advisor.model.errors import InputError

_SLACK: float = 1e-6


def parse(path: Path) -> StackProfile:
    """Return the functions with their own seconds; raises ``InputError`` for what is damaged."""
    found = StackProfile("cProfile", "wall_s", {}, math.nan, sampled=False, language="python")
    statistics = MarshalReader(path, read_content(path)).read_object()
    if not isinstance(statistics, dict):
        raise InputError(path, "no statistics of cProfile: no dictionary")
    compiled_s = 0.0
    for key, value in statistics.items():
        frame, calls, own, inclusive, callers = _check_entry(path, key, value)
        compiled_s = max(compiled_s, inclusive if is_compiling(frame) else 0.0)
        found.add_spent((frame,), 0, own)
        found.calls[frame,] = found.calls.get((frame,), 0.0) + calls
        for caller, count in _count_by_caller(path, callers):
            found.made[caller,] = found.made.get((caller,), 0.0) + count
    together = sum(sum(each) for each in found.spent.values())
    return replace(found, wall_s=together, compiled_s=compiled_s)


def _count_by_caller(path: Path, callers: dict[object, object]) -> Iterator[tuple[Frame, float]]:
    """Yield who called a function, and how often."""
    for caller, numbers in callers.items():
        match caller, numbers:
            case (str(file), int(line), str(name)), (_, int(calls), _, _) if calls >= 0:
                yield Frame(name, file, line or None), float(calls)
            case _:
                raise InputError(path, "damaged: a caller is not a function")


def _check_entry(path: Path, key: object, value: object) -> tuple[Frame, float, float, float, dict[object, object]]:
    """Return a function, how often it was called, its own seconds, those with what it calls, and its callers.

    Their seconds must be those of its calls.
    """
    match key, value:
        case (str(file), int(line), str(name)), (int(first), int(calls), float(own), float(inclusive), dict(callers)):
            place = f"{file}:{line}({name})"[:200]
        case _:
            raise InputError(path, "no statistics of cProfile: an entry is not a function")
    entered_again = (
        first < calls
    )  # by recursion or another thread, of which the inclusive time holds one call at a time
    if not (0 <= first <= calls and 0 <= own < 1e10 and 0 <= inclusive < 1e10 and 0 <= line < 1 << 31):
        raise InputError(path, "damaged: impossible numbers", place)
    if own > inclusive + _SLACK and not entered_again:
        raise InputError(path, "damaged: impossible numbers", place)
    shares = [each for each in callers.values() if isinstance(each, tuple) and len(each) == 4]
    numbers = [(each[1], each[2]) for each in shares if isinstance(each[1], int) and isinstance(each[2], float)]
    told = sum(count for count, _ in numbers)
    if len(numbers) < len(callers) or (callers and first == calls and told > calls):
        raise InputError(path, "damaged: the callers do not add up to the calls", place)
    missing = own - sum(seconds for _, seconds in numbers)  # of calls from where the profiler was not yet switched on
    if (
        callers
        and first == calls
        and (missing < -_SLACK - 1e-6 * own or (told == calls and missing > _SLACK + 1e-6 * own))
    ):
        raise InputError(path, "damaged: the callers' seconds do not add up", place)
    return Frame(name, file, line or None), float(calls), own, inclusive, callers
