"""Change one operator, constant or condition of a module at a time, and list the changes that no test notices.

    nice python tools/mutate.py                      # all modules of the list below: an hour or so
    nice python tools/mutate.py ranking/ceilings.py  # those whose path ends so
    nice python tools/mutate.py --sample 20          # 20 changes of each module, always the same ones

Each change runs in a process of its own, in which only the changed module differs; the files stay as they are. A change
whose tests compute for longer than ``LIMIT_S`` is listed apart: it may have made a loop endless. Exit status 1 where
one survives.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.machinery
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import ModuleType

ROOT: Final = Path(__file__).resolve().parents[1]
#: CPU time of a change: a busy machine doesn't use it up. What waits instead ends after so many times as long.
LIMIT_S: Final = 120
_PATIENCE: Final = 10
_SEED: Final = 17
#: What this process has imported already, pytest cannot rewrite, and need not.
_REWRITING: Final = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"

_POLICY: Final = "tests/model/test_policy.py"
_RANKING: Final = (
    "scores",
    "order",
    "order_of_parts",
    "drafts",
    "ceiling_parts",
    "build_changes",
    "ranking",
    "ranking_properties",
)
_FACTS: Final = tuple(f"tests/advice/test_{name}.py" for name in ("fact_limits", "facts", "event_facts"))
_ADVICE: Final = (_POLICY, *(f"tests/advice/test_{name}.py" for name in _RANKING))
_BOUNDS: Final = tuple(f"tests/analysis/test_{name}.py" for name in ("bounds", "gaps", "gap_causes", "machine_bounds"))
#: The tests of each module, those that fail soonest first.
TESTS: Final = {
    "advisor/model/policy.py": (_POLICY, "tests/analysis/test_quality.py"),
    "advisor/trace/serial.py": ("tests/trace/test_serial.py", _POLICY),
    "advisor/analysis/bounds.py": (*_BOUNDS, "tests/analysis/test_loads.py"),
    "advisor/analysis/gaps/between_bounds.py": ("tests/analysis/test_accounts.py", *_BOUNDS),
    "advisor/analysis/gaps/attribution.py": _BOUNDS,
    "advisor/analysis/gaps/gap_causes.py": _BOUNDS,
    "advisor/analysis/gaps/inner_waits.py": (_POLICY, "tests/trace/test_inner_waits.py", *_BOUNDS),
    "advisor/analysis/comparison.py": (_POLICY, "tests/analysis/test_comparison.py"),
    "advisor/analysis/quality.py": (_POLICY, "tests/analysis/test_quality.py"),
    "advisor/advice/facts/places.py": ("tests/advice/test_sites.py", _POLICY),
    "advisor/advice/facts/load_facts.py": (*_FACTS, "tests/rules/test_rule_cases.py"),
    "advisor/advice/rules/matching.py": ("tests/rules/test_rules.py", "tests/advice/test_conditions.py"),
    "advisor/advice/rules/comparisons.py": ("tests/advice/test_conditions.py", "tests/rules/test_rules.py"),
    "advisor/advice/ranking/ceilings.py": _ADVICE,
    "advisor/advice/ranking/drafts.py": _ADVICE,
    "advisor/advice/ranking/order.py": _ADVICE,
    "advisor/advice/ranking/effects.py": _ADVICE,
    "advisor/advice/ranking/history_gain.py": (_POLICY, "tests/advice/test_past_gains.py"),
}  # fmt: skip

_COMPARED: Final = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_CALCULATED: Final = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
_SWAPPED: Final = {"min": "max", "max": "min", "all": "any", "any": "all", "argmin": "argmax", "argmax": "argmin"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed module: where, what it says now, and its whole text."""

    line: int
    change: str
    text: str


def find_mutants(text: str) -> Iterator[Mutant]:
    """Yield every change of a module, annotations and what only type checkers see left out."""
    tree = ast.parse(text)
    for node in _executed(tree):
        for undo in _changes(node):
            yield Mutant(node.lineno, ast.unparse(node), ast.unparse(tree))
            undo()


def _executed(node: ast.AST) -> Iterator[ast.expr]:
    skipped = {"annotation", "returns", "decorator_list"}
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    if isinstance(node, ast.Raise):  # what a message says is the business of other tests
        return
    if isinstance(node, ast.expr):
        yield node
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in skipped:
                yield from _executed(child)


