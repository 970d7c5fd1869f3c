"""Writes what was folded as a model in AML, with what is irregular in tables beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.model.decompose import compute_owners
from advisor_simulation.model.documents import quote_text
from advisor_simulation.program.array_layout import split_place
from advisor_simulation.program.fitting import LinearForm
from advisor_simulation.program.folded_phases import FoldedLoop, RaggedList

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.model.records import MissingInput
    from advisor_simulation.program.array_layout import ArrayLayout
    from advisor_simulation.program.folded_phases import FoldedItem, FoldedReference, FoldedStep, Formula

#: Names of the indices of loops, from the domain's on; deeper ones are numbered.
_INDICES: Final = ("i", "j", "k", "l", "m", "n", "o", "q", "r", *(f"r{depth}" for depth in range(2, 60)))
#: Weights that a straight line meets so well are written as one.
_STRAIGHT: Final = 0.03
#: Tables of at most so many numbers stand in the model itself.
_SHORT: Final = 64
#: Steps between two barriers, and repetitions of them, that are looked for.
_LONGEST_CYCLE: Final = 64
Sequenced = int | tuple[int, "list[Sequenced]"]


@dataclass(frozen=True, slots=True)
class ModelPhase:
    """A phase of the model: its steps with their names, executed by all processors or by the first alone.

    ``messages`` are lines of steps for what is sent at its end.
    """

    name: str
    parallel: bool
    steps: tuple[tuple[str, FoldedStep], ...]
    closes: bool
    messages: tuple[str, ...] = ()


@dataclass(slots=True)
class ModelWriter:
    """Collects the parts of a model; tables go into ``folder``, which lies beside the model.

    It is bound to its number of processors where a loop is modelled by processor, or who works on what is a list.
    """

    name: str
    processors: int
    arrays: Mapping[int, ArrayLayout]
    private: bool
    folder: Path
    _bound: bool = False
    _tables: list[str] = field(default_factory=list)
    _domains: dict[tuple[int, bytes], str] = field(default_factory=dict)
    _domain_lines: list[str] = field(default_factory=list)

    def write_model(self, phases: Sequence[ModelPhase], order: Sequence[int], holes: Sequence[MissingInput]) -> str:
        """Return the model; ``order`` is the sequence of the phases in the run."""
        procedures = []
        for old in self.folder.glob("*.npz"):
            old.unlink()
        self._bound = self.processors > 1 and any(
            phase.parallel and not step.recovered for phase in phases for _, step in phase.steps
        )
        for phase in phases:
            procedures.append(f"  {phase.name}:")
            procedures += self._render_phase(phase)
        lines = ["aml: 1", f"name: {quote_text(self.name)}"]
        lines += [f"processors: {self.processors}"] if self._bound else []
        lines.append("unit: cycle  # an instruction takes one")
        lines += ["tables:", *self._tables] if self._tables else []
        lines += ["domains:", *self._domain_lines] if self._domain_lines else []
        lines += ["arrays:", *(self._render_array(array) for array in self.arrays.values())] if self.arrays else []
        lines += ["procedures:", *procedures, "control:"]
        lines += _render_sequence(find_cycles(list(order)), [phase.name for phase in phases], "  ", 0)
        if holes:
            lines.append("holes:")
            lines += [
                f"  - {{at: {quote_text(one.at)}, missing: {quote_text(one.missing)}"
                + (f", collect: {quote_text(one.collect)}" if one.collect else "")
                + "}"
                for one in holes
            ]
        return "\n".join(lines) + "\n"

    def _render_array(self, one: ArrayLayout) -> str:
        shape = f"[{one.rows}, {one.items}]" if one.items > 1 else f"[{one.rows}]"
        private = ", private: true" if self.private else ""
        overlaps = ", overlaps: true" if one.overlaps else ""
        return f"  {one.name}: {{shape: {shape}, element: {one.element} B, at: {one.at} B{overlaps}{private}}}"

    def _render_phase(self, phase: ModelPhase) -> list[str]:
        lines = []
        for place, (name, step) in enumerate(phase.steps):
            last = place == len(phase.steps) - 1
            kind = "parallel" if phase.parallel else "serial"
            words = [f"{kind}: {quote_text(name)}", f"over: {self._name_domain(step, name, phase.parallel)}"]
            weight = self._render_weight(step.weight, step.recovered)
            words += [f'weight: "{weight}"'] if weight else []
            words += ["end: none"] if phase.parallel and not (last and phase.closes) else []
            lines.append(f"    - {words[0]}")
            lines += [f"      {word}" for word in words[1:]]
            names = ("i", f"(i // {step.split})") if step.split else ("i",)
            body = self._render_body(step.body, names, step.most, "        ")
            lines += ["      body:", *body] if body else []
        lines += [f"    {line}" for line in phase.messages]
        return lines or ["    - {exchange: nothing, cost: 0}"]

    def _render_body(
        self, body: Sequence[FoldedItem], names: tuple[str, ...], most: tuple[int, ...], indent: str
    ) -> list[str]:
        lines = []
        for item in body:
            if isinstance(item, FoldedLoop):
                index = next(name for name in _INDICES if name not in names)
                inner = self._render_body(item.body, (*names, index), (*most, item.most), indent + "    ")
                if inner:
                    times = self._render_formula(item.times, names)
                    lines.append(f"{indent}- for: {index}")
                    lines += [f'{indent}  times: "{times}"', f"{indent}  body:", *inner]
            elif item.data in self.arrays:
                lines += self._render_reference(item, names, most, indent)
        return lines

    def _render_reference(
        self, item: FoldedReference, names: Sequence[str], most: tuple[int, ...], indent: str
    ) -> list[str]:
        access = self._render_access(item, names, most)
        kind = "write" if item.stores else "read"
        where = f', where: "{self._render_formula(item.taken, names)}"' if item.taken is not None else ""
        return [f'{indent}- {{{kind}: "{access}"{where}}}']

    def _render_access(self, item: FoldedReference, names: Sequence[str], most: tuple[int, ...]) -> str:
        array = self.arrays[item.data]
        width = max(item.size // array.element, 1)
        if isinstance(item.offset, LinearForm):
            split = split_place(item.offset, array, (*most, self.processors))
            if split is not None and array.items > 1:
                row, first = (self._render_formula(one, names) for one in split)
                return f"{array.name}[{row}, {_render_range(first, width)}]"
            place = _divide_form(item.offset, array.element)
            text = self._render_formula(place, names)
        else:
            text = self._add_list(RaggedList(item.offset.first, item.offset.values // array.element))
        if array.items == 1:
            return f"{array.name}[{text}]"
        if array.flat:
            return f"{array.name}[0, {_render_range(text, width)}]"
        return f"{array.name}[({text}) // {array.items}, {_render_range(f'({text}) % {array.items}', width)}]"

    def _render_formula(self, formula: Formula, names: Sequence[str]) -> str:
        if isinstance(formula, RaggedList):
            return self._add_list(formula)
        return render_linear(formula.factors, formula.constant, (*names, "p"))

    def _add_list(self, values: RaggedList) -> str:
        name = f"list_{len(self._tables) + 1}"
        self.folder.mkdir(exist_ok=True)
        np.savez_compressed(self.folder / f"{name}.npz", first=values.first, values=_narrow(values.values))
        self._tables.append(f"  {name}: {{file: {quote_text(f'{self.folder.name}/{name}.npz')}, ragged: true}}")
        return name

    def _add_table(self, values: FloatArray) -> str:
        name = f"table_{len(self._tables) + 1}"
        if len(values) <= _SHORT:
            numbers = ", ".join(f"{value:.9g}" for value in values)
            self._tables.append(f"  {name}: {{values: [{numbers}]}}")
        else:
            self.folder.mkdir(exist_ok=True)
            np.savez_compressed(self.folder / f"{name}.npz", values=values)
            self._tables.append(f"  {name}: {{file: {quote_text(f'{self.folder.name}/{name}.npz')}}}")
        return name

    def _render_weight(self, weight: FloatArray, recovered: bool) -> str:
        """Return a weight: of the indices of a loop a straight line where that is near, of processors a list."""
        if not weight.any():
            return ""
        if not recovered and np.ptp(weight):
            return f"{self._add_table(weight)}[i]"
        index = np.arange(len(weight))
        slope, begin = np.polyfit(index, weight, 1) if len(weight) > 2 else (0.0, float(weight.mean()))
        if np.abs(begin + slope * index - weight).max() <= _STRAIGHT * weight.mean():
            slope = 0.0 if abs(slope) * len(weight) < _STRAIGHT * weight.mean() / 10 else slope
            begin = float((weight - slope * index).mean())
            return f"{begin:.9g}" + (f" + {slope:.9g} * i" if slope else "")
        return f"{self._add_table(weight)}[i]"

    def _name_domain(self, step: FoldedStep, name: str, parallel: bool) -> str:
        size = len(step.owner)
        key = (size if step.recovered else -1, step.owner.tobytes() if parallel else b"")
        if key in self._domains:
            return self._domains[key]
        if parallel and not step.recovered and self.processors > 1 and size == self.processors:
            self._domains[key] = "processors"
            self._domain_lines.append("  processors: {size: P}")
            return "processors"
        plain = "".join(sign if sign.isalnum() else "_" for sign in name).strip("_")
        label = f"over_{plain}"
        while label in self._domains.values():
            label += "_"
        self._domains[key] = label
        parts = self._render_decomposition(step.owner, parallel)
        self._domain_lines.append(f"  {label}: {{size: {size}{parts}}}")
        return label

    def _render_decomposition(self, owner: IntArray, parallel: bool) -> str:
        """Return who works on what; a serial loop is the first processor's, and its domain only tells what is near."""
        count, size = self.processors, len(owner)
        if count == 1 or not parallel:
            return ", decomposition: {kind: static}" if count > 1 else ""
        for kind in ("static", "block", "cyclic"):
            if np.array_equal(compute_owners(kind, size, count), owner):
                return f", decomposition: {{kind: {kind}}}"
        block = int(np.argmax(owner != owner[0]))
        if np.array_equal(np.arange(size) // max(block, 1) % count, owner):
            return f", decomposition: {{kind: block-cyclic, block: {block}}}"
        table = self._add_table(owner.astype(np.float64))
        self._bound = True
        return f", decomposition: {{kind: explicit, owner: {table}}}"


def _narrow(values: IntArray) -> IntArray:
    """Return values in the smallest type that holds them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kind = next(one for one in (np.int8, np.int16, np.int32, np.int64)
                if np.iinfo(one).min <= low and high <= np.iinfo(one).max)  # fmt: skip
    return values.astype(kind)


def _divide_form(form: LinearForm, by: int) -> LinearForm:
    return LinearForm(tuple(factor // by for factor in form.factors), form.constant // by)


def _render_range(first: str, width: int) -> str:
    return first if width == 1 else f"{first}:{first} + {width}"


def render_linear(factors: Sequence[int], constant: int, names: Sequence[str]) -> str:
    """Return a linear function as text, such as ``2 * i + j - 1``."""
    text = ""
    for factor, name in zip(factors, names, strict=True):
        if factor:
            part = name if abs(factor) == 1 else f"{abs(factor)} * {name}"
            text += (" - " if factor < 0 else " + ") + part if text else ("-" if factor < 0 else "") + part
    if constant or not text:
        text += (" - " if constant < 0 else " + ") + str(abs(constant)) if text else str(constant)
    return text


def find_cycles(order: list[int]) -> list[Sequenced]:
    """Return a sequence with what repeats in a row as (times, part): the part that covers most first."""
    best = (0, 0, 0, 0)
    for length in range(1, min(_LONGEST_CYCLE, len(order) // 2) + 1):
        begin = 0
        while begin + 2 * length <= len(order):
            times = 1
            while order[begin + times * length : begin + (times + 1) * length] == order[begin : begin + length]:
                times += 1
            covered = (times - 1) * length
            if times > 1 and covered > best[0]:
                best = (covered, begin, length, times)
            begin += max((times - 1) * length, 1)
    covered, begin, length, times = best
    if not covered:
        return list(order)
    before, part, after = order[:begin], order[begin : begin + length], order[begin + times * length :]
    return [*find_cycles(before), (times, find_cycles(part)), *find_cycles(after)]


def _render_sequence(parts: Sequence[Sequenced], names: Sequence[str], indent: str, depth: int) -> list[str]:
    lines = []
    for part in parts:
        if isinstance(part, int):
            lines.append(f"{indent}- {{call: {names[part]}}}")
        else:
            times, inner = part
            lines += [f"{indent}- loop: {times} times", f"{indent}  times: {times}", f"{indent}  index: t{depth}"]
            lines += [f"{indent}  do:", *_render_sequence(inner, names, indent + "    ", depth + 1)]
    return lines
