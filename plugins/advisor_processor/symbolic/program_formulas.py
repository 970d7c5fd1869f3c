"""The counts of a program as formulas of the arguments of its command and its ranks, checked against runs of it."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import sympy

from advisor_processor.source.essential_accesses import count_essential_accesses
from advisor_processor.symbolic import messages
from advisor_processor.symbolic.composition import Composition
from advisor_processor.symbolic.integer_functions import evaluate_exactly
from advisor_processor.symbolic.sums import SumRules
from advisor_processor.symbolic.walk_records import RANK, RANKS, CallRecord, Key, MeasuredValues, Opaque

if TYPE_CHECKING:
    from advisor_processor.source.instrumented_run import SourceCounts
    from advisor_processor.source.records import Block, Loop, Source

#: Operations of arithmetic, and how many each is.
ARITHMETIC: Final = {"fp_add": 1, "fp_mul": 1, "fp_fma": 2, "fp_div": 1}
#: What is taken to hold must hold with all arguments and ranks this many times as large, too.
_SCALES: Final = (1, 7, 64)


@dataclass(frozen=True, slots=True)
class BlockFormula:
    """How often a block runs on a rank; ``exact`` where that is what every rank of every run counted.

    The runs of a block that is not exact are a symbol with what was counted.
    """

    source: Source
    block: Block
    runs: Any
    exact: bool


@dataclass(frozen=True, slots=True)
class ProgramFormulas:
    """The formulas of a program, of one rank: ``blocks``; ``totals`` of operations, accesses, messages and bytes.

    ``loops`` are trips each time a loop is reached and iterations in all, mean over the ranks; ``memory`` bytes of
    arrays by function and name; ``data`` those of all that is declared and allocated, mean over the ranks, None where
    some are ``unsized``; ``means`` are totals over the ranks; ``opaque`` symbols with their value in each run
    (mean over the ranks). ``unknown`` are calls whose bytes the source does not tell, ``uncertain`` what else is not
    known of messages, ``conditions`` integers that must not be negative for the formulas to hold.
    """

    blocks: tuple[BlockFormula, ...]
    loops: tuple[tuple[Source, Loop, Any, Any, bool], ...]
    totals: Mapping[str, Any]
    means: Mapping[str, Any]
    memory: Mapping[tuple[str, str], Any]
    data: Any
    unsized: tuple[str, ...]
    opaque: Mapping[str, tuple[float, ...]]
    values: Mapping[str, tuple[Fraction, ...]]
    unknown: tuple[str, ...]
    uncertain: tuple[str, ...]
    conditions: tuple[Any, ...]

    @property
    def is_exact(self) -> bool:
        """Whether every block ran as often as its formula says, on every rank of every run."""
        return all(block.exact for block in self.blocks)


def derive_formulas(runs: Sequence[SourceCounts]) -> ProgramFormulas:
    """Return the formulas of a program that was run with counters; ``TooLargeError`` where there are too many."""
    return _Derivation(runs).derive_all()


class _Derivation:
    def __init__(self, runs: Sequence[SourceCounts]) -> None:
        self._runs = runs
        self._sources = runs[0].sources
        self._conditions: dict[Any, bool] = {}
        self._singles = _find_singles(runs)
        self._names = _name_singles(self._singles, runs)
        self._values = [self._run_values(at) for at in range(len(runs))]
        measured = MeasuredValues(len(runs[0].arguments) + 1, _find_shares(runs), self._names, self._holds)
        self._composition = Composition(self._sources, measured)

    def derive_all(self) -> ProgramFormulas:
        executed = {
            block.function
            for at, source in enumerate(self._sources)
            for block in source.blocks
            if source.entries.get(block.function) is block
            and any(sum(run.blocks[at][block.number]) for run in self._runs)
        }
        self._composition.compose_counts(frozenset(executed))
        blocks = tuple(self._check_block(at, block) for at, s in enumerate(self._sources) for block in s.blocks)
        totals = self._add_up(blocks)
        sums = messages.sum_messages(self._list_calls(blocks))
        totals |= {"messages": sums.messages, "bytes": sums.moved}
        by_key = {(id(each.source), each.block.number): each for each in blocks}
        loops = []
        for at, source in enumerate(self._sources):
            for loop in source.loops:
                if loop.body is not None and (at, loop.number) in self._composition.trips:
                    body = by_key[id(source), loop.body.number]
                    mean = self._average(body.runs)
                    loops.append((source, loop, self._composition.trips[at, loop.number], mean, body.exact))
        opaque = {
            name: tuple(float(self._opaque_value(what, run, None)) for run in self._runs)
            for name, what in self._composition.opaque.items()
        }
        values = {
            name: tuple(value[name] for value in self._values)
            for name in self._values[0]
            if all(name in value for value in self._values)
        }
        data = self._composition.data.total
        held = tuple(each for each, holds in self._conditions.items() if holds)
        means = {name: self._average(each) for name, each in totals.items()}
        return ProgramFormulas(
            blocks,
            tuple(loops),
            totals,
            means,
            dict(self._composition.memory),
            None if data is None else self._average(data),
            tuple(dict.fromkeys(self._composition.data.unsized)),
            opaque,
            values,
            sums.unknown,
            sums.uncertain,
            held,
        )

    def _average(self, x: Any) -> Any:  # noqa: ANN401
        """Return the mean of a count over the ranks."""
        return sympy.expand(SumRules(self._holds).sum_range(x, RANK, RANKS, ()) / RANKS) if x.has(RANK) else x

    def _run_values(self, at: int) -> dict[str, Fraction]:
        """Return the values of names in a run: arguments of the command, ranks, and names with one value."""
        run = self._runs[at]
        found = {"P": Fraction(run.ranks)}
        for number, word in enumerate(run.arguments, start=1):
            if word.lstrip("-").isdigit():
                found[f"argv{number}"] = Fraction(int(word))
        for key, values in self._singles.items():
            found.setdefault(self._names[key], Fraction(values[at]))
        return found

    def _list_calls(self, blocks: Sequence[BlockFormula]) -> list[CallRecord]:
        """Return the calls of libraries; those in a block that is not exact are made as often as it was counted."""
        counted = {
            (self._sources.index(each.source), each.block.number): each.runs for each in blocks if not each.exact
        }
        seen: set[tuple[Key, str, tuple[str, ...]]] = set()
        found = []
        for call in self._composition.calls:
            runs = counted.get(call.block)
            if runs is None:
                found.append(call)
            elif (call.block, call.name, call.written) not in seen:
                seen.add((call.block, call.name, call.written))
                known = tuple(each if each is not None and each.is_number else None for each in call.arguments)
                found.append(replace(call, arguments=known, sum_calls=partial(operator.mul, runs)))
        return found

    def _holds(self, condition: Any) -> bool:  # noqa: ANN401
        """Return whether an integer was zero or more in every run, and would be in runs that much larger."""
        if condition not in self._conditions:
            self._conditions[condition] = self._is_known(condition) and all(
                self._evaluate(condition, at, None, scale) >= 0 for scale in _SCALES for at in range(len(self._runs))
            )
        return self._conditions[condition]

    def _is_known(self, x: Any) -> bool:  # noqa: ANN401
        names = {symbol.name for symbol in x.free_symbols}
        return "rank" not in names and all(
            name in self._values[0] or name in self._composition.opaque for name in names
        )

    def _evaluate(self, x: Any, at: int, rank: int | None, scale: int = 1) -> Fraction:  # noqa: ANN401
        values: dict[str, Any] = {name: value * scale for name, value in self._values[at].items()}
        if rank is not None:
            values["rank"] = Fraction(rank)
        for name in {symbol.name for symbol in x.free_symbols} & set(self._composition.opaque):
            values[name] = self._opaque_value(self._composition.opaque[name], self._runs[at], rank)
        found: Fraction = evaluate_exactly(x, values)
        return found

    def _opaque_value(self, what: Opaque, run: SourceCounts, rank: int | None) -> Fraction:
        """Return the value of a symbol in a run: on one rank, or (None) on all of them."""

        def count_executions(key: Key | None) -> int:
            if key is None:
                return 1 if rank is not None else run.ranks
            counts = run.blocks[key[0]][key[1]]
            return counts[rank] if rank is not None else sum(counts)

        whole = count_executions(what.whole)
        return Fraction(count_executions(what.part), whole) if whole else Fraction(0)

    def _check_block(self, at: int, block: Block) -> BlockFormula:
        found = self._composition.counts.get((at, block.number), sympy.Integer(0))
        exact = True
        for number, run in enumerate(self._runs):
            counted = run.blocks[at][block.number]
            try:
                exact = exact and all(
                    self._evaluate(found, number, rank) == count for rank, count in enumerate(counted)
                )
            except (KeyError, TypeError):
                exact = False
        if not exact:
            found = self._composition.make_opaque(f"runs_{block.line}", Opaque((at, block.number), None))
        return BlockFormula(self._sources[at], block, found, exact)

    def _add_up(self, blocks: Sequence[BlockFormula]) -> dict[str, Any]:
        """Return operations by unit, and accesses that registers can't spare or as written, of all blocks."""
        found: dict[str, Any] = {}

        def add_runs(name: str, times: int, runs: Any) -> None:  # noqa: ANN401
            if times:
                found[name] = found.get(name, sympy.Integer(0)) + times * runs

        for each in blocks:
            if each.runs == 0:
                continue
            loads, stores, _ = count_essential_accesses(each.block)
            written = sum(reference.write for reference in each.block.work.references)
            for unit, times in each.block.work.operations.items():
                add_runs(unit, times, each.runs)
                add_runs("operations", times * ARITHMETIC.get(unit, 0), each.runs)
            add_runs("load", loads, each.runs)
            add_runs("store", stores, each.runs)
            add_runs("loads as written", len(each.block.work.references) - written, each.runs)
            add_runs("stores as written", written, each.runs)
        return {name: sympy.expand(each) for name, each in found.items()}


