"""``import gapwatch``: the examples of docs/api.md as they stand, and what the page does not show."""

from __future__ import annotations

import doctest
import io
import math
import pickle
import subprocess
import sys
import types
from dataclasses import fields
from datetime import date
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import pytest
from command_line import ROOT
from compiled_programs import compile_program

import gapwatch
from advisor.analysis.comparison import Change, Comparison
from advisor.history.items import Item
from advisor.history.runs import RunEntry
from advisor.model.recommendations import Recommendation, Total
from advisor.model.records import Bound, Efficiency, Finding, Gap, Grade, Share

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "api.md"
FIG4 = ROOT / "tests" / "profiles" / "fig4.json"
IMPORTLIB = {"importlib", "importlib._bootstrap", "importlib._bootstrap_external"}
BEFORE = ROOT / "examples" / "tutorial" / "recorded" / "v1-1"


@pytest.fixture(scope="module")
def run() -> gapwatch.Run:
    return gapwatch.load(BEFORE)


def test_the_examples_of_the_page_give_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = PAGE.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(text, {"folder": tmp_path}, "api", str(PAGE), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(examples)
    assert runner.tries > 20
    assert runner.failures == 0


def test_every_name_of_the_api_is_on_the_page_and_can_be_imported() -> None:
    text = PAGE.read_text(encoding="utf-8")
    public = {name for name in vars(gapwatch.Run) if not name.startswith("_")}
    assert [name for name in public if name not in text] == []
    assert [name for name in gapwatch.__all__ if getattr(gapwatch, name, None) is None] == []
    assert set(gapwatch.__all__) <= set(dir(gapwatch))
    assert isinstance(gapwatch.record, types.FunctionType)
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        _ = gapwatch.laod  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "record", [Bound, Gap, Share, Efficiency, Grade, Finding, Recommendation, Total, Comparison, Change, RunEntry, Item]
)
def test_every_field_of_a_record_is_on_the_page(record: type) -> None:
    rows = PAGE.read_text(encoding="utf-8").partition("## Records")[2].partition("## Tables")[0].splitlines()
    start = next(number for number, row in enumerate(rows) if row.startswith(f"| `{record.__name__}`"))
    following = takewhile(lambda row: row.startswith("| …"), rows[start + 1 :])
    row = " ".join((rows[start], *following))
    assert [field.name for field in fields(record) if f"`{field.name}`" not in row] == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"order": "size"}, "order: expected 'seconds' or 'steps', found 'size'"),
        ({"cores": 0}, "cores: expected a number of cores, found '0'"),
        ({"cores": -3}, "cores: expected a number of cores, found '-3'"),
        ({"target": "large"}, "target: expected names and numbers such as"),
        ({"rules": "nowhere.yaml"}, "nowhere.yaml:1:1: cannot be read"),
    ],
)
def test_options_are_checked_as_those_of_the_command(options: dict[str, Any], reason: str) -> None:
    for load in (gapwatch.load, gapwatch.load_runs):
        with pytest.raises(gapwatch.AdvisorError, match=reason):
            load(FIG4, **options)
    if "order" in options or "cores" in options:
        with pytest.raises(gapwatch.AdvisorError, match=reason):
            gapwatch.load(FIG4).advise(**options)


def test_the_import_loads_nothing_that_is_not_asked_for() -> None:
    """Under 30 ms (``benchmarks``) means: neither the advisor nor anything that takes long to load."""
    code = "import sys; bare = set(sys.modules); import gapwatch; print(*sorted(set(sys.modules) - bare))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(done.stdout.split()) <= {"gapwatch", "gc", "warnings", "__future__", *IMPORTLIB}


