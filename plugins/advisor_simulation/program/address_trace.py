"""Runs a program under QEMU with the address tracer in it, and reads what its threads wrote.

The tracer (``tracer/tracer.c``) sees what chosen instructions access, and when marked places are reached; a library
preloaded into the program (``tracer/telling.c``) tells of allocations and of threads' parts in parallel regions.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import psutil

from advisor.model.errors import UsageError
from advisor.support.child_process import run_child
from advisor.support.launchers import count_ranks
from advisor.support.native_tools import compile_library, find_plugin_version, find_qemu

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint64]

#: Words that a process may write unless the user says otherwise, where memory allows it: 1 GiB.
MOST_WORDS: Final = 1 << 27
#: What folding takes for each word at its peak, measured, and the part of the memory that is free it may take.
FOLDING_B: Final = 300
FREE_PART: Final = 0.5
#: A run under the tracer takes 50 to 200 times as long.
LIMIT_S: Final = 3600.0
#: The number of a record of the preloaded library, in the upper bits of its word, and the words that follow.
_TOLD: Final = 0xFFFF
_FOLLOWING: Final = 6


@dataclass(frozen=True, slots=True)
class TracedThread:
    """What a thread wrote: its ``words`` without those of the preloaded library, and those by ``told``.

    Rows of ``told`` are (place in ``words``, instructions so far, kind, x, y, z, place on the stack, number among all
    that was told). ``owners`` are the objects of its accesses, by word, once they are known; -1 for none.
    """

    words: Words
    told: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True)
class TracedProcess:
    """A process: where the program was loaded, its rank, bytes of an access by its number, its threads.

    ``cut`` is set where the limit was reached before its end.
    """

    pid: int
    base: int
    rank: int
    cut: bool
    sizes: Mapping[int, int]
    threads: tuple[TracedThread, ...]


def compile_part(source: str, cache: Path, definitions: Sequence[str] = ()) -> Path:
    """Return the shared library made of a C file of this package, compiled once for each content of it."""
    return compile_library("advisor_simulation.program", source, cache, ("-O2", *definitions))


def choose_limit(command: Sequence[str]) -> int:
    """Return how many words each process of a command may write so that folding them does not exhaust the memory."""
    free_B = psutil.virtual_memory().available
    words = int(FREE_PART * free_B / FOLDING_B / max(count_ranks(command), 1))
    return min(max(words, 1 << 20), MOST_WORDS)


def trace_addresses(
    command: Sequence[str],
    program: Path,
    first: int,
    places: str,
    cache: Path,
    folder: Path,
    limit: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> tuple[TracedProcess, ...]:
    """Run a command with its ``program`` under the tracer; ``folder`` takes the files of the run.

    ``first`` is the program's first address as linked, ``places`` what is watched; ``variables`` are set beside
    those of this process. Each process may write ``limit`` words, None for as many as memory allows.

    Raises ``UsageError`` where that can't be done or the program fails.
    """
    qemu = find_qemu()
    tracer = compile_part("tracer.c", cache, (f"-DQEMU_PLUGIN_API={find_plugin_version(qemu)}",))
    telling = compile_part("telling.c", cache)
    (folder / "places").write_text(places, encoding="ascii")
    options: dict[str, object] = {"places": folder / "places", "program": program.resolve(), "folder": folder}
    options |= {"first": f"{first:x}", "limit": limit or choose_limit(command)}
    for path in (tracer, folder, program.resolve()):
        if "," in str(path):
            raise UsageError(f"{path}: qemu can't be given a path with a comma")
    plugin = ",".join((str(tracer), *(f"{name}={value}" for name, value in options.items())))
    traced = [qemu, "-cpu", "max", "-E", f"LD_PRELOAD={telling}", "-plugin", plugin, str(program.resolve())]
    place = find_program_word(command, program)
    words = [*command[:place], *traced, *command[place + 1 :]]
    extra = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", **(variables or {})}
    done = run_child(words, LIMIT_S, extra=extra)
    if done.failure:
        raise UsageError(f"{done.failure}; under the tracer {program.name} may need a smaller problem")
    processes = read_processes(folder)
    if not processes:
        last = done.error_text.strip().splitlines()[-1:]
        raise UsageError(
            f"{program.name} left nothing under the tracer: {' '.join(last) or f'exit status {done.status}'}"
        )
    return processes


def find_program_word(command: Sequence[str], program: Path) -> int:
    """Return the place of the program in a command that starts it."""
    for place, word in enumerate(command):
        found = shutil.which(word) or word
        if Path(found).exists() and Path(found).resolve() == program.resolve():
            return place
    raise UsageError(f"{program} does not stand in the command {' '.join(command)}")


def read_processes(folder: Path) -> tuple[TracedProcess, ...]:
    """Return what the processes of a run left behind, by rank."""
    found = []
    for file in sorted(folder.glob("*.process")):
        lines = file.read_text(encoding="ascii").split("\n")
        base, cut, rank = lines[0].split()
        sizes = {int(number): int(size) for number, size in (line.split() for line in lines[1:] if line)}
        parts = sorted(folder.glob(f"{file.stem}.*.words"), key=lambda path: int(path.suffixes[-2][1:]))
        threads = tuple(split_words(np.fromfile(part, dtype=np.uint64)) for part in parts)
        found.append(TracedProcess(int(file.stem), int(base, 16), int(rank), cut == "1", sizes, threads))
    return tuple(sorted(found, key=lambda one: one.rank))


def split_words(words: Words) -> TracedThread:
    """Return a thread's words without the messages of the preloaded library."""
    at = np.flatnonzero(words >> np.uint64(48) == np.uint64(_TOLD))
    keep = np.ones(len(words), dtype=np.bool_)
    rows = np.zeros((len(at), 2 + _FOLLOWING), dtype=np.int64)
    for offset in range(_FOLLOWING + 1):
        keep[at + offset] = False
    rows[:, 0] = at - np.arange(len(at)) * (_FOLLOWING + 1)
    rows[:, 1] = (words[at] & np.uint64((1 << 48) - 1)).astype(np.int64)
    for offset in range(_FOLLOWING):
        rows[:, 2 + offset] = words[at + 1 + offset].astype(np.int64)
    return TracedThread(words[keep], rows)


def mark_iterations(thread: TracedThread, first: int, loops: Sequence[int], targets: int) -> TracedThread:
    """Return a thread whose iterations all begin with the mark of their loop's header, also those that leave it out.

    Marks from ``first`` on are of jumps that begin another iteration of a loop (one of ``loops`` each) and, behind
    them, of the ``targets`` of these: a jump was taken where the next word is its target.
    """
    words = thread.words
    number = (words >> np.uint64(48) & np.uint64(0x7FFF)).astype(np.int64) - first
    number[words >> np.uint64(63) == 0] = -1
    count = len(loops)
    if not (number >= 0).any():
        return thread
    source = (number >= 0) & (number < count)
    target = (number >= count) & (number < count + targets)
    taken = np.flatnonzero(source[:-1] & target[1:])
    made = words.copy()
    headers = np.array(loops, dtype=np.uint64)[number[taken]]
    low = words[taken + 1] & np.uint64((1 << 48) - 1)
    made[taken + 1] = np.uint64(1 << 63) | headers << np.uint64(48) | low
    keep = ~(source | target)
    keep[taken + 1] = True
    told = thread.told.copy()
    told[:, 0] = np.r_[0, np.cumsum(keep)][told[:, 0]]
    return TracedThread(made[keep], told)
