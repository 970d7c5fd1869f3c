"""``gapwatch scale``: runs in, models, predictions and the next run out."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import scaling_npb as npb
from patience import PATIENCE_S
from scaling_reports import report, table, table_rows
from scaling_runs import run, runs

from advisor.model.errors import UsageError
from advisor.model.reports import Code, Series, Text
from advisor_scaling import collect, dominance, equations, next_run, study, terms


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
        study.list_target_points(found, "N=1024")
    strong = collect.from_profiles(runs(sizes=(256,)))
    assert strong.fixed == {"N": 256.0}
    with pytest.raises(UsageError, match="N was 256 in all runs"):
        study.list_target_points(strong, "N=512")


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
        study.list_target_points(collect.from_profiles(runs()), text)


def test_targets_are_all_combinations() -> None:
    found = study.list_target_points(collect.from_profiles(runs()), "P=2,4 N=8,16")
    assert found.tolist() == [[8, 2], [8, 4], [16, 2], [16, 4]]


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


def test_the_page_on_validation_says_what_is_found() -> None:
    page = (Path(__file__).parents[3] / "docs" / "validation.md").read_text()
    printed = page.split("<!-- npb: begin -->\n")[1].split("\n<!-- npb: end -->")[0].splitlines()
    for row, now in zip(printed[2:], npb.table().splitlines()[2:], strict=True):
        program, points, count, median = (cell.strip() for cell in row.split("|")[1:5])
        assert [cell.strip() for cell in now.split("|")[1:4]] == [program, points, count]
        assert float(median.strip("%")) == pytest.approx(float(now.split("|")[4].strip(" %")), abs=3)


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
