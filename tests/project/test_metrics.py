"""tools/metrics.py measures what it says, and the code stays within its limits."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import metrics

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def sources() -> list[metrics.SourceFile]:
    return list(metrics.read_sources([ROOT / "advisor", ROOT / "plugins"]))


def source(text: str, name: str = "a.py") -> metrics.SourceFile:
    return metrics.SourceFile(ROOT / name, text.count("\n"), (), ast.parse(text))


def test_no_ten_lines_have_the_logic_of_ten_others(sources: list[metrics.SourceFile]) -> None:
    assert metrics.find_clones(sources) == []


def test_functions_and_files_are_short(sources: list[metrics.SourceFile]) -> None:
    functions = [function for one in sources for function in one.functions]
    lengths = [(function.end_lineno or 0) - function.lineno + 1 for function in functions]
    assert metrics.percentile(lengths, 0.9) <= 30
    assert max(lengths) <= 60
    assert metrics.percentile([one.lines for one in sources], 0.9) <= 300
    assert max(one.lines for one in sources) <= 400
    assert sum(metrics.is_one_word(function.name) for function in functions) <= 0.3 * len(functions)


def test_clones_are_seen_under_other_names_and_constants() -> None:
    first = "def f(a):\n" + "".join(f"    a = g(a, {n})\n" for n in range(10))
    other = "def h(b):\n    x = 1\n" + "".join(f"    b = k(b, {n})\n" for n in range(20, 30))
    assert metrics.find_clones([source(first), source(other, "b.py")]) == [["a.py:2-11", "b.py:3-12"]]
    assert metrics.find_clones([source(first), source(other.replace("k(b, 25)", "k(b) + 25"), "b.py")]) == []


def test_files_that_import_each_other_are_counted_once() -> None:
    a, b, c, d = (Path(name) for name in "abcd")
    assert metrics.count_cycles({a: [b], b: [c], c: [a], d: [a]}) == 1
    assert metrics.count_cycles({a: [b], b: [], c: [d], d: [c]}) == 1
    assert metrics.count_cycles({a: [b], b: []}) == 0


def test_what_children_run_through_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    profile = str(ROOT / "tests" / "profiles" / "fig4.json")
    help_, advice = metrics.count_run("--help"), metrics.count_run("advise", profile)
    # Each module costs a third of a millisecond: those of advice are what it needs, those of help a few.
    assert help_.loaded <= 30
    assert 150 < advice.modules < advice.loaded <= 309  # two for each reader
    assert advice.functions > 500
