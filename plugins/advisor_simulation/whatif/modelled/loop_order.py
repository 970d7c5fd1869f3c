"""The order of the loops in a model: interchanged, so that the innermost one takes small steps, or cut into blocks.

Whether the dependences of the program allow that, a model can't tell: its references say what is touched, not why.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.documents import Mark, Marked
from advisor.support.expressions import Expression
from advisor_simulation.model import records
from advisor_simulation.model.accesses import Access
from advisor_simulation.whatif.modelled.setting import ModelSetting, change_each_step

if TYPE_CHECKING:
    from advisor_simulation.model.records import BodyItem, Model, Parallel, Read, Step, Write
    from advisor_simulation.model.world import World

#: Loops that are put into every order, at most.
_MOST_LOOPS: Final = 4
#: Bytes of a block of all arrays together: half of a usual first cache.
BLOCK_B: Final = 16384
#: An order must touch so much fewer lines to be worth it.
_BETTER: Final = 0.9
#: The domain of one index for each processor.
PARTS: Final = "processors"


@dataclass(frozen=True, slots=True)
class LoopChain:
    """Loops, each the only one within the one before, the domain's first, and all references below them.

    ``times`` are formulas without indices: of the domain the indices of processor ``p``, which begin at ``begin``.
    """

    indices: tuple[str, ...]
    times: tuple[str, ...]
    begin: str
    references: tuple[Read | Write, ...]


def interchange_loops(model: Model, setting: ModelSetting) -> Model | None:
    """Put the loops of bodies into the order that touches fewest lines."""
    world = setting.build_world(model)

    def reorder_loops(step: Step) -> Step:
        chain = find_chain(step, world)
        if chain is None or not isinstance(step, records.Parallel):
            return step
        orders = list(permutations(range(len(chain.indices))))
        costs = [count_lines(chain, order, world, setting) for order in orders]
        best = min(range(len(orders)), key=lambda place: (costs[place], orders[place]))
        if costs[best] > _BETTER * costs[0]:
            return step
        return rebuild_step(step, chain, orders[best], 0, world)

    return _add_parts(change_each_step(model, reorder_loops), model)


def block_loops(model: Model, setting: ModelSetting) -> Model | None:
    """Cut the loops of bodies with large steps into blocks that fit into a first cache."""
    world = setting.build_world(model)

    def cut_loops(step: Step) -> Step:
        chain = find_chain(step, world)
        if chain is None or len(chain.indices) < 2 or not isinstance(step, records.Parallel):
            return step
        order = tuple(range(len(chain.indices)))
        if max(list_steps(chain, order, world)) < setting.line:
            return step
        arrays = {_access_of(reference).array for reference in chain.references}
        items = BLOCK_B / sum(world.arrays[name].element for name in arrays)
        return rebuild_step(step, chain, order, 1 << int(np.log2(max(np.sqrt(items), 2))), world)

    return _add_parts(change_each_step(model, cut_loops), model)


def _add_parts(made: Model | None, model: Model) -> Model | None:
    if made is None or PARTS in made.domains:
        return made
    domain = records.Domain(Marked(Expression.parse("P"), model.mark), model.mark)
    return replace(made, domains={**made.domains, PARTS: domain})


def find_chain(step: Step, world: World) -> LoopChain | None:
    """Return the loops of a step where they can change places: rectangular, one in the other, linear references."""
    if not isinstance(step, records.Parallel) or not step.body or step.where is not None or step.ratio is not None:
        return None
    domain = world.model.domains[step.over.value]
    kind = domain.decomposition.kind if domain.decomposition is not None else "block"
    size = world.sizes[step.over.value]
    if kind == "static":
        begin, count = f"p * ({size} // P) + min(p, {size} % P)", f"{size} // P + (p < {size} % P)"
    elif kind == "block" and (domain.decomposition is None or domain.decomposition.weight is None):
        begin, count = f"p * {size} // P", f"((p + 1) * {size} // P - p * {size} // P)"
    else:
        return None
    indices, times, references = [step.index], [count], []
    body: Sequence[BodyItem] = step.body
    while True:
        nests = [item for item in body if isinstance(item, records.Nest)]
        references += [item for item in body if not isinstance(item, records.Nest)]
        if not nests:
            break
        if len(nests) > 1 or len(indices) == _MOST_LOOPS:
            return None
        if nests[0].times.value.names & {*indices, *world.ragged}:
            return None
        indices.append(nests[0].for_)
        times.append(nests[0].times.value.text)
        body = nests[0].body
    lists = set(world.ragged)
    if any(reference.where is not None or _access_of(reference).names & lists for reference in references):
        return None
    return LoopChain(tuple(indices), tuple(times), begin, tuple(references))


def _access_of(item: Read | Write) -> Access:
    return (item.read if isinstance(item, records.Read) else item.write).value


def count_lines(chain: LoopChain, order: Sequence[int], world: World, setting: ModelSetting) -> float:
    """Return the lines that an iteration of the innermost loop of an order touches anew, about.

    A reference that takes steps over lines touches a new one each time.
    """
    return sum(min(step / setting.line, 1.0) for step in list_steps(chain, order, world))


def list_steps(chain: LoopChain, order: Sequence[int], world: World) -> list[float]:
    """Return by how many bytes each reference moves in an iteration of the innermost loop of an order."""
    inner = chain.indices[order[-1]]
    scope = {**world.names, **dict.fromkeys(chain.indices, np.float64(0)), "p": np.float64(0)}
    steps = []
    for one in chain.references:
        access = _access_of(one)
        array = world.arrays[access.array]
        places = []
        for value in (0.0, 1.0):
            here = {**scope, inner: np.float64(value)}
            row = _evaluate(access.rows, here)
            item = _evaluate(access.first, here) if access.first is not None else 0.0
            places.append(row * array.row_step + item * array.item_step)
        steps.append(abs(places[1] - places[0]))
    return steps


def _evaluate(tree: ast.expr, scope: Mapping[str, object]) -> float:
    return Expression.parse(ast.unparse(tree)).evaluate_number(scope)


def rebuild_step(step: Parallel, chain: LoopChain, order: Sequence[int], block: int, world: World) -> Parallel:
    """Return a step with its loops in an order, in blocks of ``block`` iterations (0: none).

    Where the domain's loop is not the outermost one any more, each processor goes over its own part of the indices.
    """
    if not block and order[0] == 0:
        nested = _nest_loops(chain, order[1:], 0, {}, step.mark)
        return replace(step, body=nested)
    base = {chain.indices[0]: f"({chain.begin}) + {chain.indices[0]}"}
    weight = None
    if step.weight is not None:
        scope = {**world.names, step.index: np.arange(world.sizes[step.over.value], dtype=np.float64)}
        mean = float(np.mean(world.evaluate_values(step.weight, scope, world.sizes[step.over.value])))
        tree = ast.parse(chain.times[0], mode="eval").body
        count = ast.unparse(_Renamer({"p": "part"}).visit(tree))
        weight = Marked(Expression.parse(f"{mean!r} * ({count})"), step.mark)
    body = _nest_loops(chain, order, block, base, step.mark)
    return replace(step, over=Marked(PARTS, step.mark), index="part", weight=weight, body=body, schedule="static")


def _nest_loops(
    chain: LoopChain, order: Sequence[int], block: int, base: Mapping[str, str], mark: Mark
) -> tuple[BodyItem, ...]:
    renamed = dict(base)
    times = {place: chain.times[place] for place in order}
    outer: list[tuple[str, str]] = []
    if block:
        for place in order:
            name = chain.indices[place]
            outer.append((f"{name}_block", f"ceil(({times[place]}) / {block})"))
            renamed[name] = f"{base.get(name, name)} + {block} * {name}_block"
            times[place] = f"min({block}, ({chain.times[place]}) - {block} * {name}_block)"
    body: tuple[BodyItem, ...] = tuple(
        made for reference in chain.references for made in _rename_reference(reference, renamed)
    )
    loops = [*outer, *((chain.indices[place], times[place]) for place in order)]
    for name, count in reversed(loops):
        body = (records.Nest(name, Marked(Expression.parse(count), mark), body, mark),)
    return body


def _rename_reference(item: Read | Write, renamed: Mapping[str, str]) -> list[Read | Write]:
    access = _access_of(item)
    tree = ast.parse(access.text.strip(), mode="eval").body
    text = ast.unparse(_Renamer(renamed).visit(tree)) if renamed else access.text
    marked = Marked(Access.parse(text), item.mark)
    if isinstance(item, records.Read):
        return [replace(item, read=marked)]
    return [replace(item, write=marked)]


class _Renamer(ast.NodeTransformer):
    def __init__(self, renamed: Mapping[str, str]) -> None:
        self._trees = {name: ast.parse(text, mode="eval").body for name, text in renamed.items()}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._trees.get(node.id, node)
