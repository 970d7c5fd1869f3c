"""Which MPI library the recorder is built for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from advisor.collect.recorder import building, session

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a launcher and two compilers, and a program of one of their libraries."""
    for name, text in (
        ("mpirun", "#!/bin/sh\n"), ("mpicc", "#!/bin/sh\n"), ("mpicc.mpich", "#!/bin/sh\n"),
        ("app", "\x7fELF libmpich.so.12\0"), ("plain", "\x7fELF libc.so.6\0"),
    ):  # fmt: skip
        file = tmp_path / name
        file.write_bytes(text.encode("latin-1"))
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("GAPWATCH_MPICC", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(building, "_library_of", {"mpicc": "libmpi.so.40", "mpicc.mpich": "libmpich.so.12"}.get)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "script", "command"),
    [
        ("run.sh", "#!/bin/bash\nexport N=2\nmpirun -n $N ./app 10 # twice\n", ("./run.sh",)),
        ("run.sh", "#!/usr/bin/env bash\nfor n in 1 2; do ./app $n; done\n", ("./run.sh", "all")),
        ("job", "mpirun -n 2 ./app it's\n", ("bash", "job")),
        ("job", '#!/bin/sh -e\n./app "two\nlines"\n', ("env", "A=1", "./job")),
        ("job", "./app>log;exit", ("bash", "job")),
        ("job", "", ("time", "bash", "-lc", "cd run && ./app 10")),
        ("job", "", ("sh", "-c", "(mpirun -n 2 ./app)")),
    ],
)
def test_a_script_of_the_shell_says_which_library_is_meant(
    site: Path, name: str, script: str, command: tuple[str, ...]
) -> None:
    (site / name).write_text(script, encoding="utf-8")
    found = building.find_compiler(command)
    assert found is not None
    assert (found.command, found.library) == ("mpicc.mpich", "libmpich.so.12")


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("#!/bin/sh\n# mpirun -n 2 ./app\n./plain\n", ("./run.sh",)),
        ("#!/usr/bin/env python3\nprint('mpirun ./app')\n", ("./run.sh",)),
        ("mpirun ./app\n", ("./plain", "run.sh")),
        ("", ("sh", "-c", "./plain # ./app")),
        ("", ("./plain", "./app.txt; ./app")),
    ],
)
def test_what_no_shell_would_execute_says_nothing(site: Path, script: str, command: tuple[str, ...]) -> None:
    (site / "run.sh").write_text(script, encoding="utf-8")
    assert building.find_compiler(command) is None


def test_a_stated_compiler_is_taken_where_the_command_shows_nothing(site: Path) -> None:
    assert building.find_compiler(("make", "run"), "mpicc") == building.Compiler("mpicc", "libmpi.so.40")
    for stated, said in (("nosuch", "no command 'nosuch'"), ("plain", "'plain' builds no program of MPI")):
        with pytest.raises(building.BuildError, match=said):
            building.find_compiler(("make", "run"), stated)


def test_who_cannot_write_a_home_records_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # nothing can be made below a file
    monkeypatch.setattr(building, "_compile", lambda command, generated, target, library: target.write_text(""))
    monkeypatch.setattr(building, "_plain_compiler", lambda: "cc")
    library = building.build_recorder(None)
    assert library.exists()
    assert not library.is_relative_to(tmp_path)


@pytest.mark.parametrize(
    ("command", "started"),
    [
        ("mpirun -n 2 -x A ./app -x 3", "mpirun -n 2 {} -x A ./app -x 3"),
        ("env B=1 mpirun -x B=2 -x A -n 2 ./app", "env B=1 mpirun {} -x B=2 -x A -n 2 ./app"),
        ("mpirun -n 2 ./app -x 3", None),
        ("bash -x run.sh", None),
        ("bash -x hands_on.sh", "bash -x hands_on.sh"),
    ],
)
def test_open_mpi_is_told_once_what_to_hand_on(
    site: Path, monkeypatch: pytest.MonkeyPatch, command: str, started: str | None
) -> None:
    (site / "run.sh").write_text("#!/bin/sh\nset -x\nmpirun -n 2 ./app\n", encoding="utf-8")
    (site / "hands_on.sh").write_text("#!/bin/sh\nmpirun -n 2 -x A=1 ./app\n", encoding="utf-8")
    monkeypatch.setattr(session, "build_recorder", lambda compiler: site / "recorder.so")
    monkeypatch.setenv("OMPI_MCA_mca_base_env_list", "A")
    prepared = session.prepare_session(command.split(), site / "recording")
    handed = [name for name in prepared.variables if name != "OMPI_MCA_mca_base_env_list"]
    options = " ".join(f"-x {name}" for name in handed)
    assert " ".join(prepared.command) == (started or command).format(options)
    given = prepared.variables.get("OMPI_MCA_mca_base_env_list")
    assert given == (";".join(("A", *handed)) if started is None else None)
