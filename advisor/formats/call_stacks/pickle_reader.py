"""Python's pickles, as far as line_profiler uses them: never by Python's own reader, which runs what a file says."""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError

_MARK: Final = object()
#: Instructions that push what stands behind them, and those that change nothing here.
_PUSHING: Final = frozenset(
    {
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG1",
        "LONG4",
        "BINFLOAT",
        "UNICODE",
        "INT",
        "SHORT_BINSTRING",
        "BINSTRING",
    }
)
_IDLE: Final = frozenset({"PROTO", "FRAME", "STOP"})
_CONSTANTS: Final[dict[str, Callable[[], object]]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False, "EMPTY_TUPLE": tuple, "EMPTY_LIST": list,
    "EMPTY_DICT": dict, "MARK": lambda: _MARK,
}  # fmt: skip
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
#: An object is what its state is: these make one of a class that is not looked at.
_MAKING: Final = {"NEWOBJ": 2, "REDUCE": 2}


def read_pickle(path: Path, content: bytes) -> object:
    """Return the object that ``content`` holds, of instances their state; raises ``InputError`` for anything else."""
    stack: list[object] = []
    memory: dict[int, object] = {}
    place = 0
    try:
        for instruction, argument, at in pickletools.genops(content):
            place = at or 0
            _execute(instruction.name, argument, stack, memory)
    except (ValueError, IndexError, TypeError, KeyError, OverflowError, UnicodeError) as error:
        raise InputError(path, f"no statistics that can be read: {error}"[:300], f"byte {place}") from None
    if len(stack) != 1 or not content.endswith(b"."):
        raise InputError(path, "no statistics that can be read: the file is cut off, or more follows")
    return stack[0]


def _execute(name: str, argument: object, stack: list[object], memory: dict[int, object]) -> None:
    """Carry out one instruction; raises ``ValueError`` for those that nothing here needs."""
    if name in _PUSHING:
        stack.append(argument)
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name]())
    elif name in _TUPLES:
        stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
    elif name in ("TUPLE", "APPENDS", "SETITEMS"):
        _close_mark(name, stack)
    elif name == "APPEND":
        _extend(stack[-2], [stack.pop()])
    elif name == "SETITEM":
        _update(stack[-3], stack[-2:])
        del stack[-2:]
    elif name == "MEMOIZE":
        memory[len(memory)] = stack[-1]
    elif name in ("BINGET", "LONG_BINGET") and isinstance(argument, int):
        stack.append(memory[argument])
    elif name in ("BINPUT", "LONG_BINPUT") and isinstance(argument, int):  # Python 2 counts from one
        memory[argument] = stack[-1]
    elif name in ("STACK_GLOBAL", *_MAKING):
        stack[-2:] = [{}]
    elif name == "GLOBAL":
        stack.append({})
    elif name == "BUILD":
        stack[-2:] = [stack[-1]]
    elif name not in _IDLE:
        raise ValueError(f"the instruction {name} has no place here")


def _close_mark(name: str, stack: list[object]) -> None:
    """Take what was pushed since the last mark into a tuple, a list or a dictionary."""
    begin = len(stack) - 1
    while stack[begin] is not _MARK:
        begin -= 1
        if begin < 0:
            raise ValueError("an end without a beginning")
    items = stack[begin + 1 :]
    del stack[begin:]
    if name == "TUPLE":
        stack.append(tuple(items))
    elif name == "APPENDS":
        _extend(stack[-1], items)
    else:
        _update(stack[-1], items)


def _extend(target: object, items: list[object]) -> None:
    if not isinstance(target, list):
        raise TypeError("something is appended to what is no list")
    target.extend(items)


def _update(target: object, items: list[object]) -> None:
    if not isinstance(target, dict) or len(items) % 2:
        raise TypeError("something is put into what is no dictionary")
    target.update(zip(items[::2], items[1::2], strict=True))
