"""Facts about compiled loops for the rules' conditions, from the counts that ``gapwatch incore`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from advisor.advice.facts import Fact

if TYPE_CHECKING:
    from advisor.model.records import Profile

_COMMAND: Final = "gapwatch run --deep -- {launch}./PROGRAM"
_REPORT: Final = (
    "gcc (g++, gfortran) -O3 -fopt-info-vec-missed=report.txt …, "
    "then gapwatch incore DIRECTORY --report report.txt --write …"
)
_FLOATING: Final = ("fp_add", "fp_mul", "fp_fma", "fp_div")
_FP: Final = tuple(f"compiled_ops.{unit}" for unit in _FLOATING)
_ACCESSES: Final = ("compiled_ops.load", "compiled_ops.store")
_ESSENTIAL: Final = ("source_ops.load", "source_ops.store")


def build_facts() -> tuple[Fact, ...]:
    """Return the facts that this plugin adds to the vocabulary."""
    return (
        _make_fact("processor.chain_share", "cycles of loops bound by a chain of dependences / all scheduled cycles",
              ("chained_cycles",), ("scheduled_cycles",)),
        _make_fact("processor.division_share", "divisions and roots / all compiled floating-point operations",
              ("compiled_ops.fp_div",), _FP),
        _make_fact("processor.spill_share", "loads from the function's own frame in inner loops / all loads",
              ("spilled_loads",), ("compiled_ops.load",)),
        _make_fact("processor.gather_share", "numbers loaded by gathers / all loads",
              ("gathered_loads",), ("compiled_ops.load",)),
        _make_fact("processor.strided_share", "loads in inner loops that step over numbers / all loads",
              ("strided_loads",), ("compiled_ops.load",)),
        _make_fact("processor.alias_share",
        "cycles of loops of which the compiler fears overlap / all scheduled cycles",
              ("doubted_cycles",), ("scheduled_cycles",), _REPORT),
        _make_fact("processor.access_ratio", "compiled loads and stores / those that the source can't do without",
              _ACCESSES, _ESSENTIAL, _COMMAND, "ratio"),
    )  # fmt: skip


def _make_fact(
    name: str, formula: str, part: tuple[str, ...], whole: tuple[str, ...], command: str = _COMMAND, unit: str = "share"
) -> Fact:
    needs = (part[0], whole[0])
    compute = partial(_compute_quotient, part, whole)
    return Fact(name, "ratio" if unit == "ratio" else "share", "phase", needs, command, formula, compute)


def _compute_quotient(part: Sequence[str], whole: Sequence[str], profile: Profile, phase: int | None) -> float | None:
    """Return the quotient of two sums of counts over the regions of a phase; None where one was not counted."""
    above, below = (_sum_counts(names, profile, phase) for names in (part, whole))
    return above / below if above is not None and below else None


def _sum_counts(names: Sequence[str], profile: Profile, phase: int | None) -> float | None:
    known = [name for name in names if name in profile.counts]
    if not known:
        return None
    tables = [profile.counts[name] for name in known]
    if phase is None:
        return float(sum(table.sum() for table in tables))
    rows = profile.phases[phase].regions
    return float(sum(table[rows].sum() for table in tables))
