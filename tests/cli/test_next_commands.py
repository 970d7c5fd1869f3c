"""Commands that advice prints: filled in, runnable where they are printed, and bringing what they promise."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from advice_samples import full
from command_line import environment
from command_line import run as gapwatch
from recorded_runs import SOURCES, record_run

from advisor.cli import next_commands

#: What stands for something that only the user knows.
OPEN = re.compile(r"PROGRAM|SOURCES|PATH|DIRECTORY|RANKS|…")
#: A model of a machine with functional units, so that nothing has to be measured.
MACHINE = "xeon-8480"
#: Where a shell finds the command that is tested.
SEARCHED = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))


def commands_of(document: dict[str, list[dict[str, str]]]) -> list[str]:
    """Return every command of an advice."""
    found = [need["command"] for need in document["needs"]]
    found += [bound["collect"] for bound in document["bounds"] if bound.get("collect")]
    return list(dict.fromkeys(part for command in found for part in command.split("; ") if part))


def advise_on(folder: Path, *options: str) -> dict[str, list[dict[str, str]]]:
    done = gapwatch("advise", "--format", "json", *options, str(folder), home=folder.parent)
    found: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
    return found


def test_every_command_of_a_recording_can_be_run(tmp_path: Path) -> None:
    if shutil.which("valgrind") is None or shutil.which("gcc") is None:
        pytest.skip("needs valgrind and gcc")
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(SOURCES / "sweep.c", home)
    subprocess.run(["gcc", "-g", "-O1", "sweep.c", "-o", "sweep", "-lm"], cwd=home, check=True)
    folder, _, err = record_run(tmp_path, "./sweep", "20000")
    assert "recorded into" in err, err
    document = advise_on(folder, "--machine", MACHINE)
    promised = {need["fact"] for need in document["needs"] if "--deep" in need["command"]}
    own = [command for command in commands_of(document) if command.startswith("gapwatch") and "…" not in command]
    assert "gapwatch run --deep -- ./sweep 20000" in own
    assert promised
    for command in own:
        assert not OPEN.search(command), command
        # the machine is not measured anew: that takes a minute
        known = command.replace("--deep", f"--deep --yes --skip machine --machine {MACHINE} --profile deep")
        done = subprocess.run(
            ["bash", "-c", known],
            cwd=home,
            env=environment(home, PATH=SEARCHED),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
    deep = advise_on(home / "deep", "--machine", MACHINE)
    assert not [bound for bound in deep["bounds"] if bound["status"] == "unavailable"]
    assert not promised & {need["fact"] for need in deep["needs"]}
    assert "gapwatch run" not in " ".join(commands_of(deep))


def filled(text: str, **parameters: str) -> str:
    profile = replace(full().profile, program="app", executable=None, parameters=parameters)
    return next_commands._filler(profile, [Path("run")])(text)


@pytest.mark.usefixtures("every_tool")
def test_settings_and_directory_of_the_run_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = "OMP_NUM_THREADS=2 mpirun -n 4 ./app 'a b'"
    expected = "OMP_NUM_THREADS=2 gapwatch run --deep -- mpirun -n 4 ./app 'a b'"
    deep = "gapwatch run --deep -- mpirun -n 4 ./PROGRAM"
    assert filled(deep, command=command, directory=str(tmp_path)).startswith(expected)
    assert filled(deep, command=command, directory="/else where") == f"(cd '/else where' && {expected})"
    assert filled(deep, command="./run.sh x").startswith("gapwatch run --deep -- ./run.sh x")
    assert filled(deep, command="./count", input="/a b") == "gapwatch run --deep -- ./count < '/a b'"
    assert filled(f"{deep}; gapwatch advise --machine host PATH", command="./app") == ("gapwatch run --deep -- ./app")


def test_an_interpreter_stays_before_its_script() -> None:
    assert filled("mpirun -n 4 likwid-perfctr ./PROGRAM", command="mpirun -n 2 python3 app x").startswith(
        "mpirun -n 2 likwid-perfctr python3 app x"
    )


def test_what_is_not_installed_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert filled("likwid-perfctr ./PROGRAM", command="./app") == "likwid-perfctr ./app  # needs apt install likwid"
    assert filled("gapwatch run --deep -- ./PROGRAM", command="./app").endswith(
        '# needs apt install valgrind and pip install "gapwatch[processor]"'
    )


def test_what_was_just_run_is_not_proposed() -> None:
    profile = replace(full().profile, reader="recording", parameters={"command": "./app"})
    assert not next_commands._filler(profile, [])("gapwatch run -- ./PROGRAM")
    assert next_commands._filler(profile, [])("gapwatch run --deep -- ./PROGRAM")
    counted = replace(profile, reader="recording+incore+count")
    assert not next_commands._filler(counted, [])("gapwatch run --deep -- ./PROGRAM")
    script = replace(profile, language="python", parameters={"command": "python3 app", "passes": "passes.json"})
    for made in ("gapwatch run --deep -- ./PROGRAM", "gapwatch advise --binary ./PROGRAM PATH"):
        assert not next_commands._filler(script, [])(made)


def test_a_binary_to_look_at_has_no_arguments() -> None:
    command = "mpirun -n 2 ./app -n 100"
    assert filled("gapwatch advise --binary ./PROGRAM PATH", command=command) == "gapwatch advise --binary ./app run"


def test_a_recording_with_fewer_ranks_is_the_user_s_command_with_that_number() -> None:
    fewer, ranks = "gapwatch run -- mpirun -n {} ./PROGRAM", full().profile.ranks
    for reader in ("otf2", "recording"):
        known = {"command": f"mpirun -np {ranks} --bind-to none ./app x"}
        profile = replace(full().profile, program="app", executable=None, reader=reader, parameters=known)
        fill = next_commands._filler(profile, [])
        assert fill(fewer.format(ranks - 1)) == f"gapwatch run -- mpirun -np {ranks - 1} --bind-to none ./app x"
        assert bool(fill(fewer.format(ranks))) == (reader != "recording")
