"""Which word of a command starts ranks, and how many it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from advisor.support.launchers import (
    count_ranks,
    find_launched_program,
    find_launcher_place,
    find_rank_option,
    is_launcher,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("command", "alone"),
    [
        ("mpirun -np 4 ./app -n 7", "mpirun -np 1 ./app -n 7"),
        ("mpirun --np=4 ./app", "mpirun --np=1 ./app"),
        ("/opt/mpich/bin/mpiexec.hydra -n 4 ./app", "/opt/mpich/bin/mpiexec.hydra -n 1 ./app"),
        ("mpirun.openmpi -c 4 ./app", "mpirun.openmpi -c 1 ./app"),
        ("srun -c 3 --ntasks=4 ./app", "srun -c 3 --ntasks=1 ./app"),
        ("srun -n4 ./app", "srun -n1 ./app"),
        ("srun -N 2 --ntasks 4 ./app", "srun -N 2 --ntasks 1 ./app"),
        ("env OMP_NUM_THREADS=2 mpirun -n 4 ./app", "env OMP_NUM_THREADS=2 mpirun -n 1 ./app"),
        ("jsrun -n 2 -p 4 ./app", "jsrun -n 2 -p 1 ./app"),
        ("aprun -d 8 -n 4 ./app", "aprun -d 8 -n 1 ./app"),
        ("flux run -c 8 -n 4 ./app", "flux run -c 8 -n 1 ./app"),
        ("mpirun --bind-to core -n 4 ./app -n 9", "mpirun --bind-to core -n 1 ./app -n 9"),
    ],
)
def test_the_number_of_ranks_is_found_and_replaced_in_its_form(command: str, alone: str) -> None:
    words = command.split()
    option = find_rank_option(words)
    assert option is not None
    assert option.ranks == count_ranks(words) == 4
    assert option.replace_ranks(words, 1) == alone.split()


def test_options_of_the_program_are_its_own(tmp_path: Path) -> None:
    program = tmp_path / "app"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    assert find_rank_option(["mpirun", str(program), "-n", "4"]) is None
    assert find_rank_option(["srun", "./app", "-n", "7"], 1) is None
    assert count_ranks(["mpirun", str(program), "-n", "4"]) == 1


@pytest.mark.parametrize(
    "command", ["./app -n 4", "env A=1 ./app", "mpirun -n 2 ./one : -n 2 ./two", "flux ./run -n 4"]
)
def test_no_number_is_made_up(command: str) -> None:
    assert find_rank_option(command.split()) is None
    assert count_ranks(command.split()) == 1


def test_launchers_are_known_by_their_names() -> None:
    assert all(map(is_launcher, ("mpirun", "/usr/bin/mpiexec", "mpirun.mpich", "mpiexec-mpich-mp", "srun")))
    assert not any(map(is_launcher, ("./app", "mpirunner", "flux.x", "4")))
    assert find_launcher_place(["time", "srun", "./app"]) == 1


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("mpirun -np 2 ./app -n 3", "./app"),
        ("mpirun --oversubscribe -x LD_PRELOAD=/lib/a.so --mca btl self,tcp /opt/app 4", "/opt/app"),
        ("env A=1 srun --ntasks=4 -l app x", "app"),
        ("flux run -N 2 -n 8 app", "app"),
        ("mpiexec.hydra -genvall -n 4 app", "app"),
        ("mpirun --new-flag ./app 4", "4"),
        ("./app mpi", None),
        ("mpirun -n 4", None),
    ],
)
def test_the_program_behind_a_launcher_is_told_by_the_names_of_options(command: str, program: str | None) -> None:
    """An option that is not known counts as one with a value."""
    words = command.split()
    place = find_launched_program(words)
    assert (None if place is None else words[place]) == program
