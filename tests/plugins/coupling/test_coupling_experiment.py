"""The experiment: run, interrupted, taken up again; programs that fail."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from command_line import environment, run
from patience import PATIENCE_S, has_ended, wait_until

from advisor.model.errors import InputError, UsageError
from advisor_coupling import experiment, program_launch, results
from advisor_coupling.cases import SECONDS

if TYPE_CHECKING:
    from pathlib import Path

#: Takes no time worth measuring, says that it does, and writes down that it ran.
PROGRAM = """\
import os, sys, time
chain, passes = os.environ["CHAIN"].split(","), int(os.environ["PASSES"])
with open(sys.argv[1], "a") as log:
    log.write(f"{os.environ['CHAIN']} {passes} {sys.argv[2]}\\n")
time.sleep(float(sys.argv[3]))
print(f"loop {passes * (len(chain) + 0.5 * (len(chain) - 1)) * 1e-3:.6f} s")
"""
MANIFEST = """\
program: toy
kernels: [{{name: a}}, {{name: b}}, {{name: c}}]
parameters: {{N: [1, 2]}}
loop_count: 10
command: [{python}, {program}, {log}, "{{N}}", "{nap}"]
environment: {{CHAIN: "{{chain}}", PASSES: "{{passes}}"}}
metrics: [{{name: seconds, prints: "loop {{value}} s"}}]
repetitions: 3
"""
#: Chains of three kernels, of one and two kernels each, the application and the baseline; two cases, three rounds.
RUNS = (3 + 3 + 1 + 1 + 1) * 2 * 3


def prepared(folder: Path, nap: float = 0.0, more: str = "") -> Path:
    program, path = folder / "toy.py", folder / "toy.yaml"
    program.write_text(PROGRAM)
    places = {"python": sys.executable, "program": program, "log": folder / "log", "nap": nap}
    path.write_text(MANIFEST.format(**places) + more)
    return path


def log_of(folder: Path) -> list[str]:
    path = folder / "log"
    return path.read_text().splitlines() if path.exists() else []


def finished(folder: Path) -> list[dict[str, Any]]:
    path = folder / "toy.coupling.json"
    return list(json.loads(path.read_text())["runs"]) if path.exists() else []


def test_one_command_measures_and_reports(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    done = run("couple", str(path), "--format", "json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(log_of(tmp_path)) == RUNS == len(finished(tmp_path))
    parts = json.loads(done.stdout)["parts"]
    table = next(part for part in parts if part.get("title") == "Measured and predicted seconds")
    rows = {(row[0], row[1]): row[2] for row in table["rows"]}
    assert rows["N=1, P=1", "measured"] == pytest.approx(0.04)  # 10 passes of 3 + 2 * 0.5 ms
    assert rows["N=1, P=1", "summation"] == pytest.approx(0.03)
    assert rows["N=1, P=1", "coupling: 2 kernels"] == pytest.approx(0.0375)  # (2 + 0.5) / 2
    assert rows["N=1, P=1", "coupling: 3 kernels"] == pytest.approx(0.04)
    maps = [part for part in parts if part["kind"] == "heatmap"]
    assert maps[0]["cells"] == [[None, 1.25, None], [None, None, 1.25], [1.25, None, None]]
    again = run("couple", str(path), home=tmp_path)
    assert again.returncode == 0, again.stderr
    assert len(log_of(tmp_path)) == RUNS
    assert b"a,b couples by 1.250" in again.stdout


def test_what_is_left_can_be_listed(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    listed = run("couple", str(path), "--dry-run", home=tmp_path)
    assert f"{RUNS} of {RUNS} runs are left to do.".encode() in listed.stdout, listed.stderr
    assert b"CHAIN=a,b PASSES=10" in listed.stdout
    assert not log_of(tmp_path)


def test_results_alone_give_the_report_and_more_rounds_go_on(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    run("couple", str(path), home=tmp_path)
    path.write_text(path.read_text().replace("repetitions: 3", "repetitions: 4"))
    assert run("couple", str(path), home=tmp_path).returncode == 0
    assert len(log_of(tmp_path)) == RUNS * 4 // 3
    shown = run("couple", str(tmp_path / "toy.coupling.json"), home=tmp_path)
    assert b"Measured and predicted seconds" in shown.stdout, shown.stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_at_any_point_it_repeats_no_finished_run(tmp_path: Path, how: signal.Signals) -> None:
    path = prepared(tmp_path, nap=0.02)
    command = [sys.executable, "-m", "gapwatch", "couple", str(path)]
    kills = 0
    for wanted in (1, 20, 45):
        process = subprocess.Popen(
            command, env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(lambda: len(log_of(tmp_path)) >= wanted or process.poll() is not None)  # noqa: B023
        with suppress(ProcessLookupError):
            process.send_signal(how)
        process.wait(PATIENCE_S)
        kills += 1
        keys = Counter((one["case"], one["kind"], one["chain"], one["round"]) for one in finished(tmp_path))
        assert all(count == 1 for count in keys.values())
        assert len(finished(tmp_path)) <= len(log_of(tmp_path)) <= len(finished(tmp_path)) + kills
    assert run("couple", str(path), home=tmp_path).returncode == 0
    assert len(finished(tmp_path)) == RUNS
    assert RUNS <= len(log_of(tmp_path)) <= RUNS + kills
    assert not list(tmp_path.glob("*.part")) or how == signal.SIGKILL


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    with (
        experiment.lock_experiment(path),
        pytest.raises(UsageError, match="is running already"),
        experiment.lock_experiment(path),
    ):
        pass


def test_results_of_another_experiment_are_left_alone(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    assert run("couple", str(path), home=tmp_path).returncode == 0
    path.write_text(path.read_text().replace("N: [1, 2]", "N: [1, 3]"))
    done = run("couple", str(path), home=tmp_path)
    assert done.returncode == 2
    assert b"belongs to another experiment" in done.stderr


def test_after_a_new_build_the_old_runs_say_nothing(tmp_path: Path) -> None:
    program = tmp_path / "toy"
    program.write_text("#!/bin/sh\necho loop 1.0 s\n")
    program.chmod(0o755)
    path = tmp_path / "toy.yaml"
    path.write_text(
        "program: toy\nkernels: [{name: a}, {name: b}]\nloop_count: 1\nrepetitions: 1\n"
        "command: [./toy, '{chain}', '{passes}']\nbaseline: none\n"
    )
    assert run("couple", str(path), home=tmp_path).returncode == 0
    assert run("couple", str(path), home=tmp_path).returncode == 0
    program.write_text("#!/bin/sh\necho loop 2.0 s\n")
    done = run("couple", str(path), home=tmp_path)
    assert done.returncode == 2
    assert b"belongs to another experiment (program, build," in done.stderr


def test_a_program_that_fails_is_named_and_what_was_done_is_kept(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    program = tmp_path / "toy.py"
    program.write_text(PROGRAM + "if sys.argv[2] == '2' and chain == ['b', 'c']: sys.exit('out of \\x1b[31mluck')\n")
    done = run("couple", str(path), home=tmp_path)
    assert done.returncode == 2
    assert b"ended with status 1; it printed: loop" in done.stderr
    assert b"luck" in done.stderr
    assert b"\x1b" not in done.stderr
    assert 0 < len(finished(tmp_path)) < RUNS
    program.write_text(PROGRAM)
    assert run("couple", str(path), home=tmp_path).returncode == 0
    assert len(finished(tmp_path)) == RUNS


def test_a_program_that_does_not_print_the_metric_is_told_with_the_place(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    path.write_text(path.read_text().replace("loop {value} s", "time {value} s"))
    done = run("couple", str(path), home=tmp_path)
    assert done.returncode == 2
    assert b"toy.yaml:7:11" in done.stderr
    assert b"printed nothing like 'time {value} s'" in done.stderr


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    launch = program_launch.ProgramLaunch(("no-such-program-here",), {}, tmp_path, 5.0)
    with pytest.raises(InputError, match="can't run no-such-program-here: No such file"):
        program_launch.run_program(launch, tmp_path / "m.yaml")


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    left = tmp_path / "pid"
    code = f"import os, time\npid = os.fork()\nif pid: open({str(left)!r}, 'w').write(str(pid))\ntime.sleep(3600)"
    for limit_s in (1.0, 20.0, PATIENCE_S):
        launch = program_launch.ProgramLaunch((sys.executable, "-c", code), {}, tmp_path, limit_s)
        with pytest.raises(InputError, match=f"took longer than time_limit, {limit_s:g} s"):
            program_launch.run_program(launch, tmp_path / "m.yaml")
        if left.is_file() and left.read_text():  # else it was ended before it came so far
            break
    child = int(left.read_text())
    wait_until(lambda: has_ended(child))


def test_short_loops_are_made_long_enough(tmp_path: Path) -> None:
    path = prepared(tmp_path, more="shortest_loop: 500 ms\n")
    path.write_text(path.read_text().replace("repetitions: 3", "repetitions: 1").replace("N: [1, 2]", "N: [1]"))
    assert run("couple", str(path), home=tmp_path).returncode == 0
    document = results.read_results(tmp_path / "toy.coupling.json")
    chains = [one for one in document.runs if one.kind == "chain"]
    assert all(one.values[SECONDS] >= 0.5 for one in chains)
    assert all(one.passes == 10 for one in document.runs if one.kind == "application")
    (case,) = results.build_cases(document)
    assert case.samples[SECONDS][(0, 1)] == pytest.approx([2.5e-3])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": "gapwatch/coupling/9"}, "no results of a coupling experiment"),
        ({"kernels": ["a"]}, "two kernels or more"),
        ({"runs": [{"case": 5, "kind": "chain", "chain": "a", "round": 0, "passes": 1, "values": {}}]}, "of no case"),
        (
            {"runs": [{"case": 0, "kind": "chain", "chain": "b,d", "round": 0, "passes": 1, "values": {}}]},
            "not a chain",
        ),
        ({"runs": [{"case": 0, "kind": "chain", "chain": "a", "round": -1, "passes": 1, "values": {}}]}, "round"),
        (
            {"runs": [{"case": 0, "kind": "chain", "chain": "a", "round": 0, "passes": 1, "values": {"s": "x"}}]},
            "float",
        ),
    ],
)
def test_results_that_contradict_themselves_are_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    case = {"parameters": {}, "processors": 1, "loop_count": 1, "passes": 1}
    document = {
        "schema": "gapwatch/coupling/1", "program": "p", "kernels": ["a", "b", "c"], "cases": [case], "runs": []
    }  # fmt: skip
    path = tmp_path / "x.coupling.json"
    path.write_text(json.dumps(document))
    assert results.read_results(path).program == "p"
    path.write_text(json.dumps(document | change))
    with pytest.raises(InputError, match=reason):
        results.read_results(path)
    path.write_text(json.dumps(document)[:-9])
    with pytest.raises(InputError, match="no results of a coupling experiment"):
        results.read_results(path)
