"""``gapwatch tune``: the test that tells gains from noise, the race, checks, build trees and resuming."""

from __future__ import annotations

import json
import math
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from command_line import ROOT, environment
from patience import PATIENCE_S, wait_until
from simulated_programs import SimulatedProgram

from advisor import cli
from advisor.collect.binaries.executables import find_program
from advisor.experiments.build_trees import _cmake_commands, build_tree, describe_reconfiguration, write_makefile_patch
from advisor.experiments.candidates import ProgramFacts, describe_program, propose_settings, uses_openmp
from advisor.experiments.mpi_settings import find_costly_collective, iterate_bindings, iterate_mpi_variables
from advisor.experiments.paired_test import Point, Timing, drop_disturbed, estimate_effects
from advisor.experiments.settings import (
    Setting,
    can_choose_schedule,
    combine_settings,
    describe_environment,
    describe_setting,
    fill_flags,
    identify_launcher,
    uses_fortran_files,
    uses_mpi_files,
)
from advisor.experiments.trials import Check, Trial, TrialRunner, find_different_lines, find_last_words, identify_work
from advisor.experiments.tuning import REFERENCE, START, tune_command
from advisor.model.errors import AdvisorError
from advisor.model.records import Region, Share
from gapwatch import load

if TYPE_CHECKING:
    from advisor.experiments.tuning import TuningResult
    from advisor.model.records import Advice

KINDS = ("flags", "threads", "schedule", "binding", "mpi", "memory")
SETTINGS = [Setting(kind, (kind,)) for kind in KINDS]
#: Programs in virtual time with something to win: how many times as long each setting takes.
WRONG_SETTINGS = [
    {"flags": 0.4}, {"flags": 0.7, "memory": 1.3}, {"threads": 0.5}, {"schedule": 0.6, "binding": 0.9},
    {"binding": 0.7}, {"mpi": 0.7, "memory": 0.97}, {"memory": 0.6}, {"flags": 0.5, "threads": 0.6},
    {"threads": 0.7, "schedule": 1.5, "mpi": 1.2}, {"flags": 0.75, "binding": 0.75},
]  # fmt: skip
PROGRAM = """
#include <stdio.h>
int main(void) {
    double sum = 0;
    for (int i = 1; i < 3000000; i++) sum += 1.0 / i;
#ifdef __OPTIMIZE__
    sum += WRONG;
#endif
    printf("sum %.12g\\n", sum);
    return 0;
}
"""


def tune(program: SimulatedProgram, settings: list[Setting] = SETTINGS, runs: int = 25) -> TuningResult:
    result = tune_command(program, settings, runs, math.inf, lambda _: None)
    assert result is not None
    return result


def true_ratio(result: TuningResult, ratios: dict[str, float]) -> float:
    parts = result.best.setting.name.split(" + ") if result.best else []
    return math.prod(ratios.get(part, 1.0) for part in parts)


