"""What should be known about counts of valgrind: what they leave out, and where most of them were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.valgrind import counts
from advisor.formats.valgrind.functions import UNKNOWN, FunctionList
from advisor.model.lists import join_names
from advisor.model.records import FloatArray, Note
from advisor.model.units import format_count, format_share

if TYPE_CHECKING:
    from advisor.formats.valgrind.dump import ValgrindDump
    from advisor.formats.valgrind.processes import ProgramProcesses

PENALTIES: Final = {"totals disagree": 0.3, "order of ranks": 0.05, "functions folded": 0.1, "unknown events": 0.1}
CACHES: Final = "valgrind --tool=callgrind --cache-sim=yes --branch-sim=yes ./PROGRAM"
_NAMED: Final = 4
#: Source lines are named that have at least this share of what is counted.
_HOT: Final = 0.03
_WHAT: Final = {
    "misses.LL": "misses of the last cache",
    "misses.L1": "misses of the first cache",
    "instructions": "instructions",
}
_OPERATIONS: Final = {"loads": "compiled_ops.load", "stores": "compiled_ops.store", "branches": "compiled_ops.branch"}


def build_notes(
    dumps: Sequence[ValgrindDump],
    processes: ProgramProcesses,
    functions: FunctionList,
    tables: Mapping[str, FloatArray],
) -> tuple[Note, ...]:
    """Return the notes on the ``dumps`` that are used."""
    return (
        *_note_damage(dumps, functions), *_note_ranks(processes), *_note_events(dumps, tables),
        *_note_libraries(tables), *_note_hot_lines(dumps, functions),
    )  # fmt: skip


def _make_note(name: str, text: str, collect: str | None = None) -> Note:
    return Note(name, text, PENALTIES.get(name, 0.0), collect)


def _note_damage(dumps: Sequence[ValgrindDump], functions: FunctionList) -> Iterator[Note]:
    off = [dump for dump in dumps if dump.totals_deviation]
    if off:
        names = join_names([dump.path.name for dump in off], _NAMED)
        yield _make_note(
            "totals disagree",
            f"lines and totals differ by up to {max(d.totals_deviation for d in off):,.0f} in {names}",
        )
    if strange := counts.find_unknown_events(dumps[0].events):
        yield _make_note("unknown events", f"valgrind is not known to count {join_names(strange, _NAMED)}")
    if functions.folded:
        yield _make_note("functions folded", f"the {functions.folded:,} functions with the fewest instructions are one")


def _note_ranks(processes: ProgramProcesses) -> Iterator[Note]:
    if processes.ranks_guessed:
        how = "the files name no ranks, so ranks are numbered in the order of process ids: a guess"
        command = "--callgrind-out-file=callgrind.out.rank%q{OMPI_COMM_WORLD_RANK}"
        yield _make_note("order of ranks", how, command)
    if processes.other_programs:
        names = ", ".join(
            f"{name or 'unnamed'} ({count})" for name, count in list(processes.other_programs.items())[:_NAMED]
        )
        yield _make_note("programs left out", f"processes of other programs are left out: {names}")
    if processes.helper_threads:
        how = f"left out: {format_count(processes.helper_threads, 'thread')} that executed next to nothing"
        yield _make_note("helper threads", f"{how} ({processes.helper_instructions:,.0f} instructions)")


def _note_events(dumps: Sequence[ValgrindDump], tables: Mapping[str, FloatArray]) -> Iterator[Note]:
    caches = list(dict.fromkeys(cache for dump in dumps for cache in dump.caches))
    if "misses.L1" in tables:
        which = f" ({'; '.join(caches)})" if caches else ""
        how = f"misses are those of simulated caches{which}: first and last level only, each process alone"
        yield _make_note("simulated caches", how)
    else:
        yield _make_note("caches not simulated", "loads, stores and cache misses were not counted", CACHES)
    how = "valgrind does not tell floating-point operations from others: M and MA stay unknown, MAC counts "
    known = [word for word, name in _OPERATIONS.items() if name in tables]
    yield _make_note("operations not told apart", how + (", ".join(known) or "nothing"))


def _note_libraries(tables: Mapping[str, FloatArray]) -> Iterator[Note]:
    inside = tables.get(f"{counts.LIBRARY}instructions")
    if inside is None or "instructions" not in tables:
        return
    everything = inside.sum() + tables["instructions"].sum()
    if everything > 0 and inside.sum() > 0:
        how = "of the instructions are those of communication libraries, which turn while they wait, and of the linker"
        yield _make_note(
            "library code", f"{format_share(inside.sum() / everything)} {how}: counted as library.* by itself"
        )


def _note_hot_lines(dumps: Sequence[ValgrindDump], functions: FunctionList) -> Iterator[Note]:
    """Yield where in the program's source most is missed or executed."""
    parts = counts.name_counts(dumps[0].events)
    name = next((one for one in _WHAT if one in parts), None)
    if name is None:
        return
    found: dict[tuple[str, int], float] = {}
    total = 0.0
    for dump, of_places in zip(dumps, functions.of_places, strict=True):
        columns = list(parts[name])
        own = ~functions.library[of_places]
        total += float(dump.counts[own][:, columns].sum())
        files = {place.file for place, mine in zip(dump.places, own.tolist(), strict=True) if mine}
        value = dump.lines.counts[:, columns].sum(axis=1)
        for at in np.argsort(-value, kind="stable")[: 100 * _NAMED].tolist():
            file, line = dump.lines.files[dump.lines.file[at]], int(dump.lines.line[at])
            if line and file != UNKNOWN and file in files and not file.startswith("./"):
                found[file, line] = found.get((file, line), 0.0) + float(value[at])
    most = sorted(found.items(), key=lambda item: -item[1])[:_NAMED]
    hot = [
        f"{file.rsplit('/', 1)[-1]}:{line} ({format_share(v / total)})" for (file, line), v in most if v > _HOT * total
    ]
    if hot:
        yield _make_note("hot lines", f"most {_WHAT[name]}: {', '.join(hot)}")
