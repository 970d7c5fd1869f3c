"""Accesses that no compiler can avoid: what is loaded or stored anew in each iteration of an innermost loop.

The memory operations of MA (Boyd and Davidson, ISCA 1993): what an iteration has in common with the ones before it,
``u[i-1]`` and ``u[i+1]``, stays in registers, and so does what the loop does not change, ``c[i][j]`` in a loop over k.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor_processor.source.symbols import parse_expression

if TYPE_CHECKING:
    from advisor_processor.source.records import Block, Reference


def count_essential_accesses(block: Block) -> tuple[int, int, int]:
    """Return loads, stores and bytes of one execution of a block that registers can't spare.

    Outside innermost loops every access counts once, however often it is written.
    """
    loop = block.loop
    variable = loop.variable if loop is not None and loop.inner else ""
    reads: list[Reference] = []
    writes: list[Reference] = []
    stored: set[tuple[str, tuple[str, ...]]] = set()
    for each in block.work.references:
        place = (each.array, each.subscripts)
        if each.write:
            writes.append(each)
            stored.add(place)
        elif place not in stored:
            reads.append(each)
    changed = loop.changed if loop is not None else frozenset()
    loads, stores = (_select_streams(each, variable, changed) for each in (reads, writes))
    return len(loads), len(stores), sum(each.size for each in (*loads, *stores))


def _select_streams(references: Sequence[Reference], variable: str, changed: frozenset[str]) -> list[Reference]:
    """Return one reference for each place that moves on with the loop, apart from constants."""
    found: dict[tuple[str, ...], Reference] = {}
    for each in references:
        if variable and _is_invariant(each, changed | {variable}):
            continue
        key = (each.array, *(_strip_constant(subscript, variable) for subscript in each.subscripts))
        found.setdefault(key, each)
    return list(found.values())


def _is_invariant(reference: Reference, changed: frozenset[str]) -> bool:
    """Return whether an access is invariant in a loop; unknown where subscripts are looked up."""
    names = {name for one in (reference.array, *reference.subscripts) for name in re.findall(r"[A-Za-z_]\w*", one)}
    return not names & changed and all(re.fullmatch(r"[\w\s+*/().-]*", subscript) for subscript in reference.subscripts)


def _strip_constant(subscript: str, variable: str) -> str:
    """Return a subscript without the constant by which it is ahead of the loop's variable."""
    if not variable or not re.search(rf"\b{re.escape(variable)}\b", subscript):
        return subscript
    found = parse_expression(subscript)
    if found is None:
        return subscript
    constant = found.as_coeff_Add()[0]
    return str(found - constant)
