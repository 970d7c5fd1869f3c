"""Explanations: every number with its formula and inputs, recomputed from the raw profile by an independent script."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from daemon_runs import Watch
from rich.cells import cell_len
from site_folder import beside_readers

from advisor import cli, pipeline
from advisor.advice.explaining import Explanation, explain_study
from advisor.extension.host import load_plugins
from advisor.formats import native_writer
from advisor.model.errors import UsageError
from advisor.model.records import Phase, Processor, Profile, Region
from advisor.output.advice_document import to_json
from advisor.output.explanation_text import build_explanation_document, render_explanation
from advisor.output.page import Page
from advisor.pipeline import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROFILES = Path(__file__).parents[1] / "profiles"
SCRIPT = Path(__file__).parents[1] / "recompute_explain.py"
FIGURE = PROFILES / "fig4.json"
RECORDED = PROFILES.parents[1] / "examples" / "tutorial" / "recorded" / "v1-1"


def uneven(seed: int) -> dict[str, Any]:
    """A run of four processors with a serial phase and two uneven ones, of which everything was measured."""
    rng = np.random.default_rng(seed)
    phases = []
    for name, kind, count in (("read", "serial", 2), ("solve", "parallel", 6), ("move", "parallel", 6)):
        shape = (2, 4, count)
        cpu = rng.uniform(0.5, 1.0, shape)
        cpu[:, 0] *= 1.6
        cpu[:, rng.integers(1, 4), ::2] *= 2.5
        if kind == "serial":
            cpu[:, 1:] = 0
        parts = {part: rng.uniform(0, 0.05, shape) for part in ("transfer_s", "wait_s", "sync_s")}
        wall = cpu + sum(parts.values()) + rng.uniform(0.01, 0.02, shape)
        duration = wall.sum(axis=0).max(axis=0) * 1.01
        arrays = {"wall_s": wall, "cpu_s": cpu, **parts}
        phases.append(
            {"name": name, "kind": kind, "regions": [0, 1], "duration_s": duration.tolist(),
             "start_s": [0.0] * count, **{key: value.tolist() for key, value in arrays.items()}}
        )  # fmt: skip
    length = sum(sum(phase["duration_s"]) for phase in phases) + 1.0
    return {
        "schema": "gapwatch/profile/1", "program": "uneven", "run": f"{seed}", "actual_s": length, "cores": 4,
        "processors": [{"rank": rank} for rank in range(4)], "paradigms": ["mpi"],
        "regions": [{"name": "a", "file": "a.c", "line": 3}, {"name": "b"}], "phases": phases,
    }  # fmt: skip


def explained(path: Path, folder: Path, what: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        json.dumps(
            build_explanation_document(
                explain_study(pipeline.study_newest([path], Options(), beside_readers(folder)), what)
            )
        )
    )
    return found


def kinds(numbers: Sequence[dict[str, Any]]) -> set[str]:
    return {number["kind"] for number in numbers}


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def recomputed(profile: dict[str, Any], found: dict[str, Any], folder: Path) -> list[list[str]]:
    """What the script says of each number: a mark, its kind, its name (one word or more), both values."""
    for name, content in (("raw", profile), ("told", found)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    command = [sys.executable, "-S", SCRIPT, folder / "raw.json", folder / "told.json"]
    path = os.pathsep.join(part for part in sys.path if part.endswith("site-packages"))
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": path})
    return [row.split() for row in done.stdout.splitlines()]


def test_the_script_knows_nothing_of_gapwatch() -> None:
    rows = SCRIPT.read_text(encoding="utf-8").splitlines()
    assert not any("advisor" in row for row in rows)
    assert sum(bool(row.strip()) and not row.startswith(("import", "from", '"""')) for row in rows) <= 40