def _changes(node: ast.expr) -> Iterator[Callable[[], None]]:
    """Change a node in each way that there is; what is yielded undoes it."""
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            node.ops[number] = _COMPARED[type(operator)]()
            yield lambda at=number, old=operator: node.ops.__setitem__(at, old)  # type: ignore[misc]
    elif isinstance(node, ast.BinOp) and type(node.op) in _CALCULATED:
        yield from _replace(node, "op", _CALCULATED[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield from _replace(node, "op", ast.And() if isinstance(node.op, ast.Or) else ast.Or())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield from _replace(node, "op", ast.UAdd())
    elif isinstance(node, ast.IfExp):
        yield from _replace(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Name) and node.id in _SWAPPED:
        yield from _replace(node, "id", _SWAPPED[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in _SWAPPED:
        yield from _replace(node, "attr", _SWAPPED[node.attr])
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield from _replace(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield from _replace(node, "value", node.value + 1 if isinstance(node.value, int) else node.value * 1.25 + 1e-3)


def _replace(node: ast.expr, field: str, value: object) -> Iterator[Callable[[], None]]:
    old = getattr(node, field)
    setattr(node, field, value)
    yield lambda: setattr(node, field, old)


class _MutantLoader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a text instead of its file."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        self.name, self.path, self.code = name, path, compile(text, str(path), "exec")

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Say that this one loads the module; of others, nothing."""
        return importlib.machinery.ModuleSpec(name, self, origin=str(self.path)) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        """Execute the text."""
        module.__file__ = str(self.path)
        exec(self.code, vars(module))


class Outcome(Enum):
    """What the tests say of a change."""

    NOTICED = "noticed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"


def try_text(path: Path, text: str, tests: Sequence[str], limit_s: int = LIMIT_S) -> Outcome:
    """Return what the tests say with this text as the module at ``path``."""
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
        _run_tests(path, text, tests)
    try:
        deadline = time.monotonic() + _PATIENCE * limit_s
        while time.monotonic() < deadline:
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                if code == -signal.SIGXCPU:
                    return Outcome.TIMED_OUT
                return Outcome.NOTICED if code else Outcome.SURVIVED
            time.sleep(0.05)
        return Outcome.TIMED_OUT
    finally:  # also where this process is told to end: a change may have made a loop endless
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)


def _run_tests(path: Path, text: str, tests: Sequence[str]) -> None:
    """Run the tests with the changed module, and end this process with their status."""
    import pytest

    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    sys.meta_path.insert(0, _MutantLoader(name, path, text))
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "-W", _REWRITING]
    code = 2
    with contextlib.suppress(BaseException):
        code = int(pytest.main([*options, *tests]))
    os._exit(code)


def main() -> int:
    """Try the changes, print those that survive, and return 1 if any did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="ends of the paths of modules; all unless given")
    parser.add_argument("--sample", type=int, metavar="COUNT", help="changes per module (default: all)")
    parser.add_argument("--lines", metavar="FIRST-LAST", help="only changes of these lines")
    options = parser.parse_args()
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    import hypothesis  # the children start with it
    import numpy
    import scipy.stats

    _ = hypothesis, numpy, scipy.stats
    survived = 0
    for name, tests in TESTS.items():
        if options.modules and not any(name.endswith(end) for end in options.modules):
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        if (outcome := try_text(ROOT / name, ast.unparse(ast.parse(text)), tests)) is not Outcome.SURVIVED:
            sys.exit(f"{name}: its tests {'time out' if outcome is Outcome.TIMED_OUT else 'fail'} without any change")
        mutants = list(find_mutants(text))
        if options.lines:
            first, last = map(int, options.lines.split("-"))
            mutants = [one for one in mutants if first <= one.line <= last]
        if options.sample is not None and options.sample < len(mutants):
            mutants = random.Random(_SEED).sample(mutants, options.sample)
        outcomes = [try_text(ROOT / name, mutant.text, tests) for mutant in mutants]
        counts = ", ".join(f"{outcomes.count(outcome)} {outcome.value}" for outcome in Outcome)
        print(f"{name}: {len(mutants)} changes: {counts}", flush=True)
        for mutant, outcome in zip(mutants, outcomes, strict=True):
            if outcome is not Outcome.NOTICED:
                print(f"  {name}:{mutant.line}: {outcome.value}: {mutant.change}", flush=True)
        survived += outcomes.count(Outcome.SURVIVED)
    return min(survived, 1)


if __name__ == "__main__":
    sys.exit(main())
