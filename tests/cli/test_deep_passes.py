"""``gapwatch run --deep``: which passes are planned, how programs are run again, and what that tells."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from advice_samples import full
from strategies import build, phase

from advisor.collect.passes import conclusions, planning, programs
from advisor.collect.passes.calls import count_calls, find_difference
from advisor.model.errors import InputError
from advisor.model.records import Bound, Gap, Note, Phase
from advisor.trace.recordings.command import RunCommand, current_command, read_command, write_command
from advisor.trace.recordings.passes import NAME, Conclusions, read_conclusions, write_conclusions

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Advice, Profile

NOTHING_LACKS = planning.PassNeeds({}, machine_known=True)


def advice(computing: float, imbalance: float, wall_s: float = 10.0) -> Advice:
    gap = Gap("L", ("L",), "IPCO", "IPCOL", imbalance, imbalance / wall_s, "measured")
    profile = replace(full().profile, actual_s=wall_s, outside={})
    return replace(full(), profile=profile, bounds=(Bound("I", computing, "measured"),), gaps=(gap,))


def test_passes_that_tell_of_most_seconds_come_first() -> None:
    computing = planning.plan_passes(advice(9.0, 0.5), NOTHING_LACKS)
    assert computing[0].name == "instructions"
    waiting = planning.plan_passes(advice(1.0, 8.0), NOTHING_LACKS)
    assert waiting[0].name == "again"


def test_a_pass_is_left_out_with_its_reason() -> None:
    needs = planning.PassNeeds({"source": "its sources are not found (compile with -g)"}, machine_known=True)
    passes = {one.name: one for one in planning.plan_passes(advice(9.9, 0.0), needs)}
    why = {name: planning.explain_skipped_pass(one, ("one",), agreed=False) for name, one in passes.items()}
    assert why == {
        "instructions": "takes long: --yes agrees to it", "source": "its sources are not found (compile with -g)",
        "one": "refused", "again": "would change nothing", "machine": "would change nothing",
    }  # fmt: skip
    chosen = planning.select_passes(tuple(passes.values()), ("one",), agreed=True)
    assert [one.name for one in chosen] == ["instructions"]


def test_the_machine_is_measured_before_what_needs_it() -> None:
    passes = planning.plan_passes(advice(9.0, 1.0), planning.PassNeeds({}, machine_known=False))
    names = [one.name for one in planning.select_passes(passes, (), agreed=True)]
    assert names.index("machine") < names.index("instructions")


def test_the_program_of_a_command_is_put_under_callgrind(tmp_path: Path) -> None:
    words = ["mpirun", "-n", "4", "./app", "-n", "7"]
    found = programs.callgrind_command(words, 3, tmp_path, "Open MPI v4.1.4")
    assert found[:4] == ["mpirun", "-n", "4", "valgrind"]
    assert found[-3:] == ["./app", "-n", "7"]
    assert any(word.endswith("callgrind.out.%q{OMPI_COMM_WORLD_RANK}") for word in found)
    assert any("PMI_RANK" in word for word in programs.callgrind_command(words, 3, tmp_path, "MPICH Version: 4.0.2"))
    assert any(word.endswith("callgrind.out.0") for word in programs.callgrind_command(words[3:], 0, tmp_path, ""))


def test_a_pass_ends_in_time_and_keeps_what_it_wrote(tmp_path: Path) -> None:
    done = programs.rerun_program(["sh", "-c", "echo $WHO; exit 3"], tmp_path / "log", {"WHO": "me"})
    assert (done.code, done.said) == (3, "me")
    late = programs.rerun_program(["sh", "-c", "sleep 60 & sleep 60"], tmp_path / "log", limit_s=0.1)
    assert late.code < 0


CALLS = """# callgrind format
version: 1
events: Ir
fn=(1) main
16 10
cfn=(2) PMPI_Send
calls=30 0
17 300
cfn=(3) MPI_Barrier
calls=2 0
18 20
fn=(4) other
cfn=(2)
calls=12 0
19 5
"""


def test_calls_are_counted_by_name(tmp_path: Path) -> None:
    (tmp_path / "callgrind.out.0").write_text(CALLS)
    assert count_calls(tmp_path / "callgrind.out.0") == {"MPI_Send": 42, "MPI_Barrier": 2}


def test_other_work_is_named() -> None:
    counted = {"MPI_Send": 42, "MPI_Barrier": 2, "MPI_Test": 9}
    names = ("MPI_Send", "MPI_Barrier", "MPI_Test", "MPI_Init")
    assert find_difference({"MPI_Send": 42.0, "MPI_Barrier": 2.0, "MPI_Test": 100.0}, counted, names) is None
    assert find_difference({"MPI_Send": 420.0, "MPI_Barrier": 2.0}, counted, names) == (
        "MPI_Send was called 420 times in the ordinary run and 42 times in this one"
    )


def run(work: list[float], wall_s: float | None = None) -> Profile:
    spent = np.array(work)[None, :, None]
    nothing = np.zeros_like(spent)
    arrays = {"wall_s": np.full_like(spent, spent.max()), "cpu_s": spent, "wait_s": spent.max() - spent}
    arrays |= dict.fromkeys(("transfer_s", "sync_s", "io_s", "os_s"), nothing)
    one = Phase("step", "parallel", np.array([0]), arrays)
    profile = build([phase([[each] for each in work])])
    return replace(profile, phases=(one,), actual_s=wall_s or max(work), status=dict.fromkeys(one.arrays, "measured"))


def test_what_comes_back_on_the_same_processors_is_structure() -> None:
    note, lost_s = conclusions.compare_runs(run([1.0, 2.0]), run([1.1, 2.0]))
    assert "it is structure" in note.text
    assert lost_s == pytest.approx(0.05)
    note, lost_s = conclusions.compare_runs(run([1.0, 2.0]), run([2.0, 1.0]))
    assert "on other processors" in note.text
    assert note.penalty > 0
    assert lost_s == pytest.approx(0.5)
    assert "noise" in conclusions.compare_runs(run([1.0, 2.0]), run([1.0, 1.02]))[0].text
    assert "balanced in both" in conclusions.compare_runs(run([1.0, 1.0]), run([1.0, 1.01]))[0].text
    assert conclusions.compare_runs(run([1.0, 2.0]), run([1.0]))[1] is None


def test_one_processor_tells_what_side_by_side_costs() -> None:
    alone = run([4.0])
    assert "+30%: caches, memory and doubled work" in conclusions.compare_with_single(run([1.3] * 4), alone).text
    assert "work grows with their number" in conclusions.compare_with_single(run([4.4] * 4), alone).text
    assert "is not compared" in conclusions.compare_with_single(run([0.1] * 4), alone).text


def test_what_passes_showed_is_kept(tmp_path: Path) -> None:
    for found in (Conclusions((Note("second run", "text \u00b5", 0.2),), 0.5), Conclusions()):
        write_conclusions(tmp_path, found)
        assert read_conclusions(tmp_path) == found
    assert read_conclusions(tmp_path / "nothing") == Conclusions()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "gapwatch/passes/1"}', '{"schema": 1, "passes": []}',
                                  '{"schema": "gapwatch/passes/1", "passes": [{"name": "a"}]}'])  # fmt: skip
def test_damaged_conclusions_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(InputError):
        read_conclusions(tmp_path)


def test_a_command_is_kept_with_its_settings(tmp_path: Path) -> None:
    command = current_command(["./app", "a b", "x\ny\\"], {"OMP_NUM_THREADS": "3", "SECRET": "no"})
    write_command(tmp_path, command)
    found = read_command(tmp_path)
    assert found == command
    assert found is not None
    assert found.line.startswith("OMP_NUM_THREADS=3 ./app 'a b' ")
    assert read_command(tmp_path / "nothing") is None
    (tmp_path / "command").write_text("gapwatch/trace/1 command\nnonsense\n")
    with pytest.raises(InputError, match="line 2"):
        read_command(tmp_path)
    assert RunCommand(("a",), "/").line == "a"


def test_a_file_as_standard_input_is_part_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "some words.txt").write_text("one two\n")
    (tmp_path / "r").mkdir()
    code = (
        "import sys; from pathlib import Path; from advisor.trace.recordings.command import *\n"
        "write_command(Path('r'), current_command(['./count']))\n"
    )
    with (tmp_path / "some words.txt").open() as words:
        subprocess.run([sys.executable, "-P", "-c", code], stdin=words, cwd=tmp_path, check=True)
    found = read_command(tmp_path / "r")
    assert found == RunCommand(("./count",), str(tmp_path), input=str(tmp_path / "some words.txt"))
    subprocess.run([sys.executable, "-P", "-c", code], stdin=subprocess.DEVNULL, cwd=tmp_path, check=True)
    assert read_command(tmp_path / "r") == RunCommand(("./count",), str(tmp_path))