@pytest.mark.parametrize(
    "case", [0, 1, FIGURE, *(PROFILES / "otf2" / name for name in ("scorep-threads", "eztrace-io"))]
)
def test_an_independent_script_finds_the_same_numbers(tmp_path: Path, case: int | Path) -> None:
    path = tmp_path / "run.json"
    if isinstance(case, int):
        path.write_text(json.dumps(uneven(case)), encoding="utf-8")
    else:
        path = case
    study = pipeline.study_newest([path], Options(), beside_readers(tmp_path))
    native_writer.write_profile(study.advice.profile, tmp_path / "profile.json")
    raw = uneven(case) if isinstance(case, int) else json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
    found = json.loads(json.dumps(build_explanation_document(explain_study(study))))
    rows = recomputed(raw, found, tmp_path)
    assert [row for row in rows if row[0] == "WRONG"] == []
    assert sum(row[0] == "=" for row in rows) >= 45
    for number in found["numbers"]:
        measured = number["value"] is not None and number["status"] != "modelled"
        if measured and number["kind"] != "evidence":
            assert number["expression"] is not None, (number["kind"], number["name"])
            if number["kind"] in ("bound", "gap", "efficiency"):
                assert all(one["expression"] is not None for one in number["inputs"])
    if isinstance(case, int):
        assert {"bound", "gap", "efficiency", "quality", "evidence", "ceiling", "confidence", "order"} <= kinds(
            found["numbers"]
        )
        assert all(number["expression"] for number in found["numbers"] if is_number(number["value"]))


def test_the_script_notices_wrong_numbers(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(uneven(1)), encoding="utf-8")
    found = explained(tmp_path / "run.json", tmp_path)
    known = [number for number in found["numbers"] if is_number(number["value"])]
    for number in known:
        number["value"] += 1e-6
    wrong = [row for row in recomputed(uneven(1), found, tmp_path) if row[0] == "WRONG"]
    assert len(wrong) == len(known)


@pytest.mark.parametrize("path", [FIGURE, PROFILES / "otf2" / "scorep-multiphase"], ids=["figure", "trace"])
def test_inputs_and_parts_add_up(tmp_path: Path, path: Path) -> None:
    for number in explained(path, tmp_path)["numbers"]:
        given = {one["name"]: one["value"] for one in number["inputs"]}
        if number["kind"] == "bound" and number["value"] is not None:
            assert sum(given.values()) == pytest.approx(number["value"], rel=1e-9), number["name"]
        if number["kind"] == "gap":
            upper, lower, run, share = list(given.values())
            assert number["value"] == pytest.approx(upper - lower, abs=1e-12)
            assert share == pytest.approx(number["value"] / run, abs=1e-12)
            assert sum(one["value"] for one in number["parts"]) == pytest.approx(number["value"], abs=1e-9)
        assert number["formula"]
        assert all(one["source"] for one in number["inputs"])


def test_evidence_names_threshold_rule_and_arrays(tmp_path: Path) -> None:
    numbers = explained(FIGURE, tmp_path, "A-35")["numbers"]
    pieces = {number["name"]: number for number in numbers if number["kind"] == "evidence"}
    ratio = pieces["phase.rank_imbalance"]
    assert ratio["condition"] == ">= 1.04"
    assert ratio["place"].startswith("rules/6-multiphase.yaml:")
    assert [one["name"] for one in ratio["inputs"]] == ["wall_s", "wait_s", "sync_s"]
    assert ratio["value"] == pytest.approx(31 / 28)


def test_bounds_of_a_machine_name_its_entries(tmp_path: Path) -> None:
    made = uneven(3)
    rows = np.full((2, 4), 1e9).tolist()
    made["counts"] = {"source_ops.fp_add": rows, "source_ops.fp_mul": rows}
    (tmp_path / "run.json").write_text(json.dumps(made), encoding="utf-8")
    study = pipeline.study_newest([tmp_path / "run.json"], Options(machine="epyc-9654"), beside_readers(tmp_path))
    numbers = {number.name: number for number in explain_study(study).numbers}
    peak = {one.name: one for one in numbers["M"].inputs}
    assert peak["operations fp_add"].value == 8e9
    assert peak["peak"].source == "machine model epyc-9654: flops_per_cycle × clock"
    value, processors = peak["peak"].value, peak["processors"].value
    assert isinstance(value, float)
    assert isinstance(processors, float)
    assert numbers["M"].value == pytest.approx(16e9 / value / processors)
    told = json.loads(json.dumps(build_explanation_document(explain_study(study))))
    marks = [row[:3] for row in recomputed(made, told, tmp_path) if row[2] in ("M", "MA")]
    assert [mark for mark in marks if mark[1] == "bound"] == [["=", "bound", "M"], ["=", "bound", "MA"]]
    assert any(one.source.startswith("machine model epyc-9654: units.fp_add") for one in numbers["MA"].inputs)


