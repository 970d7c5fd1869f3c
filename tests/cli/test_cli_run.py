"""``gapwatch run`` with real processes; what is asserted does not depend on how long anything took."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from command_line import environment, run
from patience import PATIENCE_S

from advisor.formats import native

if TYPE_CHECKING:
    from pathlib import Path

#: Takes so much CPU time, for which it waits where others take it, too.
BUSY = """
import time
end = time.process_time() + {seconds}
while time.process_time() < end:
    sum(range(1000))
open("computed", "w").close()
"""
#: Waits for a rank that computes.
IDLE = """
import os, time
while not os.path.exists("computed"):
    time.sleep(0.05)
"""
WRITES = """
import os, time
end = time.monotonic() + 1.5
with open("out.dat", "wb", buffering=0) as out:
    while time.monotonic() < end:
        for _ in range(20):
            out.write(b"x" * 500)
            os.fsync(out.fileno())
        sum(range(1000))
"""
RANKS = """
import os, subprocess, sys
children = [
    subprocess.Popen([sys.executable, sys.argv[1 + rank]], env=dict(os.environ, PMI_RANK=str(rank), PMI_SIZE="2"))
    for rank in range(2)
]
sys.exit(max(child.wait() for child in children))
"""
WAITS = """
import signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("ready", flush=True)
while not seen:
    time.sleep(0.01)
