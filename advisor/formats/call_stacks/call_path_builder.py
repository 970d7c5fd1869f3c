"""Call stacks as call paths: a node for each function below those that called it, a column for each thread."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.call_stacks.known_code import count_known_code
from advisor.model.errors import InputError
from advisor.model.records import OTHERS_UNRECORDED, Note, Processor
from advisor.model.units import format_share
from advisor.support.runtime_libraries import is_communication_function
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.call_stacks.stacks import Frame, StackProfile

_BUILT_IN: Final = re.compile(r"[{<](?:built-in )?method '?([\w.]+)'?(?: of '([\w.]+)' objects)?[}>]$")
_MPI: Final = re.compile(r"mpi4py\.")
_LOCK: Final = re.compile(r"(_thread\.|threading\.)?(lock|RLock|_RLock|Condition|Event)$")
_SLEEP: Final = frozenset({"sleep"})
#: Built-in functions that wait for what somebody types.
_TYPED: Final = frozenset({"input", "builtins.input", "raw_input", "__builtin__.raw_input"})
_IO: Final = frozenset({
    "read", "readinto", "readline", "readlines", "write", "writelines", "flush", "open", "close", "fsync", "fdatasync",
    "recv", "recv_into", "send", "sendall", "connect", "accept", "pread", "pwrite", "stat", "listdir", "scandir",
})  # fmt: skip
_POLL: Final = frozenset({
    "poll", "select", "epoll_wait", "waitpid", "wait4", "select.kqueue.control", "WaitForMultipleObjects",
    "WaitForSingleObject", "GetQueuedCompletionStatus", "_tkinter.tkapp.mainloop",
})  # fmt: skip
#: Modules of Python's library, and their functions that do nothing but call what waits. Samplers that see no built-in
#: functions show the waiting as theirs.
_LIBRARY: Final = re.compile(r".*(?:^|/)python3\.\d+/([\w/]+)\.py$")
_WAITING: Final = {
    "threading": frozenset({"wait", "_wait_for_tstate_lock", "acquire", "join"}),
    "queue": frozenset({"get"}),
    "selectors": frozenset({"select"}),
    "subprocess": frozenset({"wait", "_wait", "_try_wait"}),
    "multiprocessing/popen_fork": frozenset({"poll", "wait"}),
    "multiprocessing/synchronize": frozenset({"acquire", "wait", "__enter__"}),
    "multiprocessing/connection": frozenset({"wait", "_recv"}),
}
#: Functions of Go's library in which a thread is in the kernel.
_GO_SYSTEM: Final = re.compile(
    r"(?:(?:internal/)?runtime/(?:internal/)?)?syscall\.(?:Raw)?[Ss]yscall\w*"
    r"|runtime\.(?:futex|epollwait|usleep|nanosleep|madvise|mmap|munmap|sysM\w+|sysUn\w+|kevent|pthread_cond\w*_wait|semasleep)"
)
#: What Node.js reads and writes files with.
_NODE_FILES: Final = ("node:fs", "node:internal/fs")
#: Files that pyinstrument and cProfile name for functions that have none.
_NO_FILE: Final = frozenset({"~", "<built-in>", ""})

#: What readers call the time of a line in which nothing is computed.
NOT_COMPUTING: Final = "not computing"
_MOST_NODES: Final = 100_000
_MOST_CELLS: Final = 20_000_000
_OTHER: Final = "other functions"
#: From this share of its time on that a thread waits in locks, others matter.
_WAITS: Final = 0.05
_RECORD_ALL: Final = (
    "py-spy record --subprocesses --idle -f speedscope -o run.json -- python ./PROGRAM  # pip install py-spy"
)
_UNIT: Final = {
    "samples": Note(
        "samples without time",
        "the file counts samples and does not tell how long one is: shares are known, seconds are not",
        0.0,
        "gapwatch run -- CMD",
    ),
    "cpu_s": Note(
        "CPU time only",
        "only running functions were sampled: waiting and the time of the run are not in it",
        0.0,
        "gapwatch run -- CMD",
    ),
}


def build_call_paths(found: StackProfile, path: Path) -> CallPaths:
    """Return the call paths of the stacks; raises ``InputError`` for ``path`` where nothing was spent in them."""
    if not any(any(amounts) for amounts in found.spent.values()):
        raise InputError(path, "the profile holds no samples and no times")
    if found.threads * min(len(found.spent), _MOST_NODES) > _MOST_CELLS:
        raise InputError(path, f"{found.threads:,} threads are more than a profile of call stacks holds")
    nodes, spent, calls = _build_tree(found)
    times = {found.unit: spent} if found.unit != "samples" else {}
    left = np.array([node.role == Role.OS for node in nodes])
    if found.unit == "wall_s" and spent[left].any():
        times["cpu_s"] = np.where(left[:, None], 0.0, spent)  # what sleeps does not compute
    return CallPaths(
        program=found.program,
        run=path.name,
        reader="call_stacks",
        processors=tuple(Processor(0, thread) for thread in range(found.threads)),
        nodes=nodes,
        wall_s=times.get("wall_s"),
        cpu_s=times.get("cpu_s"),
        visits=calls,
        counts={"samples": spent} if found.unit == "samples" else count_known_code(found, nodes, spent),
        actual_s=found.wall_s,
        status="estimated" if found.sampled else "measured",
        started=found.started,
        language=found.language,
        notes=(*found.notes, *_describe_unit(found), *_describe_cut(nodes), *_describe_locks(found, nodes, spent)),
    )


def _build_tree(found: StackProfile) -> tuple[tuple[CallPathNode, ...], np.ndarray, np.ndarray | None]:
    """Return the nodes, what was spent in each itself (nodes, threads), and calls (nodes, threads) if counted."""
    numbers: dict[tuple[int, Frame], int] = {}
    nodes: list[CallPathNode] = []
    places: list[tuple[tuple[Frame, ...], int]] = []
    for stack in found.spent:
        parent = -1
        for frame in stack:
            key = (parent, frame)
            if key not in numbers:
                if len(nodes) >= _MOST_NODES:
                    break
                numbers[key] = len(nodes)
                nodes.append(CallPathNode(frame.name, classify_frame(frame), frame.file, frame.line, parent))
            parent = numbers[key]
        places.append((stack, parent))
    if any(parent < 0 for _, parent in places):
        nodes.append(CallPathNode(_OTHER, Role.USER))
    spent = np.zeros((len(nodes), found.threads))
    calls = np.zeros((len(nodes), found.threads)) if found.calls else None
    for stack, place in places:
        spent[place] += found.spent[stack]
        if calls is not None:
            calls[place, 0] += found.calls.get(stack, 0.0)
    return tuple(nodes), spent, calls


def _describe_unit(found: StackProfile) -> Iterator[Note]:
    if found.unit in _UNIT and np.isnan(found.wall_s):
        yield _UNIT[found.unit]


def _describe_cut(nodes: tuple[CallPathNode, ...]) -> Iterator[Note]:
    if len(nodes) >= _MOST_NODES:
        yield Note("too many call paths", f"beyond {_MOST_NODES:,} call paths, functions go with their callers", 0.1)


def _describe_locks(found: StackProfile, nodes: tuple[CallPathNode, ...], spent: np.ndarray) -> Iterator[Note]:
    """Yield the doubt of a profile of one thread that waits: what the others did meanwhile is not in it."""
    waits = np.array([node.role == Role.OMP_LOCK or _waits_for_others(node) for node in nodes])
    share = float(spent[waits].sum() / spent.sum())
    if found.threads == 1 and share >= _WAITS:
        text = f"the one thread that was recorded waits {format_share(share)} of its time for threads or processes"
        yield Note(OTHERS_UNRECORDED, f"{text} that are not in the profile", 0.1, _RECORD_ALL)


def _waits_for_others(node: CallPathNode) -> bool:
    """Return whether a node waits in the system for what another process does, and does not just sleep."""
    return (
        node.role == Role.OS
        and node.name != NOT_COMPUTING
        and not re.search(r"\bsleep\b|input\b|mainloop\b", node.name)
    )


def classify_frame(frame: Frame) -> Role:
    """Return what the function does: calls of MPI, locks, sleeping and I/O by the names of built-in functions.

    Functions of Python's library that do nothing but wait sleep; what Go calls of the kernel is the system's, and
    what Node.js does with files is I/O.
    """
    found = _BUILT_IN.match(frame.name)
    library = _LIBRARY.match(frame.file or "")
    if library is not None and frame.name in _WAITING.get(library[1], ()):
        return Role.OS
    if (frame.file or ".go").endswith((".go", ".s")) and _GO_SYSTEM.fullmatch(frame.name):
        return Role.OS
    if (frame.file or "").startswith(_NODE_FILES):
        return Role.IO
    if found is None and frame.file not in _NO_FILE:
        role = Role.USER if frame.file else classify_region(frame.name)[1]
        inside = role == Role.USER and frame.file is None and is_communication_function(frame.name)
        return Role.COMM_OTHER if inside else role
    name, owner = (found[1].rsplit(".", 1)[-1], found[2] or found[1]) if found else (frame.name.rsplit(".", 1)[-1], "")
    if _MPI.match(owner):
        return classify_region(f"MPI_{name}", paradigm="MPI")[1]
    if name in ("acquire", "wait") and (not owner or _LOCK.search(owner)):
        return Role.OMP_LOCK
    if found and found[1] in _TYPED and not found[2]:
        return Role.OS
    if name in _SLEEP or name in _POLL or f"{owner}.{name}" in _POLL or name == NOT_COMPUTING:
        return Role.OS
    return Role.IO if name in _IO else Role.USER
