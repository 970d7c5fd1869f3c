"""Sources and counts -> the work of each loop and function, as numbers and as expressions in N."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from advisor_processor.source.essential_accesses import count_essential_accesses
from advisor_processor.source.symbols import LoopExpressions, parse_expression, symbol_name

if TYPE_CHECKING:
    from advisor_processor.source.instrumented_run import SourceCounts
    from advisor_processor.source.records import Block, Loop, Source


_MAIN = ("main", "program")


@dataclass(frozen=True, slots=True)
class BlockCount:
    """A block with its executions by rank, what one execution does, and how often it runs as an expression.

    ``operations`` holds floating-point operations by unit and ``load``, ``store`` that registers can't spare;
    ``references`` the loads and stores as written, ``ratio`` of a branch how often it was taken.
    """

    source: Source
    block: Block
    executions: tuple[int, ...]
    operations: Mapping[str, int]
    references: tuple[int, int]
    touched_B: int
    expression: str | None
    exact: bool | None
    ratio: float | None
    calls: tuple[CallCount, ...]


@dataclass(frozen=True, slots=True)
class CallCount:
    """A call in a block: its arguments as written, and the mean of each over all executions; None where unknown."""

    name: str
    arguments: tuple[str, ...]
    means: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class LoopCount:
    """A loop with the iterations of each rank, in all and as an expression that the run bears out or not."""

    source: Source
    loop: Loop
    iterations: tuple[int, ...]
    expression: str | None
    exact: bool | None
    blocks: tuple[BlockCount, ...]

    @property
    def totals(self) -> dict[str, int]:
        """Operations of all iterations and ranks, inner loops not included."""
        found: dict[str, int] = {}
        for block in self.blocks:
            for unit, times in block.operations.items():
                found[unit] = found.get(unit, 0) + times * sum(block.executions)
        return found


@dataclass(frozen=True, slots=True)
class SourceModel:
    """The parameters of a program (names with one value), its loops, and all its blocks."""

    parameters: Mapping[str, int]
    ranks: int
    loops: tuple[LoopCount, ...]
    blocks: tuple[BlockCount, ...]


def build_model(counted: SourceCounts) -> SourceModel:
    """Return the model of a program from its sources and the counts of a run."""
    parameters = _find_parameters(counted)
    known = {**parameters, **_loop_iterations(counted)}
    loops: list[LoopCount] = []
    everything: list[BlockCount] = []
    calls = _count_calls(counted.sources)
    for source, counts in zip(counted.sources, counted.blocks, strict=True):
        expressions = LoopExpressions(source, calls)
        blocks = [_count_block(source, block, counts, expressions, known) for block in source.blocks]
        everything += blocks
        loops += [_count_loop(loop, blocks, expressions, known) for loop in source.loops if loop.body is not None]
    return SourceModel(parameters, counted.ranks, tuple(loops), tuple(everything))


def _find_parameters(counted: SourceCounts) -> dict[str, int]:
    """Return the symbols that had one value wherever a loop named them."""
    found: dict[str, set[int]] = {}
    for source, values in zip(counted.sources, counted.values, strict=True):
        names = (symbol_name(symbol) for loop in source.loops for symbol in loop.symbols)
        for name, span in zip(names, values, strict=False):  # behind them stand results of calls
            if span is not None:
                found.setdefault(name, set()).update(span)
    return {name: next(iter(values)) for name, values in sorted(found.items()) if len(values) == 1}


def _loop_iterations(counted: SourceCounts) -> dict[str, int]:
    """Return the trip counts of loops with unknown control: symbols whose values only a run gives."""
    return {
        f"iterations_{loop.line}": counts[loop.body.number][0]
        for source, counts in zip(counted.sources, counted.blocks, strict=True)
        for loop in source.loops
        if loop.body is not None
    }


def _count_calls(sources: tuple[Source, ...]) -> dict[str, Any]:
    """Return how often each function runs: the main program once, others as their callers call them."""
    import sympy

    found: dict[str, Any] = {}
    sites: dict[str, list[tuple[Source, Block]]] = {}
    for source in sources:
        for block in source.blocks:
            for name, _ in block.work.calls:
                sites.setdefault(name, []).append((source, block))
    active: set[str] = set()

    def count_function(function: str) -> Any:  # noqa: ANN401 (sympy has no types)
        if function in found:
            return found[function]
        if function in active:
            return None
        active.add(function)
        counts = [
            LoopExpressions(source, _LazyCalls(count_function)).count_block_runs(block)
            for source, block in sites.get(function, [])
        ]
        unknown = not counts or any(count is None for count in counts)
        found[function] = sympy.Integer(1) if function in _MAIN else None if unknown else sum(counts)
        return found[function]

    for source in sources:
        for function in source.parameters:
            count_function(function)
    return found


class _LazyCalls(dict[str, Any]):
    """Calls of functions, found on demand."""

    def __init__(self, times: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._times = times

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return how often a function runs, None where that is not known."""
        return self._times(key)


