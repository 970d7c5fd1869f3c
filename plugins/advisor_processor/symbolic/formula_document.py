"""The formulas of a program in the parameters of its command, in functions of SymPy: what other plugins get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sympy

from advisor_processor.source import instrumented_run, model
from advisor_processor.symbolic.integer_functions import Doublings, Quotient, Remainder, Step
from advisor_processor.symbolic.program_formulas import ProgramFormulas, derive_formulas
from advisor_processor.symbolic.walk_records import TooLargeError

if TYPE_CHECKING:
    from fractions import Fraction

    from advisor_processor.source.instrumented_run import SourceCounts

#: Values of what only a run tells count as one where they differ by no more than this share.
_SAME: Final = 1e-12


def count_formulas(
    sources: Sequence[Path],
    template: Sequence[str],
    points: Sequence[Mapping[str, float]],
    build: str | None = None,
    root: Path | None = None,
    show: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Return the formulas of a program run at ``points``, whose values stand for ``{name}`` in the command.

    ``runs`` are the counts of each point. ``formulas`` is None where the source has too many contexts of calls, else a
    document: ``columns`` (operations, messages, bytes ... on a rank, mean over them), ``loops`` and ``memory`` by name
    as expressions of symbols named after the parameters; ``data`` the bytes of all data of a rank, None where some are
    ``unsized``; ``opaque`` symbols with their value at each point; ``exact``
    whether all blocks ran as often as their formulas say; ``inexact`` places of those that did not, whose runs are
    symbols; ``unknown`` calls whose bytes the source does not tell, ``uncertain`` what else is not known of messages;
    ``conditions`` expressions below zero beyond which the formulas do not hold. The service ``operation_formulas``;
    raises ``InputError`` and ``UsageError``.
    """
    commands = [[_fill_places(word, values) for word in template] for values in points]
    runs = instrumented_run.count_runs(sources, commands, build, root, show)
    plain = [model.to_plain(model.build_model(run)) for run in runs]
    try:
        found = derive_formulas(runs)
    except TooLargeError:
        return {"runs": plain, "formulas": None}
    return {"runs": plain, "formulas": _Document(found, runs, template, points).build_document()}


def _fill_places(word: str, values: Mapping[str, float]) -> str:
    for name, value in values.items():
        word = word.replace("{" + name + "}", f"{value:g}" if value < 1e6 else f"{value:.0f}")
    return word


class _Document:
    def __init__(
        self,
        found: ProgramFormulas,
        runs: Sequence[SourceCounts],
        template: Sequence[str],
        points: Sequence[Mapping[str, float]],
    ) -> None:
        self._found = found
        self._points = points
        self._opaque: dict[str, tuple[float, ...]] = {}
        self._table = self._name_symbols(runs, template)

    def build_document(self) -> dict[str, Any]:
        """Return the document."""
        found = self._found
        loops = {f"{loop.function}: {loop.name}": self._convert(total) for _, loop, _, total, _ in found.loops}
        columns = {name: self._convert(each) for name, each in found.means.items()}
        memory = {f"{function}: {name}": self._convert(each) for (function, name), each in found.memory.items()}
        shown = (*columns.values(), *loops.values(), *([] if found.data is None else [self._convert(found.data)]))
        used = {symbol.name for each in shown for symbol in each.free_symbols}
        return {
            "columns": columns,
            "loops": loops,
            "memory": memory,
            "data": None if found.data is None else self._convert(found.data),
            "unsized": found.unsized,
            "opaque": {name: values for name, values in self._opaque.items() if name in used},
            "exact": found.is_exact,
            "inexact": tuple(f"{b.block.function}:{b.block.line}" for b in found.blocks if not b.exact),
            "unknown": found.unknown,
            "uncertain": found.uncertain,
            "conditions": tuple(self._convert(condition) for condition in found.conditions),
        }

    def _name_symbols(self, runs: Sequence[SourceCounts], template: Sequence[str]) -> dict[str, Any]:
        """Return the meaning of each symbol of the formulas: a parameter, a number, or itself."""
        table: dict[str, Any] = {}
        arguments = template[len(template) - len(runs[0].arguments) :]
        for number, word in enumerate(arguments, start=1):
            if word[:1] == "{" and word[-1:] == "}" and word[1:-1] in self._points[0]:
                table[f"argv{number}"] = _make_symbol(word[1:-1])
        measured: list[tuple[str, Sequence[float | Fraction]]] = [
            *self._found.values.items(),
            *self._found.opaque.items(),
        ]
        for name, values in measured:
            if name not in table:
                table[name] = self._identify(name, [float(value) for value in values])
        return table

    def _identify(self, name: str, values: Sequence[float]) -> Any:  # noqa: ANN401
        """Return a number for what is always the same, a parameter for what always equals it, else a symbol."""
        if len(values) > 1 or name == "P":
            for parameter in self._points[0]:
                if all(point[parameter] == value for point, value in zip(self._points, values, strict=True)):
                    return _make_symbol(parameter)
        if max(values) - min(values) <= _SAME * abs(max(values)):
            return sympy.Rational(str(values[0])) if values[0] != int(values[0]) else sympy.Integer(int(values[0]))
        self._opaque[name] = tuple(values)
        return _make_symbol(name)

    def _convert(self, x: Any) -> Any:  # noqa: ANN401
        """Return a formula with functions that SymPy evaluates for arrays."""
        x = x.replace(Remainder, lambda a, c: a - c * sympy.floor(a / c))
        x = x.replace(Quotient, lambda a, c: sympy.floor(a / c))
        x = x.replace(Step, lambda a: sympy.Min(1, sympy.Max(0, sympy.floor(a) + 1)))
        x = x.replace(Doublings, lambda a: sympy.ceiling(sympy.log(sympy.Max(a, 1), 2)))
        names = {symbol: self._table.get(symbol.name, _make_symbol(symbol.name)) for symbol in x.free_symbols}
        return x.subs(names, simultaneous=True)


def _make_symbol(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, positive=True)
