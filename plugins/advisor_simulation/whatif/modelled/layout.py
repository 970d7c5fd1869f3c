"""Where the data of a model lie: padded, grouped, and in copies of one's own."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.support.documents import Marked
from advisor.support.expressions import Expression
from advisor_simulation.model import records
from advisor_simulation.model.accesses import Access
from advisor_simulation.whatif.modelled.setting import (
    ModelSetting,
    change_sequences,
    find_parallel_loops,
    is_own_row,
    list_reads,
    list_writes,
    uses_array,
)

if TYPE_CHECKING:
    from advisor_simulation.model.records import Model, Parallel, Step

#: The copies of an array that a combining loop reads, at most.
MOST_COPIES: Final = 64


def pad_rows(model: Model, setting: ModelSetting) -> Model | None:
    """Make each row of an array that loops write a whole number of lines."""
    written = {access.value.array for step in find_parallel_loops(model) for access in list_writes(step)}
    world = setting.build_world(model)
    arrays = dict(model.arrays)
    for name in written:
        place, array = world.arrays[name], model.arrays[name]
        missing = -place.row_step % setting.line // place.element
        if array.order == "row" and missing and not array.private and place.items > 1:
            arrays[name] = replace(array, pad=array.pad + missing)
    return replace(model, arrays=arrays) if arrays != model.arrays else None


def group_arrays(model: Model, setting: ModelSetting) -> Model | None:
    """Lay rows of arrays that loops read and write together next to each other."""
    if model.groups:
        return None
    together: dict[tuple[str, ...], list[str]] = {}
    for name, array in model.arrays.items():
        users = tuple(step.parallel for step in find_parallel_loops(model) if uses_array(step, name))
        together.setdefault((*users, ",".join(side.value.text for side in array.shape)), []).append(name)
    groups = tuple(
        tuple(Marked(name, model.arrays[name].mark) for name in names) for names in together.values() if len(names) > 1
    )
    return replace(model, groups=groups) if groups else None


def privatize_arrays(model: Model, setting: ModelSetting) -> Model | None:
    """Give each processor a copy of what loops write: of scratch rows, and of rows of others, added up behind the loop.

    Scratch is what but one loop reads and writes, each index its own rows.
    """
    if setting.processors > MOST_COPIES:
        return None
    for name, array in model.arrays.items():
        users = [step for step in find_parallel_loops(model) if uses_array(step, name)]
        scattering = [step for step in users if _has_scattered_writes(step, name)]
        if array.private:
            continue
        if len(scattering) == 1 and not scattering[0].body:
            return _combine_copies(model, setting, scattering[0], name)
        if len(users) == 1 and not scattering and _is_scratch(users[0], name):
            return replace(model, arrays={**model.arrays, name: replace(array, private=True)})
    return None


def _is_scratch(step: Parallel, array: str) -> bool:
    reads = [read.value for read in list_reads(step) if read.value.array == array]
    writes = [write.value for write in list_writes(step) if write.value.array == array]
    return bool(reads) and bool(writes) and all(is_own_row(one, step.index) for one in (*reads, *writes))


def _has_scattered_writes(step: Parallel, array: str) -> bool:
    """Return whether a loop writes rows of an array that are not those of its index."""
    return any(write.value.array == array and not is_own_row(write.value, step.index) for write in list_writes(step))


def _combine_copies(model: Model, setting: ModelSetting, writer: Parallel, name: str) -> Model:
    """Return the model with the writer's accesses moved to copies, and a loop over the rows behind it that adds up."""
    world, array = setting.build_world(model), model.arrays[name]
    rows, mark = world.arrays[name].rows, array.mark
    copy, owner, domain = f"{name}_copies", f"{name}_processor", f"{name}_rows"
    owners = tuple(map(float, world.owner[writer.over.value]))

    def move_accesses(accesses: tuple[Marked[Access], ...]) -> tuple[Marked[Access], ...]:
        return tuple(_move_to_copy(access, name, copy, f"{owner}[{writer.index}] * {rows}") for access in accesses)

    adding = records.Parallel(
        f"add up {name}", Marked(domain, mark), mark,
        reads=tuple(Marked(Access.parse(f"{copy}[i + {each * rows}]"), mark) for each in range(setting.processors)),
        writes=(Marked(Access.parse(f"{name}[i]"), mark),),
    )  # fmt: skip
    scattered = replace(writer, reads=move_accesses(writer.reads), writes=move_accesses(writer.writes))

    def insert_sum(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(made for step in steps for made in ((scattered, adding) if step is writer else (step,)))

    made = change_sequences(model, insert_sum) or model
    size = Marked(Expression.parse(f"{rows * setting.processors}"), mark)
    return replace(
        made,
        arrays={**model.arrays, copy: replace(array, shape=(size, *array.shape[1:]))},
        tables={**model.tables, owner: records.Values(owners, mark)},
        domains={**model.domains, domain: records.Domain(Marked(Expression.parse(str(rows)), mark), mark)},
    )


def _move_to_copy(access: Marked[Access], name: str, copy: str, offset: str) -> Marked[Access]:
    one = access.value
    if one.array != name:
        return access
    items = f", {ast.unparse(one.first)}:{ast.unparse(one.last)}" if one.first and one.last else ""
    return Marked(Access.parse(f"{copy}[{ast.unparse(one.rows)} + {offset}{items}]"), access.mark)
