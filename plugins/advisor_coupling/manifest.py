"""The manifest of an experiment: which program, which kernels, how to run a chain of them, and how often."""

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Final, Literal

from advisor.model.errors import DocumentError, Problem
from advisor.model.units import Seconds
from advisor.support import documents
from advisor.support.documents import Between, Mark, Marked, suggest_word
from advisor.support.expressions import Expression
from advisor_coupling.algebra import Combination
from advisor_coupling.cases import SECONDS
from advisor_coupling.manifest_fields import KernelName, Name, Pattern, Template

#: Places of templates that every command may use, besides the parameters.
PLACES: Final = ("chain", "mask", "passes", "processors")
#: More kernels than that are no loop that somebody measures.
MOST_KERNELS: Final = 30
MOST_CASES: Final = 1000


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of the loop: the arrays that it ``uses``, and whether it talks to other processes.

    ``formula`` is its user's own model E_k: seconds of one pass, from the parameters and ``P``. Where the order of the
    loop is free, it has to run ``after`` these kernels.
    """

    name: KernelName
    mark: Mark
    uses: tuple[Marked[Name], ...] = ()
    communicates: bool = False
    formula: Expression | None = None
    after: tuple[Marked[KernelName], ...] = ()


@dataclass(frozen=True, slots=True)
class PrintedMetric:
    """A metric that the program prints, about the whole run: ``prints`` shows where, ``take`` which of several.

    ``reason`` says what a chain suffers from that has more of it than its kernels: misses of a ``cache``, or seconds in
    ``messages`` or in waiting for others (``imbalance``).
    """

    name: Name
    prints: Pattern
    mark: Mark
    combine: Combination = "sum"
    take: Literal["last", "max", "sum"] = "last"
    reason: Literal["cache", "messages", "imbalance"] | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """An experiment as its author wrote it (docs/plugins/coupling.md).

    ``command`` runs ``{chain}`` (names with commas; ``{mask}`` as 0 and 1) for ``{passes}`` passes; ``application`` is
    the program as it is, by default the chain of all kernels for ``loop_count`` passes.
    """

    program: str
    kernels: tuple[Kernel, ...]
    command: tuple[Marked[Template], ...]
    loop_count: Expression
    mark: Mark
    parameters: dict[Name, tuple[float, ...]] = field(default_factory=dict)
    processors: tuple[Annotated[int, Between(1, 10_000_000)], ...] = (1,)
    application: tuple[Marked[Template], ...] = ()
    environment: dict[Name, Marked[Template]] = field(default_factory=dict)
    directory: str = "."
    arrays: dict[Name, Marked[Expression]] = field(default_factory=dict)
    passes: Expression | None = None
    shortest_loop: Seconds = 0.0
    repetitions: Annotated[int, Between(1, 1000)] = 7
    lengths: tuple[Annotated[int, Between(2, MOST_KERNELS)], ...] = ()
    metrics: tuple[PrintedMetric, ...] = ()
    baseline: Literal["subtract", "none"] = "subtract"
    order: Literal["fixed", "free"] = "fixed"
    time_limit: Seconds = 600.0

    @property
    def names(self) -> tuple[str, ...]:
        """The kernels in loop order."""
        return tuple(str(kernel.name) for kernel in self.kernels)

    @property
    def chain_lengths(self) -> tuple[int, ...]:
        """The lengths to measure: those that are listed, or all from 2 to the number of kernels."""
        return tuple(sorted(set(self.lengths))) or tuple(range(2, len(self.kernels) + 1))

    @property
    def points(self) -> tuple[dict[str, float], ...]:
        """Every combination of the parameters, without processors."""
        names = [str(name) for name in self.parameters]
        return tuple(dict(zip(names, values, strict=True)) for values in product(*self.parameters.values()))


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in the file; DocumentError with everything that is wrong with it."""
    manifest = documents.load_document(path, Manifest)
    problems = [
        *_check_kernels(manifest),
        *_check_templates(manifest),
        *_check_numbers(manifest),
        *_check_metrics(manifest),
    ]
    if problems:
        raise DocumentError(problems)
    return manifest


