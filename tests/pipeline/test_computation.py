"""What computation is bound by is said where it is most of the run; commands are filled in; host is what was probed."""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from compiled_programs import compile_program

from advisor import cli, pipeline
from advisor.advice import rules
from advisor.advice.computation import NEED, describe_computation, need_computation
from advisor.advice.ranking.ceilings import restrict_ceiling
from advisor.advice.rules.cases import build_case_sheet
from advisor.advice.rules.matching import match_rules
from advisor.analysis import bounds, gaps, machines
from advisor.cli import next_commands, user_folders
from advisor.extension import host
from advisor.model import policy
from advisor.model.records import Phase, Processor, Profile, Region
from advisor.output import terminal
from advisor.output.page import Page

if TYPE_CHECKING:
    from advisor.model.records import Advice

BOOK = rules.load_default()
SLOW = """\
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    double sum = 0.0, *x = calloc(1000, sizeof *x);
    for (int step = 0; step < 1000 * argc; step++)
        for (int i = 0; i < 1000; i++)
            sum += x[i];
    printf("%s %g\\n", argv[0], sum);
    return 0;
}
"""


def run(cpu_s: float, actual_s: float = 10.0, **changed: object) -> Profile:
    arrays = {"cpu_s": np.full((1, 1, 1), cpu_s), "wall_s": np.full((1, 1, 1), actual_s)}
    made = Profile(
        program="solver",
        run="1",
        reader="perf",
        actual_s=actual_s,
        processors=(Processor(0, host=platform.node()),),
        regions=(Region("main"),),
        phases=(Phase("run", "whole", np.arange(1), arrays),),
        status={"cpu_s": "measured", "wall_s": "measured"},
    )
    return replace(made, **changed)  # type: ignore[arg-type]


def coded(profile: Profile, **kinds: float) -> Profile:
    counts = {f"code.{name}_s": np.full((1, 1), seconds) for name, seconds in kinds.items()}
    return replace(profile, counts=counts)


def text_of_advice(advice: Advice) -> str:
    return " ".join(text.plain.strip() for text in terminal._render_verdict(advice, Page(width=100)))


def advice_on(profile: Profile) -> Advice:
    return pipeline.study_run(profile, pipeline.Options(), host.load_plugins()).advice


def told(profile: Profile) -> tuple[str | None, str | None]:
    """Return the sentence on the computation, and the command that would tell more."""
    levels = bounds.compute_bounds(profile)
    finding = describe_computation(profile, levels)
    need = need_computation(profile, levels, gaps.attribute_gaps(profile, levels))
    return finding.text if finding else None, need.command if need else None


def test_nothing_is_said_of_computation_that_is_less_than_half_of_the_run() -> None:
    assert told(run(4.9))[0] is None


def test_of_unknown_computation_the_command_that_tells_is_said_first() -> None:
    text, command = told(run(9.5))
    assert text == "Computation takes 95.0 % of the run; what it is bound by was not measured."
    assert command is not None
    assert command == "gapwatch run -- ./PROGRAM"
    advice = advice_on(run(9.5))
    assert advice.needs[0].fact == NEED
    assert "what it is bound by was not measured" in text_of_advice(advice)
    assert "Nothing significant" not in text_of_advice(advice)


def test_the_functions_that_compute_longest_are_named() -> None:
    arrays = {"cpu_s": np.array([[[6.0]], [[0.1]], [[3.0]]])}
    regions = tuple(Region(name) for name in ("solve", "setup", "solve"))
    text, _ = told(run(9.1, regions=regions, phases=(Phase("run", "whole", np.arange(3), arrays),)))
    assert text == "Computation takes 91.0 % of the run, of it solve 98.9 %; what it is bound by was not measured."


def test_the_kinds_of_code_are_named_the_largest_first() -> None:
    text, command = told(coded(run(9.0), all=9.0, known=9.0, math=6.3, strided=1.8, copy=0.1))
    assert text == (
        "Computation takes 90.0 % of the run: 70.0 % of it in mathematical functions and loops that call them; "
        "20.0 % of it in loops that step over numbers."
    )
    assert command is not None
    assert command == "gapwatch run --deep -- ./PROGRAM"


def test_of_one_loop_the_cause_that_says_most_is_named() -> None:
    kinds = {"all": 9.0, "known": 9.0, "unoptimized": 0.0, "objects": 8.0, "division": 8.0, "baseline": 9.0}
    text, _ = told(coded(run(9.0), **kinds))
    assert text == (
        "Computation takes 90.0 % of the run: 88.9 % of it in loops that take a few numbers of each object; "
        "11.1 % of it in floating-point code for the oldest processors."
    )
    text, _ = told(coded(run(9.0), **kinds | {"objects": 0.0, "division": 0.0}))
    assert text is not None
    assert "100.0 % of it in floating-point code for the oldest processors" in text


def test_code_in_which_nothing_stands_out_is_called_so() -> None:
    text, command = told(coded(run(9.0), all=9.0, known=9.0, unoptimized=0.0, math=0.0, strided=0.2))
    assert text is not None
    assert "nothing in their code stands out" in text
    assert command is not None


def test_of_a_program_in_python_nothing_is_known_of_loops() -> None:
    seconds = {"all": 9.0, "known": 9.0, "interpreted": 0.0, "pickled": 0.0}
    text, _ = told(coded(run(9.0), **seconds))
    assert text == "Computation takes 90.0 % of the run; what it is bound by was not measured."


