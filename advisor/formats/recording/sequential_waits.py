"""Waiting for answers that a program in Python asks for one after the other, told by its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.recording.call_rows import CallRows
from advisor.formats.recording.python_lines import parse_source
from advisor.formats.recording.recorded_threads import WAITS_FOR_CHILDREN, calls_of
from advisor.trace.counts import ANSWER_SECONDS
from advisor.trace.recordings.layout import PYTHON_BIT

if TYPE_CHECKING:
    from advisor.formats.recording.contents import Recording
    from advisor.model.records import FloatArray, Profile

#: Calls in which a process waits for another program: a server, or one that it has started.
_ASKING: Final = (
    "poll", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait", "connect", "pipe_read", *WAITS_FOR_CHILDREN,
)  # fmt: skip
#: What starts several things at a time, and what serves others for as long as they come.
_CONCURRENT: Final = frozenset({
    "gather", "create_task", "ensure_future", "TaskGroup", "as_completed", "ThreadPoolExecutor", "ProcessPoolExecutor",
    "Thread", "Process", "Pool", "ThreadPool", "Popen", "serve_forever", "run_app", "imap", "imap_unordered",
})  # fmt: skip
#: What an event loop is started by, and what is awaited for no answer.
_STARTING: Final = frozenset({"run", "run_until_complete"})
_NO_ANSWERS: Final = frozenset({"sleep", "drain", "wait_closed", "put", "join", "send", "write", "close"})


def count_sequential_waits(profile: Profile, recording: Recording) -> dict[str, FloatArray]:
    """Return the seconds of waiting for others, (R, Q), at lines of a loop that asks them one after the other.

    Nothing for a program with several threads or processes, which may ask side by side.
    """
    if len(recording.threads) != 1 or len(recording.processes) != 1:
        return {}
    thread = recording.threads[0]
    process, number = thread.process, ~int(PYTHON_BIT)
    calls = calls_of(thread, *_ASKING)
    calls = calls[(thread.records["caller"][calls] & PYTHON_BIT) > 0]
    sources: dict[str, frozenset[int]] = {}
    asking = []
    for caller in (thread.records["caller"][calls] & np.uint64((1 << 48) - 1)).tolist():
        place = process.python.get(caller & number)
        if place is None or not place.file:
            asking.append(False)
            continue
        if place.file not in sources:
            tree = parse_source(place.file, process.real_s)
            sources[place.file] = find_asking_lines(tree) if tree else frozenset()
        asking.append(place.line in sources[place.file])
    calls = calls[np.array(asking, dtype=np.bool_)]
    if not len(calls):
        return {}
    row, q = CallRows(profile, recording).find_rows(thread, calls)
    found = np.zeros((len(profile.regions), len(profile.processors)))
    records = thread.records[calls[row >= 0]]
    lasted = np.maximum(records["end_ns"].astype(np.int64) - records["start_ns"].astype(np.int64), 0)
    np.add.at(found[:, q], row[row >= 0], lasted / 1e9)
    return {ANSWER_SECONDS: found}


def find_asking_lines(tree: ast.Module) -> frozenset[int]:
    """Return the lines at which a program waits for one answer before it asks for the next; none if it may not.

    These are the lines in loops over given things, and those of functions that such loops call; where a loop awaits
    something in each pass, those that start the loop of events as well, since it waits there.
    """
    if any(_name_of(node) in _CONCURRENT for node in ast.walk(tree)):
        return frozenset()
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    parts = [part for node in ast.walk(tree) for part in _repeated_parts(node)]
    awaits = any(
        isinstance(node, ast.Await) and _called_name(node.value) not in _NO_ANSWERS
        for part in parts
        for node in ast.walk(part)
    )
    found: set[int] = set()
    seen: set[str] = set()
    while parts:
        part = parts.pop()
        found.update(range(part.lineno, (part.end_lineno or part.lineno) + 1))
        for name in {_called_name(node) for node in ast.walk(part)} & functions.keys() - seen:
            seen.add(name)
            parts += functions[name].body
    if awaits:
        starts = (node for node in ast.walk(tree) if _called_name(node) in _STARTING)
        found.update(node.lineno for node in starts if isinstance(node, ast.expr))
    return frozenset(found)


def _repeated_parts(node: ast.AST) -> Iterator[ast.stmt | ast.expr]:
    """Yield what a loop does in each of its passes; one without an end serves, or waits for something to happen."""
    if isinstance(node, ast.For):
        yield from node.body
    elif isinstance(node, ast.DictComp):
        yield from (node.key, node.value)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        yield node.elt


def _called_name(node: ast.AST) -> str:
    return _name_of(node.func) if isinstance(node, ast.Call) else ""


def _name_of(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.alias(name=name):
            return name.rpartition(".")[2]
    return ""
