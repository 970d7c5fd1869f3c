"""Double buffering: what a loop reads may be overwritten without a barrier if the writes go to a second copy.

It is done for a time loop over two parallel loops with the same decomposition: the first reads arrays through lists of
neighbours, the second overwrites them row by row, and reads of the first one's results only its own rows.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.support.documents import Marked
from advisor.support.expressions import Expression
from advisor_simulation.model import records
from advisor_simulation.model.accesses import Access
from advisor_simulation.whatif.modelled.setting import ModelSetting, is_own_row

if TYPE_CHECKING:
    from advisor_simulation.model.records import Loop, Model, Parallel, Step


@dataclass(frozen=True, slots=True)
class _LoopPair:
    """The two loops of a time loop, and the arrays that the second one overwrites."""

    reader: Parallel
    writer: Parallel
    arrays: frozenset[str]


def double_buffer(model: Model, setting: ModelSetting) -> Model | None:
    """Give overwritten arrays a second copy, and take away the barrier in front of the loop that overwrites them."""
    control = []
    doubled: frozenset[str] = frozenset()
    for step in model.control:
        pair = _find_pair(step) if isinstance(step, records.Loop) else None
        if pair is None or not isinstance(step, records.Loop):
            control.append(step)
            continue
        control.append(replace(step, do=_alternate_copies(step, pair, model)))
        doubled |= pair.arrays
    arrays = {name: _double_array(array) if name in doubled else array for name, array in model.arrays.items()}
    return replace(model, control=tuple(control), arrays=arrays) if doubled else None


def _find_pair(loop: Loop) -> _LoopPair | None:
    """Return the two loops if nothing else is done in between that could need the barrier."""
    others = [step for step in loop.do if not isinstance(step, records.Parallel | records.Barrier)]
    loops = [step for step in loop.do if isinstance(step, records.Parallel)]
    if others or len(loops) != 2 or any(step.body for step in loops):
        return None
    reader, writer = loops
    overwritten = frozenset(access.value.array for access in writer.writes)
    results = {access.value.array for access in reader.writes}
    own = all(is_own_row(access.value, writer.index) for access in writer.reads if access.value.array in results)
    read = {access.value.array for access in reader.reads if not is_own_row(access.value, reader.index)}
    alike = reader.over.value == writer.over.value and {reader.schedule, writer.schedule} == {"static"}
    whole = (
        writer.where is None and writer.ratio is None and all(is_own_row(a.value, writer.index) for a in writer.writes)
    )
    if not (own and alike and whole and read & overwritten) or results & overwritten or reader.end == "none":
        return None
    return _LoopPair(reader, writer, overwritten)


def _alternate_copies(loop: Loop, pair: _LoopPair, model: Model) -> tuple[Step, ...]:
    """Return the steps of the time loop with reads from one copy and writes to the other."""
    old, new = f"{loop.index} % 2", f"({loop.index} + 1) % 2"

    def move_accesses(accesses: tuple[Marked[Access], ...], turn: str) -> tuple[Marked[Access], ...]:
        return tuple(
            _move_access(access, turn, model) if access.value.array in pair.arrays else access for access in accesses
        )

    steps: list[Step] = []
    for step in loop.do:
        if step is pair.reader:
            steps.append(replace(pair.reader, reads=move_accesses(pair.reader.reads, old), end="none"))
        elif step is pair.writer:
            reads, writes = move_accesses(pair.writer.reads, old), move_accesses(pair.writer.writes, new)
            steps.append(replace(pair.writer, reads=reads, writes=writes))
        elif any(one is pair.writer for one in loop.do[: loop.do.index(step)]):
            steps.append(step)  # barriers behind the writer stay, those in front of it go
    return tuple(steps)


def _move_access(access: Marked[Access], turn: str, model: Model) -> Marked[Access]:
    """Return an access to the copy of that turn."""
    one = access.value
    rows = model.arrays[one.array].shape[0].value.text
    items = f", {ast.unparse(one.first)}:{ast.unparse(one.last)}" if one.first and one.last else ""
    text = f"{one.array}[{ast.unparse(one.rows)} + ({rows}) * ({turn}){items}]"
    return Marked(Access.parse(text), access.mark)


def _double_array(array: records.Array) -> records.Array:
    rows = array.shape[0]
    return replace(array, shape=(Marked(Expression.parse(f"2 * ({rows.value.text})"), rows.mark), *array.shape[1:]))