time.sleep(0.3)
print("interrupted", len(seen), flush=True)
sys.exit(5)
"""
SHARES_CORES = len(os.sched_getaffinity(0)) < 2


def script(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def advised(folder: Path, *command: str, **more: str) -> dict[str, Any]:
    """The advice on a run of ``command``, whose profile is ``run.json``."""
    done = run(
        "run", "--from-outside", "--format", "json", "-o", "advice.json", "--profile", "run.json", "--", *command,
        home=folder, **more,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    document: dict[str, Any] = json.loads((folder / "advice.json").read_text("utf-8"))
    return document


def seconds(document: dict[str, Any]) -> dict[str, float]:
    """The gaps but the last, which holds what other programs and starting took."""
    return {gap["name"]: gap["seconds"] for gap in document["gaps"] if gap["to"] != "actual"}


def test_a_program_that_writes_all_the_time(tmp_path: Path) -> None:
    document = advised(tmp_path, sys.executable, script(tmp_path, "writes.py", WRITES))
    found = seconds(document)
    (gap,) = [gap for gap in document["gaps"] if gap["name"] == "O"]
    assert max(found, key=lambda name: found[name]) == "O"
    waited = {region["name"]: region["seconds"] for region in gap["regions"]}
    if waited.get("fsync", 0.0) > 0.5 * gap["seconds"]:  # not in memory, where forcing to storage takes no time
        assert document["recommendations"][0]["action"] == "G-19"
        assert document["recommendations"][0]["region"]["name"] == "fsync"
    elif "blocked on disk" in waited:
        assert document["verdict"] == "insufficient evidence"


def test_a_rank_that_has_nothing_to_do(tmp_path: Path) -> None:
    idle = script(tmp_path, "idle.py", IDLE)
    busy = script(tmp_path, "busy.py", BUSY.format(seconds=1))
    launcher = script(tmp_path, "launch.py", RANKS)
    document = advised(tmp_path, sys.executable, launcher, busy, idle)
    found = seconds(document)
    assert document["profile"]["processors"] == 2
    notes = " ".join(note["text"] for note in document["profile"]["quality"])
    assert "rank 1 worked" in notes
    disturbed = "other programs held the processors" in notes  # by a machine that does other things as well
    assert disturbed or max(found, key=lambda name: found[name]) == "L"
    assert found["L"] > 0
    if document["verdict"] != "advice":
        assert disturbed
        return
    assert SHARES_CORES or document["recommendations"][0]["action"] == "G-1"
    profile = native.advisor_read(tmp_path / "run.json")
    assert [processor.name for processor in profile.processors] == ["rank 0", "rank 1"]
    assert profile.ranks_expected == 2


def test_ranks_that_are_busy_may_only_be_waiting(tmp_path: Path) -> None:
    busy = script(tmp_path, "busy.py", BUSY.format(seconds=1))
    document = advised(tmp_path, sys.executable, script(tmp_path, "launch.py", RANKS), busy, busy)
    assert document["verdict"] != "nothing significant"
    assert "waiting hidden" in [note["name"] for note in document["profile"]["quality"]]


def test_a_program_without_faults(tmp_path: Path) -> None:
    document = advised(tmp_path, sys.executable, script(tmp_path, "busy.py", BUSY.format(seconds=1)))
    assert document["recommendations"] == []
    assert document["profile"]["program"] == "busy.py"
    assert document["needs"][0]["command"]


def test_ranks_of_mpirun(tmp_path: Path) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("needs mpirun (Debian: openmpi-bin)")
    busy = script(tmp_path, "busy.py", BUSY.format(seconds=0.5))
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ("mpirun", "-n", "2", "--oversubscribe", sys.executable, busy)
    document = advised(tmp_path, *command, **root)
    assert document["profile"]["program"] == "busy.py"
    assert document["profile"]["processors"] == 2
    profile = native.advisor_read(tmp_path / "run.json")
    assert [(processor.rank, processor.thread) for processor in profile.processors] == [(0, 0), (1, 0)]


def test_the_screen_says_what_was_seen_and_what_to_run_next(tmp_path: Path) -> None:
    done = run(
        "run",
        "--from-outside",
        "--",
        sys.executable,
        script(tmp_path, "busy.py", BUSY.format(seconds=0.3)),
        home=tmp_path,
    )
    text = done.stdout.decode()
    assert done.returncode == 0
    assert "samples saw" in text
    assert "Sampling took" in text
    assert "\nnext: " in text
    (file,) = tmp_path.glob("gapwatch-run-busy.py-*.json")
    assert file.name in done.stderr.decode()
    again = run("advise", file.name, home=tmp_path)
    assert again.returncode == 0
    assert "busy.py: " in again.stdout.decode()


def test_streams_pass_through(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gapwatch", "run", "--from-outside", "-o", "advice.txt", "--",
         "sh", "-c", "cat; echo also >&2"],
        input=b"in and out\n", capture_output=True, cwd=tmp_path, env=environment(tmp_path), check=True,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.stdout == b"in and out\n"
    assert done.stderr.startswith(b"also\n")
    assert "Sampling took" in (tmp_path / "advice.txt").read_text("utf-8")


def test_a_program_that_fails_keeps_its_exit_status(tmp_path: Path) -> None:
    done = run("run", "--from-outside", "--", "sh", "-c", "sleep 0.3; exit 7", home=tmp_path)
    assert done.returncode == 7
    assert b"the program ended with exit status 7" in done.stderr
    assert b"on 1 processor" in done.stdout


def test_a_gate_fails_a_run_that_succeeded(tmp_path: Path) -> None:
    busy = script(tmp_path, "busy.py", BUSY.format(seconds=0.3))
    gate = ("--fail-on", "O >= 0 %", "--fail-on", "O < 0 %")
    assert run("run", "--from-outside", *gate, "--", sys.executable, busy, home=tmp_path).returncode == 1
    failing = run(
        "run",
        "--from-outside",
        *gate,
        "--",
        sys.executable,
        "-c",
        "import time; time.sleep(0.3); exit(9)",
        home=tmp_path,
    )
    assert failing.returncode == 9
    assert b"the gate is O >= 0 %" in failing.stderr


@pytest.mark.parametrize("program", ["./missing", "no-such-program-here", "folder", "plain.txt"])
def test_what_cannot_be_started(program: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain.txt").write_text("")
    done = run("run", "--from-outside", "--", program, home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"gapwatch: can't start {program}: ")
    assert done.stderr.count(b"\n") == 1
    assert list(tmp_path.glob("*.json")) == []


def test_which_program(tmp_path: Path) -> None:
    done = run("run", "--from-outside", "--", home=tmp_path)
    assert done.returncode == 2
    assert b"no program given" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from-outside", "--profile", "missing/run.json"], "--profile: can't write missing/run.json"),
        (["--from-outside", "--profile", "folder"], "--profile: folder is there already; name a new file"),
        (["--profile", "folder"], "--profile: folder is there already; name a new directory"),
        (["--profile", "file/run"], "--profile: can't write file/run: Not a directory"),
        (["--profile", "/proc/run"], "--profile: can't write /proc/run: No such file or directory"),
    ],
)
def test_a_profile_that_cannot_be_written_is_refused_before_the_program_runs(
    options: list[str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    done = run("run", *options, "--", "touch", "started", home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.decode() == f"gapwatch: {message}\n"
    assert not (tmp_path / "started").exists()


def heed_interrupts() -> None:
    """Undo what shells do to what they start in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_reaches_the_program_and_the_profile_is_written(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "gapwatch",
        "run",
        "--from-outside",
        "--profile",
        "run.json",
        "--",
        sys.executable,
        "waits.py",
    ]
    script(tmp_path, "waits.py", WAITS)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path),
        preexec_fn=heed_interrupts,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=PATIENCE_S)
    assert out.startswith(b"interrupted 1\n")
    assert child.returncode == 5
    assert native.advisor_read(tmp_path / "run.json").parameters["exit status"] == 5


