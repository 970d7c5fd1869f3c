"""What ``gapwatch tune`` tries: settings that fit the gaps, the program, its launcher and its library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.collect.binaries.executables import find_program
from advisor.experiments.candidates import ProgramFacts, describe_program, propose_settings, uses_openmp
from advisor.experiments.mpi_settings import find_costly_collective, iterate_bindings, iterate_mpi_variables
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
from advisor.model.records import Region, Share
from gapwatch import load

if TYPE_CHECKING:
    from advisor.model.records import Advice


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


@pytest.fixture
def fig4(request: pytest.FixtureRequest) -> Path:
    return request.config.rootpath / "tests" / "profiles" / "fig4.json"


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
