from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import advice_samples
import pytest
from sampled_runs import process, recording

from advisor.collect import profiling_tools, table
from advisor.collect.records import BlockedCall
from advisor.collect.sampled_run import analyze_recording
from advisor.model.recommendations import Need
from advisor.model.records import Bound, Note
from advisor.output.page import Page
from advisor.output.report_text import render_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.collect.sampled_run import SampledRun

MPIRUN = ("mpirun", "-n", "2", "--bind-to", "none", "./app", "-x", "a b")


def of(*names: str) -> Callable[[str], bool]:
    """A machine with these tools."""
    return lambda name: name in names


def ranks(arguments: tuple[str, ...] = MPIRUN) -> SampledRun:
    return analyze_recording(recording(*(process("app", 0, 10, 9.0, rank=n) for n in range(2)), arguments=arguments))


def one(*arguments: str, name: str = "app", **blocked: float) -> SampledRun:
    files = {BlockedCall("file", call, "/x"): seconds for call, seconds in blocked.items()}
    return analyze_recording(recording(process(name, 0, 10, 5.0, blocked=files), arguments=arguments))


@pytest.mark.parametrize(
    ("run", "here", "expected"),
    [
        (ranks(), ("eztrace", "tau_exec", "perf"), 'mpirun -n 2 --bind-to none eztrace -o gapwatch-trace -t "openmpi '
         "posixio\" ./app -x 'a b' && gapwatch advise gapwatch-trace"),
        (ranks(), ("tau_exec", "perf"),
         "mpirun -n 2 --bind-to none tau_exec -T mpi -ebs ./app -x 'a b' && gapwatch advise ."),
        (ranks(), ("valgrind", "perf"),
         "mpirun -n 2 --bind-to none valgrind --tool=callgrind ./app -x 'a b' && gapwatch advise ."),
        (one("./app"), ("valgrind", "eztrace"), "valgrind --tool=callgrind ./app && gapwatch advise ."),
        (one("./app", fsync=4.0), ("valgrind", "eztrace"),
         "eztrace -o gapwatch-trace -t posixio ./app && gapwatch advise gapwatch-trace"),
        (one("./app"), (), "gapwatch run --interval 10ms -- ./app"),
        (one("./run.sh"), ("valgrind",), "valgrind --tool=callgrind ./PROGRAM && gapwatch advise ."),
        (ranks(("sbatch", "job")), ("eztrace",),
         'mpirun -n 2 eztrace -o gapwatch-trace -t "openmpi posixio" ./PROGRAM && gapwatch advise gapwatch-trace'),
        (one("time", "python3", "a.py", name="a.py"), ("valgrind",),
         "time valgrind --tool=callgrind python3 a.py && gapwatch advise ."),
    ],
)  # fmt: skip
def test_the_next_command_is_one_that_works_here(run: SampledRun, here: tuple[str, ...], expected: str) -> None:
    command = profiling_tools.select_next_command(run, of(*here))
    assert command.replace("{launch}", "") == expected


def test_words_of_the_user_stay_words() -> None:
    odd = ("./app", "$(touch x)", "a;b", "-", "it's", "\udcff")
    command = profiling_tools.select_next_command(one(*odd), of("valgrind")).partition(" && ")[0]
    assert shlex.split(command)[2:] == [*odd[:-1], "\\xff"]


def test_commands_of_the_advice_work_here_or_give_way() -> None:
    advice = replace(
        advice_samples.full(),
        needs=(
            Need("a", "scorep mpicc SOURCES -o PROGRAM && mpirun -n 2 ./PROGRAM"),
            Need("b", "mpirun -n 2 valgrind --tool=cachegrind ./PROGRAM"),
        ),
        bounds=(Bound("M", None, "unavailable", "why", "TAU_METRICS=TIME mpirun -n 2 tau_exec ./PROGRAM"),),
    )
    advice = replace(advice, grade=replace(advice.grade, notes=(Note("n", "t", 0.1, "run more iterations"),)))
    adapted = profiling_tools.localize_advice(advice, ranks(), of("eztrace", "valgrind", "mpirun"))
    better = profiling_tools.select_next_command(ranks(), of("eztrace", "valgrind"))
    assert [need.command for need in adapted.needs] == [
        better, "mpirun -n 2 --bind-to none valgrind --tool=cachegrind ./app -x 'a b'", better,
    ]  # fmt: skip
    assert adapted.bounds[0].collect == better
    assert adapted.grade.notes[0].collect == "run more iterations"


def test_perf_is_proposed_only_where_it_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(profiling_tools, "_can_sample", lambda: False)
    assert profiling_tools.is_usable_here("valgrind")
    assert not profiling_tools.is_usable_here("perf")


def test_the_table_shows_who_does_what() -> None:
    sleeping = {BlockedCall("other", "nanosleep"): 1.0}
    run = analyze_recording(
        recording(process("app", 0, 10, 9.0, rank=0), process("app", 0, 10, 0.5, rank=1, blocked=sleeping))
    )
    shown = render_report(table.build_process_report(run), Page(120)).splitlines()
    assert " ".join(shown[1].split()) == (
        "processor program time CPU files queued waiting then mostly in peak memory bound to"
    )
    assert " ".join(shown[3].split()).startswith("rank 1 app 10.0 s 5.0 % 0.0 % 0.0 % 95.0 % nanosleep")
    assert "nanosleep" in shown[3]
    assert "nanosleep" not in shown[2]
    assert shown[-1] == "Sampling took 0.8 % of one processor (80.0 ms in all)."


def test_a_long_table_shows_the_least_and_the_most_busy() -> None:
    run = analyze_recording(recording(*(process("app", 0, 10, 0.5 + n / 2, rank=n) for n in range(16))))
    names = [
        str(row[0])
        for part in table.build_process_report(run, 4).parts
        if isinstance(part, table.Table)
        for row in part.rows
    ]
    assert names == ["rank 0", "rank 1", "rank 14", "rank 15"]