def test_unoptimized_code_is_not_to_be_measured_further() -> None:
    text, command = told(coded(run(9.0), all=9.0, known=9.0, unoptimized=9.0))
    assert text == "Computation takes 90.0 % of the run: 100.0 % of it in code compiled without optimization."
    assert command is None


def test_a_ceiling_is_the_share_that_the_action_is_about() -> None:
    profile = coded(run(8.0), all=8.0, known=8.0, math=4.0, unoptimized=0.0)
    (first, *_) = advice_on(profile).recommendations
    reached_s = policy.REPAIR_REACH * 4.0
    assert (first.action, first.ceiling_s, first.basis) == ("G-34", pytest.approx(reached_s), "calibration")
    calibration = next(action.gain for action in BOOK.actions if action.id == "G-34")
    assert calibration is not None
    low, usual, high = calibration.wins
    assert first.expected_s == pytest.approx(4.0 * usual)
    assert first.interval_s == pytest.approx((4.0 * low, reached_s * high))


def test_actions_without_a_calibration_are_about_all_of_their_gaps() -> None:
    fired = match_rules(BOOK, build_case_sheet("scalar-code")).fired
    assert {one.action.id: restrict_ceiling(one, 2.5) for one in fired}["A-20"] == 2.5


@pytest.mark.usefixtures("every_tool")
def test_the_command_of_the_user_stands_in_the_commands() -> None:
    profile = run(9.0, executable="/opt/solver", parameters={"command": "srun -n 4 ./solver 'a b'"})
    assert next_commands.split_command(profile) == ("srun -n 4 ", "./solver 'a b'")
    fill = next_commands._filler(profile, [Path("my trace")])
    assert fill("mpirun -n 4 valgrind ./PROGRAM && gapwatch advise PATH") == (
        "srun -n 4 valgrind ./solver 'a b' && gapwatch advise 'my trace'"
    )
    assert fill("DARSHAN_LOGPATH=. ./PROGRAM") == "DARSHAN_LOGPATH=. ./solver 'a b'"
    assert fill("gapwatch advise --cores N PATH").startswith("gapwatch advise --cores ")
    assert "--cores N" not in fill("gapwatch advise --cores N PATH")
    assert fill("gapwatch incore . --write PROGRAM.operations.json") == (
        "gapwatch machines probe && gapwatch incore . --write solver.operations.json"
    )


@pytest.mark.usefixtures("every_tool")
def test_what_is_not_known_stays_in_capitals() -> None:
    profile = run(9.0, processors=(Processor(0, host="elsewhere"),))
    fill = next_commands._filler(profile, [Path("t")])
    assert fill("perf record ./PROGRAM && gapwatch advise --cores N PATH") == (
        "perf record ./PROGRAM && gapwatch advise --cores N t"
    )


def test_host_is_the_probed_model_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from advisor_processor.probe.model_document import render_machine

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "gapwatch" / "machine_models"
    folder.mkdir(parents=True)
    assert user_folders.resolve_machine("host") == "host"
    found = replace(machines.load_host_machine(), name="probed")
    (folder / "probed.yaml").write_text(render_machine(found), encoding="utf-8")
    assert user_folders.resolve_machine("host") == str(folder / "probed.yaml")
    other = replace(found, cores_per_socket=type(found.cores_per_socket)(4711, "system topology"))  # type: ignore[misc]
    (folder / "probed.yaml").write_text(render_machine(other), encoding="utf-8")
    assert user_folders.resolve_machine("host") == "host", "home directories are shared by different machines"


def test_advice_on_a_stated_program_names_the_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = compile_program(tmp_path, "gcc", SLOW, "-g")
    document = {
        "schema": "gapwatch/profile/1", "program": "program", "run": "1", "reader": "test", "actual_s": 10.0,
        "processors": 1,
        "regions": [{"name": "main", "wall_s": [10.0], "cpu_s": [9.5]}],
    }  # fmt: skip
    file = tmp_path / "run.json"
    file.write_text(json.dumps(document))
    assert cli.main(["advise", str(file), "--binary", str(program), "--format", "json"]) == 0
    first = json.loads(capsys.readouterr().out)["recommendations"][0]
    assert (first["action"], first["basis"]) == ("G-29", "calibration")
    assert first["region"]["file"].endswith("program.c")
    assert first["region"]["line"] in (6, 7, 8)


def test_code_that_one_thread_runs_alone_costs_all_of_its_time() -> None:
    arrays = {"cpu_s": np.array([[4.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])[:, :, None]}
    profile = run(
        8.0,
        actual_s=5.0,
        processors=tuple(Processor(0, thread) for thread in range(4)),
        regions=(Region("setup"), Region("loop", threaded=True)),
        phases=(Phase("run", "whole", np.arange(2), {**arrays, "wall_s": arrays["cpu_s"]}),),
        paradigms=("OpenMP",),
    )
    seconds = arrays["cpu_s"][:, :, 0]
    zero = np.zeros((2, 4))
    alone, shared = zero.copy(), zero.copy()
    alone[0], shared[1] = seconds[0], seconds[1]
    kinds = {"all": seconds, "known": seconds, "unoptimized": zero}
    for math, most in ((alone, 4.0), (shared, 1.0)):
        counts = {f"code.{name}_s": table for name, table in {**kinds, "math": math}.items()}
        found = advice_on(replace(profile, counts=counts))
        item = next(one for one in found.recommendations if "G-34" in (one.action, *one.alternatives))
        reached = min(policy.REPAIR_REACH * most, profile.actual_s)
        assert (item.action, item.ceiling_s) == ("G-34", pytest.approx(reached))
        assert found.total.ceiling_s >= item.ceiling_s