def test_one_gap_comes_with_its_bounds(tmp_path: Path) -> None:
    numbers = explained(FIGURE, tmp_path, "L")["numbers"]
    assert [number["name"] for number in numbers] == ["L", "IPCO", "IPCOL"]
    merged = explained(FIGURE, tmp_path, "W")["numbers"]
    assert merged[0]["name"] == "S'+W+X"


def test_one_bound_is_explained_by_itself(tmp_path: Path) -> None:
    [number] = explained(FIGURE, tmp_path, "IPCO")["numbers"]
    assert (number["kind"], number["name"]) == ("bound", "IPCO")
    [actual] = explained(FIGURE, tmp_path, "actual")["numbers"]
    assert actual["words"] == "start-up, shutdown and the rest", "not what it is for a run with devices"


def test_no_number_is_told_twice() -> None:
    """Phases may share a name, and what the run does not tell is the same in all of them."""
    study = pipeline.study_newest([RECORDED], Options(), load_plugins())
    assert study.matches is not None
    for action in study.matches.book.actions:
        numbers = explain_study(study, action.id).numbers
        assert all(number not in numbers[:place] for place, number in enumerate(numbers)), action.id


def unoptimized_run() -> Profile:
    """A run of two ranks in two functions, one of which was compiled without optimization."""
    cpu_s = np.array([[1.0, 2.0], [3.0, 3.0]])[:, :, None]
    without = np.array([[1.0, 2.0], [0.0, 0.0]])
    tables = {"all": cpu_s[:, :, 0], "known": cpu_s[:, :, 0], "unoptimized": without}
    return Profile(
        program="program", run="1", reader="recording", actual_s=5.0, processors=(Processor(0), Processor(1)),
        regions=(Region("smooth", "grid.c", 9), Region("solve", "grid.c", 30)),
        phases=(
            Phase("all", "parallel", np.arange(2), {"cpu_s": cpu_s, "wall_s": cpu_s}, start_s=np.zeros(1),
                  duration_s=np.array([5.0])),
        ),
        status={"cpu_s": "measured", "wall_s": "measured"},
        counts={f"code.{kind}_s": table for kind, table in tables.items()},
        paradigms=("MPI",), cores=2,
    )  # fmt: skip


def test_a_ceiling_is_explained_as_it_is_shown() -> None:
    """An action on code is about a share of what lies at its places; no gap of devices is named in a run without."""
    study = pipeline.study_run(unoptimized_run(), Options(), load_plugins())
    shown = {(one.action, one.phase): one.ceiling_s for one in study.advice.recommendations}
    ceilings = [number for number in explain_study(study).numbers if number.kind == "ceiling"]
    assert len(ceilings) == len(shown) > 0
    assert sorted(number.value for number in ceilings) == sorted(shown.values())  # type: ignore[type-var]
    of_code = [number for number in ceilings if number.inputs[-1].name == "share"]
    assert of_code
    for number in of_code:
        first = number.inputs[0]
        assert isinstance(first.value, float)
        assert isinstance(number.inputs[-1].value, float)
        assert number.value == pytest.approx(first.value * number.inputs[-1].value)
        assert "copies" not in first.name


def test_an_action_that_is_silent_says_why(tmp_path: Path) -> None:
    numbers = explained(FIGURE, tmp_path, "A-1")["numbers"]
    assert {number["about"] for number in numbers} == {"A-1 region 1", "A-1 region 2"}
    assert all(number["notes"] == ["so the rule is silent here"] for number in numbers)


