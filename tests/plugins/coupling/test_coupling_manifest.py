"""Manifests: what they may say, and every mistake with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from coupling_data import HERE

from advisor.model.errors import DocumentError
from advisor.support.expressions import Expression
from advisor_coupling import experiment, manifest
from advisor_coupling.manifest_fields import Pattern, Template

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = HERE.parent / "examples" / "coupling"
GOOD = """\
program: toy
kernels:
  - {name: a, uses: [u]}
  - {name: b, uses: [u]}
arrays: {u: 8 * N^2}
parameters: {N: [10, 20]}
loop_count: 1000 / N
command: [toy, "{N}", "--chain={chain}"]
environment: {PASSES: "{passes}"}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "toy.yaml"
    path.write_text(text)
    return path


def test_a_manifest_is_cases_and_runs_in_interleaved_rounds(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD + "processors: [1, 2]\nrepetitions: 2\n")
    plan = manifest.read_manifest(path)
    document = experiment.open_experiment(plan, path, tmp_path / "none.json", "", {})
    assert [(case.parameters["N"], case.processors, case.loop_count) for case in document.cases] == [
        (10, 1, 100), (20, 1, 50), (10, 2, 100), (20, 2, 50)
    ]  # fmt: skip
    assert document.cases[1].arrays == {"u": 3200}
    steps = experiment.list_steps(plan, 4)
    assert len(steps) == len({step.key for step in steps}) == 2 * 4 * (2 + 1 + 2)
    assert [step.round for step in steps] == sorted(step.round for step in steps)
    first, second = ([step.chain for step in steps if step.round == turn and step.case == 0] for turn in (0, 1))
    assert sorted(first) == sorted(second)
    assert first != second


@pytest.mark.parametrize("name", ["adi", "pair", "fused", "heat", "order"])
def test_the_manifests_of_the_examples_are_right(name: str) -> None:
    assert len(manifest.read_manifest(EXAMPLES / f"{name}.yaml").kernels) >= 2


def test_where_the_order_is_free_every_pair_is_measured_and_what_runs_before_is_kept(tmp_path: Path) -> None:
    path = EXAMPLES / "order.yaml"
    plan = manifest.read_manifest(path)
    chains = {step.chain for step in experiment.list_steps(plan, 1) if step.kind == "chain"}
    assert {"heat_a,heat_b", "flow_a,flow_b"} <= chains
    assert len([chain for chain in chains if chain.count(",") == 1]) == 6
    document = experiment.open_experiment(plan, path, tmp_path / "none.json", "", {})
    assert document.free_order
    assert document.after == {"heat_b": ("heat_a",), "flow_b": ("flow_a",)}


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("{name: b, uses: [u]}", "{name: b, after: [c]}", "4:23: there is no other kernel 'c'"),
        ("program: toy", "programm: toy", "1:1: unknown key 'programm' (did you mean 'program'?)"),
        ("name: b,", "name: a,", "4:5: the kernel 'a' is listed twice"),
        ("name: b, uses: [u]", "name: b, uses: [v]", "4:22: the array 'v' is not listed in arrays"),
        ("name: b,", 'name: "b,c",', '4:12: name: found "b,c", expected a name without blanks and commas'),
        ("8 * N^2", "8 * M^2", "5:13: u: nothing is called 'M'"),
        ("8 * N^2", "8 * N^", "5:13: u: found '8 * N^', expected an expression"),
        ("8 * N^2", "__import__('os')", "5:13: u: found '__import__('os')', expected arithmetic; character 12"),
        ("8 * N^2", "8 * (N - 10)", "5:13: u: '8 * (N - 10)' is 0, expected more than 0"),
        ("1000 / N", "15 / N", "1:1: loop_count: '15 / N' is 0.75, expected 1 or more"),
        ("[10, 20]", "[]", "1:1: parameters and processors: expected at least one value of each"),
        ("{N: [10, 20]}", "{N: [10], chain: [1]}", "1:1: parameters: 'chain' has a meaning of its own"),
        ('"{N}"', '"{n}"', "8:16: nothing is called 'n' (did you mean 'N'?)"),
        ('"{N}"', '"{N"', '8:16: command: found "{N", expected {name}, or {{ or }} for a brace'),
        ("--chain={chain}", "--all", "8:11: command: expected {chain} or {mask} in it or in environment"),
        ("{passes}", "7", "8:11: command: expected {passes} in it or in environment"),
        (
            "program: toy",
            "program: toy\nrepetitions: 0",
            "2:14: repetitions: found '0', expected a number from 1 to 1000",
        ),
        ("program: toy", "program: toy\nlengths: [3]", "1:1: lengths: expected at most 2, the number of kernels"),
        (
            "program: toy",
            "program: toy\nmetrics: [{name: misses, prints: misses}]",
            "2:34: prints: found 'misses', expected the text around one {value}",
        ),
        (
            "program: toy",
            "program: toy\nmetrics: [{name: seconds, prints: 's {value}', combine: rate}]",
            "2:11: seconds add up: expected combine: sum",
        ),
    ],
)
def test_each_mistake_is_told_with_its_place(tmp_path: Path, before: str, after: str, problem: str) -> None:
    assert before in GOOD
    with pytest.raises(DocumentError) as caught:
        manifest.read_manifest(written(tmp_path, GOOD.replace(before, after, 1)))
    assert f"{tmp_path}/toy.yaml:{problem}" in str(caught.value)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = (
        GOOD.replace("name: b, uses: [u]", "name: a, uses: [w]").replace("8 * N^2", "8 * M").replace('"{N}"', '"{n}"')
    )
    with pytest.raises(DocumentError) as caught:
        manifest.read_manifest(written(tmp_path, text))
    assert [(one.line, one.column) for one in caught.value.problems] == [(4, 5), (4, 22), (5, 13), (8, 16)]


@pytest.mark.parametrize(
    ("text", "value"),
    [("8 * N^3", 216), ("2e3 / N + 1", 2e3 / 3 + 1), ("-(N - 5) ** 2 + P", -2), ("1_000 * N", 3000), ("N // 2", 1)],
)
def test_expressions_are_arithmetic(text: str, value: float) -> None:
    assert Expression.parse(text).evaluate_number({"N": 3, "P": 2}) == pytest.approx(value)


@pytest.mark.parametrize("text", ["N.x", "f(N)", "'a'", "True", "[N]", "lambda: 1", "", "1j"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Expression.parse(text)


@pytest.mark.parametrize("text", ["1 / (N - 3)", "9 ** 9 ** 9 ** 9", "(0 - N) ^ 0.5"])
def test_what_has_no_value_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is not a finite number"):
        Expression.parse(text).evaluate_number({"N": 3.0})


def test_what_is_filled_in_is_never_read_again() -> None:
    word = Template.parse("{{x}}={chain};{N}")
    assert word.fill_places({"chain": "{N}$(reboot)", "N": "7"}) == "{x}={N}$(reboot);7"


@pytest.mark.parametrize(
    ("pattern", "output", "values"),
    [
        ("Time in seconds = {value}", " Time in seconds =       12.5\n", (12.5,)),
        ("D1 misses: {value}", "==7== D1  misses:   1,234,567  (1 rd)", (1234567,)),
        ("{value} cache-misses", "  99 cache-misses\n 1.5e3 cache-misses", (99, 1500)),
        ("T={value}s", "T=1.0D-03s", (0.001,)),
        ("T={value}s", "T=fast", ()),
    ],
)
def test_numbers_are_found_where_the_pattern_says(pattern: str, output: str, values: tuple[float, ...]) -> None:
    assert Pattern.parse(pattern).find_values(output) == pytest.approx(values)
