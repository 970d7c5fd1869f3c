"""What each hook may answer: checks one plugin's answer and returns it in the form in which it is used.

Each function takes what a plugin returned, and raises ``PluginError`` where that is not what the hook promises; None
means that the plugin has nothing to say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from advisor import contract, soundness
from advisor.commands import Report, Table
from advisor.contract import ContractError
from advisor.model import Finding, Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from advisor.facts import Fact

LIST_LIMIT: Final = 1_000
FINDINGS_LIMIT: Final = 1_000_000  # characters in all findings of one plugin about one run

T = TypeVar("T")


def sureness(answer: object) -> float | None:
    """Return how sure a reader is (0 to 1); None where it is not its format."""
    if answer is None:
        return None
    sure = contract.checked(answer, float)
    if not 0 <= sure <= 1:
        raise ContractError("", f"expected a number from 0 to 1, found {sure:g}")
    return sure or None


def profile(answer: object) -> Profile:
    """Return a consistent profile, whose arrays nobody can change by accident any more."""
    read = contract.checked(answer, Profile)
    soundness.check(read)
    for array in _arrays(read):
        array.flags.writeable = False
    return read


def _arrays(read: Profile) -> Iterator[npt.NDArray[np.generic]]:
    yield from read.outside.values()
    yield from read.counts.values()
    for phase in read.phases:
        yield phase.regions
        yield from phase.arrays.values()


def findings(answer: object) -> tuple[Finding, ...]:
    """Return findings, of a size that a reader can still take in."""
    found = _list(answer, Finding)
    if sum(len(finding.text) for finding in found) > FINDINGS_LIMIT:
        raise ContractError("", f"findings of more than {FINDINGS_LIMIT:,} characters")
    return found


def gain(answer: object) -> tuple[float, float, float] | None:
    """Return expected, lowest and highest gain in seconds; None where nothing could be simulated."""
    if answer is None:
        return None
    contract.check(answer, tuple[float, float, float])
    expected, lowest, highest = contract.checked(answer, tuple)
    if not lowest <= expected <= highest:
        raise ContractError("", f"the expected gain {expected:g} lies outside of {lowest:g} to {highest:g}")
    return float(expected), float(lowest), float(highest)


def facts(answer: object) -> tuple[Fact, ...]:
    """Return facts for the vocabulary: new names, and each with the function that computes it."""
    from advisor.facts import VOCABULARY, Fact  # only where facts are asked for: reading a file does without

    known = {fact.name for fact in VOCABULARY}
    offered = _list(answer, Fact)
    for i, fact in enumerate(offered):
        if fact.compute is None or not fact.name or fact.name in known:
            raise ContractError(f"[{i}]", f"{fact.name!r} is no new name, or has nothing to compute it")
    return offered


def value(answer: object) -> float | str | bool | None:
    """Return the value of a fact; None where it is unknown."""
    contract.check(answer, float | str | bool | None)
    return cast("float | str | bool | None", answer)


def files(answer: object) -> tuple[Path, ...]:
    """Return files that exist."""
    paths = _list(answer, Path)
    for path in paths:
        if not path.is_file():
            raise ContractError("", f"{path} is no file")
    return paths


def report(answer: object) -> Report:
    """Return a report whose tables have a cell for each column."""
    made = contract.checked(answer, Report)
    for i, part in enumerate(made.parts):
        if isinstance(part, Table):
            for j, row in enumerate(part.rows):
                if len(row) != len(part.columns):
                    raise ContractError(f"parts[{i}].rows[{j}]", f"{len(row)} cells for {len(part.columns)} columns")
    return made


def _list(answer: object, record: type[T]) -> tuple[T, ...]:
    """Return the members of a list or tuple of records."""
    if not isinstance(answer, list | tuple):
        raise ContractError("", f"expected a list of {record.__name__}, found {type(answer).__name__}")
    if len(answer) > LIST_LIMIT:
        raise ContractError("", f"a list of {len(answer):,}; at most {LIST_LIMIT:,} are allowed")
    return tuple(contract.checked(member, record, f"[{i}]") for i, member in enumerate(answer))
