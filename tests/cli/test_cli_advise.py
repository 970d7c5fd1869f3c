from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import advice_samples as samples
import jsonschema
import pytest
from daemon_runs import profile

from advisor import cli, pipeline
from advisor.advice.earlier_runs import EarlierRuns
from advisor.cli import demo
from advisor.extension.host import load_plugins
from advisor.output.advice_document import load_schema
from advisor.output.page import Page
from advisor.output.terminal import render_screen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from advisor.advice.earlier_runs import RunHistory
    from advisor.extension.host import PluginHost
    from advisor.model.records import Advice


FIGURE = Path(__file__).parents[1] / "profiles" / "fig4.json"
STUDY = pipeline.study_newest


@cache
def of_figure() -> pipeline.Study:
    return STUDY([FIGURE], pipeline.Options(), load_plugins())


class Pipeline:
    """A pipeline that answers with one sample and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer = samples.full()
        self.paths: list[Path] = []
        self.options = pipeline.Options()

    def study(
        self, paths: Sequence[Path], options: pipeline.Options, host: PluginHost, past: RunHistory
    ) -> pipeline.Study:
        self.paths, self.options = list(paths), options
        return replace(of_figure(), advice=self.answer, earlier=EarlierRuns(self.answer.profile, (), past))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, every_tool: None) -> Pipeline:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = Pipeline()
    monkeypatch.setattr(pipeline, "study_newest", made.study)
    return made


def test_text_in_a_pipe(
    asked: Pipeline, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    assert cli.main(["advise", "run.json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    golden(out, "screen-pipe.txt")


def test_text_in_the_c_locale(
    asked: Pipeline,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    golden: Callable[[str, str], None],
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    assert cli.main(["advise", "run.json", "--width", "100"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    golden(out, "screen-ascii.txt")


def test_json(asked: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", "run.json", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(load_schema()).validate(document)
    assert document["recommendations"][0]["action"] == "A-29"


def test_options_reach_the_pipeline(asked: Pipeline, tmp_path: Path) -> None:
    arguments = ["advise", "a", "b", "--order", "steps", "--machine", "grace", "--cores", "8", "--rules", "x.yaml",
                 "--rules", "y.yaml", "-o", str(tmp_path / "out")]  # fmt: skip
    assert cli.main(arguments) == 0
    assert asked.paths == [Path("a"), Path("b")]
    assert asked.options == pipeline.Options("grace", (Path("x.yaml"), Path("y.yaml")), "steps", 8)


def test_the_configuration_directory_brings_rules_and_machines(asked: Pipeline, tmp_path: Path) -> None:
    config = tmp_path / "config" / "gapwatch"
    for name in ("rules/b.yaml", "rules/a.yaml", "rules/notes.txt", "machine_models/ours.yaml"):
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / name).write_text("")
    assert cli.main(["advise", "run", "--machine", "ours", "--rules", "c.yaml"]) == 0
    assert asked.options.rules == (config / "rules" / "a.yaml", config / "rules" / "b.yaml", Path("c.yaml"))
    assert asked.options.machine == str(config / "machine_models" / "ours.yaml")


def test_an_empty_path_is_not_the_directory_at_hand(asked: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", ""]) == 2
    assert "expected a path, got an empty string" in capsys.readouterr().err
    assert asked.paths == []


def test_into_a_file(asked: Pipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "advice.txt"
    assert cli.main(["advise", "run.json", "-o", str(file), "--verbose"]) == 0
    assert capsys.readouterr().out == ""
    assert file.read_text("utf-8") == render_screen(samples.full(), Page(120, verbose=True))


def test_colour_and_width_as_asked(asked: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", "run.json", "--color", "always", "--width", "80"]) == 0
    assert capsys.readouterr().out == render_screen(samples.full(), Page(80, color=True))


def test_a_gate_is_judged_after_the_advice_is_given(asked: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", "run.json", "--fail-on", "O > 1 s", "--fail-on", "L > 3 %"]) == 1
    out, err = capsys.readouterr()
    assert "Self-scheduling" in out
    assert err == "gapwatch: gate crossed: L is 8.00 s, 17.0 % of the run; the gate is L > 3 %\n"
    assert cli.main(["advise", "run.json", "--fail-on", "O > 1 s"]) == 0


@pytest.mark.parametrize("answer", [samples.nothing, samples.insufficient])
def test_verdicts_without_advice_are_no_errors(
    answer: Callable[[], Advice], asked: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.answer = answer()
    assert cli.main(["advise", "run.json"]) == 0
    assert "at most" not in capsys.readouterr().out


def test_demo_advises_on_the_bundled_trace(
    asked: Pipeline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "find_example_trace", lambda: tmp_path)
    assert cli.main(["demo"]) == 0
    assert asked.paths == [tmp_path]
    assert "Self-scheduling" in capsys.readouterr().out


def test_an_installation_without_the_demo_says_so(
    asked: Pipeline, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "find_example_trace", lambda: None)
    assert cli.main(["demo"]) == 2
    assert "example trace" in capsys.readouterr().err


def test_the_size_that_a_program_is_meant_for(asked: Pipeline) -> None:
    assert cli.main(["advise", "run.json", "--target", "P=1024  N=8192"]) == 0
    assert asked.options.target == "P=1024 N=8192"


@pytest.mark.parametrize("text", ["", "P", "P=", "1024", "P=1024,N=8", "P=many"])
def test_a_target_that_says_nothing(asked: Pipeline, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert cli.main(["advise", "run.json", "--target", text]) == 2
    assert "P=1024 N=8192" in capsys.readouterr().err


@pytest.mark.parametrize(("form", "begin"), [("sarif", '{\n  "$schema"'), ("html", "<!DOCTYPE html>")])
def test_forms_for_code_hosts_and_browsers(
    asked: Pipeline, capsys: pytest.CaptureFixture[str], form: str, begin: str
) -> None:
    assert cli.main(["advise", "run.json", "--format", form]) == 0
    assert capsys.readouterr().out.startswith(begin)


def test_places_in_sarif_are_relative_to_the_sources(asked: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", "run.json", "--format", "sarif", "--source-root", "/home/me/jacobi/"]) == 0
    run = json.loads(capsys.readouterr().out)["runs"][0]
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": "file:///home/me/jacobi/"}}


def test_paths_name_the_builds_of_runs_that_name_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / name) for name in ("old", "new")]
    for repeat in range(3):
        profile(Path(paths[0]) / f"{repeat}.json", run=f"old {repeat}", actual_s=47 + 0.01 * repeat)
        profile(Path(paths[1]) / f"{repeat}.json", run=f"new {repeat}", actual_s=60 + 0.01 * repeat)
        os.utime(Path(paths[0]) / f"{repeat}.json", (1e9, 1e9))
    assert cli.main(["advise", *paths, "--fail-on", "new"]) == 0
    assert cli.main(["advise", *paths, "--fail-on", "regression"]) == 1
    assert f"since build {paths[0]}" in capsys.readouterr().err
    assert cli.main(["advise", paths[1], "--fail-on", "new"]) == 2
    capsys.readouterr()
    assert cli.main(["advise", *paths, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"]["build"] is None