def test_the_search_path_of_a_script_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    code = (
        f"import sys; before = list(sys.path); import gapwatch; gapwatch.load({str(FIG4)!r}); import mine; "
        "print(sys.path == before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == "True\n", done.stderr


def test_tables_have_columns_of_one_length_and_add_up(run: gapwatch.Run) -> None:
    for table in (
        "bounds",
        "gaps",
        "parts",
        "recommendations",
        "efficiencies",
        "findings",
        "explained",
        "times",
        "iterations",
    ):
        columns = run.to_columns(table)  # type: ignore[arg-type]
        assert len({len(values) for values in columns.values()}) == 1, table
    times, iterations = run.to_columns("times"), run.to_columns("iterations")
    for measure in ("wall_s", "wait_s"):
        assert math.fsum(times[measure]) == pytest.approx(math.fsum(iterations[measure]))  # type: ignore[arg-type]
    gaps, parts = run.to_columns("gaps"), run.to_columns("parts")
    of_l = [
        s
        for gap, by, s in zip(parts["gap"], parts["by"], parts["seconds_s"], strict=True)
        if (gap, by) == ("L", "region")
    ]
    assert math.fsum(of_l) == pytest.approx(gaps["seconds_s"][gaps["gap"].index("L")])  # type: ignore[arg-type]
    with pytest.raises(gapwatch.AdvisorError, match="no table 'gap'"):
        run.to_columns("gap")  # type: ignore[arg-type]


def test_a_table_becomes_a_frame_of_pandas(run: gapwatch.Run) -> None:
    pandas = pytest.importorskip("pandas")
    frame = run.to_dataframe("parts")
    assert isinstance(frame, pandas.DataFrame)
    assert frame.groupby(["gap", "by"]).seconds_s.sum()["L", "region"] == pytest.approx(0.1757, abs=1e-3)
    with pytest.raises(gapwatch.AdvisorError, match="no backend 'numpy'"):
        run.to_dataframe(backend="numpy")  # type: ignore[arg-type]


def test_hatchet_gets_phases_and_regions_by_rank(run: gapwatch.Run) -> None:
    pytest.importorskip("hatchet")
    frame = run.to_hatchet().dataframe
    root = frame[frame["name"] == run.program]["time (inc)"].max()
    assert root == pytest.approx(math.fsum(run.to_columns("times")["wall_s"]) / 2)  # type: ignore[arg-type]
    assert len(frame) == 2 * (1 + len(run.profile.phases) + sum(len(phase.regions) for phase in run.profile.phases))
    assert frame.index.names == ["node", "rank"]


@pytest.mark.parametrize(
    ("recorded", "metric", "levels"),
    [
        ("caliper/faultlab-imbalance30", "time", ["node", "rank"]),
        ("tau/faultlab-imbalance30", "time", ["node", "rank"]),  # regions with and without a file
        ("perf/lulesh.omp2", "time", ["node", "thread"]),
        ("gprof/cycles", "cpu_s", ["node", "rank"]),  # CPU time only
    ],
)
def test_hatchet_works_on_what_profilers_recorded(recorded: str, metric: str, levels: list[str]) -> None:
    pytest.importorskip("hatchet")
    run = gapwatch.load(ROOT / "tests" / "profiles" / recorded)
    graph = run.to_hatchet()
    assert (graph.default_metric, graph.dataframe.index.names) == (metric, levels)
    assert run.program in graph.tree()
    kept = graph.filter(lambda row: row[metric] >= 0)
    assert 0 < len(kept.dataframe) <= len(graph.dataframe)
    assert kept.dataframe[f"{metric} (inc)"].max() == pytest.approx(graph.dataframe[f"{metric} (inc)"].max())


def test_hatchet_gets_nothing_from_counts_alone() -> None:
    pytest.importorskip("hatchet")
    with pytest.raises(gapwatch.AdvisorError, match="no seconds were recorded"):
        gapwatch.load(ROOT / "tests" / "profiles" / "callgrind" / "small").to_hatchet()


def test_a_run_shows_itself_in_a_notebook(run: gapwatch.Run) -> None:
    pytest.importorskip("jinja2")
    shown = run._repr_html_()
    assert shown.startswith("<iframe sandbox srcdoc=")
    assert "<script" not in shown
    assert shown.count('"') == 4, "nothing of the page ends the attribute that it stands in"


def test_the_waterfall_ends_at_the_run_time(run: gapwatch.Run) -> None:
    pytest.importorskip("matplotlib")
    figure = run.plot()
    bars = figure.axes[0].patches
    assert len(bars) == 1 + len(run.gaps)
    last = bars[-1]
    assert last.get_x() + last.get_width() == pytest.approx(run.actual_s)


def test_long_names_of_merged_gaps_leave_room_for_the_bars() -> None:
    pytest.importorskip("matplotlib")
    figure = gapwatch.load(ROOT / "tests" / "profiles" / "tau" / "faultlab-imbalance30").plot()
    figure.savefig(io.BytesIO(), format="png")  # which warns where no room is left
    assert figure.axes[0].get_position().width > 0.4


def test_other_options_study_the_run_again() -> None:
    run = gapwatch.load(FIG4)
    assert run.advise() is run.advise(order="seconds")
    assert [one.step for one in run.advise(order="steps").recommendations] == sorted(
        one.step for one in run.recommendations
    )


def test_runs_of_different_programs_are_not_compared(run: gapwatch.Run) -> None:
    with pytest.raises(gapwatch.AdvisorError, match="different programs"):
        gapwatch.compare(run, FIG4)
    with pytest.raises(gapwatch.AdvisorError, match="at least one run"):
        gapwatch.compare(run, [])
    assert gapwatch.compare(run, run).actual.beyond_noise is None


def test_what_is_said_of_an_item_is_kept_and_refused_as_by_the_commands(run: gapwatch.Run, tmp_path: Path) -> None:
    history = gapwatch.open_history(tmp_path)
    history.store_run(run)

    def find_item() -> Item:
        return next(item for item in history.list_items("galaxy") if item.action == "A-28")

    history.mark_acknowledged("A-28", reason="known")
    assert (find_item().state, find_item().reason) == ("acknowledged", "known")
    history.mark_suppressed("A-28", reason="never", until=date(2199, 1, 31))
    assert (find_item().state, find_item().until) == ("suppressed", "2199-01-31")
    assert not [item for item in gapwatch.load(BEFORE, history=history).recommendations if item.state != "suppressed"]
    with pytest.raises(gapwatch.AdvisorError, match="Z-1"):
        history.mark_acknowledged("Z-1")


def test_a_run_can_be_sent_to_another_process(run: gapwatch.Run) -> None:
    sent = pickle.loads(pickle.dumps(run))
    assert sent.to_dict() == run.to_dict()
    assert sent.explain("A-28") == run.explain("A-28")


def test_a_run_becomes_what_the_command_writes(run: gapwatch.Run) -> None:
    log = run.to_sarif(ROOT)
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == [item.action for item in run.recommendations]
    assert run.recommendations[0].title in run.to_markdown()


def test_a_program_is_recorded_and_loaded(tmp_path: Path) -> None:
    source = "int main(void) { volatile double x = 0; for (long i = 0; i < 60000000; i++) x += i; return x < 0; }\n"
    program = compile_program(tmp_path, "cc", source, "-O1")
    run = gapwatch.record([str(program)], folder=tmp_path / "recording")
    assert run.program == program.name
    assert run.actual_s > 0
    with pytest.raises(gapwatch.AdvisorError, match="exists"):
        gapwatch.record([str(program)], folder=tmp_path / "recording")
    with pytest.raises(gapwatch.AdvisorError, match="ended with status 1"):
        gapwatch.record("false")
    assert gapwatch.record(program, folder=tmp_path / "alone").program == program.name
    with pytest.raises(gapwatch.AdvisorError, match="no program"):
        gapwatch.record("")
    with pytest.raises(gapwatch.AdvisorError, match="No closing quotation"):
        gapwatch.record("'a b")
    with pytest.raises(gapwatch.AdvisorError, match="above 0"):
        gapwatch.record("true", interval_s=0)
    with pytest.raises(gapwatch.AdvisorError, match=r"^/proc/nowhere: "):
        gapwatch.record(["touch", str(tmp_path / "started")], folder="/proc/nowhere")
    assert not (tmp_path / "started").exists(), "the program does not run for nothing"


def test_reports_of_plugins_and_wrong_commands() -> None:
    with pytest.raises(gapwatch.AdvisorError, match="no plugin brings a command 'advise'"):
        gapwatch.report("advise", FIG4)
    with pytest.raises(gapwatch.AdvisorError, match="whatif --help: makes no report"):
        gapwatch.report("whatif", "--help")
