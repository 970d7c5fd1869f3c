"""From a command to an application model: traces the program, folds its phases, writes the model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.collect.binaries.addresses import find_lines
from advisor.collect.binaries.elf_files import ElfImage, read_elf
from advisor_simulation.model.records import MissingInput
from advisor_simulation.program.address_trace import TracedProcess, mark_iterations, trace_addresses
from advisor_simulation.program.array_layout import iterate_in_loops, lay_out_arrays
from advisor_simulation.program.code_loops import ProgramCode, read_program_code
from advisor_simulation.program.event_location import EventLocator, LocatedEvents
from advisor_simulation.program.folded_phases import FoldedPhase, FoldedStep, PlacedEvents
from advisor_simulation.program.folding import fold_phase
from advisor_simulation.program.memory_objects import find_objects
from advisor_simulation.program.messages import PhaseMessages, assign_messages, list_marked_calls, render_messages
from advisor_simulation.program.model_writing import ModelPhase, ModelWriter
from advisor_simulation.program.phases import Piece, ProgramPhase, find_time_loop, split_team_phases, split_turns

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor.trace.events import Trace
    from advisor_simulation.program.data_objects import DataObject

#: A phase with fewer accesses and instructions is a few statements between loops.
_FEW_ACCESSES: Final = 64
_FEW_INSTRUCTIONS: Final = 1000
#: Objects that are no larger are scalars: they count where several processors write, else they stay in the first cache.
_SCALAR_B: Final = 64
#: Accesses to memory without a name that are not worth a word.
_FEW_UNPLACED: Final = 0.01


@dataclass(frozen=True, slots=True)
class TracedProgram:
    """A traced run of a program: its code, processes, and their objects by name, in one numbering.

    ``variables`` were set for it beside those of this process.
    """

    image: ElfImage
    code: ProgramCode
    processes: tuple[TracedProcess, ...]
    names: tuple[str, ...]
    objects: tuple[tuple[DataObject, ...], ...]
    variables: Mapping[str, str]

    @property
    def ranked(self) -> bool:
        """Whether processors are processes, which share no memory."""
        return len(self.processes) > 1


@dataclass(frozen=True, slots=True)
class FoldedProgram:
    """The phases of a run: ``folded`` once each, with what was executed, and the ``order`` in which they were."""

    phases: tuple[ProgramPhase, ...]
    folded: tuple[FoldedPhase, ...]
    order: tuple[int, ...]
    processors: int


def trace_program(
    command: Sequence[str],
    program: Path,
    cache: Path,
    folder: Path,
    limit: int | None = None,
    source: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> TracedProgram:
    """Run a command with its program under the tracer; raises ``UsageError`` or ``InputError`` where that can't be.

    Its sources are looked for in ``source`` where they are not at the place that its debug information names.
    """
    image = read_elf(program)
    code = read_program_code(image)
    first = min((address for _, address, _ in image.segments), default=0) & -4096
    processes = trace_addresses(command, program, first, code.write_places(), cache, folder, limit, variables)
    processes, objects = _find_objects(image, _mark_iterations(processes, code), cache, source)
    names = dict.fromkeys(one.name for found in objects for one in found)
    return TracedProgram(image, code, processes, tuple(names), objects, variables or {})


def retrace_program(
    traced: TracedProgram, command: Sequence[str], cache: Path, folder: Path, variables: Mapping[str, str]
) -> TracedProgram:
    """Run a traced program once more with other ``variables``; its objects keep their numbers."""
    first = min((address for _, address, _ in traced.image.segments), default=0) & -4096
    own = folder / "again"
    own.mkdir()
    processes = trace_addresses(
        command,
        traced.image.path,
        first,
        traced.code.write_places(),
        cache,
        own,
        variables={**traced.variables, **variables},
    )
    marked = _mark_iterations(processes, traced.code)
    processes, objects = _find_objects(traced.image, marked, cache, None)
    names = dict.fromkeys((*traced.names, *(one.name for found in objects for one in found)))
    return replace(traced, processes=processes, objects=objects, names=tuple(names))


def _find_objects(
    image: ElfImage, processes: Sequence[TracedProcess], cache: Path, source: Path | None
) -> tuple[tuple[TracedProcess, ...], tuple[tuple[DataObject, ...], ...]]:
    """Return the objects of processes, and these with the objects of their accesses."""
    found = [find_objects(image, process, cache, source) for process in processes]
    owned = tuple(
        replace(
            process,
            threads=tuple(
                replace(thread, owners=owners) for thread, owners in zip(process.threads, one.owners, strict=True)
            ),
        )
        for process, one in zip(processes, found, strict=True)
    )
    return owned, tuple(one.objects for one in found)


def _mark_iterations(processes: Sequence[TracedProcess], code: ProgramCode) -> tuple[TracedProcess, ...]:
    first = len(code.loops) + len(code.exits) + len(code.calls)
    loops = [entry.loop for entry in code.entries]
    targets = len(code.marks) - first - len(loops)
    return tuple(
        replace(process, threads=tuple(mark_iterations(one, first, loops, targets) for one in process.threads))
        for process in processes
    )


def fold_program(traced: TracedProgram, cache: Path) -> FoldedProgram:
    """Return the phases of a traced run."""
    locator = EventLocator(traced.code, cache)
    placers = [
        _ObjectFinder(found, traced.names, one.sizes)
        for found, one in zip(traced.objects, traced.processes, strict=True)
    ]
    held: dict[int, bytes] = {}
    known: dict[str, int] = {}
    phases: list[ProgramPhase] = []
    folded: list[FoldedPhase] = []
    order: list[int] = []
    sizes: dict[int, int] = {}
    for process in traced.processes:
        sizes |= {number: max(size, sizes.get(number, 0)) for number, size in process.sizes.items()}
    empty = locator.hold_loops()
    for phase in _split_phases(traced):
        digest = phase.digest
        fresh = phase.parallel and not traced.ranked
        events: dict[int, PlacedEvents] = {}
        for q, piece in phase.pieces.items():
            if digest in known and fresh:
                break
            locator.resume_loops(empty if fresh else held.get(q, empty))
            if digest in known:
                locator.follow_words(piece.words)
            else:
                located = locator.locate_words(piece.words)
                data, offset = placers[q if traced.ranked else 0].place_events(located, piece)
                events[q] = PlacedEvents(located, data, offset, piece.begin_count, piece.end_count)
            if not fresh:
                held[q] = locator.hold_loops()
        if digest not in known:
            known[digest] = len(phases)
            phases.append(phase)
            folded.append(fold_phase(events, locator.paths, sizes, fresh, not traced.ranked))
        order.append(known[digest])
    processors = max((max(phase.pieces) + 1 for phase in phases), default=1)
    return FoldedProgram(tuple(phases), tuple(folded), tuple(order), processors)


def _split_phases(traced: TracedProgram) -> Iterator[ProgramPhase]:
    if not traced.ranked:
        yield from split_team_phases(traced.processes[0])
        return
    mains = [max(process.threads, key=lambda one: len(one.words)) for process in traced.processes]
    loop = find_time_loop(mains[0].words, traced.code)
    cuts = [split_turns(main, loop) for main in mains]
    if len({len(cut) for cut in cuts}) > 1:
        cuts = [split_turns(main, -1) for main in mains]
    for pieces in zip(*cuts, strict=True):
        yield ProgramPhase(True, 0, dict(enumerate(pieces)))


class _ObjectFinder:
    """Finds the objects that accesses of a process go to."""

    def __init__(self, objects: Sequence[DataObject], names: Sequence[str], sizes: Mapping[int, int]) -> None:
        number = {name: place for place, name in enumerate(names)}
        # the last row is that of no object
        self._begin = np.array([*(one.address for one in objects), 0], dtype=np.int64)
        self._end = np.array([*(one.end for one in objects), 0], dtype=np.int64)
        self._number = np.array([*(number[one.name] for one in objects), -1], dtype=np.int64)
        self._size = np.ones(max(sizes, default=0) + 1, dtype=np.int64)
        self._size[list(sizes)] = list(sizes.values())

    def place_events(self, events: LocatedEvents, piece: Piece) -> tuple[IntArray, IntArray]:
        """Return the object of each access of a piece (-1 for none), and the offset in it, bytes.

        What ends outside of an object is none of its items: what lay there before, or more than a string's bytes.
        """
        place = piece.owners[events.place].astype(np.int64)
        inside = events.address + self._size[events.number] <= self._end[place]
        return np.where(inside, self._number[place], -1), events.address - np.where(inside, self._begin[place], 0)


def write_program_model(traced: TracedProgram, folded: FoldedProgram, target: Path, trace: Trace | None = None) -> str:
    """Return the model of a traced run as text; its tables go into a folder beside ``target``.

    ``trace`` is a recording of the same command, which tells of its messages.
    """
    sent, alike = _find_messages(traced, folded, trace)
    kept = _find_arrays(traced, folded)
    objects = [_merge_object(traced, number) for number in kept]
    uses = [
        [
            use
            for phase in folded.folded
            for step in phase.steps
            for use in iterate_in_loops(step.body, step.most)
            if use.reference.data == number
        ]
        for number in kept
    ]
    layouts = lay_out_arrays(objects, uses, folded.processors)
    arrays = dict(zip(kept, layouts, strict=True))
    writer = ModelWriter(
        traced.image.path.name, folded.processors, arrays, traced.ranked, target.parent / f"{target.stem}.tables"
    )
    lines = find_lines(traced.image, [loop.header for loop in traced.code.loops])
    names: Counter[str] = Counter()
    phases: list[ModelPhase] = []
    place: dict[int, int] = {}
    for number, (phase, one) in enumerate(zip(folded.phases, folded.folded, strict=True)):
        if _is_small(phase, one) and not sent[number]:
            continue
        name = _name_phase(traced, phase, one, lines)
        names[name] += 1
        label = f"{name}_{names[name]}" if names[name] > 1 else name
        steps = tuple(
            (_name_step(traced, step.loop, lines, label), step) for step in one.steps if _is_kept(step, arrays)
        )
        place[number] = len(phases)
        closes = any(partner < 0 for _, _, partner, _ in sent[number]) if traced.ranked else phase.closes
        messages = tuple(render_messages(sent[number], folded.processors))
        phases.append(ModelPhase(label, phase.parallel, steps, closes, messages))
    order = [place[number] for number in folded.order if number in place]
    return writer.write_model(phases, order, tuple(_find_holes(traced, folded, trace, alike)))


def _find_arrays(traced: TracedProgram, folded: FoldedProgram) -> list[int]:
    """Return the objects that are arrays, or scalars that several processors share and one writes."""
    size = {one.name: one.size for found in traced.objects for one in found}
    wanted: set[int] = set()
    for phase, one in zip(folded.phases, folded.folded, strict=True):
        for step in one.steps:
            for use in iterate_in_loops(step.body, step.most):
                reference = use.reference
                large = size[traced.names[reference.data]] > _SCALAR_B
                shared = phase.parallel and not traced.ranked and reference.stores and reference.count > _FEW_ACCESSES
                if large or shared:
                    wanted.add(reference.data)
    return sorted(wanted)


def _merge_object(traced: TracedProgram, number: int) -> DataObject:
    """Return an object, of several processes the largest of that name."""
    name = traced.names[number]
    found = [one for objects in traced.objects for one in objects if one.name == name]
    return max(found, key=lambda one: one.size)


def _is_small(phase: ProgramPhase, folded: FoldedPhase) -> bool:
    count = sum(piece.end_count - piece.begin_count for piece in phase.pieces.values())
    return folded.accesses < _FEW_ACCESSES and count < _FEW_INSTRUCTIONS


def _is_kept(step: FoldedStep, arrays: Mapping[int, object]) -> bool:
    """Return whether a step does anything that the model holds."""
    return bool(step.weight.any()) or any(
        use.reference.data in arrays for use in iterate_in_loops(step.body, step.most)
    )


def _plain_name(text: str) -> str:
    bare = re.sub(r"\.(_omp_fn|constprop|isra|part|cold)\.?\d*", "", text)
    return re.sub(r"\W+", "_", bare).strip("_")


def _name_phase(
    traced: TracedProgram, phase: ProgramPhase, folded: FoldedPhase, lines: Mapping[int, tuple[str | None, int | None]]
) -> str:
    loops = [step.loop for step in folded.steps if 0 <= step.loop < len(traced.code.loops)]
    if not loops:
        symbol = traced.image.find_function(phase.body - traced.processes[0].base) if phase.body else None
        return _plain_name(symbol.name) if symbol is not None else "other"
    largest = max((step for step in folded.steps if step.loop in loops), key=lambda step: step.weight.sum()).loop
    return _plain_name(_name_step(traced, largest, lines, ""))


def _name_step(
    traced: TracedProgram, loop: int, lines: Mapping[int, tuple[str | None, int | None]], otherwise: str
) -> str:
    if not 0 <= loop < len(traced.code.loops):
        return otherwise
    one = traced.code.loops[loop]
    line = lines.get(one.header, (None, None))[1]
    name = _plain_name(traced.code.functions[one.function].name)
    return f"{name}:{line}" if line else f"{name}:{one.header:x}"


def _find_messages(
    traced: TracedProgram, folded: FoldedProgram, trace: Trace | None
) -> tuple[list[PhaseMessages], bool]:
    """Return the messages of each phase, and whether they are the same at each of its executions."""
    if trace is None:
        return [Counter() for _ in folded.phases], True
    calls = [list_marked_calls(phase, traced.code) for phase in folded.phases]
    return assign_messages(trace, len(calls), folded.order, [calls[number] for number in folded.order])


def _find_holes(
    traced: TracedProgram, folded: FoldedProgram, trace: Trace | None, alike: bool
) -> Iterator[MissingInput]:
    if traced.ranked and trace is None:
        yield MissingInput("messages", "what ranks send each other", "gapwatch run -- the same command, and --run RUN")
    elif not alike:
        yield MissingInput("messages", "those of some phases differ from time to time, or their calls are not marked",
                           "gapwatch run -- the same command, and --run RUN")  # fmt: skip
    if any(process.cut for process in traced.processes):
        yield MissingInput(
            "the end of the run", "what follows the limit of the tracer", "run a smaller problem, or --limit"
        )
    total = sum(folded.folded[number].accesses for number in folded.order)
    unplaced = sum(folded.folded[number].unplaced for number in folded.order)
    if unplaced > _FEW_UNPLACED * max(total, 1):
        share = f"{unplaced / total:.0%} of the accesses"
        yield MissingInput(
            "arrays without a name", f"{share} go to the stack or to memory of libraries", "compile with -g"
        )
