"""A program walked from its main function with formulas for values: how often each block runs, exactly.

Loops become sums of what is inside over their variables, branches factors that are 1 or 0, calls the counts of what is
called with the values they hand over (M. Clement, M. Quinn 1995, section 2.1). What the source does not tell is a
symbol: the iterations of a loop that data end, the share of a branch that data decide.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import sympy

from advisor_processor.source.records import Assignment, Branch, CallSite, Leave, LoopEntry, Rest
from advisor_processor.symbolic import integers
from advisor_processor.symbolic.call_graph import CallGraph, iterate_statements
from advisor_processor.symbolic.data_sizes import DECLARING, FREEING, ArrayShapes, DataSizes, find_allocated
from advisor_processor.symbolic.integer_functions import make_integer
from advisor_processor.symbolic.library_effects import ALLOCATING, COMMUNICATORS, CONSTANTS, NUMBERS, TEXT, find_effects
from advisor_processor.symbolic.loop_trips import find_trips
from advisor_processor.symbolic.parameters import hand_back, hand_over
from advisor_processor.symbolic.sums import SumRules
from advisor_processor.symbolic.walk_records import (
    RANK,
    RANKS,
    CallRecord,
    Frame,
    Memory,
    Opaque,
    TooLargeError,
    merge_variables,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor_processor.source.records import Block, Loop, Source, Statement
    from advisor_processor.symbolic.sums import Range
    from advisor_processor.symbolic.walk_records import Key, MeasuredValues

#: Blocks that are walked, calls followed, at most: beyond, the formulas would be too many to be of use.
_BUDGET: Final = 20_000


class Composition:
    """The counts of a program: ``counts`` of blocks by key, ``calls`` of libraries, ``memory`` by function and name."""

    def __init__(self, sources: Sequence[Source], measured: MeasuredValues) -> None:
        self.counts: dict[Key, Any] = {}
        self.calls: list[CallRecord] = []
        self.memory: dict[tuple[str, str], Any] = {}
        self.data = DataSizes()
        self.opaque: dict[str, Opaque] = {}
        self.trips: dict[tuple[int, int], Any] = {}
        self._sources = sources
        self._measured = measured
        self._rules = SumRules(measured.holds)
        self._graph = CallGraph(sources)
        self._shapes = ArrayShapes()
        self._globals: dict[str, Any] = {}
        self._loops: list[Range] = []
        self._frames: list[Frame] = []
        self._results: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._budget = _BUDGET
        self._macros: dict[str, integers.Macro] = {}
        self._rest_is_open = False
        self._freeing = 0
        for source in sources:
            self._macros.update(source.macros)

    def compose_counts(self, executed: frozenset[str]) -> None:
        """Walk the program from its start; functions ``executed`` in a run that no walk reaches are counted by it."""
        start = next((name for name in ("main", "program") if name in self._graph.places), None)
        if start is not None:
            self._run_function(start, (), (), sympy.Integer(1))
            self._frames.append(Frame(self._graph.places[start][0], start))
            self.data.note_shared(self._sources, self._parse)
            self._frames.pop()
        left = executed & set(self._graph.places)
        for name in (*sorted(left & self._graph.recursive), *sorted(left - self._graph.recursive)):
            place, entry = self._graph.places[name]
            if (place, entry.number) not in self.counts:
                plain = re.sub(r"\W", "_", name)
                symbol = self.make_opaque(f"calls_{plain}", Opaque((place, entry.number), None))
                self._run_function(name, (), (), symbol, alone=True)

    def _ranges(self) -> tuple[Range, ...]:
        return ((RANK, RANKS), *self._loops)

    def _total(self, x: Any) -> Any:  # noqa: ANN401
        """Return the sum over all loops that are open, on one rank."""
        ranges = self._ranges()
        for at in range(len(ranges) - 1, 0, -1):
            if x == 0:
                return x
            x = self._rules.sum_range(x, *ranges[at], ranges[:at])
        return sympy.expand(x)

    def make_opaque(self, name: str, what: Opaque) -> sympy.Symbol:
        """Return the symbol of a value that only a run determines."""
        several = len(self._sources) > 1
        stem = re.sub(r"\W", "_", self._sources[what.part[0]].file.rpartition(".")[0])
        name = f"{name}_{stem}" if several and not name.startswith("calls_") else name
        free, count = name, 1
        while self.opaque.get(free, what) != what:
            count += 1
            free = f"{name}_{count}"
        self.opaque[free] = what
        return sympy.Symbol(free, nonnegative=True)

    # Values of names, for the parser of expressions.

    def name_value(self, name: str) -> Any:  # noqa: ANN401
        """Return the value of a variable."""
        value = self._find_value(name)
        if value is None:
            frame = self._frames[-1]
            symbol = self._measured.singles.get((frame.source, frame.function, name))
            return None if symbol is None else make_integer(symbol.lstrip("*"))
        return value

    def _find_value(self, name: str) -> Any:  # noqa: ANN401
        frame = self._frames[-1]
        if name in frame.variables:
            return frame.variables[name]
        if self._is_local(name):
            return None
        if name in self._globals:
            return self._globals[name]
        if name.upper() in COMMUNICATORS:
            return COMMUNICATORS[name.upper()]
        if name in CONSTANTS:
            return sympy.Integer(CONSTANTS[name])
        written = next((source.values[name] for source in self._sources if name in source.values), None)
        return None if written is None else self._parse(written)

    def call_value(self, name: str, arguments: Sequence[Any], written: Sequence[str]) -> Any:  # noqa: ANN401
        """Return what a call gives: a number of the command line, memory, or what a walked function returned."""
        if name in NUMBERS and written and (number := self.argument_value(written[0])) is not None:
            return number
        if name == "gapwatch_read":
            return self._frames[-1].variables.get(TEXT + written[0])
        if name == "gapwatch_array":
            frame = self._frames[-1]
            size = self._sources[frame.source].sizes.get((frame.function, written[0]), 8)
            self._shapes.note_extents(frame, written[0], self._is_local(written[0]), arguments[1:])
            known = None not in arguments[1:]
            return Memory(sympy.expand(size * sympy.prod(arguments[1:]))) if known else None
        if name == "gapwatch_size":
            self._find_value(written[0])  # an array of a module has its extents where it is declared
            return self._shapes.count_elements(self._frames[-1], written[0], written[1:], self._parse)
        if name in ALLOCATING:
            return find_allocated(name, arguments)
        return self._results.get((name, tuple(re.sub(r"\s", "", each) for each in written)))

    def argument_value(self, written: str) -> Any:  # noqa: ANN401
        """Return the number that an argument of the command such as ``argv[1]`` is; None for other expressions."""
        found = re.fullmatch(r"(\w+) ?\[ ?(\d+) ?\]", written)
        frame = self._frames[-1]
        names = self._sources[frame.source].parameters.get(frame.function, ())
        given = found is not None and len(names) > 1 and found[1] == names[1]
        return make_integer(f"argv{found[2]}") if found is not None and given else None

    def element_value(self, name: str, subscripts: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the value of an element with a constant subscript, which counts as a separate variable."""
        if len(subscripts) != 1 or subscripts[0] is None or not subscripts[0].is_Integer:
            return None
        return self.name_value(f"{name}[{subscripts[0]}]")

    def is_nonnegative(self, value: Any) -> Any:  # noqa: ANN401
        """Return 1 where a value is zero or more, else 0."""
        return self._rules.make_step(sympy.expand(value), self._ranges())

    def object_size(self, name: str) -> int | None:
        """Return the bytes of a named number or of what a pointer points at."""
        frame = self._frames[-1]
        return self._sources[frame.source].sizes.get((frame.function, name))

    def _parse(self, text: str) -> Any:  # noqa: ANN401
        if found := re.fullmatch(r"new (\w+)\s*\[(.+)\]", text):
            text = f"gapwatch_vector(sizeof({found[1]}), {found[2]})"
        fortran = self._sources[self._frames[-1].source].language == "fortran" if self._frames else False
        value = integers.parse_integer(text, self, self._macros, fortran)
        return None if value is not None and value.has(Memory) and not isinstance(value, Memory) else value

    def _is_local(self, name: str) -> bool:
        frame = self._frames[-1]
        declared = self._sources[frame.source].declared.get(frame.function, frozenset())
        return re.split(r"[.\[]", name)[0].lstrip("*") in declared

    def _set(self, name: str, value: Any) -> None:  # noqa: ANN401
        frame = self._frames[-1]
        local = self._is_local(name) or name in frame.variables
        (frame.variables if local else self._globals)[name] = value
        if isinstance(value, Memory):
            self.memory[frame.function, name] = value.args[0]

    # Statements.

    def _run_block(self, block: Block, guard: Any) -> Any:  # noqa: ANN401
        """Walk a block that runs ``guard`` times in each iteration of the open loops; return what goes on behind it."""
        self._budget -= 1
        if self._budget < 0:
            raise TooLargeError
        key = (self._frames[-1].source, block.number)
        self.counts[key] = self.counts.get(key, sympy.Integer(0)) + self._total(guard)
        for statement in block.statements:
            if guard == 0 and not isinstance(statement, Rest):
                continue
            guard = self._run_statement(statement, block, guard)
            if isinstance(statement, Rest):
                return guard
        return guard

    def _run_statement(self, statement: Statement, block: Block, guard: Any) -> Any:  # noqa: ANN401
        if isinstance(statement, Assignment):
            value = self._parse(statement.value) if statement.value else None
            self._set(statement.name, value)
            if statement.value.startswith(DECLARING):
                self.data.note_declared(self._frames[-1].function, statement.name, value)
        elif isinstance(statement, CallSite):
            self._run_call(statement, block, guard)
        elif isinstance(statement, LoopEntry):
            self._run_loop(statement.loop, guard)
        elif isinstance(statement, Branch):
            return self._run_branch(statement, guard)
        elif isinstance(statement, Leave):
            if statement.kind == "return":
                self._note_result(statement.value)
            return sympy.Integer(0)
        elif isinstance(statement, Rest):
            return self._run_rest(statement.block, block, guard)
        return guard

    def _run_rest(self, rest: Block, block: Block, guard: Any) -> Any:  # noqa: ANN401
        if self._rest_is_open:
            self._rest_is_open = False
            key = (self._frames[-1].source, rest.number)
            guard = guard * self._share(key, (key[0], block.number), rest.line)
        return self._run_block(rest, guard)

    def _note_result(self, written: str) -> None:
        frame = self._frames[-1]
        value = self._parse(written) if written else None
        frame.result = value if not frame.returned or frame.result == value else None
        frame.returned = True

    def _share(self, part: Key, whole: Key, line: int) -> Any:  # noqa: ANN401
        """Return the share of a block's executions in which a part of it runs: a number where it is 0 or 1 always."""
        known = self._measured.shares.get(part)
        return sympy.Integer(known) if known is not None else self.make_opaque(f"taken_{line}", Opaque(part, whole))

    def _run_branch(self, branch: Branch, guard: Any) -> Any:  # noqa: ANN401
        frame, remaining, after = self._frames[-1], guard, sympy.Integer(0)
        before, shared = dict(frame.variables), dict(self._globals)
        fortran = self._sources[frame.source].language == "fortran"
        ends: list[tuple[Any, dict[str, Any], dict[str, Any]]] = []
        left = sympy.Integer(1)
        values = [
            None if text is None else integers.parse_condition(text, self, self._macros, fortran)
            for text, _ in branch.clauses
        ]
        for (_, block), known in zip(branch.clauses, values, strict=True):
            condition = known
            if condition is None:
                whole = block.parent.number if block.parent is not None else self._parent_of(block)
                condition = self._share((frame.source, block.number), (frame.source, whole), block.line)
            here = sympy.expand(remaining * condition)
            frame.variables, self._globals = dict(before), dict(shared)
            out = self._run_block(block, here) if here != 0 else sympy.Integer(0)
            if out != 0:
                ends.append(
                    (sympy.expand(left * condition) if known is not None else None, frame.variables, self._globals)
                )
            after += out
            left = sympy.expand(left * (1 - condition))
            remaining = sympy.expand(remaining * (1 - condition))
        if remaining != 0:
            ends.append((None if None in values else left, before, shared))
        frame.variables = merge_variables([(share, each) for share, each, _ in ends]) if ends else before
        self._globals = merge_variables([(share, each) for share, _, each in ends]) if ends else shared
        return sympy.expand(after + remaining)

    def _parent_of(self, block: Block) -> int:
        loop = block.loop
        body = loop.body if loop is not None else None
        return body.number if body is not None else self._graph.places[block.function][1].number

    def _run_loop(self, loop: Loop, guard: Any) -> None:  # noqa: ANN401
        frame = self._frames[-1]
        body = loop.body
        if body is None:
            return
        changed = self._graph.changed_names(frame.source, loop) - {loop.variable}
        leaves = self._graph.may_leave(body, lambda block: self._measured.shares.get((frame.source, block.number)) == 0)
        trips = None
        if "break" not in leaves and "return" not in leaves:
            trips = find_trips(loop, self._parse, lambda x: self._rules.positive_part(x, self._ranges()), changed)
        turn = sympy.Symbol(f"t{len(self._loops) + 1}", integer=True, nonnegative=True)
        if trips is None:
            key = (frame.source, body.number)
            times = self.make_opaque(f"iterations_{loop.line}", Opaque(key, (frame.source, loop.block.number)))
        else:
            times = trips.times
        place = (frame.source, loop.number)
        self.trips[place] = times if self.trips.get(place, times) == times else None
        for name in changed | ({loop.variable} if loop.variable else set()):
            self._set(name, None)
        if trips is not None and loop.variable:
            self._set(loop.variable, trips.value(turn))
        if times != 0:
            frees = any(isinstance(each, CallSite) and each.name in FREEING for each in iterate_statements(body))
            self._loops.append((turn, times))
            self._freeing += frees
            self._run_block(body, guard)
            self._freeing -= frees
            self._loops.pop()
        for name in changed:
            self._set(name, None)
        if loop.variable:
            self._set(loop.variable, trips.value(times) if trips is not None else None)
        self._rest_is_open = "return" in leaves

    # Calls.

    def _run_call(self, call: CallSite, block: Block, guard: Any) -> None:  # noqa: ANN401
        key = (call.name, tuple(re.sub(r"\s", "", argument) for argument in call.arguments))
        values = tuple(self._parse(argument) for argument in call.arguments)
        if call.name in self._graph.places and call.name not in self._graph.recursive:
            self._results[key] = self._run_function(call.name, call.arguments, values, guard)
            return
        frame = self._frames[-1]
        loops = tuple(self._loops)

        def sum_calls(x: Any) -> Any:  # noqa: ANN401
            before, self._loops = self._loops, list(loops)
            found = self._total(sympy.expand(guard * x))
            self._loops = before
            return found

        place = f"{self._sources[frame.source].file}:{call.line or block.line}"
        self.data.note_call(call, values, place, self._freeing > 0, sum_calls)
        if call.name.lower().startswith("mpi_"):
            ranges = self._ranges()
            key_of_block, is_nonnegative = (frame.source, block.number), lambda x: self._rules.make_step(x, ranges)
            self.calls.append(
                CallRecord(call.name, call.arguments, values, place, key_of_block, sum_calls, is_nonnegative)
            )
        self._note_effects(call, values)

    def _note_effects(self, call: CallSite, values: Sequence[Any]) -> None:
        """Set what a call of a library changes."""
        fortran = self._sources[self._frames[-1].source].language == "fortran"
        for name, value in find_effects(call, values, self, fortran):
            if name.startswith(TEXT):
                self._frames[-1].variables[name] = value
            else:
                self._set(name, value)

    def _run_function(
        self,
        name: str,
        written: Sequence[str],
        values: Sequence[Any],
        guard: Any,  # noqa: ANN401
        alone: bool = False,
    ) -> Any:  # noqa: ANN401
        """Walk a function with what it is given; return what it returns, None where that is not known."""
        place, entry = self._graph.places[name]
        source = self._sources[place]
        frame = Frame(place, name)
        names = source.parameters.get(name, ())
        caller = self._frames[-1] if self._frames else None
        for parameter, text, value in zip(names, written, values, strict=False):
            frame.variables[parameter] = value
            if caller is not None:
                if text.startswith("&"):
                    frame.variables["*" + parameter] = self.name_value(text.lstrip("&").replace("->", "."))
                hand_over(frame, parameter, text, caller, self._globals, self._shapes)
        if name == "main" and names:
            frame.variables[names[0]] = sympy.Integer(self._measured.arguments)
        loops, self._loops = self._loops, [] if alone else self._loops
        self._frames.append(frame)
        open_rest, self._rest_is_open = self._rest_is_open, False
        self._run_block(entry, guard)
        self._rest_is_open = open_rest
        self._frames.pop()
        self._loops = loops
        if caller is not None:
            for parameter, text in zip(names, written, strict=False):
                assigned = self._graph.assigned_names(place, name)
                for each, value in hand_back(frame, parameter, text, source.language, assigned):
                    self._set(each, value)
                if parameter in frame.extents and re.fullmatch(r"\w+", text):
                    self._shapes.note_extents(caller, text, self._is_local(text), frame.extents[parameter])
        return frame.result
