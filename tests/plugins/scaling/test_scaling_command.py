"""``gapwatch scale``: runs and files of Extra-P in, models, predictions and the next run out."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pytest
import scaling_npb as npb
from patience import PATIENCE_S
from scaling_runs import Serving, run, runs

from advisor.analysis import machines
from advisor.model.errors import InputError, UsageError
from advisor.model.reports import Code, Series, Table, Text
from advisor_scaling import collect, command, dominance, equations, extrap_files, next_run, study, targets, terms
from advisor_scaling.linear import application, counted_operations, expressions

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.model.reports import Report

TEXT = """\
# a comment
PARAMETER p
PARAMETER n
POINTS ( 1 8 ) ( 2 8 ) ( 4 8 ) ( 1 16 ) ( 2 16 ) ( 4 16 )
REGION main->solve
METRIC time
DATA 8 8.1
DATA 4 4.1
DATA 2 2.1
DATA 16 16.1
DATA 8 8.1
DATA 4 4.1
"""


def asked(**given: Any) -> Namespace:  # noqa: ANN401
    options: dict[str, Any] = {
        "paths": [Path("runs")], "predict": None, "level": 0.8, "sensitivity": False, "next": False, "check": False,
        "export": None, "only": None, "model": None, "machine": None, "plot": None, "linear": False,
        "price": None, "offers": None, "budget": None, "count": None, "at": None, "command": [],
    }  # fmt: skip
    return Namespace(**{**options, **given})


def report(profiles: list[Profile], **given: Any) -> Report:  # noqa: ANN401
    return command.run_scale(asked(**given), Serving(profiles))


def table(found: Report, title: str) -> dict[str, tuple[Any, ...]]:
    part = next(part for part in found.parts if isinstance(part, Table) and part.title == title)
    return {str(row[0]): row for row in part.rows}


def test_runs_gaps_and_regions_have_models_of_their_own() -> None:
    models = table(report(runs()), "Models")
    assert "N^3 * P^(-1)" in models["solve"][2]
    assert "N^3 * P^(-1)" in models["assemble"][2]
    assert models["gap C'"][2].endswith("* log2(P)")
    assert models["run"][5] < 0.02
    assert models["solve"][4] == "N 3, P -1"
    counts = table(report(runs()), "Models of counts")
    assert counts["messages per processor"][2] == "1 * log2(P)"


def test_predictions_come_near_and_say_how_sure_they_are() -> None:
    found = report(runs(), predict=["P=256 N=2048"], only=["run", "C'"])
    rows = {row[2]: row[3:] for row in table_rows(found, "Predictions")}
    value, low, high = rows["gap C'"]
    assert low <= 8.05e-3
    assert high >= 7.95e-3
    assert value == pytest.approx(8e-3, rel=0.03)
    whole = 1.2 * 2e-9 * 2048**3 / 256 + 8e-3
    assert rows["run"][0] == pytest.approx(whole, rel=0.1)


def table_rows(found: Report, title: str) -> tuple[tuple[Any, ...], ...]:
    return next(part.rows for part in found.parts if isinstance(part, Table) and part.title == title)


def test_the_gap_that_will_dominate_is_named() -> None:
    found = report(runs(), predict=["P=1024 N=512"], only=["C'", "L"])
    said = " ".join(part.text for part in found.parts if isinstance(part, Text))
    # L costs 0.2 * (p - 1)/p * 2e-9 * 512^3 / p, and C' 1e-3 log2 p: they cross between 8 and 16
    assert "gap C' is the largest" in said
    assert "C' overtakes L" in said
    at = int(said.split("C' overtakes L")[0].rsplit("At ", 1)[1])
    assert 10 <= at <= 18
    assert any(isinstance(part, Series) for part in found.parts)


def test_far_predictions_are_warned_of() -> None:
    found = report(runs(), predict=["P=512"])
    assert any("32 times beyond" in part.text for part in found.parts if isinstance(part, Text))
    near = report(runs(), predict=["P=128"])
    assert not any("beyond the nearest" in part.text for part in near.parts if isinstance(part, Text))


def test_each_point_left_out_is_predicted() -> None:
    found = report(runs(), check=True)
    said = " ".join(part.text for part in found.parts if isinstance(part, Text))
    assert "100% of the points of run are predicted within 20 %" in said
    assert len(table_rows(found, "Each point of run, left out of the fit")) == 15


def test_elasticities() -> None:
    found = report(runs(), predict=["P=16 N=512"], sensitivity=True)
    rows = {
        row[0]: row
        for row in next(part.rows for part in found.parts if getattr(part, "title", "")[:12] == "Elasticities")
    }
    assert rows["solve"][1] == pytest.approx(3.0, abs=0.02)
    assert rows["solve"][2] == pytest.approx(-1.0 - 0.2 / 16.2, abs=0.02)
    assert rows["gap C'"][2] == pytest.approx(1 / math.log(16), abs=0.02)


def test_the_next_run_is_a_command_line() -> None:
    found = report(runs(), predict=["P=256 N=2048"], next=True)
    line = next(part.text for part in found.parts if isinstance(part, Code))
    assert line.startswith("gapwatch stamp run-N")
    assert " -- mpirun -n " in line
    left = [row[-1] for row in table_rows(found, "Runs that would narrow the prediction at N=2048 P=256")]
    assert left == sorted(left)
    assert 0.0 <= left[0] < 1.0


def test_the_advised_run_does_narrow_the_prediction() -> None:
    sizes = (128, 256, 512)
    few = [run(n, p, repeat, 0.05) for n in sizes for p in (1, 2, 4) for repeat in range(3)]
    before = collect.from_profiles(few)
    fits = study.fit_study(before)
    best = next_run.rank_next_runs(before, fits, 0, [512.0, 64.0])[0]
    n, p = (int(value) for value in best.point)
    more = collect.from_profiles([*few, *(run(n, p, repeat, 0.05) for repeat in range(3))])
    widths = [
        np.ptp([ends[0, 0] for ends in (said.low, said.high)])
        for said in (
            study.forecasts.compute_forecast(study.fit_study(each), np.array([[512.0, 64.0]]))
            for each in (before, more)
        )
    ]
    assert widths[1] < widths[0]


@pytest.mark.parametrize("language", get_args(equations.Language))
def test_equations_are_exported(language: str) -> None:
    found = report(runs(), export=language, only=["solve"])
    code = next(part for part in found.parts if isinstance(part, Code))
    assert code.language == language
    if language == "python":
        scope: dict[str, Any] = {}
        exec(code.text, scope)
        assert scope["seconds"](1024.0, 8.0) == pytest.approx(0.9 * 2e-9 * 1024**3 / 8 * (1 + 0.2 / 8), rel=0.05)
    if language == "json":
        assert json.loads(code.text)["parameters"] == ["N", "P"]
    if language == "latex":
        assert "N^{3} P^{-1}" in code.text


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc to compile the exported function")
def test_the_exported_c_compiles_and_agrees(tmp_path: Path) -> None:
    equation = equations.Equation(
        "a */ name", ("N", "int"),
        (equations.Term(2.0), equations.Term(3.0, (("N", terms.Factor(study_half(), 1)),)),
         equations.Term(1.5, (("int", terms.Factor(study_half() * 0 + 1, 0, "until", 8.0)),))),
    )  # fmt: skip
    source = (
        equations.export_equation(equation, "c")
        + '#include <stdio.h>\nint main(void){printf("%.9f", seconds(64., 32.));}\n'
    )
    (tmp_path / "model.c").write_text(source)
    subprocess.run(
        ["gcc", "-Wall", "-Werror", "model.c", "-o", "model", "-lm"], cwd=tmp_path, check=True, timeout=PATIENCE_S
    )
    printed = subprocess.run(
        [tmp_path / "model"], capture_output=True, check=True, text=True, timeout=PATIENCE_S
    ).stdout
    assert float(printed) == pytest.approx(2 + 3 * 8 * 6 + 1.5 * 8)
    assert float(equation({"N": 64.0, "int": 32.0})) == pytest.approx(158.0)


def study_half() -> Any:  # noqa: ANN401
    from fractions import Fraction

    return Fraction(1, 2)


def test_parameters_that_never_or_only_together_change() -> None:
    weak = [run(n, p, repeat) for n, p in ((128, 1), (256, 8), (512, 64)) for repeat in range(2)]
    found = collect.from_profiles(weak)
    assert found.parameters == ("P",)
    assert found.tied == {"N": "P"}
    with pytest.raises(UsageError, match="changed only together with P"):
        targets.target_points(found, "N=1024")
    strong = collect.from_profiles(runs(sizes=(256,)))
    assert strong.fixed == {"N": 256.0}
    with pytest.raises(UsageError, match="N was 256 in all runs"):
        targets.target_points(strong, "N=512")


def test_too_few_points_say_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"3 or more.*gapwatch\.json"):
        collect.from_profiles(runs(sizes=(128,), ranks=(1, 2)))


def test_runs_of_another_program_are_left_out() -> None:
    found = collect.from_profiles([*runs(), run(64, 2, program="other")])
    assert found.program == "solver"
    assert found.notes == ("1 runs of other programs or without times were left out",)


@pytest.mark.parametrize(
    ("text", "words"),
    [("P=", "expected parameters"), ("P=x", "expected numbers"), ("P=-1", "above zero"), ("Q=2", "no parameter 'Q'"),
     ("P=2 and more", "expected parameters"), ("", "expected parameters"), ("P=nan", "above zero")],
)  # fmt: skip
def test_targets_that_say_nothing(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        targets.target_points(collect.from_profiles(runs()), text)


def test_targets_are_all_combinations() -> None:
    found = targets.target_points(collect.from_profiles(runs()), "P=2,4 N=8,16")
    assert found.tolist() == [[8, 2], [8, 4], [16, 2], [16, 4]]


def test_the_text_format_of_extra_p(tmp_path: Path) -> None:
    (path := tmp_path / "input.txt").write_text(TEXT)
    assert extrap_files.is_extrap_file(path)
    (found,) = collect.from_measurements(extrap_files.read_measurements(path), path)
    assert found.parameters == ("p", "n")
    assert found.values.shape == (1, 6, 2)
    assert found.series[0].name == "main->solve"
    models = table(command.run_scale(asked(paths=[path]), Serving([])), "Models")
    assert models["main->solve"][2].endswith("n * p^(-1)") or "p^(-1) * n" in models["main->solve"][2]


def test_the_json_formats_of_extra_p(tmp_path: Path) -> None:
    new = {"parameters": ["p"], "measurements": {"main": {"time": [
        {"point": [p], "values": [p * 2.0, p * 2.1]} for p in (1, 2, 4)]}}}  # fmt: skip
    old = {
        "parameters": [{"id": 1, "name": "p"}], "callpaths": [{"id": 1, "name": "main"}],
        "metrics": [{"id": 1, "name": "time"}],
        "coordinates": [{"id": p, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": p}]}
                        for p in (1, 2, 4)],
        "measurements": [{"id": 9, "coordinate_id": p, "callpath_id": 1, "metric_id": 1, "value": p * factor}
                         for p in (1, 2, 4) for factor in (2.0, 2.1)],
    }  # fmt: skip
    rows = [json.dumps({"params": {"p": p}, "callpath": "main", "metric": "time", "value": p * factor})
            for p in (1, 2, 4) for factor in (2.0, 2.1)]  # fmt: skip
    found = []
    for name, text in (("new", json.dumps(new)), ("old", json.dumps(old)), ("lines", "\n".join(rows))):
        (path := tmp_path / f"{name}.json").write_text(text)
        assert extrap_files.is_extrap_file(path)
        found.append({key: dict(points) for key, points in extrap_files.read_measurements(path).values.items()})
    assert found[0] == found[1] == found[2] == {("main", "time"): {(p,): [p * 2.0, p * 2.1] for p in (1.0, 2.0, 4.0)}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT + "DATA 1\n", "line 13: more DATA than the 6 POINTS"),
        (TEXT.replace("DATA 8 8.1", "DATA 8 x", 1), "line 7: expected numbers"),
        (TEXT.replace("DATA 8 8.1", "DATA 8 nan", 1), "line 7: expected finite numbers"),
        (TEXT.replace("( 4 16 )", "( 4 )"), "line 4: 11 numbers are not points of 2 parameters"),
        (TEXT.replace("METRIC", "METRICS"), "line 6: expected one of"),
        ("PARAMETER p\nPOINTS 1 2 3\n", "no measurements"),
        ('{"parameters": ["p"], "measurements": {"a": {"b": [{"point": [1]}]}}}', "no 'values'"),
        ('{"parameters": ["p"], "measurements": {"a": {"b": [{"point": [NaN], "values": [1]}]}}}', "not a number"),
        ('{"parameters": ["p"], "measurements": {"a": {"b": [{"point": [1, 2], "values": [1]}]}}}', "2 coordinates"),
        ('{"parameters": ["p"], "measurements": [', "not Extra-P's JSON"),
    ],
)
def test_damaged_files_of_extra_p(text: str, words: str, tmp_path: Path) -> None:
    (path := tmp_path / "input").write_text(text)
    with pytest.raises(InputError, match=words):
        extrap_files.read_measurements(path)


def test_other_files_are_not_claimed(tmp_path: Path) -> None:
    for content in (b"", b"\x7fELF", b"hello world\n", b'{"schema": "gapwatch/profile/1", "parameters": {}}'):
        (path := tmp_path / "file").write_bytes(content)
        assert not extrap_files.is_extrap_file(path)
    assert not extrap_files.is_extrap_file(tmp_path)


def test_crossings_between_steps() -> None:
    found = collect.from_profiles(runs())
    seen = dominance.compute_course(found, study.fit_study(found), [512.0, 1024.0])
    assert seen.parameter == "P"
    assert seen.x.tolist() == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


def test_names_from_profiles_are_no_shell_words() -> None:
    found = collect.from_profiles(runs())
    hostile = study.ScalingStudy(
        found.program, ("N; rm -rf $HOME", "P"), found.points, found.series, found.values, found.scale, {}, {}
    )
    line = next_run.format_command(hostile, next_run.NextRun((64.0, 4.0), 1.0, 0.5))
    assert not set(line) & set(";$`\"'&|<>\n")


MODEL = """\
name: elimination
parameters: [N, P]
counts: {operations: 2*N**3/(3*P), loops: N, messages: N*log2(P), bytes: 4*N**2*log2(P)}
costs: {loops: 1e-5, misses: 1e-6}
"""


def test_a_model_on_two_machines_without_any_run(tmp_path: Path) -> None:
    (path := tmp_path / "gauss.yaml").write_text(MODEL)
    given = {"paths": "", "model": path, "machine": ["ncube-3200", "a64fx"], "predict": ["P=256 N=512"]}
    found = report([], **given, sensitivity=True, price="2000+0.01*BW")
    first = table(found, "T = X beta of ncube-3200")
    assert first["messages"][1:3] == ("N*log2(P)", 500e-6)
    assert first["operations"][3] == pytest.approx(2 * 512**3 / 3 / 256 / 300e3)
    said = " ".join(part.text for part in found.parts if isinstance(part, Text))
    assert "Each microsecond more of latency costs (microseconds): N*log2(P)." in said
    assert "gives most speed for its price" in said
    assert table_rows(found, "Two machines")[0][-1] < 0.01
    assert not any(getattr(part, "title", "").startswith("What larger sizes save") for part in found.parts)
    with pytest.raises(UsageError, match="must also say N"):
        report([], **{**given, "predict": ["P=256"]})


def test_a_cache_of_twice_the_size_wins_the_misses_of_what_then_fits(tmp_path: Path) -> None:
    size = application.machine_sizes(machines.load_machine("a64fx")).cache
    assert size is not None
    (path := tmp_path / "model.yaml").write_text(
        MODEL + f"arrays:\n  - {{name: rows, bytes: {size * 1.5:.0f}*N/512, passes: 100}}\n"
    )
    found = report([], paths="", model=path, machine=["a64fx"], predict=["P=4 N=512,2048"], sensitivity=True)
    fits, too_large = (row[2:] for row in table_rows(found, "What larger sizes save"))
    assert fits[0] > 0.01
    assert too_large[0] == 0.0


def test_costs_fitted_to_runs(tmp_path: Path) -> None:
    (path := tmp_path / "model.yaml").write_text(
        "name: solver\nparameters: [N, P]\ncounts: {operations: N**3/P, messages: log2(P)}\n"
    )
    found = report(runs(), model=path, predict=["P=16 N=512"])
    rows = table(found, "T = X beta of solver")
    assert rows["operations"][2] == pytest.approx(2.2e-9, rel=0.1)
    assert rows["messages"][2] == pytest.approx(1e-3, rel=0.2)
    assert any("are within 20 %" in part.text for part in found.parts if isinstance(part, Text))


def test_counts_of_the_runs_become_expressions() -> None:
    rows = table(report(runs(), linear=True), "T = X beta of solver")
    assert rows["messages"][1] == "log2(P)"


def test_nothing_given_says_what_to_give() -> None:
    with pytest.raises(UsageError, match="name runs"):
        report([], paths="")


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_plots_in_files(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'gapwatch[html]'")
    found = report(runs(), predict=["P=128 N=512"], plot=tmp_path / f"course.{kind}")
    assert any("Drawn into" in part.text for part in found.parts if isinstance(part, Text))
    head = (tmp_path / f"course.{kind}").read_bytes()[:100]
    assert head.startswith(b"\x89PNG") or b"<?xml" in head
    assert [path.name for path in tmp_path.iterdir()] == [f"course.{kind}"]
    with pytest.raises(UsageError, match="neither a PNG nor an SVG"):
        report(runs(), plot=tmp_path / "course.jpg")
    with pytest.raises(UsageError, match=r"nowhere.course\.svg: "):
        report(runs(), plot=tmp_path / "nowhere" / "course.svg")


def test_programs_of_npb_left_out_point_by_point() -> None:
    """Each point of the recorded times, predicted by a model of the others; docs/validation.md holds the table."""
    found = {each.program: each for each in npb.studies()}
    off = {name: npb.left_out(each) for name, each in found.items()}
    assert np.median(np.abs(off["NPB3.3-MPI LU"])) < 0.10
    assert (np.abs(off["NPB3.3-MPI LU"]) <= 0.2).mean() > 0.8
    assert all(np.median(np.abs(each)) < 0.3 for each in off.values())


def test_the_locality_factor_of_runs() -> None:
    found = report(runs())
    rows = table_rows(found, "Locality: total CPU time against that of the fewest processors")
    assert [row[0] for row in rows] == [1, 2, 4, 8, 16]
    assert rows[0][2] == 1.0
    assert rows[1][2] == pytest.approx(1.1, abs=0.03)  # one of two ranks computes a fifth more than its part


def test_times_over_latency_and_bandwidth(tmp_path: Path) -> None:
    points = [(p, lat, bw) for p in (4, 16, 64) for lat in (1e-6, 1e-5, 1e-4) for bw in (1e2, 1e3)]
    data = [0.5 + 40 / p + (100 + 3 * p) * lat + 20 / bw for p, lat, bw in points]
    text = [
        "PARAMETER P",
        "PARAMETER L",
        "PARAMETER BW",
        "POINTS " + " ".join(f"( {p} {a} {b} )" for p, a, b in points),
    ]
    text += ["METRIC time", *(f"DATA {value!r} {value * 1.00001!r}" for value in data), ""]
    (path := tmp_path / "sweep.txt").write_text("\n".join(text))
    found = command.run_scale(asked(paths=[path]), Serving([]))
    title = "T = alpha0 + alpha1/P + (beta0 + beta1 P) L + (gamma0 + gamma1 P)/BW"
    rows = {row[0]: row for row in table_rows(found, title)}
    assert rows["alpha1"][1] == pytest.approx(40.0, rel=1e-3)
    assert rows["beta0"][1] == pytest.approx(100.0, rel=0.05)
    assert rows["gamma1"][3] == "N.S."


def test_the_page_on_validation_says_what_is_found() -> None:
    page = (Path(__file__).parents[3] / "docs" / "validation.md").read_text()
    printed = page.split("<!-- npb: begin -->\n")[1].split("\n<!-- npb: end -->")[0].splitlines()
    for row, now in zip(printed[2:], npb.table().splitlines()[2:], strict=True):
        program, points, count, median = (cell.strip() for cell in row.split("|")[1:5])
        assert [cell.strip() for cell in now.split("|")[1:4]] == [program, points, count]
        assert float(median.strip("%")) == pytest.approx(float(now.split("|")[4].strip(" %")), abs=3)


def counting(sources: list[Path], command: list[str]) -> dict[str, object]:
    """A service that counts a product of matrices, whose rows go to all as a tree, without running it."""
    n, p = int(command[-1]), int(command[2])
    bcast = {
        "name": "MPI_Bcast",
        "arguments": ["b", "n - k", "MPI_DOUBLE", "0", "comm"],
        "means": [None, (n + 1) / 2] + [None] * 3,
    }
    print_ = {"name": "printf", "arguments": ["text"], "means": [None]}
    block = {"file": "matmul.c", "line": 7, "executions": [n] * p, "calls": [bcast, print_]}
    loop = {
        "function": "main",
        "name": "for k",
        "iterations": [n**3 // p] * p,
        "totals": {"fp_fma": n**3, "fp_add": n**2},
    }
    return {"parameters": {"n": n}, "ranks": p, "loops": [loop], "blocks": [block]}


def test_counted_operations_become_expressions() -> None:
    given = {"paths": "", "count": [Path("matmul.c")], "machine": ["ncube-3200"], "predict": ["N=256 P=4"]}
    command_line = ["mpirun", "-n", "{P}", "./matmul", "{N}"]
    options = asked(**given, at="N=16,32,64,128 P=1,2,4", command=command_line)
    found = command.run_scale(options, Serving([], {"operation_counts": counting}))
    operations = table(found, "T = X beta of ncube-3200")["operations"]
    assert operations[3] == pytest.approx((2 * 256**3 + 256**2) / 4 / 300e3, rel=0.01)
    assert table(found, "Loops that were counted")["main: for k"][1] == "N^3/P"
    messages = table(found, "T = X beta of ncube-3200")
    assert messages["messages"][1] == "N*log2(P)"
    moved = expressions.parse_formula(str(messages["bytes"][1]), ["N", "P"])
    at = {expressions.make_symbol("N"): 256, expressions.make_symbol("P"): 4}
    assert float(moved.subs(at)) == pytest.approx(4 * 256 * 257 * 2, rel=0.02)
    for at, reason in (("N=16,32,64", "no values of P"), ("N=16 M=2 P=1", "{M} stands nowhere")):
        with pytest.raises(UsageError, match=reason):
            command.run_scale(asked(**given, at=at, command=command_line), Serving([], {"operation_counts": counting}))
    with pytest.raises(UsageError, match="say what to run after --"):
        command.run_scale(asked(**given, at="N=16", command=[]), Serving([], {"operation_counts": counting}))


def call(name: str, *arguments: str, mean: float | None = None) -> dict[str, object]:
    place = 2 if name in ("MPI_Reduce", "MPI_Allreduce") else 1
    means = [mean if number == place else None for number in range(len(arguments))]
    return {"name": name, "arguments": list(arguments), "means": means}


@pytest.mark.parametrize(
    ("made", "ranks", "expected"),
    [
        (call("MPI_Send", "b", "n", "MPI_INT", "to", mean=10.0), 4, (3.0, 120.0, ())),
        (call("MPI_Send", "b", "n", "MPI_INT", "to", mean=10.0), 1, (0.0, 0.0, ())),
        (call("MPI_Allreduce", "a", "b", "1", "MPI_DOUBLE", "MPI_SUM", "c", mean=1.0), 5, (9.0, 72.0, ())),
        (call("MPI_Barrier", "comm"), 8, (9.0, 0.0, ())),
        (call("MPI_Alltoall", "a", "n", "MPI_FLOAT", "b", "n", "MPI_FLOAT", "c", mean=2.0), 3, (6.0, 48.0, ())),
        (call("MPI_Isend", "b", "f()", "MPI_INT", "to"), 2, (3.0, 0.0, ("MPI_Isend at a.c:3",))),
        (call("MPI_Send", "b", "n", "own_type", "to", mean=1.0), 2, (3.0, 0.0, ("MPI_Send at a.c:3",))),
        (call("MPI_Recv", "b", "n", "MPI_INT", "from"), 2, (0.0, 0.0, ())),
    ],
)  # fmt: skip
def test_messages_and_bytes_of_calls(
    made: dict[str, object], ranks: int, expected: tuple[float, float, tuple[str, ...]]
) -> None:
    block = {"file": "a.c", "line": 3, "executions": [3] * ranks, "calls": [made]}
    assert counted_operations.sum_messages({"ranks": ranks, "blocks": [block]}) == expected


def test_what_begins_behind_a_knee_can_be_written_and_read_again() -> None:
    n = expressions.make_symbol("N")
    sympy = expressions.require_sympy()
    found = 2 * sympy.Piecewise((n**2, n > 4), (0, True)) + sympy.Min(n, 8) * sympy.ceiling(n / 3)
    again = expressions.parse_formula(expressions.format_expression(found), ["N"])
    for value in (1, 4, 4.5, 5, 100):
        assert float(again.subs({n: value})) == float(found.subs({n: value}))


def extra_p(tmp_path: Path, values: dict[float, float]) -> Path:
    """Return a file of Extra-P with one value at each N."""
    path = tmp_path / "file.txt"
    points = " ".join(f"{n:g}" for n in values)
    lines = (
        "PARAMETER N",
        f"POINTS {points}",
        "REGION solve",
        "METRIC time",
        *(f"DATA {v!r}" for v in values.values()),
    )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({100: 0.0, 200: 0.0, 400: 0.0, 800: 0.0}, "no value is above 0 at any point: solve"),
        ({100: -1.0, 200: -1.0, 400: -2.0, 800: -3.0}, "no value is above 0 at any point: solve"),
        ({0: 1.0, 200: 1.1, 400: 1.2, 800: 1.3}, "N is 0 at some points"),
    ],
)
def test_what_no_power_describes_is_refused(tmp_path: Path, values: dict[float, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        command.run_scale(asked(paths=[extra_p(tmp_path, values)]), Serving([]))


def test_a_time_of_zero_does_not_outweigh_all_others(tmp_path: Path) -> None:
    path = extra_p(tmp_path, {100: 1e-5, 200: 4e-5, 400: 1.6e-4, 800: 0.0, 1600: 0.0})
    study_of = collect.from_measurements(extrap_files.read_measurements(path), path)[0]
    assert study_of.scale[0].tolist() == pytest.approx([1e-5, 4e-5, 1.6e-4, 1e-5, 1e-5])
    found = table(command.run_scale(asked(paths=[path], predict=["N=3200"]), Serving([])), "Predictions")
    assert found["3200.0"][4] > 1e-6


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"at": "N=4"}, "--at needs --count"),
        ({"command": ["./a"]}, "a command behind -- needs --count"),
        ({"price": "5"}, "--price needs --model"),
        ({"offers": "bundled"}, "--offers needs --model or --count"),
        ({"machine": ["host"]}, "--machine needs --model"),
        ({"paths": [], "next": True}, "--next needs runs"),
    ],
)
def test_options_without_what_they_need_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        report(runs(), **options)


def test_parameters_below_zero_are_told() -> None:
    profiles = [replace(each, parameters={**each.parameters, "level": 0}) for each in runs()]
    assert any("level" in note for note in collect.from_profiles(profiles).notes)
