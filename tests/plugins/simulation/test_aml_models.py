"""Application models in YAML: what they say, every mistake with its place, and models made from runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from aml_models import FIGURE_4, model, run, small
from hypothesis import given
from hypothesis import strategies as st

from advisor import pipeline
from advisor.analysis import bounds, gaps, machines
from advisor.extension import host
from advisor.model.errors import DocumentError, PluginError, UsageError
from advisor.support.expressions import Expression
from advisor_simulation.mds.engine import SimulationSettings
from advisor_simulation.mds.run import simulate_model
from advisor_simulation.model.accesses import Access
from advisor_simulation.model.checks import read_model
from advisor_simulation.model.decompose import bisect_graph, compute_owners
from advisor_simulation.model.from_profile import render_model
from advisor_simulation.model.tables import RaggedTable, build_ragged
from advisor_simulation.model.world import build_world

ROOT = Path(__file__).parents[3]


@given(a=st.integers(-50, 50), b=st.integers(1, 50))
def test_arithmetic_is_that_of_python(a: int, b: int) -> None:
    scope = {"a": np.float64(a), "b": np.float64(b), "T": np.array([3.0, 5.0])}
    for text, value in (
        ("a + b * 2 - 1", a + b * 2 - 1),
        ("a // b + a % b", a // b + a % b),
        ("-a if a < 0 else a ** 2", -a if a < 0 else a**2),
        ("max(a, b) + min(a, b) + abs(a)", a + b + abs(a)),
        ("(a < b) + (a >= b and not b == 0)", 1),
        ("T[a % 2]", [3.0, 5.0][a % 2]),
        ("1 < b < 60", float(b > 1)),
    ):
        assert Expression.parse(text).evaluate_number(scope) == value, text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os')", "character 12"),
        ("open(x)", "character 1: expected one of the functions"),
        ("x.y", "character 1: expected arithmetic"),
        ("[1, 2]", "character 1: expected arithmetic"),
        ("min(1)", "2 arguments for min"),
        ("1 +", "goes wrong at its end"),
        ("a ; b", "character 3"),
        ("lambda: 1", "character 1"),
        ("2 & 3", "character 3"),
        ("True", "character 1: expected a number"),
        ("+" * 60 + "1", "not so deeply nested"),
        ("1" * 501, "at most 500"),
        ("(a)[1]()", "functions"),
    ],
)
def test_nothing_but_arithmetic_is_read(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Expression.parse(text)
    assert message in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    for kind in (Expression, Access):
        with suppress(ValueError):
            assert kind.parse(text).text == text


@pytest.mark.parametrize("text", ["1 / 0", "9 ** 9 ** 9", "log2(-1)"])
def test_a_value_is_finite(text: str) -> None:
    with pytest.raises(ValueError, match="finite"):
        Expression.parse(text).evaluate_number({})


def mistakes(text: str, tmp_path: Path) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        model(text, tmp_path)
    return [f"{one.line}:{one.column}: {one.message}" for one in caught.value.problems]


def test_every_mistake_has_its_place(tmp_path: Path) -> None:
    text = small(
        "  - loop: l\n"
        "    times: m * 2\n"
        "    do:\n"
        '      - {parallel: p, over: lin, weight: "5 +", reads: ["B[i]", "A[j]", "A"]}\n'
        "      - {barier: b}\n"
        "      - {when: w, do: []}\n"
        "  - {call: helper}\n"
    )
    found = mistakes(text, tmp_path)
    assert found[0].startswith('12:42: weight: found "5 +", expected an expression such as 2 * n + 1')
    assert any(one.startswith('12:73: reads: found "A", expected an array with its index') for one in found)
    assert any("13:9: do: found a mapping with barier (did you mean 'barrier'?)" in one for one in found)


def test_names_that_mean_nothing(tmp_path: Path) -> None:
    text = small(
        "  - loop: l\n"
        "    times: m * 2\n"
        "    do:\n"
        '      - {parallel: p, over: lin, weight: "t + u", reads: ["B[i]", "A[j]"]}\n'
        "      - {when: w, do: []}\n"
        "      - {parallel: q, over: line, index: n}\n"
        "  - {call: helper}\n",
        extra="weights: {w: {constant: 1, expression: n}}\nprocedures: {again: [{call: again}]}",
    )
    found = mistakes(text, tmp_path)
    for place, words in (
        ("7:14", "expected one of constant, table, expression and profile"),
        ("8:29", "'again' calls itself"),
        ("11:12", "m * 2: 'm' means nothing here"),
        ("13:29", "there is no domain 'lin' (did you mean 'line'?)"),
        ("13:42", "'u' means nothing here"),
        ("13:59", "there is no array 'B'"),
        ("13:67", "'j' means nothing here"),
        ("14:9", "expected either ratio or condition"),
        ("15:9", "'n' already stands for something else"),
        ("16:12", "there is no procedure 'helper'"),
    ):
        assert any(one.startswith(f"{place}: ") and words in one for one in found), (place, words, found)


@pytest.mark.parametrize(
    ("control", "words"),
    [
        ('  - {parallel: p, over: line, reads: ["A[i + 1]"]}', "A: row 1 to 8 outside 0 to 7"),
        ('  - {parallel: p, over: line, reads: ["A[i, 0:5]"]}', "A: items 0 to 4 outside 0 to 3"),
        ("  - {parallel: p, over: line, weight: 0 - i}", "a weight is negative"),
        ("  - {loop: l, times: 0.5, do: [{barrier: b}]}", "expected a whole number"),
        ("  - {parallel: p, over: line, weight: 1 / (i - 3)}", "not a finite number"),
    ],
)
def test_values_that_make_no_sense_have_a_place(control: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"model\.yaml:9:") as caught:
        run(small(control), tmp_path)
    assert words in str(caught.value)


def test_files_of_tables_lie_next_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "near.txt").write_text("1 2\n0\n0 1 3\n2\n", encoding="ascii")
    text = small(
        '  - {parallel: p, over: four, weight: "Near_count[i]", reads: ["A[Near[i]]"]}',
        extra="tables: {Near: {file: near.txt, ragged: true}}",
    ).replace("pair: {size: P}", "four: {size: 4}")
    found = run(text, tmp_path)
    assert found.log.spans[0].entries[0].work.tolist() == [3, 4]
    assert found.log.flows["p"].items == 7 * 4
    with pytest.raises(DocumentError, match="expected a file next to the model"):
        run(text.replace("near.txt", "../near.txt"), tmp_path)
    with pytest.raises(DocumentError, match="7:16: Near"):
        run(text.replace("near.txt", "far.txt"), tmp_path)


def test_a_grid_has_neighbours_across_faces(tmp_path: Path) -> None:
    text = small('  - {parallel: p, over: line, reads: ["F[Near[i]]"]}', extra="tables: {Near: {grid: [4, 2]}}")
    world = build_world(model(text, tmp_path), tmp_path, 2)
    table = world.ragged["Near"]
    assert [table.values[a:b].tolist() for a, b in zip(table.first, table.first[1:], strict=False)][:5] == [
        [1, 4], [0, 2, 5], [1, 3, 6], [2, 7], [0, 5],
    ]  # fmt: skip


def test_layout(tmp_path: Path) -> None:
    text = small("  - {barrier: b}").replace(
        "arrays: {A: {shape: [n, 4]}, F: {shape: [n]}}",
        "arrays:\n  A: {shape: [n, 3], pad: 1}\n  B: {shape: [n, 3], element: 4 B, align: 128 B}\n"
        "  C: {shape: [n, 2], order: column}\n  G: {shape: [n, 3]}\n  H: {shape: [n]}\ngroups: [[G, H]]",
    )
    arrays = build_world(model(text, tmp_path), tmp_path, 2, None, 32).arrays
    shape = {name: (one.base, one.row_step, one.item_step) for name, one in arrays.items()}
    assert shape["A"] == (0, 32, 8)
    assert shape["B"] == (256, 12, 4)
    assert shape["C"] == (352, 8, 64)
    assert shape["G"] == (480, 32, 8)
    assert shape["H"] == (504, 32, 8)


@given(size=st.integers(8, 200), parts=st.integers(1, 9), seed=st.integers(0, 5))
def test_a_graph_is_cut_into_balanced_parts(size: int, parts: int, seed: int) -> None:
    dice = np.random.default_rng(seed)
    rows = [sorted({(i + 1) % size, (i - 1) % size, int(dice.integers(size))} - {i}) for i in range(size)]
    owner = bisect_graph(build_ragged(rows), parts, np.ones(size))
    count = np.bincount(owner, minlength=parts)
    assert count.sum() == size
    assert count.max() <= -(-size // parts) + max(3, size // 20)


def test_a_line_is_cut_into_pieces() -> None:
    rows = [[j for j in (i - 1, i + 1) if 0 <= j < 64] for i in range(64)]
    owner = bisect_graph(build_ragged(rows), 4, np.ones(64))
    assert int((np.diff(owner) != 0).sum()) == 3


def test_decompositions() -> None:
    assert compute_owners("cyclic", 5, 2).tolist() == [0, 1, 0, 1, 0]
    assert compute_owners("block-cyclic", 6, 2, 2).tolist() == [0, 0, 1, 1, 0, 0]
    assert compute_owners("block", 4, 2, weight=np.array([3.0, 1, 1, 1])).tolist() == [0, 1, 1, 1]
    assert compute_owners("explicit", 3, 2, given=np.array([1, 0, 1])).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="processors 0 to 1"):
        compute_owners("explicit", 3, 2, given=np.array([1, 0, 2]))


def test_without_pymetis_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor_simulation.model.decompose.find_spec", lambda name: None)
    line = RaggedTable(np.array([0, 1, 2]), np.array([1, 0]))
    with pytest.raises(PluginError, match="pymetis"):
        compute_owners("metis", 2, 2, weight=np.ones(2), graph=line)


@pytest.mark.skipif(find_spec("pymetis") is None, reason="needs METIS: pip install 'gapwatch[processor]'")
def test_metis_cuts_few_edges_into_balanced_parts(tmp_path: Path) -> None:
    text = small('  - {parallel: p, over: mesh, weight: 1, reads: ["F[Near[i]]"], end: none}')
    text = text.replace(
        "domains: {",
        "tables: {Near: {grid: [12, 12]}}\ndomains: {mesh: {size: 144, decomposition: {kind: metis, graph: Near}}, ",
    ).replace("{n: 8}", "{n: 144}")
    found = run(text, tmp_path, 4)
    assert max(abs(work - 36) for work in found.log.spans[0].entries[0].work) <= 3
    grid = build_world(read_model(tmp_path / "model.yaml"), tmp_path, 4)
    near, owner = grid.ragged["Near"], grid.owner["mesh"]
    row = np.repeat(np.arange(near.rows), np.diff(near.first))
    assert (owner[row] != owner[near.values]).sum() / 2 <= 34  # four squares of 6 x 6 cut 24 edges


def test_weights_from_a_profile(tmp_path: Path) -> None:
    text = small(
        "  - {parallel: p, over: line, weight: w}", extra="weights: {w: {profile: a, region: b, domain: line}}"
    )
    made = model(text, tmp_path)
    found = simulate_model(
        made, tmp_path, machines.load_machine("convex-spp1600"), 2, profiles=lambda path, region: np.array([8.0, 4.0])
    )
    assert found.log.spans[0].entries[0].work.tolist() == [8, 4]


def test_too_many_processors_for_data_are_refused(tmp_path: Path) -> None:
    text = small('  - {parallel: p, over: line, reads: ["A[i]"]}')
    with pytest.raises(UsageError, match="at most 64"):
        run(text, tmp_path, 65)
    assert run(text, tmp_path, 65, settings=SimulationSettings(data=False)).profile.ranks == 65


@pytest.mark.parametrize("case", ["imbalance+late", "serial-15", "io-one-15"])
def test_a_model_made_of_a_run_takes_as_long_and_has_its_gaps(case: str, tmp_path: Path) -> None:
    place = ROOT / "tests" / "profiles" / "faults" / case
    profile = pipeline.read_runs([place], pipeline.Options(), host.load_plugins())[0][0]
    text = render_model(profile)
    assert text is not None
    made = model(text, tmp_path)
    assert {"references to data", "domains"} <= {hole.at for hole in made.holes}
    again = simulate_model(made, tmp_path, machines.load_machine("convex-spp1600"), 4).profile
    assert again.actual_s == pytest.approx(profile.actual_s, rel=0.01)
    found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(again, bounds.compute_bounds(again))}
    for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile)):
        assert found[gap.name] == pytest.approx(gap.seconds, abs=0.01 * profile.actual_s), gap.name


FORMATS = (
    "callgrind/small", "caliper/faultlab-imbalance30", "cube/npb-lu.S.2", "dimemas/faultlab-multiphase30",
    "likwid/constructed", "mpip/lulesh-s6.8", "otf2/eztrace-io", "paraver/faultlab-io256", "perf/npb-cg.W.2",
    "talp/faultlab-imbalance30", "tau/npb-bt.S.4-tau_exec-ebs",
)  # fmt: skip


@pytest.mark.parametrize("place", FORMATS)
def test_profiles_of_any_format_become_models_that_run_with_their_holes_marked(place: str, tmp_path: Path) -> None:
    profile = pipeline.read_runs([ROOT / "tests" / "profiles" / place], pipeline.Options(), host.load_plugins())[0][0]
    text = render_model(profile)
    if not profile.has_run_time:
        assert text is None
        return
    assert text is not None
    made = model(text, tmp_path)
    assert all(hole.at and hole.missing for hole in made.holes)
    assert {hole.at for hole in made.holes} >= {"references to data", "domains"}
    assert ("synchronizations" in {hole.at for hole in made.holes}) == (not profile.has_phases)
    simulated = simulate_model(made, tmp_path, machines.load_machine("convex-spp1600"), len(profile.processors)).profile
    assert "times" not in {hole.at for hole in made.holes}
    assert simulated.actual_s == pytest.approx(profile.actual_s, rel=0.02)
    assert {region.name for region in simulated.regions} & {region.name for region in profile.regions}


def test_holes_of_a_model_made_of_a_run_can_be_filled(tmp_path: Path) -> None:
    """Data are named, and what the regions do with them: then caches and sharing are simulated, too."""
    profile = pipeline.read_runs(
        [ROOT / "tests" / "profiles" / "mpip" / "lulesh-s6.8"], pipeline.Options(), host.load_plugins()
    )[0][0]
    text = render_model(profile)
    assert text is not None
    head, _, _ = text.partition("holes:")
    filled = head.replace("costs: {barrier: 0}", "costs: {barrier: 0, memory: 1e-6, near: 1e-6, far: 1e-6}")
    filled = filled.replace("control:", "arrays: {F: {shape: [P]}}\ncontrol:")
    filled = filled.replace("end: none}", 'end: none, reads: ["F[(i + 1) % P]"], writes: ["F[i]"]}', 1)
    before = simulate_model(model(text, tmp_path), tmp_path, machines.load_machine("convex-spp1600"), 8)
    after = simulate_model(model(filled, tmp_path), tmp_path, machines.load_machine("convex-spp1600"), 8)
    assert (before.log.references, after.log.references) == (0, 16)
    assert after.profile.actual_s > before.profile.actual_s


def test_names_from_a_profile_stay_text(tmp_path: Path) -> None:
    made = run(FIGURE_4, tmp_path).profile
    odd = replace(
        made, program='x"\n- {barrier: b}', phases=tuple(replace(p, name="a: }{ \\ \x1b") for p in made.phases)
    )
    text = render_model(odd)
    assert text is not None
    assert model(text, tmp_path).name == 'x"?- {barrier: b}'


def test_the_models_of_the_examples_are_sound() -> None:
    found = [read_model(path) for path in sorted((ROOT / "examples" / "crash").glob("*.yaml"))]
    assert len(found) == 6


def test_the_example_of_the_page_is_a_model(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "plugins" / "simulation.md").read_text(encoding="utf-8")
    text = page.partition("```yaml\n")[2].partition("```")[0]
    found = run(text, tmp_path, 4)
    assert [phase.iterations for phase in found.profile.phases] == [10, 10]
    assert found.log.flows["forces"].words.any()


def test_what_would_never_end_or_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor_simulation.mds.engine.MOST_STEPS", 1000)
    monkeypatch.setattr("advisor_simulation.mds.engine.MOST_SPANS", 100)
    with pytest.raises(DocumentError, match="more than 1,000 steps"):
        run(small("  - {loop: l, times: 1e12, do: []}"), tmp_path)
    with pytest.raises(DocumentError, match="synchronizes more than 100 times"):
        run(small("  - {loop: l, times: 1e12, do: [{barrier: b}]}"), tmp_path)
    with pytest.raises(UsageError, match="do not fit into memory"):
        run(
            small('  - {parallel: p, over: line, reads: ["F[i]"]}').replace("F: {shape: [n]}", "F: {shape: [3e8]}"),
            tmp_path,
        )
    with pytest.raises(DocumentError, match="at most"):
        run(small("  - {barrier: b}").replace("F: {shape: [n]}", "F: {shape: [1e15]}"), tmp_path)
    with pytest.raises(DocumentError, match="size: expected 1 to"):
        run(small("  - {barrier: b}").replace("pair: {size: P}", "pair: {size: 1e12}"), tmp_path)