def _check_kernels(manifest: Manifest) -> list[Problem]:
    problems = []
    if not 2 <= len(manifest.kernels) <= MOST_KERNELS:
        found = len(manifest.kernels)
        problems.append(manifest.mark.make_problem(f"kernels: found {found}, expected 2 to {MOST_KERNELS} of them"))
    seen: set[str] = set()
    for kernel in manifest.kernels:
        if kernel.name in seen:
            problems.append(kernel.mark.make_problem(f"the kernel '{kernel.name}' is listed twice"))
        seen.add(kernel.name)
        for array in kernel.uses:
            if array.value not in manifest.arrays:
                near = suggest_word(array.value, manifest.arrays)
                problems.append(array.mark.make_problem(f"the array '{array.value}' is not listed in arrays{near}"))
        for other in kernel.after:
            if other.value not in manifest.names or other.value == kernel.name:
                near = suggest_word(other.value, manifest.names)
                problems.append(other.mark.make_problem(f"there is no other kernel '{other.value}'{near}"))
    if any(length > len(manifest.kernels) for length in manifest.lengths):
        message = f"lengths: expected at most {len(manifest.kernels)}, the number of kernels"
        problems.append(manifest.mark.make_problem(message))
    return problems


def _check_templates(manifest: Manifest) -> list[Problem]:
    known = [*PLACES, *manifest.parameters]
    words = [*manifest.command, *manifest.application, *manifest.environment.values()]
    problems = []
    for word in words:
        for name in word.value.names:
            if name not in known:
                near = suggest_word(name, known)
                problems.append(
                    word.mark.make_problem(f"nothing is called '{name}'{near}; there are {', '.join(known)}")
                )
    if not manifest.command:
        problems.append(manifest.mark.make_problem("command: expected a program and its arguments"))
        return problems
    for needed in (("chain", "mask"), ("passes",)):
        if not any(name in word.value.names for word in (*manifest.command, *words) for name in needed):
            either = " or ".join(f"{{{name}}}" for name in needed)
            problems.append(
                manifest.command[0].mark.make_problem(f"command: expected {either} in it or in environment")
            )
    return problems


def _check_numbers(manifest: Manifest) -> list[Problem]:
    problems = []
    clashing = sorted({"P", *PLACES} & {str(name) for name in manifest.parameters})
    problems += [manifest.mark.make_problem(f"parameters: '{name}' has a meaning of its own") for name in clashing]
    if any(not values for values in manifest.parameters.values()) or not manifest.processors:
        problems.append(manifest.mark.make_problem("parameters and processors: expected at least one value of each"))
        return problems
    count = len(manifest.points) * len(manifest.processors)
    if count > MOST_CASES:
        problems.append(manifest.mark.make_problem(f"found {count} cases, expected at most {MOST_CASES}"))
        return problems
    listed = [(manifest.mark, "loop_count", manifest.loop_count, True)]
    listed += [(manifest.mark, "passes", manifest.passes, True)] if manifest.passes else []
    listed += [(array.mark, str(name), array.value, False) for name, array in manifest.arrays.items()]
    listed += [(one.mark, str(one.name), one.formula, False) for one in manifest.kernels if one.formula is not None]
    for mark, name, expression, whole in listed:
        problems += _check_expression(manifest, mark, name, expression, whole)
    return problems


def _check_expression(manifest: Manifest, mark: Mark, name: str, expression: Expression, whole: bool) -> list[Problem]:
    """Return the first thing that is wrong with an expression at any of the cases."""
    known = ["P", *manifest.parameters]
    for needed in sorted(expression.names):
        if needed not in known:
            near = suggest_word(needed, known)
            return [mark.make_problem(f"{name}: nothing is called '{needed}'{near}; there are {', '.join(known)}")]
    for processors, point in product(manifest.processors, manifest.points):
        try:
            value = expression.evaluate_number({**point, "P": float(processors)})
        except ValueError as error:
            return [mark.make_problem(f"{name}: {error}")]
        if value <= 0 or (whole and value < 1):
            return [
                mark.make_problem(
                    f"{name}: '{expression}' is {value:.12g}, expected {'1 or more' if whole else 'more than 0'}"
                )
            ]
    return []


def _check_metrics(manifest: Manifest) -> list[Problem]:
    problems = []
    seen: set[str] = set()
    for metric in manifest.metrics:
        if metric.name in seen:
            problems.append(metric.mark.make_problem(f"the metric '{metric.name}' is listed twice"))
        if metric.name == SECONDS and metric.combine != "sum":
            problems.append(metric.mark.make_problem("seconds add up: expected combine: sum"))
        seen.add(metric.name)
    return problems
