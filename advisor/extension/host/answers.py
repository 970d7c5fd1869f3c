"""What each hook may answer: checks one plugin's answer and returns it in the form in which it is used.

Each function takes what a plugin returned, and raises ``PluginError`` where that is not what the hook promises; None
means that the plugin has nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from advisor.advice.counterfactuals import Counterfactual
from advisor.analysis import soundness
from advisor.model.records import Finding, KnownDocument, Profile
from advisor.model.reports import Bars, HeatMap, Line, Part, Report, Series, Table, count_values
from advisor.support import contract
from advisor.support.contract import ContractError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from advisor.advice.facts import Fact
    from advisor.trace.events import Trace

LIST_LIMIT: Final = 1_000
PICTURES_LIMIT: Final = 20_000  # numbers in all pictures of one plugin about one run
FINDINGS_LIMIT: Final = 1_000_000  # characters in all findings of one plugin about one run

T = TypeVar("T")


def require_sureness(answer: object) -> float | None:
    """Return how sure a reader is (0 to 1); None where it is not its format."""
    if answer is None:
        return None
    sure = contract.require_record(answer, float)
    if not 0 <= sure <= 1:
        raise ContractError("", f"expected a number from 0 to 1, found {sure:g}")
    return sure or None


def require_profile(answer: object) -> Profile:
    """Return a consistent profile, whose arrays are read-only from here on."""
    read = contract.require_record(answer, Profile)
    soundness.check_profile(read)
    for array in _iterate_arrays(read):
        array.flags.writeable = False
    return read


def _iterate_arrays(read: Profile) -> Iterator[npt.NDArray[np.generic]]:
    yield from read.outside.values()
    yield from read.counts.values()
    for phase in read.phases:
        yield phase.regions
        yield from phase.arrays.values()


def require_findings(answer: object) -> tuple[Finding, ...]:
    """Return findings, of a size that a reader can still take in."""
    found = _require_list(answer, Finding)
    if sum(len(finding.text) for finding in found) > FINDINGS_LIMIT:
        raise ContractError("", f"findings of more than {FINDINGS_LIMIT:,} characters")
    pictures = [(f"[{i}].pictures[{j}]", one) for i, each in enumerate(found) for j, one in enumerate(each.pictures)]
    for place, picture in pictures:
        _check_part(picture, place)
    if sum(count_values(picture) for _, picture in pictures) > PICTURES_LIMIT:
        raise ContractError("", f"pictures of more than {PICTURES_LIMIT:,} numbers")
    for i, j, part in ((i, j, part) for i, each in enumerate(found) for j, part in enumerate(each.explains)):
        low, high = part.interval_s or (part.seconds, part.seconds)
        if not 0 <= low <= part.seconds <= high:
            raise ContractError(
                f"[{i}].explains[{j}]", f"{part.seconds:g} s are outside {low:g} to {high:g}, or below 0"
            )
    return found


def require_gain(answer: object) -> tuple[float, float, float] | None:
    """Return expected, lowest and highest gain in seconds; None where nothing could be simulated."""
    if answer is None:
        return None
    contract.check_value(answer, tuple[float, float, float])
    expected, lowest, highest = contract.require_record(answer, tuple)
    if not lowest <= expected <= highest:
        raise ContractError("", f"the expected gain {expected:g} is outside {lowest:g} to {highest:g}")
    return float(expected), float(lowest), float(highest)


def require_counterfactuals(answer: object) -> tuple[Counterfactual | None, ...] | None:
    """Return what each candidate would have won; None where nothing could be simulated."""
    if answer is None:
        return None
    if not isinstance(answer, list | tuple):
        raise ContractError("", f"expected a list of Counterfactual, found {type(answer).__name__}")
    for i, one in enumerate(answer):
        if one is None:
            continue
        contract.require_record(one, Counterfactual, f"[{i}]")
        if not one.low_s <= one.gain_s <= one.high_s:
            raise ContractError(f"[{i}]", f"the gain {one.gain_s:g} is outside {one.low_s:g} to {one.high_s:g}")
    return tuple(answer)


def require_facts(answer: object) -> tuple[Fact, ...]:
    """Return facts for the vocabulary: new names, each with the function or the finding that provides its value."""
    from advisor.advice.facts import VOCABULARY, Fact  # only where facts are asked for: reading a file does without

    known = {fact.name for fact in VOCABULARY}
    offered = _require_list(answer, Fact)
    for i, fact in enumerate(offered):
        if not (fact.compute or fact.of_trace or fact.finding) or not fact.name or fact.name in known:
            raise ContractError(f"[{i}]", f"{fact.name!r} is not a new name, or has nothing to compute it")
    return offered


def require_fact_value(answer: object) -> float | str | bool | None:
    """Return the value of a fact; None where it is unknown."""
    contract.check_value(answer, float | str | bool | None)
    return cast("float | str | bool | None", answer)


def require_document(answer: object) -> KnownDocument | None:
    """Return what a file is, None where the plugin does not know it."""
    return None if answer is None else contract.require_record(answer, KnownDocument)


def require_files(answer: object) -> tuple[Path, ...]:
    """Return files that exist."""
    paths = _require_list(answer, Path)
    for path in paths:
        if not path.is_file():
            raise ContractError("", f"{path} is not a file")
    return paths


def require_report(answer: object) -> Report:
    """Return a consistent report: cells, points and ends are as many as their heads promise."""
    made = contract.require_record(answer, Report)
    for i, part in enumerate(made.parts):
        _check_part(part, f"parts[{i}]")
    return made


def _check_part(part: Part, place: str) -> None:
    if isinstance(part, Table):
        for j, row in enumerate(part.rows):
            _check_count(row, len(part.columns), "cells", "columns", f"{place}.rows[{j}]")
    elif isinstance(part, HeatMap):
        _check_count(part.cells, len(part.rows), "rows of cells", "rows", f"{place}.cells")
        for j, cells in enumerate(part.cells):
            _check_count(cells, len(part.columns), "cells", "columns", f"{place}.cells[{j}]")
    elif isinstance(part, Bars):
        for j, bar in enumerate(part.bars):
            _check_interval(bar.low, bar.high, f"{place}.bars[{j}]")
    elif isinstance(part, Series):
        for j, line in enumerate(part.lines):
            _check_line(line, f"{place}.lines[{j}]")


def _check_line(line: Line, place: str) -> None:
    _check_count(line.y, len(line.x), "values of y", "of x", place)
    if line.low or line.high:
        _check_count(line.low, len(line.x), "values of low", "of x", place)
        _check_count(line.high, len(line.x), "values of high", "of x", place)
        for low, high in zip(line.low, line.high, strict=True):
            _check_interval(low, high, place)


def _check_interval(low: float | None, high: float | None, place: str) -> None:
    if (low is None) != (high is None):
        raise ContractError(place, "an interval has both ends, low and high, or neither")
    if low is not None and high is not None and low > high:
        raise ContractError(place, f"the interval from {low:g} to {high:g} is empty")


def _check_count(values: Sized, count: int, what: str, of: str, place: str) -> None:
    if len(values) != count:
        raise ContractError(place, f"{len(values):,} {what} for {count:,} {of}")


def require_trace(answer: object) -> Trace:
    """Return the events of a run."""
    from advisor.trace.events import Trace

    if not isinstance(answer, Trace):
        raise ContractError("", f"expected a Trace, found {type(answer).__name__}")
    return answer


def require_services(answer: object) -> Mapping[str, Callable[..., object]]:
    """Return what a plugin offers to others, by name."""
    if not isinstance(answer, Mapping) or len(answer) > LIST_LIMIT:
        raise ContractError("", f"expected a mapping of names to functions, found {type(answer).__name__}")
    for name, function in answer.items():
        if not isinstance(name, str) or not name or not callable(function):
            raise ContractError("", f"{str(name)[:80]!r} is not a function name")
    return dict(answer)


def _require_list(answer: object, record: type[T]) -> tuple[T, ...]:
    """Return the members of a list or tuple of records."""
    if not isinstance(answer, list | tuple):
        raise ContractError("", f"expected a list of {record.__name__}, found {type(answer).__name__}")
    if len(answer) > LIST_LIMIT:
        raise ContractError("", f"a list of {len(answer):,}; at most {LIST_LIMIT:,} are allowed")
    return tuple(contract.require_record(member, record, f"[{i}]") for i, member in enumerate(answer))