def _count_block(
    source: Source,
    block: Block,
    counts: tuple[tuple[int, ...], ...],
    expressions: LoopExpressions,
    values: Mapping[str, int],
) -> BlockCount:
    loads, stores, touched = count_essential_accesses(block)
    operations = {unit: times for unit, times in block.work.operations.items() if times}
    operations |= {unit: times for unit, times in (("load", loads), ("store", stores)) if times}
    written = sum(reference.write for reference in block.work.references)
    found = expressions.count_block_runs(block)
    executed = counts[block.number]
    parent = sum(counts[block.parent.number]) if block.branch and block.parent else 0
    return BlockCount(
        source,
        block,
        executed,
        operations,
        (len(block.work.references) - written, written),
        touched,
        None if found is None else str(found),
        _matches_counts(found, executed, values),
        sum(executed) / parent if parent else None,
        tuple(
            CallCount(name, given, tuple(_mean_argument(each, block, executed, expressions, values) for each in given))
            for name, given in block.work.calls
        ),
    )


def _mean_argument(
    written: str, block: Block, executed: tuple[int, ...], expressions: LoopExpressions, values: Mapping[str, int]
) -> float | None:
    """Return the mean of an argument over the executions of its block, None if the sources do not determine it.

    What depends on the loops around is summed over them, if the block ran a whole number of times as often as they say.
    """
    each = parse_expression(written)
    if each is None:
        return None
    alone = _evaluate_expression(each, values)
    if alone is not None:
        return alone
    times, total = (_evaluate_expression(expressions.sum_over_block(block, one), values) for one in (each / each, each))
    if not times or total is None or any(count % times for count in executed):
        return None
    return total / times


def _evaluate_expression(found: Any, values: Mapping[str, int]) -> float | None:  # noqa: ANN401
    """Return the value of an expression of parameters; None if it depends on anything else."""
    if found is None or any(str(symbol) not in values for symbol in found.free_symbols):
        return None
    return float(found.subs({symbol: values[str(symbol)] for symbol in found.free_symbols}))


def _count_loop(
    loop: Loop, blocks: list[BlockCount], expressions: LoopExpressions, values: Mapping[str, int]
) -> LoopCount:
    body = loop.body
    found = expressions.count_iterations(loop)
    executed = blocks[body.number].executions if body is not None else ()
    inside = tuple(block for block in blocks if block.block.loop is loop)
    return LoopCount(
        inside[0].source,
        loop,
        executed,
        None if found is None else str(found),
        _matches_counts(found, executed, values),
        inside,
    )


def _matches_counts(found: Any, executed: tuple[int, ...], values: Mapping[str, int]) -> bool | None:  # noqa: ANN401
    """Return whether an expression gives the counts of each rank; None if it depends on more than parameters."""
    number = _evaluate_expression(found, values)
    if number is None:
        return None
    return all(max(int(number), 0) == count for count in executed if count or len(executed) == 1)


def iterate_rows(model: SourceModel) -> Iterator[tuple[tuple[str, str | None, int | None], int, dict[str, float]]]:
    """Yield for each function and rank the operations of the source, as counts of a recording."""
    first: dict[tuple[str, str], int] = {}
    for one in model.blocks:
        key = (one.source.file, one.block.function)
        first[key] = min(first.get(key, one.block.line), one.block.line)
    for one in model.blocks:
        place = (one.block.function, one.source.file, first[one.source.file, one.block.function])
        for rank, times in enumerate(one.executions):
            counts = {f"source_ops.{unit}": float(count * times) for unit, count in one.operations.items()}
            yield place, rank, counts


def to_plain(model: SourceModel) -> dict[str, object]:
    """Return the model as numbers and texts: what other plugins get."""
    return {
        "parameters": dict(model.parameters),
        "ranks": model.ranks,
        "loops": [_convert_loop(loop) for loop in model.loops],
        "blocks": [_convert_block(block) for block in model.blocks],
    }


def _convert_loop(one: LoopCount) -> dict[str, object]:
    known = ("name", "function", "line", "kind", "variable", "initial", "comparison", "final", "step")
    counted = {"iterations": list(one.iterations), "expression": one.expression, "exact": one.exact}
    return {name: getattr(one.loop, name) for name in known} | {"file": one.source.file, "totals": one.totals} | counted


def _convert_block(one: BlockCount) -> dict[str, object]:
    return {
        "function": one.block.function,
        "file": one.source.file,
        "line": one.block.line,
        "loop": one.block.loop.name if one.block.loop else None,
        "executions": list(one.executions),
        "expression": one.expression,
        "exact": one.exact,
        "ratio": one.ratio,
        "operations": dict(one.operations),
        "loads_as_written": one.references[0],
        "stores_as_written": one.references[1],
        "touched_B": one.touched_B,
        "calls": [{"name": c.name, "arguments": list(c.arguments), "means": list(c.means)} for c in one.calls],
    }
