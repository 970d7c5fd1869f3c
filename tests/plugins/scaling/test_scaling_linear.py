"""T = X beta and T(P, L, BW): the sources' numbers to their printed digits, and what follows from the equations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yaml_files import read_yaml

from advisor.analysis import machines
from advisor.model.errors import DocumentError, UsageError
from advisor_scaling import locality
from advisor_scaling.linear import application, expressions, linear_sections, model, polynomials
from advisor_scaling.linear.application import ApplicationModel, ArrayUse, MemorySizes

REFERENCE = Path(__file__).parents[2] / "reference"
LINEAR: dict[str, Any] = read_yaml(REFERENCE / "linear_model.yaml")
SYMBOLIC: dict[str, Any] = read_yaml(REFERENCE / "symbolic_model.yaml")
GAUSS = ApplicationModel(
    "Gaussian elimination",
    ("N", "P"),
    {"operations": "2*N**3/(3*P)", "loops": "N", "messages": "N*log2(P)", "bytes": "4*N**2*log2(P)"},
    (ArrayUse("rows", "8*N**2/P", "N/3"),),
)
BETA: dict[application.Column, float] = {
    "operations": 1e-9, "loops": 1e-7, "misses": 1e-8, "messages": 1e-6, "bytes": 1e-9
}  # fmt: skip


def gauss(cache: float = 2.0**20, **beta: float) -> model.LinearModel:
    return model.LinearModel(("N", "P"), application.build_counts(GAUSS, MemorySizes(cache)), {**BETA, **beta})


def table1() -> tuple[dict[float, float], dict[float, float]]:
    rows = LINEAR["table1"]
    return {row["P"]: row["alpha_P"] for row in rows}, {row["P"]: row["LF"] for row in rows}


def test_table_1_and_3_of_the_linear_model_to_the_printed_digits() -> None:
    found = locality.fit_critical_path(*table1())
    alpha0, alpha1 = found.corrected
    assert round(alpha0.value, 4) == LINEAR["recomputed"]["corrected"]["alpha0"]
    assert round(alpha1.value, 3) == LINEAR["recomputed"]["corrected"]["alpha1"]
    assert round(alpha0.value, 3) == LINEAR["table3"]["NAS"]["alpha0"]
    assert round(alpha1.value, 2) == round(LINEAR["table3"]["NAS"]["alpha1"], 2)
    for row in LINEAR["table1"]:
        line = alpha0.value + alpha1.value / row["P"]
        assert line == pytest.approx(row["alpha_prime"], abs=6e-4)
        assert line * row["LF"] == pytest.approx(row["product"], abs=6e-3)


def test_without_the_factor_the_intercept_is_negative_and_that_is_said() -> None:
    found = locality.fit_critical_path(*table1())
    assert round(found.plain[0].value, 3) == LINEAR["recomputed"]["plain"]["alpha0"]
    assert round(found.plain[1].value, 2) == LINEAR["recomputed"]["plain"]["alpha1"]
    assert found.needs_locality
    assert "locality factor is needed" in locality.LOCALITY_NEEDED
    perfect = {p: 1.0 + 50.0 / p for p in (4.0, 9.0, 16.0, 25.0)}
    assert not locality.fit_critical_path(perfect, dict.fromkeys(perfect, 1.0)).needs_locality


def test_locality_factors_refer_to_the_fewest_processors() -> None:
    assert locality.compute_locality_factors({16.0: 9.0, 4.0: 10.0}) == {4.0: 1.0, 16.0: 0.9}


@pytest.mark.parametrize("program", list(LINEAR["table3"]))
def test_table_3_is_found_again_from_times_and_what_is_not_significant_is_said(program: str) -> None:
    row = {name: value or 0.0 for name, value in LINEAR["table3"][program].items()}
    draw = np.random.default_rng(5)
    p = np.repeat([4.0, 9.0, 16.0, 25.0, 36.0, 49.0], 200)
    latency, bandwidth = draw.uniform(1e-6, 1e-3, len(p)), draw.uniform(1.0, 100.0, len(p))
    factors = {each["P"]: each["LF"] for each in LINEAR["table1"]}
    lf = np.array([factors[each] for each in p.tolist()])
    alpha = (row["alpha0"] + row["alpha1"] / p) * lf
    exact = alpha + (row["beta0"] + row["beta1"] * p) * latency + (row["gamma0"] + row["gamma1"] * p) / bandwidth
    found = locality.fit_network_model(p, latency, bandwidth, exact * (1 + draw.normal(0, 1e-4, len(p))), factors)
    for term in found.terms:
        if LINEAR["table3"][program][term.name] is None:
            assert not term.is_significant
        else:
            assert term.is_significant
            assert term.value == pytest.approx(row[term.name], rel=0.02)
            assert abs(term.value - row[term.name]) < 4 * term.error
    assert found(p, latency, bandwidth) == pytest.approx(exact, rel=2e-3)
    assert found.needs_locality == (program == "NAS") or program != "NAS"


def test_a_regression_says_how_sure_it_is() -> None:
    draw = np.random.default_rng(2)
    x = np.linspace(0, 1, 40)
    hits = 0
    for _ in range(300):
        one, two = locality.fit_regression({"a": np.ones(40), "b": x}, 1.0 + draw.normal(0, 0.1, 40))
        hits += two.is_significant
        assert one.is_significant
    assert 0.01 <= hits / 300 <= 0.10


def test_no_term_is_surer_than_runs_differ() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    columns, line = {"a": np.ones(4), "b": x}, 3.0 + 2.0 * x
    exact = locality.fit_regression(columns, line)
    assert max(term.error for term in exact) < 1e-12
    repeats = line[:, None] * np.array([[0.98, 1.0, 1.02]])
    scatter = locality.repeat_error(repeats)
    assert scatter == pytest.approx(0.02 * line / np.sqrt(3))
    noisy = locality.fit_regression(columns, line, None, scatter)
    assert [term.value for term in noisy] == pytest.approx([3.0, 2.0])
    inverse = np.linalg.pinv(np.stack([np.ones(4), x], axis=1))
    assert [term.error for term in noisy] == pytest.approx(np.sqrt((scatter**2 * inverse**2).sum(axis=1)))
    assert np.isnan(locality.repeat_error(line[:, None])).all()
    assert locality.fit_regression(columns, line, None, locality.repeat_error(line[:, None])) == exact


def test_the_columns_are_those_of_the_source() -> None:
    assert set(SYMBOLIC["columns"]) <= set(application.COLUMNS)


def test_sensitivity_to_start_up_grows_linearly_with_n_and_with_the_logarithm_of_p() -> None:
    column = model.compute_derivative(gauss(), "messages")
    n, p = expressions.make_symbol("N"), expressions.make_symbol("P")
    log2 = expressions.parse_formula("N*log2(P)", ("N", "P"))
    assert expressions.require_sympy().simplify(column - log2) == 0
    value = float(column.subs({n: 1024, p: 16})) * SYMBOLIC["startup_sensitivity"]["unit_s"]
    assert value == pytest.approx(1024 * 4 * 1e-5)


def test_an_array_larger_than_the_cache_misses_as_a_whole() -> None:
    counts = application.build_counts(GAUSS, MemorySizes(cache=2.0**20, memory=2.0**23))
    at = [np.array([[n, 1.0]]) for n in (362.0, 363.0, 1024.0, 1025.0)]
    misses = [float(model.build_matrix(counts, ["misses"], ("N", "P"), point)[0, 0]) for point in at]
    assert misses[0] == 0.0
    assert misses[1] == pytest.approx(8 * 363**2 / 64 * 363 / 3)
    faults = [float(model.build_matrix(counts, ["page_faults"], ("N", "P"), point)[0, 0]) for point in at]
    assert faults[2] == 0.0
    assert faults[3] == pytest.approx(8 * 1025**2 / 4096 * 1025 / 3)


def test_costs_are_found_again_from_runs() -> None:
    points = np.array([(n, p) for n in (128, 256, 512, 1024) for p in (1, 2, 4, 8)], dtype=float)
    truth = gauss()
    found = model.fit_costs(truth.x, ("N", "P"), points, truth(points))
    assert {column: found.beta[column] for column in truth.columns} == pytest.approx(BETA, rel=1e-6)
    part = model.fit_costs(truth.x, ("N", "P"), points, truth(points), known={"loops": 1e-7})
    assert part.beta == pytest.approx(BETA, rel=1e-6)


def test_no_fitted_cost_is_negative() -> None:
    points = np.array([(n, p) for n in (128, 256) for p in (1, 2, 4)], dtype=float)
    draw = np.random.default_rng(1)
    for _ in range(10):
        found = model.fit_costs(gauss().x, ("N", "P"), points, draw.uniform(0.1, 1.0, 6))
        assert min(found.beta.values()) >= 0.0


@given(st.floats(64, 4096), st.floats(1, 1024))
@settings(max_examples=30, deadline=None)
def test_elasticities_are_the_slopes_of_the_time(n: float, p: float) -> None:
    at, step = np.array([[n, p]]), 1e-5
    found = model.compute_elasticities(gauss(), at)
    base = gauss()(at)[0]
    slower = gauss(messages=BETA["messages"] * (1 + step))(at)[0]
    wider = gauss(bytes=BETA["bytes"] / (1 + step))(at)[0]
    assert found["latency"][0] == pytest.approx((slower / base - 1) / step, abs=1e-4)
    assert found["bandwidth"][0] == pytest.approx((wider / base - 1) / step, abs=1e-4)


def test_a_larger_cache_wins_what_misses_cost() -> None:
    at = np.array([[400.0, 1.0], [2000.0, 1.0]])
    larger = model.LinearModel(("N", "P"), application.build_counts(GAUSS, MemorySizes(2.0**21)), BETA)
    won = model.compute_size_gain(gauss(), at, larger)
    assert won[0] > 0.1
    assert won[1] == 0.0


def test_where_two_machines_cross() -> None:
    """Figure 3: workstations on Ethernet lead with few processors, the multicomputer with many."""
    workstations = gauss(operations=1e-8, messages=1e-3, bytes=1e-6)
    multicomputer = gauss(operations=1e-7, messages=5e-4, bytes=2.5e-6 / 8)
    (found,) = linear_sections.find_crossings(multicomputer, workstations, 1, 1.0, 1024.0, [512.0, 1.0])
    assert found.faster == 0
    for p, first in ((found.at * 0.9, 1), (found.at * 1.1, 0)):
        times = [machine(np.array([[512.0, p]]))[0] for machine in (multicomputer, workstations)]
        assert int(np.argmin(times)) == first
    assert linear_sections.time_ratio(multicomputer, workstations, np.array([[512.0, found.at]]))[0] == pytest.approx(
        1.0, rel=1e-9
    )


def test_the_bandwidth_that_is_worth_most() -> None:
    """Figure 6: T = a + b / BW and a price c + d BW have their best product at BW = sqrt(b c / (a d))."""
    x = {"operations": expressions.parse_formula("1", ()), "bytes": expressions.parse_formula("1e8", ())}
    rates = np.geomspace(1e6, 1e9, 60)
    plain = model.LinearModel((), x, {"operations": 2.0, "bytes": 1e-8})
    found = linear_sections.find_best_rate(plain, "bytes", [], rates, 1000.0 + 2e-5 * rates)
    assert found.best == pytest.approx(SYMBOLIC["figure6"]["best_MB_per_s"] * 1e6, rel=0.02)


def test_costs_from_a_machine_model() -> None:
    ncube = machines.load_machine("ncube-3200")
    stated = ApplicationModel(GAUSS.name, GAUSS.parameters, GAUSS.counts, GAUSS.arrays, {"loops": 1e-5})
    costs = model.machine_costs(ncube, stated)
    assert costs["operations"] == pytest.approx(1 / 300e3)
    assert costs["messages"] == pytest.approx(500e-6)
    assert costs["bytes"] == pytest.approx(1 / 364e3)
    with pytest.raises(UsageError, match="does not say what loops cost"):
        model.machine_costs(ncube, GAUSS)


@pytest.mark.parametrize("language", ["text", "latex", "python", "c", "json"])
def test_export(language: str) -> None:
    text = model.export_model(gauss(), language)
    if language == "python":
        scope: dict[str, Any] = {}
        exec(text, scope)
        assert scope["seconds"](512.0, 8.0) == pytest.approx(gauss()(np.array([[512.0, 8.0]]))[0])
    elif language == "json":
        assert json.loads(text)["columns"]["messages"]["cost"] == 1e-6
    else:
        assert "N" in text


@pytest.mark.parametrize(
    "formula",
    ["__import__('os')", "N.real", "N if P else 1", "[N]", "N**P**1000", "9**9**9", "Q", "f(N)", "log2(N, P)", "1/0",
     "'N'", "N +", "lambda: N", "True", "1e999", "(" * 500, "N" * 3000],
)  # fmt: skip
def test_what_is_no_formula_is_refused(formula: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        expressions.parse_formula(formula, ("N", "P"))


@pytest.mark.parametrize(
    ("formula", "value"),
    [("2*N^2/P", 32.0), ("ceil(N/3) + floor(N/3)", 5.0), ("max(N, P) - min(N, P)", 6.0), ("log2(N)*sqrt(4)", 6.0),
     ("-N + 1.5e1", 7.0)],
)  # fmt: skip
def test_formulas(formula: str, value: float) -> None:
    found = expressions.parse_formula(formula, ("N", "P"))
    assert (
        float(found.subs({expressions.make_symbol("N"): 8, expressions.make_symbol("P"): 4 if "^" in formula else 2}))
        == value
    )


def test_models_are_read_with_all_mistakes_at_once(tmp_path: Path) -> None:
    (path := tmp_path / "model.yaml").write_text(
        "name: x\nparameters: [N]\ncounts:\n  operations: N**Q\n  messages: import os\narrays: []\n"
    )
    with pytest.raises(DocumentError) as caught:
        application.read_application(path)
    assert [problem.line for problem in caught.value.problems] == [4, 5]
    path.write_text("name: x\nparameters: [N]\ncounts: {operations: 2*N}\narrays:\n  - {name: a, bytes: 8*N}\n")
    assert application.read_application(path).arrays[0].passes == "1"


GRID = np.array([(n, p) for n in (8.0, 12.0, 16.0, 32.0, 64.0) for p in (1.0, 2.0, 4.0)])


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("(N**2 - N)/2", "N^2/2 - N/2"),
        ("25*(N**3 - N)/(3*P)", "25 * N^3/(3 * P) - 25 * N/(3 * P)"),
        ("13000*N**2/P - 26000*N/P + 3000", "13000 * N^2/P - 26000 * N/P + 3000"),
        ("25*N*log2(P)", "25 * N * log2(P)"),
        ("40", "40"),
    ],
)
def test_counts_that_are_polynomials_are_found_exactly(formula: str, words: str) -> None:
    expression = expressions.parse_formula(formula, ["N", "P"])
    names = expressions.make_symbol("N"), expressions.make_symbol("P")
    values = np.array([float(expression.subs(dict(zip(names, point, strict=True)))) for point in GRID.tolist()])
    found = polynomials.find_exact_polynomial(["N", "P"], GRID, values)
    assert found is not None
    assert polynomials.format_polynomial(found) == words
    assert float(found.subs(dict(zip(names, (512, 16), strict=True)))) == pytest.approx(
        float(expression.subs(dict(zip(names, (512, 16), strict=True)))), rel=1e-12
    )


def test_counts_that_are_no_polynomials_are_not_taken_for_one() -> None:
    sizes = np.array([[8.0], [16.0], [32.0], [64.0]])
    assert polynomials.find_exact_polynomial(["N"], sizes, sizes[:, 0] * np.log2(sizes[:, 0])) is None
    assert polynomials.find_exact_polynomial(["N"], sizes, np.floor(sizes[:, 0] ** 2 / 7)) is None
    cube = sizes[:3, 0] ** 3 + sizes[:3, 0] ** 2 + sizes[:3, 0]
    assert polynomials.find_exact_polynomial(["N"], sizes[:3], cube) is None, (
        "three sizes do not tell three coefficients"
    )
    assert polynomials.find_exact_polynomial(["N", "M"], GRID, GRID[:, 0]) is None
    assert polynomials.find_exact_polynomial(["P"], sizes, sizes[:, 0]) is None