def test_ctrl_c_on_a_terminal_comes_once(tmp_path: Path) -> None:
    script(tmp_path, "waits.py", WAITS)
    command = [
        sys.executable,
        "-m",
        "gapwatch",
        "run",
        "--from-outside",
        "--profile",
        "run.json",
        "--",
        sys.executable,
        "waits.py",
    ]
    relay = f"import pty; pty.spawn({command!r})"
    with subprocess.Popen(
        [sys.executable, "-c", relay], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path,
        env=environment(tmp_path), preexec_fn=heed_interrupts,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdin is not None
        assert b"ready" in child.stdout.readline()
        child.stdin.write(b"\x03")
        child.stdin.flush()
        out = child.stdout.read()
    assert b"interrupted 1\r\n" in out
    assert native.advisor_read(tmp_path / "run.json").parameters["exit status"] == 5


def test_a_program_that_is_terminated(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gapwatch", "run", "--from-outside", "--", "sh", "-c", "echo ready; exec sleep 60"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path)
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.terminate()
        _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 128 + signal.SIGTERM
    assert b"ended by SIGTERM" in err
    assert len(list(tmp_path.glob("gapwatch-run-*.json"))) == 1


def test_the_program_has_the_signals_that_programs_have(tmp_path: Path) -> None:
    show = ("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    done = run("run", "--from-outside", "-o", "advice.txt", "--", *show, home=tmp_path)
    plain = subprocess.run(show, capture_output=True, check=True)
    of_the_c_library = 0b11 << 31  # two of its own signals, which it ignores in what it spawns
    found, expected = ([int(word, 16) for word in text.split()[1::2]] for text in (done.stdout, plain.stdout))
    assert [mask & ~of_the_c_library for mask in found] == [mask & ~of_the_c_library for mask in expected]


def test_odd_names_are_names(tmp_path: Path) -> None:
    odd = b"a b;$(touch hacked)\xff\x1b[2J.py"
    with open(os.fsencode(tmp_path) + b"/" + odd, "w", encoding="utf-8") as stream:
        stream.write(BUSY.format(seconds=0.3))
    done = run("run", "--from-outside", "--", sys.executable, os.fsdecode(odd), home=tmp_path)
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout + done.stderr
    assert not (tmp_path / "hacked").exists()
    (file,) = tmp_path.glob("gapwatch-run-*.json")
    assert native.advisor_read(file).program == "a b;$(touch hacked)\\xff\x1b[2J.py"
    assert file.name.startswith("gapwatch-run-a_b_touch_hacked_xff_2J.py-")


def test_nothing_of_the_environment_is_kept(tmp_path: Path) -> None:
    advised(tmp_path, "sh", "-c", "sleep 0.3", SECRET_TOKEN="hunter2", GAPWATCH_BUILD="v9")
    text = (tmp_path / "run.json").read_text("utf-8") + (tmp_path / "advice.json").read_text("utf-8")
    assert "hunter2" not in text
    assert native.advisor_read(tmp_path / "run.json").build == "v9"


@pytest.mark.parametrize("interval", ["0 s", "2 min", "fast", "50"])
def test_an_interval_that_makes_no_sense(interval: str, tmp_path: Path) -> None:
    done = run("run", "--from-outside", "--interval", interval, "--", "true", home=tmp_path)
    assert done.returncode == 2
    assert b"--interval" in done.stderr
