"""What lines of Python ask for, by their source: searches in lists, copies of what grows, modules, and formulas."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from enum import Flag, auto
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

#: Larger files are no source that somebody wrote.
_MOST_B: Final = 1 << 21
#: Methods that look through a list; those that take an element at its front or put one there move all others.
_SEARCHING: Final = frozenset({"index", "count", "remove"})
_MOVING: Final = frozenset({"pop", "insert"})
#: Functions that make a new array or table of an old one and something more.
_EXTENDING: Final = frozenset({"append", "concatenate", "concat", "vstack", "hstack", "insert", "r_", "c_"})
#: Methods of mpi4py that pack and unpack what they send and receive; those in capitals send memory as it is.
_SENDING: Final = frozenset({
    "send", "bsend", "ssend", "isend", "ibsend", "issend", "recv", "irecv", "mrecv", "sendrecv", "bcast", "gather",
    "scatter", "allgather", "alltoall", "reduce", "allreduce", "scan", "exscan",
})  # fmt: skip
#: Functions and methods that give a number.
_NUMBERS: Final = frozenset({
    "len", "sum", "mean", "dot", "int", "float", "ord", "abs", "round", "hash", "count", "index", "find", "item",
    "write", "send", "crc32",
})  # fmt: skip
#: What works on all elements of arrays, one operation after the other.
_ARITHMETIC: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
#: What is written out in the source has a handful of elements, or is a set or dictionary.
_WRITTEN_OUT: Final = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Constant)


class LineKind(Flag):
    """What a line does, as far as its time can depend on the length of what it works on."""

    NOTHING = 0
    SEARCHES = auto()
    GROWS = auto()
    EXTENDS = auto()  # GROWS, by a function that makes a new array or table
    SENDS = auto()
    IMPORTS = auto()
    COMBINES = auto()


def read_line_kinds(path: str, changed_before_s: float) -> Mapping[int, LineKind]:
    """Return what the lines of a source file do, without those that do nothing of this kind.

    Nothing is known of a file that can't be read or parsed, or was changed at ``changed_before_s`` (s since 1970) or
    later: then other code has run.
    """
    tree = parse_source(path, changed_before_s)
    if tree is None:
        return {}
    found: dict[int, LineKind] = defaultdict(lambda: LineKind.NOTHING)
    try:
        subscripts = (node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript))
        indices = {part for one in subscripts for part in ast.walk(one) if isinstance(part, ast.BinOp)}
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt | ast.expr) and node not in indices and (kind := _kind_of(node)):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    found[line] |= kind
    except (RecursionError, MemoryError):
        return {}
    return dict(found)


def parse_source(path: str, changed_before_s: float) -> ast.Module | None:
    """Return a source file that was not changed at that time (s since 1970) or later; None if it can't be read."""
    source = Path(path)
    try:
        if source.is_file() and source.stat().st_mtime < changed_before_s:
            return ast.parse(read_limited(source, _MOST_B))
    except (OSError, InputError, SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return None


def _kind_of(node: ast.stmt | ast.expr) -> LineKind:
    match node:
        case ast.Compare(ops=operators, comparators=searched) if any(
            isinstance(one, ast.In | ast.NotIn) and not isinstance(where, _WRITTEN_OUT)
            for one, where in zip(operators, searched, strict=True)
        ):
            return LineKind.SEARCHES
        case ast.BinOp(op=operator) if isinstance(operator, _ARITHMETIC) and any(
            isinstance(one, ast.BinOp) and isinstance(one.op, _ARITHMETIC) for one in (node.left, node.right)
        ):
            return LineKind.COMBINES
        case ast.Import() | ast.ImportFrom():
            return LineKind.IMPORTS
        case ast.Call(func=ast.Attribute(attr=name)) if name in _SENDING:
            return LineKind.SENDS
        case ast.Call(func=ast.Attribute(attr=name), args=[_]) if name in _SEARCHING:
            return LineKind.SEARCHES
        case ast.Call(func=ast.Attribute(attr=name), args=[ast.Constant(value=0), *_]) if name in _MOVING:
            return LineKind.GROWS
        case ast.AugAssign(op=ast.Add(), value=value) if not _is_number(value):
            return LineKind.GROWS
        case ast.Assign(targets=[target], value=value) if _extends(value, ast.unparse(target)):
            return LineKind.GROWS | (LineKind.EXTENDS if isinstance(value, ast.Call) else LineKind.NOTHING)
    return LineKind.NOTHING


def _is_number(value: ast.expr) -> bool:
    """Return whether a value is a number, whatever is copied to get at it."""
    match value:
        case ast.Constant(value=int() | float() | complex()):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _NUMBERS
        case ast.BinOp(left=left, right=right):
            return _is_number(left) or (_is_number(right) and not isinstance(value.op, ast.Mult | ast.Mod))
    return False


def _extends(value: ast.expr, target: str) -> bool:
    """Return whether a value is ``target`` and more: a sum that begins with it, a part of it, a function of it."""
    match value:
        case ast.BinOp(left=left, op=ast.Add()):
            return ast.unparse(left) == target or _extends(left, target)
        case ast.Subscript(value=whole, slice=ast.Slice()):
            return ast.unparse(whole) == target
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=given) if name in _EXTENDING:
            parts = [part for one in given for part in (one.elts if isinstance(one, ast.List | ast.Tuple) else [one])]
            return any(ast.unparse(part) == target for part in parts)
    return False