def test_what_is_recommended_is_never_worse_and_wins_where_something_is_wrong() -> None:
    won = []
    for seed, ratios in enumerate(WRONG_SETTINGS):
        program = SimulatedProgram(seed, ratios)
        result = tune(program)
        assert len(program.runs) <= 25
        assert true_ratio(result, ratios) <= 1
        won.append(1 / true_ratio(result, ratios))
    assert sorted(won)[len(won) // 2] >= 1.3


def test_of_a_program_that_is_set_well_nothing_is_recommended() -> None:
    results = [tune(SimulatedProgram(seed, {"memory": 1.1})) for seed in range(40)]
    assert sum(result.best is not None for result in results) <= 1
    assert sorted(result.runs for result in results)[20] <= 10


def test_what_breaks_the_check_is_never_recommended() -> None:
    ratios = {"flags": 0.3, "binding": 0.6}
    result = tune(SimulatedProgram(1, ratios, broken={"flags": "wrong result"}))
    assert result.best is not None
    assert result.best.setting.name == "binding"
    assert {one.setting.name: one.verdict for one in result.tried}["flags"] == "wrong result"


def test_a_command_that_fails_as_it_is_is_not_tuned() -> None:
    program = SimulatedProgram(1, {}, broken={"start": "exit status 1"})
    assert tune_command(program, SETTINGS, 25, math.inf, lambda _: None) is None


def test_budgets_hold() -> None:
    program = SimulatedProgram(1, {"flags": 0.5})
    result = tune(program, runs=5)
    assert len(program.runs) == result.runs == 5
    assert result.best is None
    assert result.stopped == "the budget of 5 runs is used up"
    with pytest.raises(AdvisorError, match="the budget ran out before"):
        tune_command(SimulatedProgram(1, {}), SETTINGS, 25, -1.0, lambda _: None)
    short = tune_command(SimulatedProgram(1, {}), SETTINGS, 25, 2.0, lambda _: None)
    assert short is not None
    assert short.runs == 1, "none begins that the end of the budget might cut short and call too slow"
    assert short.stopped == "the time budget is used up"
    assert {one.verdict for one in short.tried} == {"not tried: the budget is used up"}


def test_the_interval_holds_at_every_look() -> None:
    """Of pairs of equal settings looked at after every block, at most about one in a hundred is ever called faster."""
    alarms = 0
    for seed in range(150):
        choose = random.Random(seed)
        timings: list[Timing] = []
        for block in range(8):
            timings += [Timing(name, block, math.exp(choose.gauss(0.1 * block, 0.05))) for name in ("start", "other")]
            effect = estimate_effects(timings, "start", 1)["other"]
            if effect.is_faster:
                alarms += 1
                break
    assert alarms <= 4


def test_drift_moves_no_ratio_and_one_run_tells_no_noise() -> None:
    timings = [
        Timing(name, block, ratio * 1.3**block) for block in range(4) for name, ratio in (("start", 1), ("b", 0.5))
    ]
    assert estimate_effects(timings, "start", 1)["b"].ratio == pytest.approx(0.5)
    alone = estimate_effects(timings[:2], "start", 1)["b"]
    assert (alone.low, alone.high, alone.is_faster, alone.is_slower) == (0.0, math.inf, False, False)


def test_disturbed_runs_are_left_out() -> None:
    points = [Point("start", block, seconds) for block, seconds in enumerate((1.0, 1.01, 1.02, 3.0))]
    assert [one.value for one in drop_disturbed(points)] == [1.0, 1.01, 1.02]


def facts(words: tuple[str, ...] = ("./app",), **changed: object) -> ProgramFacts:
    return replace(ProgramFacts(words, rebuilds=True, openmp=True, mpi=False, cores=4), **changed)  # type: ignore[arg-type]


def test_settings_come_from_the_gaps(fig4: Path) -> None:
    advice = load(fig4).advise()
    proposed = propose_settings(facts(), advice, fast_math=False, most=6)
    stakes = [one.stake_share or 0.0 for one in proposed]
    assert all(0.02 <= stake <= 1 for stake in stakes)
    assert "mpi" not in {kind for one in proposed for kind in one.kinds}
    assert not any("-ffast-math" in (one.flags or "") for one in proposed)
    assert any("-ffast-math" in (one.flags or "") for one in propose_settings(facts(), advice, fast_math=True, most=99))


def test_what_is_set_already_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_SCHEDULE", "guided")
    names = {one.name for one in propose_settings(facts(), None, fast_math=False, most=99)}
    assert "OMP_SCHEDULE=dynamic,8" in names
    assert "OMP_SCHEDULE=guided" not in names


def test_more_ranks_than_cores_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.experiments.candidates.identify_launcher", lambda _: "openmpi")
    words = ("mpirun", "-n", "8", "./app")
    proposed = propose_settings(facts(words, mpi=True, openmp=False, checked=True), None, fast_math=False, most=99)
    by_kind = {one.kinds[0]: one for one in reversed(proposed)}
    assert by_kind["ranks"].change_command(words) == ["mpirun", "-n", "4", "./app"]
    assert by_kind["binding"].launch or by_kind["binding"].variables
    assert by_kind["mpi"].variables == {"OMPI_MCA_mpi_yield_when_idle": "1"}
    assert describe_program(words, Path(), None, rebuilds=False, checked=False).ranks == 8
    unchecked = propose_settings(facts(words, mpi=True, openmp=False), None, fast_math=False, most=99)
    assert not any(one.ranks for one in unchecked), "fewer ranks may do less work"


def test_a_winner_becomes_lines_for_a_job_script() -> None:
    both = combine_settings(
        [
            Setting("a", ("flags",), flags="-O3 -g"),
            Setting("b", ("binding",), variables={"X": "a b"}, launch=("--bind", "core")),
        ]
    )
    lines = describe_setting(both, ("mpirun", "-n", "2", "./app"), "make CFLAGS='{flags}'")
    assert lines == ["make 'CFLAGS=-O3 -g'", "export X='a b'", "mpirun --bind core -n 2 ./app"]
    assert describe_environment(both) == "X=a b\n"
    assert fill_flags("cc {flags} -I{flags} 'a b.c'", "-O3 -g") == ["cc", "-O3", "-g", "-I-O3 -g", "a b.c"]


@pytest.mark.parametrize(
    ("found", "tolerance", "wrong"),
    [
        ("energy 1.0000001 ok\n", 1e-6, []),
        ("energy 1.0000001 ok\n", 1e-9, [1]),
        ("energy 1.0 bad\n", 1.0, [1]),
        ("energy nan ok\n", 0.5, [1]),
        ("energy 1.0D0 ok\n", 0.0, []),
    ],
)
def test_results_are_compared_with_a_tolerance(found: str, tolerance: float, wrong: list[int]) -> None:
    assert find_different_lines("energy 1.0 ok\n", found, tolerance) == wrong
    with pytest.raises(AdvisorError, match="another number of lines"):
        find_different_lines("energy 1.0 ok\n", f"{found}more\n", tolerance)


@pytest.fixture
def fig4(request: pytest.FixtureRequest) -> Path:
    return request.config.rootpath / "tests" / "profiles" / "fig4.json"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with a makefile that compiles it without optimization."""
    for tool in ("make", "cc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.c").write_text(PROGRAM, encoding="utf-8")
    (folder / "Makefile").write_text(
        "CFLAGS = -O0 -DWRONG=0\napp: app.c\n\tcc $(CFLAGS) -o app app.c\n", encoding="utf-8"
    )
    monkeypatch.chdir(folder)
    assert shutil.which("make")
    build_tree(("./app",), folder, tmp_path / "first", "-O0 -DWRONG=0", "make CFLAGS='{flags}'", 60)
    shutil.copy2(tmp_path / "first" / "app", folder / "app")
    return folder


def tuned(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, dict[str, object]]:
    assert cli.main(["tune", *options, "--format", "json", "--", "./app"]) == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    [table] = [part for part in parts if part["kind"] == "table"]
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    return {str(row["setting"]): row for row in rows} | {"text": {"text": [p.get("text") for p in parts]}}


def test_a_program_is_tuned_in_trees_apart(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in project.iterdir()}
    session = tmp_path / "session"
    options = (
        "--build",
        "make CFLAGS='{flags} -DWRONG=0'",
        "--check-file",
        "-",
        "--session",
        str(session),
        "--runs",
        "9",
    )
    rows = tuned(capsys, *options)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in project.iterdir()} == before
    assert rows["-O2"]["verdict"] != "not tried: the budget is used up"
    assert not str(rows["-O2"]["verdict"]).startswith(("does not build", "wrong result"))
    made = (session / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    assert 3 < len(made) <= 9
    tuned(capsys, *options)
    again = (session / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    assert again[: len(made)] == made, "what was run is not run again"


def test_what_was_built_is_not_built_again(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A resumed session builds nothing twice, whatever its runs wrote; a changed source ends it."""
    builds = tmp_path / "builds"
    (project / "app.sh").write_text("date >> written; exec ./app\n", encoding="utf-8")
    (project / "written").touch()
    with (project / "Makefile").open("a", encoding="utf-8") as makefile:
        makefile.write(f"\techo '$(CFLAGS)' >> {builds}\n")

    def resume(runs: int) -> int:
        options = ("--build", "make CFLAGS='{flags} -DWRONG=0'", "--session", str(tmp_path / "s"), "--runs", str(runs))
        return cli.main(["tune", *options, "--", "sh", "app.sh"])

    assert resume(4) == 0
    made = builds.read_text(encoding="utf-8")
    assert made
    session = tmp_path / "s"
    (session / "runs.jsonl").unlink()  # so that all is run once more
    assert resume(4) == 0
    assert builds.read_text(encoding="utf-8") == made
    (project / "app.c").write_text(PROGRAM + "\n", encoding="utf-8")
    capsys.readouterr()
    assert resume(4) == 2
    assert "app.c changed since the runs in" in capsys.readouterr().err
    assert cli.main(["tune", "--again", "--build", "make CFLAGS='{flags} -DWRONG=0'", "--session", str(session),
                     "--runs", "4", "--", "sh", "app.sh"]) == 0  # fmt: skip
    assert builds.read_text(encoding="utf-8") != made


@pytest.mark.parametrize(
    "rules",
    [
        "app: app.o\n\tcc app.o -o app\napp.o: app.c\n\tcc $(CFLAGS) -c app.c\n",
        "app:\n\tcc $(CFLAGS) app.c -o app\n",
        "app: app.c\n\tcc $(CFLAGS) app.c -o app\ninclude depends\n"
        "depends: app.c\n\t@touch depends\n\t@$(MAKE) depend\ndepend: depends\n",
    ],
)
def test_all_that_was_compiled_is_compiled_anew(rules: str, tmp_path: Path) -> None:
    """Objects, a program whose rule names no sources, and an included file that a further make writes."""
    for tool in ("make", "cc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.c").write_text("int main(void) { return CODE; }", encoding="utf-8")
    (folder / "Makefile").write_text(rules, encoding="utf-8")
    subprocess.run(["make", "-s", "CFLAGS=-DCODE=3"], cwd=folder, check=True, timeout=PATIENCE_S)
    tree = build_tree(("./app",), folder, tmp_path / "tree", "-DCODE=5", "make CFLAGS='{flags}'", PATIENCE_S)
    assert subprocess.run(tree.words, cwd=tree.folder, check=False).returncode == 5
    assert subprocess.run(["./app"], cwd=folder, check=False).returncode == 3
    with pytest.raises(AdvisorError, match="true built no app"):
        build_tree(("./app",), folder, tmp_path / "other", "-DCODE=5", "true {flags}", PATIENCE_S)


def test_flags_with_wrong_results_are_never_recommended(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tuned(
        capsys, "--build", "make CFLAGS='{flags} -DWRONG=1'", "--check-file", "-", "--session", str(tmp_path / "s"),
        "--runs", "6",
    )  # fmt: skip
    assert rows["-O3 -march=native"]["verdict"] == "wrong result: line 1 differs"
    said = list(map(str, rows["text"]["text"]))  # type: ignore[call-overload]
    assert any(text.startswith(("Nothing to gain", "Not decided", "No setting")) for text in said)
    assert not any("-O3 -march=native" in text for text in said)


def test_lines_that_tell_the_flags_are_no_results(tmp_path: Path) -> None:
    (tmp_path / "app.sh").write_text("echo flags: $FLAGS; echo sum $SUM", encoding="utf-8")
    runner = TrialRunner(("sh", "app.sh"), tmp_path, tmp_path / "s", "sh -c : {flags}", Check(file=Path("-")))
    told = {"FLAGS": "-O0", "SUM": "1"}
    assert runner.run_trial(replace(START, variables=told), 60).failure is None
    fast = Setting("fast", ("flags",), flags="-O3 -march=native", variables=told | {"FLAGS": "-O3 -march=native"})
    assert runner.run_trial(fast, 60).failure is None
    wrong = replace(fast, name="wrong", variables=fast.variables | {"SUM": "2"})
    assert runner.run_trial(wrong, 60).failure == "wrong result: line 2 differs"


def test_a_check_command_sees_the_output(project: Path, tmp_path: Path) -> None:
    check = Check(command="grep -q sum output-is-elsewhere")
    runner = TrialRunner(("./app",), project, tmp_path / "session", None, check)
    assert str(runner.run_trial(START, 60).failure).startswith("wrong result: the check ended with status")
    (tmp_path / "check.sh").write_text('grep -q sum "$GAPWATCH_OUTPUT"\n', encoding="utf-8")
    runner = TrialRunner(("./app",), project, tmp_path / "other", None, Check(command=f"sh {tmp_path / 'check.sh'}"))
    assert runner.run_trial(START, 60).failure is None


def test_what_does_not_build_or_end_is_a_failure_of_its_setting(project: Path, tmp_path: Path) -> None:
    runner = TrialRunner(("./app",), project, tmp_path / "session", "make CFLAGS='{flags}'", Check())
    assert "does not build" in str(runner.run_trial(Setting("bad", ("flags",), flags="-no-such-flag"), 60).failure)
    slow = TrialRunner(("sleep", "100"), project, tmp_path / "slow", None, Check())
    assert "too slow" in str(slow.run_trial(Setting("slow", ("memory",)), 0.2).failure)
    failing = TrialRunner(("false",), project, tmp_path / "failing", None, Check())
    assert failing.run_trial(START, 60).failure == "exit status 1: "


def test_a_list_of_runs_that_was_cut_off_is_taken_up(tmp_path: Path) -> None:
    session = tmp_path / "session"
    session.mkdir()
    line = json.dumps({"setting": "start", "seconds": 1.5, "failure": None})
    (session / "runs.jsonl").write_text(f"{line}\n{line[:20]}", encoding="utf-8")
    runner = TrialRunner(("true",), tmp_path, session, None, Check())
    assert runner.run_trial(START, 60).seconds == 1.5
    assert runner.run_trial(START, 60).seconds != 1.5
    assert runner.runs_made == 1


def test_wrong_usage_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    for options, words in (
        ([], "no program given"),
        (["--build", "make", "--", "true"], "{flags}"),
        (["--runs", "2", "--", "true"], "at least 4"),
        (["--tolerance", "2", "--", "true"], "from 0 to 1"),
    ):
        assert cli.main(["tune", *options]) == 2
        assert words in capsys.readouterr().err


def test_meson_builds_are_recognised(tmp_path: Path) -> None:
    missing = [tool for tool in ("meson", "ninja", "cc") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    (tmp_path / "app.c").write_text(PROGRAM.replace("WRONG", "0"), encoding="utf-8")
    (tmp_path / "meson.build").write_text("project('app', 'c')\nexecutable('app', 'app.c')\n", encoding="utf-8")
    setup = ["meson", "setup", "build", "-Dc_args=-DMINE=1", "-Db_ndebug=true"]
    for command in (setup, ["meson", "compile", "-C", "build"]):
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    made = build_tree(("build/app",), tmp_path, tmp_path / "tree", "-O3 -g1", None, 120)
    assert made.words == (str(tmp_path / "tree" / "app"),)
    compiled = (tmp_path / "tree" / "compile_commands.json").read_text(encoding="utf-8")
    assert "-DMINE=1 -O3 -g1" in compiled
    assert "-DNDEBUG" in compiled
    for line in describe_reconfiguration("meson", tmp_path / "build", "-O3 -g1"):
        subprocess.run(line, shell=True, check=True, capture_output=True, cwd=tmp_path)
        assert len(line) < 200
    compiled = (tmp_path / "build" / "compile_commands.json").read_text(encoding="utf-8")
    assert "-DMINE=1 -O3 -g1" in compiled
    assert "-DNDEBUG" in compiled


def test_cmake_builds_are_recognised(tmp_path: Path) -> None:
    if shutil.which("cmake") is None or shutil.which("cc") is None:
        pytest.skip("cmake or cc is not installed")
    source, old = tmp_path / "source", tmp_path / "source" / "build"
    source.mkdir()
    (source / "app.c").write_text(PROGRAM.replace("WRONG", "0"), encoding="utf-8")
    (source / "CMakeLists.txt").write_text(
        'cmake_minimum_required(VERSION 3.10)\nproject(app C)\noption(WITH_IT "" OFF)\n'
        'set(FOUND_LIBRARY none CACHE FILEPATH "")\nmark_as_advanced(FOUND_LIBRARY)\n'
        "if(WITH_IT AND UNTYPED)\nadd_executable(app app.c)\nendif()\n",
        encoding="utf-8",
    )
    options = ["-DWITH_IT=ON", "-DUNTYPED=1", "-DCMAKE_C_FLAGS=-DMINE", "-DCMAKE_BUILD_TYPE=Debug"]
    for command in (["cmake", "-S", str(source), "-B", str(old), *options], ["cmake", "--build", str(old)]):
        subprocess.run(command, check=True, capture_output=True)
    made = build_tree(("build/app", "x"), source, tmp_path / "tree", "-O3", None, 120)
    assert made.words == (str(tmp_path / "tree" / "app"), "x")
    flags = (tmp_path / "tree" / "CMakeFiles" / "app.dir" / "flags.make").read_text(encoding="utf-8")
    assert "-DMINE -g -O3" in flags, "what the user chose stays, and the flags come last"
    assert "FOUND_LIBRARY" not in " ".join(_cmake_commands(old, tmp_path / "other", "-O3")[0])
    with pytest.raises(AdvisorError, match="nothing says how to build"):
        build_tree(("true",), tmp_path, tmp_path / "none", "-O3", None, 60)
    lines = describe_reconfiguration("cmake", old, "-O3 -g1")
    for line in lines:
        subprocess.run(line, shell=True, check=True, capture_output=True, cwd=tmp_path)  # as a job script does
    assert "-O3 -g1" in (old / "CMakeFiles" / "app.dir" / "flags.make").read_text(encoding="utf-8")


def test_a_start_that_fails_later_ends_the_race_without_a_winner() -> None:
    class Flaky(SimulatedProgram):
        def run_trial(self, setting: Setting, limit_s: float) -> Trial:
            trial = super().run_trial(setting, limit_s)
            fails = setting.name == "start" and self.runs.count("start") == 3
            return replace(trial, failure="exit status 1") if fails else trial

    result = tune(Flaky(1, {"flags": 0.5}))
    assert result.best is None
    assert result.stopped == "the command as it is does not always work: exit status 1"
    assert result.start_s is None, "unknown is not zero"


def test_a_start_that_the_end_of_the_budget_cuts_short_does_not_fail() -> None:
    """On a busy machine a run may take many times as long as the first did; what was won until then stays."""

    class Slow(SimulatedProgram):
        def run_trial(self, setting: Setting, limit_s: float) -> Trial:
            trial = super().run_trial(setting, limit_s)
            cut = setting.name == "start" and self.runs.count("start") == cut_at
            return replace(trial, failure="did not end within the budget", timed_out=True) if cut else trial

    cut_at = 6
    result = tune(Slow(3, {"flags": 0.5, "memory": 0.93}))
    assert result.stopped == "the time budget is used up"
    assert result.best is not None
    assert result.best.setting.name == "flags"
    cut_at = 1
    with pytest.raises(AdvisorError, match="increase --budget"):
        tune(Slow(1, {"flags": 0.5}))


def test_a_run_that_the_budget_cut_short_is_made_anew(tmp_path: Path) -> None:
    session = tmp_path / "session"
    cut = TrialRunner(("sleep", "20"), tmp_path, session, None, Check()).run_trial(START, 0.1)
    assert (cut.failure, cut.timed_out) == ("did not end within the budget", True)
    slow = TrialRunner(("sleep", "20"), tmp_path, session, None, Check()).run_trial(Setting("x", ("memory",)), 0.1)
    assert slow.failure is not None
    assert slow.failure.endswith("too slow")
    assert [json.loads(line)["setting"] for line in (session / "runs.jsonl").read_text("utf-8").splitlines()] == ["x"]


def test_settings_that_are_no_pair_are_not_combined() -> None:
    settings = [Setting("2 ranks x 2 threads", ("ranks", "threads")), Setting("threads", ("threads",))]
    result = tune(SimulatedProgram(1, {"2 ranks x 2 threads": 0.5, "threads": 0.6}), settings)
    assert result.best is not None
    assert result.best.setting.name == "2 ranks x 2 threads"


def test_lines_that_differ_from_run_to_run_break_no_setting() -> None:
    """What the timer's line of a setting says is suspect until a run of the start writes it otherwise, too."""

    class Timed(SimulatedProgram):
        def run_trial(self, setting: Setting, limit_s: float) -> Trial:
            trial = super().run_trial(setting, limit_s)
            if setting.name == "start" and self.runs.count("start") == 2:
                self.varying_lines = [7]
            lines = {"flags": (7,), "memory": (7, 9)}.get(setting.name, ())
            known = set(lines) <= set(self.varying_lines)
            return trial if known else replace(trial, failure="wrong result: line 7 differs", lines=lines)

    result = tune(Timed(1, {"flags": 0.5, "memory": 0.4}))
    assert result.best is not None
    assert result.best.setting.name == "flags"
    assert {one.setting.name: one.verdict for one in result.tried}["memory"] == "wrong result: line 9 differs"


def test_a_result_that_is_never_alike_is_no_result(tmp_path: Path) -> None:
    runner = TrialRunner(("sh", "-c", "echo $$; echo $$"), tmp_path, tmp_path / "session", None, Check(file=Path("-")))
    failures = [runner.run_trial(one, 60).failure for one in (REFERENCE, START)]
    assert failures == [None, "two runs of the command as it is wrote different results; check them by --check"]


def test_a_timer_in_the_output_breaks_no_check(tmp_path: Path) -> None:
    (tmp_path / "app.sh").write_text("echo sum 5; echo took $$ s; echo $X\n", encoding="utf-8")
    runner = TrialRunner(("sh", "app.sh"), tmp_path, tmp_path / "session", None, Check(file=Path("-")))
    assert [runner.run_trial(one, 60).failure for one in (REFERENCE, START, START)] == [None] * 3
    assert runner.varying_lines == [2]
    wrong = runner.run_trial(Setting("x", ("memory",), variables={"X": "9"}), 60)
    assert (wrong.failure, wrong.lines) == ("wrong result: line 3 differs", (3,))
    assert find_last_words("can't do it\n-----\n") == "can't do it"


def build_mpi_advice(fig4: Path, **seconds: float) -> Advice:
    """The advice on a run whose communication is in these functions."""
    advice = load(fig4).advise()
    parts = tuple(Share(f"MPI_{name}", value) for name, value in seconds.items())
    return replace(advice, gaps=(replace(advice.gaps[0], name="C'", members=("C'",), regions=parts),))


def test_settings_of_mpi_fit_the_library_and_what_took_time(fig4: Path) -> None:
    advice = build_mpi_advice(fig4, Allreduce=1.0, Bcast=0.2)
    assert find_costly_collective(advice) == "allreduce"
    open_mpi = [variables for _, variables in iterate_mpi_variables("openmpi", advice, crowded=True)]
    assert open_mpi[0] == {"OMPI_MCA_mpi_yield_when_idle": "1"}
    assert [one["OMPI_MCA_coll_tuned_allreduce_algorithm"] for one in open_mpi[1:]] == ["3", "6"]
    mpich = [variables for _, variables in iterate_mpi_variables("hydra", advice, crowded=False)]
    assert mpich[0] == {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "recursive_doubling"}
    messages = build_mpi_advice(fig4, Send=1.0)
    [(_, eager)] = iterate_mpi_variables("hydra", messages, crowded=False)
    assert eager["UCX_RNDV_THRESH"] == "65536"
    assert list(iterate_mpi_variables(None, advice, crowded=True)) == []
    assert list(iterate_bindings("hydra", crowded=False, threaded=True)) == [("-bind-to", "core")]
    assert list(iterate_bindings("slurm", crowded=True, threaded=False)) == [("--cpu-bind=none",)]
    assert list(iterate_bindings(None, crowded=False, threaded=False)) == []


@pytest.mark.parametrize(
    ("launcher", "said"),
    [
        ("openmpi", "mpirun (Open MPI) 4.1.4"),
        ("openmpi", "mpirun.openmpi (OpenRTE) 4.1.4"),
        ("hydra", "HYDRA build details:"),
        (None, "something else"),
    ],
)
def test_a_launcher_is_known_by_what_it_says(tmp_path: Path, launcher: str | None, said: str) -> None:
    program = tmp_path / "mpiexec.mine"
    program.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
    program.chmod(0o755)
    assert identify_launcher(str(program)) == launcher


def test_ranks_and_threads_fill_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.experiments.candidates.identify_launcher", lambda _: "openmpi")
    hybrid = facts(("mpirun", "-n", "8", "./app"), mpi=True, checked=True)
    proposed = [one for one in propose_settings(hybrid, None, fast_math=False, most=99) if one.kinds[0] == "ranks"]
    assert [one.name for one in proposed] == ["4 ranks x 1 threads"]
    hybrid = replace(hybrid, words=("mpirun", "-n", "2", "./app"))
    proposed = [one for one in propose_settings(hybrid, None, fast_math=False, most=99) if one.kinds[0] == "ranks"]
    assert [one.name for one in proposed] == ["4 ranks x 1 threads", "1 ranks x 4 threads"]
    assert proposed[1].variables == {"OMP_NUM_THREADS": "4"}


def test_settings_that_the_program_can_t_use_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.experiments.candidates.identify_launcher", lambda _: "openmpi")
    plain = facts(chooses_schedule=False)
    kinds = {one.kinds[0] for one in propose_settings(plain, None, fast_math=False, most=99)}
    assert kinds == {"flags", "threads", "waiting", "binding", "memory"}
    more = facts(("mpirun", "./app"), mpi=True, fortran_files=True, mpi_files=True, devices=True)
    kinds = {one.kinds[0] for one in propose_settings(more, None, fast_math=False, most=99)}
    assert kinds == {"flags", "threads", "waiting", "schedule", "binding", "mpi", "memory", "io", "device"}


@pytest.mark.parametrize(
    ("regions", "openmp"),
    [(["compress", "pthread_create"], False), (["!$omp parallel", "pthread_create"], True), (["solve"], True)],
)
def test_variables_of_openmp_reach_no_other_threads(fig4: Path, regions: list[str], openmp: bool) -> None:
    profile = replace(load(fig4).advise().profile, paradigms=("openmp",), regions=tuple(map(Region, regions)))
    assert uses_openmp(profile) is openmp


def test_what_other_programs_took_is_not_at_stake(fig4: Path) -> None:
    advice = load(fig4).advise()
    [flags, *_] = propose_settings(facts(openmp=False), advice, fast_math=False, most=1)
    others = replace(advice.profile, actual_s=100.0, outside={"other programs": np.array([53.0, 53.0])})
    [disturbed, *_] = propose_settings(facts(openmp=False), replace(advice, profile=others), fast_math=False, most=1)
    assert flags.stake_share == disturbed.stake_share is not None


def test_of_a_recording_without_evidence_no_gap_chooses(fig4: Path) -> None:
    advice = load(fig4).advise()
    weak = replace(advice, grade=replace(advice.grade, letter="F"))
    assert all(one.stake_share is None for one in propose_settings(facts(), weak, fast_math=False, most=6))
    every = len(propose_settings(facts(), weak, fast_math=False, most=99))
    rough = replace(advice, grade=replace(advice.grade, letter="D"))
    assert len(propose_settings(facts(), rough, fast_math=False, most=99)) == every
    good = replace(advice, grade=replace(advice.grade, letter="A"))
    assert len(propose_settings(facts(), good, fast_math=False, most=99)) < every


def test_of_one_thread_nothing_is_bound() -> None:
    kinds = {one.kinds[0] for one in propose_settings(facts(threads=1), None, fast_math=False, most=99)}
    assert kinds == {"flags", "threads", "memory"}


def test_a_library_that_is_read_is_no_program(tmp_path: Path) -> None:
    for name, mode in (("app", 0o755), ("data.so", 0o644)):
        (tmp_path / name).write_bytes(b"\x7fELF")
        (tmp_path / name).chmod(mode)
    assert find_program(("./app", "data.so"), tmp_path) == tmp_path / "app"


def test_a_program_says_what_it_uses(tmp_path: Path) -> None:
    program = tmp_path / "app"
    cases = {
        b"\0GOMP_parallel\0": False,
        b"\0GOMP_parallel_loop_maybe_nonmonotonic_runtime\0": True,
        b"\0__kmpc_fork_call\0": False,
        b"\0__kmpc_fork_call\0__kmpc_dispatch_init_4\0": True,
        b"": True,
    }
    for content, chooses in cases.items():
        program.write_bytes(content)
        assert can_choose_schedule(program) is chooses
    program.write_bytes(b"\0_gfortran_st_write\0MPI_File_write_all\0")
    assert (uses_fortran_files(program), uses_mpi_files(program)) == (True, True)
    assert (uses_fortran_files(None), uses_mpi_files(tmp_path / "none")) == (False, False)


@pytest.mark.parametrize(
    ("makefile", "changed"),
    [
        ("CC = cc\nCFLAGS = -O0 -g\nall:\n", "+CFLAGS = -O3 -DX\n"),
        ("CFLAGS?=\nall:\n", "+CFLAGS?=-O3 -DX\n"),
        ("CFLAGS := -O0\nCFLAGS += -g\n", None),
        ("CFLAGS = -O0 \\\n -g\n", None),
        ("all:\n", None),
    ],
)
def test_flags_that_won_become_a_patch(tmp_path: Path, makefile: str, changed: str | None) -> None:
    (tmp_path / "Makefile").write_text(makefile, encoding="utf-8")
    patch = write_makefile_patch(tmp_path, "make CFLAGS='{flags} -DX'", "-O3")
    assert write_makefile_patch(tmp_path, "sh build.sh {flags}", "-O3") is None
    if changed is None:
        assert patch is None
        return
    assert patch is not None
    assert changed in patch
    if shutil.which("patch"):
        subprocess.run(["patch", "-p1", "-s"], input=patch, text=True, check=True, cwd=tmp_path)
        assert changed[1:] in (tmp_path / "Makefile").read_text(encoding="utf-8")


def test_runs_of_another_program_or_environment_are_not_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "app"
    program.write_bytes(b"\x7fELF1")
    program.chmod(0o755)
    keys = [identify_work(("./app",), tmp_path, None)]
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    keys.append(identify_work(("./app",), tmp_path, None))
    program.write_bytes(b"\x7fELF2")
    keys.append(identify_work(("./app",), tmp_path, None))
    keys.append(identify_work(("./app",), tmp_path, "make {flags}"))
    monkeypatch.setenv("CC", "clang")
    keys.append(identify_work(("./app",), tmp_path, "make {flags}"))
    assert len(set(keys)) == 5
    session = tmp_path / "session"
    session.mkdir()
    (session / "key").write_text("other", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["tune", "--session", str(session), "--", "./app"]) == 2
    assert "another command, program or environment" in capsys.readouterr().err


def test_what_the_budget_left_open_is_not_called_nothing_to_win() -> None:
    result = tune(SimulatedProgram(3, {"flags": 0.8}, noise=0.15), SETTINGS[:1], runs=6)
    assert result.best is None
    assert result.undecided_setting is not None
    assert result.undecided_setting.setting.name == "flags"
    decided = tune(SimulatedProgram(3, {"flags": 0.5}))
    assert decided.undecided_setting is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_a_run_started_ends_with_it(number: signal.Signals, tmp_path: Path) -> None:
    """Also where a batch system asks the search to end, and not a user."""
    (tmp_path / "app.sh").write_text("echo $$ > started; exec sleep 600", encoding="utf-8")
    recorded = str(ROOT / "tests" / "profiles" / "fig4.json")
    words = ["tune", "--advice", recorded, "--session", str(tmp_path / "s"), "--", "sh", "app.sh"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gapwatch", *words], cwd=tmp_path, env=environment(tmp_path), start_new_session=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    started = tmp_path / "started"
    wait_until(lambda: started.exists() and started.read_text(encoding="utf-8").strip() != "")
    program = int(started.read_text(encoding="utf-8"))
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == (130 if number == signal.SIGINT else -number)
    wait_until(lambda: not Path(f"/proc/{program}").exists())


def test_what_noise_hides_is_not_called_nothing_to_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs of the start that differ by half say little of settings that ran once."""
    seconds = {"start": [1.0, 1.5], "quicker": [0.9], "slower": [1.4]}

    class Runner(SimulatedProgram):
        def run_trial(self, setting: Setting, limit_s: float) -> Trial:
            return Trial(setting.name, seconds[setting.name].pop(0))

    result = tune(Runner(1, {}), [Setting("quicker", ("memory",)), Setting("slower", ("mpi",))])
    assert result.best is None
    assert result.hides_gains
    assert [one.verdict for one in result.tried] == ["within noise", "no gain in the first run"]
    assert not tune(SimulatedProgram(1, {})).hides_gains
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("advisor.experiments.tuning.tune_command", lambda *_: result)
    assert cli.main(["tune", "--session", str(tmp_path / "s"), "--", "true"]) == 0
    assert "Not decided after 4 runs: the first two runs of the start differ by 50 %" in capsys.readouterr().out


def test_a_gain_that_the_budget_left_at_one_run_is_not_called_none() -> None:
    result = tune(SimulatedProgram(3, {"flags": 0.3}), SETTINGS[:1], runs=2)
    assert result.stopped is not None
    assert [one.verdict for one in result.tried] == ["one run: not decided"]
    assert result.undecided_setting is not None