def _find_singles(runs: Sequence[SourceCounts]) -> dict[tuple[int, str, str], tuple[int, ...]]:
    """Return the names in the control of loops that had a single value in each run, with these values."""
    found: dict[tuple[int, str, str], list[set[int]]] = {}
    for number, run in enumerate(runs):
        for at, (source, values) in enumerate(zip(run.sources, run.values, strict=True)):
            for (function, name), span in zip(source.noted_names, values, strict=True):
                if span is not None:
                    key = (at, function, name.replace("->", "."))
                    found.setdefault(key, [set() for _ in runs])[number].update(span)
    return {
        key: tuple(next(iter(value)) for value in values)
        for key, values in found.items()
        if all(len(value) == 1 for value in values)
    }


def _name_singles(
    singles: Mapping[tuple[int, str, str], tuple[int, ...]], runs: Sequence[SourceCounts]
) -> dict[tuple[int, str, str], str]:
    """Return the symbols of names with one value a run: with the function where the name would mean two things."""
    values: dict[str, tuple[int, ...]] = {"P": tuple(run.ranks for run in runs)}
    found = {}
    for key, each in singles.items():
        _, function, name = key
        symbol = name = re.sub(r"\W+", "_", name).rstrip("_") if "[" in name else name
        if values.setdefault(name, each) != each or name == "rank":
            symbol = f"{function}.{name}"
        values[symbol] = each
        found[key] = symbol
    return found


def _find_shares(runs: Sequence[SourceCounts]) -> dict[Key, int]:
    """Return the blocks that never ran, or ran whenever what they are a part of did, in all runs."""
    found: dict[Key, int] = {}
    for at, source in enumerate(runs[0].sources):
        for block in source.blocks:
            parent = block.parent
            counted = [run.blocks[at][block.number] for run in runs]
            if not any(sum(each) for each in counted):
                found[at, block.number] = 0
            elif parent is not None and all(
                run.blocks[at][parent.number] == c for run, c in zip(runs, counted, strict=True)
            ):
                found[at, block.number] = 1
    return found
