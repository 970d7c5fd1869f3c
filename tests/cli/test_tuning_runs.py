"""What ``gapwatch tune`` runs: build trees, checks of results, lists of runs that are taken up, and how runs end."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import ROOT, environment
from patience import PATIENCE_S, wait_until

import gapwatch
from advisor import cli
from advisor.experiments.build_trees import _cmake_commands, build_tree, describe_reconfiguration, write_makefile_patch
from advisor.experiments.settings import Setting
from advisor.experiments.trials import Check, TrialRunner, find_last_words, identify_work
from advisor.experiments.tuning import REFERENCE, START
from advisor.model.errors import AdvisorError, UsageError

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


def test_the_api_tunes_as_the_command_does(project: Path, tmp_path: Path) -> None:
    told: list[str] = []
    history = gapwatch.open_history(tmp_path / "state")
    build = "make CFLAGS='{flags} -DWRONG=0'"
    tuned = gapwatch.tune(Path("app"), build=build, check_file="-", runs=9, history=history, progress=told.append)
    assert tuned.session.parent == tmp_path / "state" / "tune"
    assert "-O2" in [one.setting.name for one in tuned.result.tried]
    assert tuned.result.start_s is not None
    assert len([line for line in told if line.startswith(("1/", "2/"))]) == 2
    assert not [words for words in tuned.limits if "not checked" in words]
    for wrong, words in (
        ({"runs": 3}, "runs: expected a number of runs, at least 4"),
        ({"tolerance": 2.0}, "tolerance: expected"),
        ({"budget_s": 0.0}, "budget_s: expected"),
        ({"build": "make"}, "says nowhere where the flags go"),
    ):
        with pytest.raises(UsageError, match=words):
            gapwatch.tune(Path("app"), history=history, **wrong)  # type: ignore[arg-type]


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


def test_a_tree_that_is_read_only_is_built_in_its_copy(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "parts").mkdir(parents=True)
    (tree / "app").write_text("old", encoding="utf-8")
    places = [tree / "app", tree / "parts", tree]
    for place in places:
        place.chmod(0o555)
    try:
        build = "sh -c 'test -w app && test -w parts && test -w . && echo true > app && touch parts/new' {flags}"
        built = build_tree(("./app",), tree, tmp_path / "copy", "-O3", build, 60)
    finally:
        for place in places:
            place.chmod(0o755)
    for place in (built.folder, built.folder / "app", built.folder / "parts"):
        assert place.stat().st_mode & 0o200, "root may write everything, whatever the modes are"
    assert (tree / "app").read_text(encoding="utf-8") == "old"


def test_flags_that_the_project_overrules_are_not_tried(tmp_path: Path) -> None:
    if shutil.which("cmake") is None or shutil.which("cc") is None:
        pytest.skip("cmake or cc is not installed")
    (tmp_path / "app.c").write_text(PROGRAM.replace("WRONG", "0"), encoding="utf-8")
    project = "cmake_minimum_required(VERSION 3.10)\nproject(app C)\n{}add_executable(app app.c)\n"
    lists, overrule = tmp_path / "CMakeLists.txt", 'set(CMAKE_C_FLAGS_DEBUG "-g -O0")\n'
    lists.write_text(project.format(overrule), encoding="utf-8")
    for command in (["cmake", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug"], ["cmake", "--build", "build"]):
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    with pytest.raises(
        AdvisorError, match="puts -O0 behind -O3 -march=native for every file, so that they change noth"
    ):
        build_tree(("build/app",), tmp_path, tmp_path / "one", "-O3 -march=native", None, 120)
    lists.write_text(project.format(""), encoding="utf-8")
    assert build_tree(("build/app",), tmp_path, tmp_path / "two", "-O3", None, 120).words[0].endswith("two/app")


def test_a_run_that_the_budget_cut_short_is_made_anew(tmp_path: Path) -> None:
    session = tmp_path / "session"
    cut = TrialRunner(("sleep", "20"), tmp_path, session, None, Check()).run_trial(START, 0.1)
    assert (cut.failure, cut.timed_out) == ("did not end within the budget", True)
    slow = TrialRunner(("sleep", "20"), tmp_path, session, None, Check()).run_trial(Setting("x", ("memory",)), 0.1)
    assert slow.failure is not None
    assert slow.failure.endswith("too slow")
    assert [json.loads(line)["setting"] for line in (session / "runs.jsonl").read_text("utf-8").splitlines()] == ["x"]


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