def test_an_action_that_lacks_facts_names_the_command(tmp_path: Path) -> None:
    study = pipeline.study_newest([FIGURE], Options(), beside_readers(tmp_path))
    assert study.matches is not None
    undecided = study.matches.undecided[0].action.id
    numbers = explain_study(study, undecided).numbers
    assert any(number.value is None and number.notes[0].startswith("not known") for number in numbers)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("A-99", "'A-99' is not an action, gap or bound"),
        ("P", "the gap P is not known in this run"),
        ("\x1b[2J", "is not an action, gap or bound"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, what: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        explained(FIGURE, tmp_path, what)
    assert reason in str(caught.value)


def test_what_was_won_before_is_an_input(tmp_path: Path) -> None:
    class Won:
        problems = ()

        def load_advice(self, program: str) -> tuple[()]:
            return ()

        load_summaries = load_advice

        def load_run_times(self, program: str, ranks: int) -> tuple[()]:
            return ()

        def load_won_shares(self, program: str) -> dict[str, tuple[float, ...]]:
            return {"A-35": (0.25, 0.75)}

    numbers = explain_study(pipeline.study_newest([FIGURE], Options(), beside_readers(tmp_path), Won()), "A-35").numbers
    expected = next(number for number in numbers if number.kind == "expected")
    shares = [one.value for one in expected.inputs if one.name.startswith("share")]
    assert shares == [0.25, 0.75]
    assert expected.value == pytest.approx(1.5)
    order = next(number for number in numbers if number.kind == "order")
    assert [one.name for one in order.inputs] == ["expected", "confidence", "1 / effort"]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_the_text_fits_the_page(width: int, encoding: str) -> None:
    study = pipeline.study_newest([PROFILES / "otf2" / "scorep-multiphase"], Options(), load_plugins())
    shown = render_explanation(explain_study(study), Page(width, encoding))
    shown.encode(encoding)
    assert all(cell_len(row) <= width for row in shown.split("\n"))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_golden_text(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    golden(render_explanation(of_figure(tmp_path, "M'"), Page(width)), f"explain-{width}.txt")


def test_golden_document(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    text = to_json(build_explanation_document(of_figure(tmp_path, "A-35")))
    golden(re.sub(r'"rules/([\w-]+)\.yaml:\d+"', r'"rules/\1.yaml:LINE"', text), "explain.json")


def of_figure(folder: Path, what: str) -> Explanation:
    study = pipeline.study_newest([FIGURE], Options(), beside_readers(folder))
    return replace(explain_study(study, what), files=("fig4.json",))


# The command


def test_the_command_explains_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(FIGURE), "M'"]) == 0
    shown = capsys.readouterr().out
    assert "M' (multiphase imbalance): 4.00 s" in shown
    assert "= IPCOLM - IPCOL" in shown
    assert cli.main(["explain", str(FIGURE), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "gapwatch/explain/1"
    assert found["files"] == [str(FIGURE)]


def test_the_raw_profile_can_be_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(PROFILES / "otf2" / "scorep-multiphase")
    assert cli.main(["explain", trace, "M'", "--format", "json", "--profile", str(tmp_path / "profile.json")]) == 0
    found = json.loads(capsys.readouterr().out)
    raw = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
    rows = recomputed(raw, found, tmp_path)
    assert {row[0] for row in rows} == {"="}


def test_the_command_explains_a_run_of_the_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    daemon = Watch(tmp_path)
    (daemon.root / "run.json").write_text(FIGURE.read_text(encoding="utf-8"), encoding="utf-8")
    daemon.once()
    assert cli.main(["explain", "1", "D", "--state", str(daemon.state), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["run"], found["numbers"][0]["value"]) == ("figure 4", 1.0)
    assert cli.main(["explain", "7", "--state", str(daemon.state)]) == 2
    assert "no run 7 in the history" in capsys.readouterr().err


def test_a_run_without_times_is_explained_as_far_as_it_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = uneven(2) | {"started": datetime(2026, 1, 1, tzinfo=UTC).isoformat()}
    del made["actual_s"]
    (tmp_path / "run.json").write_text(json.dumps(made), encoding="utf-8")
    code = cli.main(["explain", str(tmp_path / "run.json")])
    assert code in (0, 2)
    assert "internal error" not in capsys.readouterr().err
