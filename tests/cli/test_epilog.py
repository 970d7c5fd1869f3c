"""The end of a batch job: three lines on what it used, where its time went and what to do; printed, mailed, posted.

Slurm's table is that of Slurm 22.05, on one node.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from command_line import ROOT, environment, run
from patience import PATIENCE_S, wait_until
from scheduler_output import FLUX, QSTAT

from advisor.cli.entry import main
from advisor.cli.job_messages import post_text
from advisor.trace.recordings.command import RunCommand, read_command, write_command

if TYPE_CHECKING:
    from pathlib import Path
    from urllib.request import Request

TRACE = ROOT / "examples" / "tutorial" / "recorded" / "v1-1" / "galaxy_trace"
SACCT = ROOT / "tests" / "profiles" / "slurm" / "sacct-22.05.txt"
CLUSTERS = ROOT / "packaging" / "clusters"
#: 2020-01-01T00:00:00Z, in seconds of the epoch: before any job here ran.
BEFORE_JOB = 1577836800.0


def put_tool(folder: Path, name: str, script: str) -> Path:
    """Put a command into a directory for PATH."""
    folder.mkdir(exist_ok=True)
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    tool.chmod(0o755)
    return tool


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of job 7, in which it wrote a trace; its scheduler prints what it accounts."""
    folder = tmp_path / "heat"
    folder.mkdir()
    shutil.copytree(TRACE, folder / "galaxy_trace")
    (folder / "input.nml").write_text("n = 1\n", encoding="utf-8")
    table = SACCT.read_text(encoding="utf-8").replace("/home/user/heat", str(folder))
    table = table.replace("2026-11-23", "2020-01-01")
    (tmp_path / "table").write_text(table, encoding="utf-8")
    put_tool(tmp_path / "bin", "sacct", f'[ "$4" = 7 ] && cat {tmp_path}/table')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    for name in [name for name in os.environ if name.startswith(("SLURM_", "PBS_", "FLUX_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    return folder


def test_three_lines_say_what_a_job_used_lost_and_can_win(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["epilog", "--job", "7"]) == 0
    used, lost, action = capsys.readouterr().out.splitlines()
    assert used == (
        "job 7 heat: COMPLETED after 17.0 s on 1 node; used 0.265 of 2 cores (13.3 %); at most 17.8 MiB in memory of"
        " a task"
    )
    assert lost.startswith("galaxy: ")
    assert "evidence B (good, minor doubts); most is lost to overall load imbalance" in lost
    assert "[A-28]" in action
    assert action.endswith("gapwatch advise galaxy_trace")


def test_inside_of_a_job_nothing_has_to_be_named(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert main(["epilog"]) == 0
    assert capsys.readouterr().out.startswith("job 7 heat: ")


def test_profiles_older_than_the_job_are_not_its_own(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (*job.rglob("*"), job):
        os.utime(path, (1e9, 1e9))
    assert main(["epilog", "--job", "7"]) == 0
    assert "no profile of the job in " in capsys.readouterr().out
    assert main(["epilog", "--job", "7", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_a_scheduler_that_says_nothing_does_not_hide_the_advice(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["epilog", "--job", "8", "galaxy_trace"]) == 0
    used, lost, _ = capsys.readouterr().out.splitlines()
    assert used == "job 8: what it used is not known: sacct: status 1"
    assert lost.startswith("galaxy: ")


def test_a_job_that_the_scheduler_does_not_know_is_said(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_tool(job.parent / "bin", "sacct", "exit 0")
    assert main(["epilog", "--job", "8", "galaxy_trace"]) == 0
    used, *_ = capsys.readouterr().out.splitlines()
    assert used == "job 8: what it used is not known: sacct: prints nothing of job 8"


@pytest.mark.parametrize(("number", "is_own"), [("123", True), ("123.pbs.site", True), ("12", False), ("1234", False)])
def test_the_account_of_another_job_is_refused(
    job: Path, capsys: pytest.CaptureFixture[str], number: str, is_own: bool
) -> None:
    (job / "qstat.txt").write_text(QSTAT, encoding="utf-8")
    assert main(["epilog", "--job", number, "--account", "qstat.txt", "galaxy_trace"]) == 0
    used, *_ = capsys.readouterr().out.splitlines()
    refused = f"job {number}: what it used is not known: qstat.txt is the account of job 123.pbs"
    assert (used == refused) is not is_own


def test_what_a_running_job_used_is_not_known_yet(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = SACCT.read_text(encoding="utf-8").replace("COMPLETED", "RUNNING").replace("00:04.510", "00:00:00")
    (job.parent / "running.txt").write_text(running, encoding="utf-8")
    assert main(["epilog", "--account", str(job.parent / "running.txt"), "galaxy_trace"]) == 0
    assert "2 cores; what it used is accounted when it has ended" in capsys.readouterr().out


def test_outside_of_a_job_a_job_or_a_profile_has_to_be_named(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["epilog"]) == 2
    assert "name a job with --job, or profiles" in capsys.readouterr().err


def test_of_profiles_alone_there_is_no_line_on_a_job(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["epilog", "galaxy_trace"]) == 0
    lost, action = capsys.readouterr().out.splitlines()
    assert lost.startswith("galaxy: ")
    assert "[A-28]" in action


def test_the_lines_are_mailed(job: Path, tmp_path: Path) -> None:
    put_tool(tmp_path / "bin", "sendmail", f'echo "$@" > {tmp_path}/words; cat > {tmp_path}/mail')
    assert main(["epilog", "--job", "7", "--mail", "user@example.org"]) == 0
    assert (tmp_path / "words").read_text() == "-i -- user@example.org\n"
    mail = (tmp_path / "mail").read_text()
    assert "Subject: gapwatch: job 7 heat: COMPLETED after" in mail
    assert "[A-28]" in mail


@pytest.mark.parametrize("address", ["-Xevil", "a b", "a@b,c@d", "a\nBcc: b"])
def test_what_is_no_address_is_refused(job: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["epilog", "--job", "7", f"--mail={address}"]) == 2
    assert "is not an address" in capsys.readouterr().err


def test_the_lines_are_posted(job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[bytes] = []

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    address = tmp_path / "webhook"
    with ThreadingHTTPServer(("127.0.0.1", 0), Webhook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address.write_text(f"http://127.0.0.1:{server.server_port}/hooks/secret\n", encoding="utf-8")
            address.chmod(0o600)
            assert main(["epilog", "--job", "7", "--post", str(address)]) == 0
        finally:
            server.shutdown()
            thread.join()
    text = json.loads(bodies[0])["text"]
    assert text.count("\n") == 3
    assert not set(text) & set("<>")


def test_names_in_a_post_mention_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []

    def keep_body(request: Request, timeout: float) -> nullcontext[None]:
        assert isinstance(request.data, bytes)
        sent.append(request.data)
        return nullcontext()

    monkeypatch.setattr("urllib.request.urlopen", keep_body)
    post_text("http://127.0.0.1/hook", "job <!channel> <@U1> @all & co")
    text = json.loads(sent[0])["text"]
    assert text == "job &lt;!channel&gt; &lt;@\N{WORD JOINER}U1&gt; @\N{WORD JOINER}all &amp; co"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [("https://example.org/x", 0o644, "chmod 600"), ("http://example.org/x", 0o600, "https://"), ("file:///x", 0o600, "https://")],
)  # fmt: skip
def test_addresses_that_others_can_read_or_hear_are_refused(
    job: Path, tmp_path: Path, text: str, mode: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "webhook").write_text(text, encoding="utf-8")
    (tmp_path / "webhook").chmod(mode)
    assert main(["epilog", "--job", "7", "--post", str(tmp_path / "webhook")]) == 2
    assert said in capsys.readouterr().err


def test_pbs_is_asked_again_for_a_job_that_ended(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (job.parent / "qstat.txt").write_text(QSTAT.replace("job_state = R", "job_state = F"), encoding="utf-8")
    refuse = "qstat: 123.pbs Job has finished, use -x or -H to obtain historical job information"
    script = f'[ "$1" = -x ] && exec cat {job.parent}/qstat.txt\necho {refuse!r} >&2; exit 35'
    put_tool(job.parent / "bin", "qstat", script)
    monkeypatch.setenv("PBS_JOBID", "123.pbs")
    for path in (job / "galaxy_trace", *(job / "galaxy_trace").rglob("*")):
        os.utime(path, (BEFORE_JOB, BEFORE_JOB))
    assert main(["epilog"]) == 0
    used, lost, _ = capsys.readouterr().out.splitlines()
    assert used == (
        "job 123.pbs heat: COMPLETED after 300 s on 1 node; used 1.9 of 2 cores (95.0 %); at most 793 MiB in memory"
    )
    assert lost.startswith("no profile of the job in "), "the trace is older than the job"


@pytest.mark.parametrize("knows", ["flux jobs", "flux --parent jobs"])
def test_a_job_of_flux_is_known_to_its_instance_or_the_parent(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], knows: str
) -> None:
    table = job.parent / "flux.json"
    table.write_text(json.dumps({**FLUX, "cwd": str(job), "t_run": BEFORE_JOB}), encoding="utf-8")
    put_tool(
        job.parent / "bin",
        "flux",
        f'[ "flux $1 $2" = "{knows} --json" ] || [ "flux $1 $2" = "{knows}" ] || exit 1; cat {table}',
    )
    monkeypatch.setenv("FLUX_ENCLOSING_ID", "\u0192tm9vfH")
    assert main(["epilog"]) == 0
    used, lost, _ = capsys.readouterr().out.splitlines()
    assert used.endswith("FAILED with status 1 after 9.16 s on 1 node; 2 cores; its scheduler recorded no CPU time")
    assert lost.startswith("galaxy: ")


def test_a_named_job_is_looked_for_with_every_scheduler_that_is_here(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (job.parent / "qstat.txt").write_text(QSTAT, encoding="utf-8")
    put_tool(job.parent / "bin", "qstat", f"cat {job.parent}/qstat.txt")
    assert main(["epilog", "--job", "123.pbs", "galaxy_trace"]) == 0
    assert capsys.readouterr().out.startswith("job 123.pbs heat: RUNNING after ")


def test_a_script_that_went_elsewhere_finds_its_profile(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scratch").mkdir()
    (job / "galaxy_trace").rename(tmp_path / "scratch" / "galaxy_trace")
    monkeypatch.chdir(tmp_path / "scratch")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert main(["epilog"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("galaxy: ")
    assert main(["epilog", "--job", "7"]) == 0
    assert f"no profile of the job in {job}\n" in capsys.readouterr().out, "the job may be another one than this"


@pytest.mark.parametrize(
    ("variable", "launcher"), [("SLURM_JOB_ID", "srun"), ("PBS_JOBID", "mpirun"), ("FLUX_JOB_ID", "flux run")]
)
def test_what_is_to_be_recorded_starts_as_the_scheduler_does_it(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, launcher: str
) -> None:
    monkeypatch.setenv(variable, "9")
    monkeypatch.chdir(job.parent)
    assert main(["epilog"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"to do: gapwatch run -- {launcher} ./PROGRAM"


def test_a_recording_names_its_job(tmp_path: Path) -> None:
    write_command(tmp_path, RunCommand(("srun", "./app"), "/home/user", (), "8_2"))
    command = read_command(tmp_path)
    assert command is not None
    assert command.job == "8_2"


def test_the_epilog_of_slurm_writes_beside_the_job_as_its_user(job: Path, tmp_path: Path) -> None:
    """With stubs for the commands of Slurm and for the change of the user."""
    tools = tmp_path / "bin"
    put_tool(tools, "scontrol", "echo node1; echo node2")
    put_tool(tools, "runuser", f'echo "$2" > {tmp_path}/user; shift 3; exec "$@"')
    script = (
        (CLUSTERS / "slurm-epilog.sh").read_text(encoding="utf-8").replace("PATH=/usr/sbin", f"PATH={tools}:/usr/sbin")
    )
    own = put_tool(tmp_path / "own", "gapwatch", f'exec {sys.executable} -m gapwatch "$@"')
    told = {
        "SLURM_JOB_ID": "7", "SLURM_JOB_USER": "user", "SLURM_JOB_WORK_DIR": str(job), "SLURM_NODELIST": "node[1-2]",
        "SLURMD_NODENAME": "node1", "GAPWATCH": str(own),
    }  # fmt: skip
    variables = environment(tmp_path, **told, PYTHONPATH=os.pathsep.join((str(ROOT), str(ROOT / "plugins"))))
    for node, written in (("node2", False), ("node1", True)):
        done = subprocess.run(
            ["sh", "-c", script], env={**variables, "SLURMD_NODENAME": node}, check=False, timeout=PATIENCE_S
        )
        assert done.returncode == 0
        assert written == (node == "node1")
    lines = job / "gapwatch-job-7.txt"
    wait_until(lines.exists)
    wait_until(lambda: lines.read_text().count("\n") == 3)
    assert (tmp_path / "user").read_text() == "user\n"


def test_the_epilogue_of_pbs_knows_from_its_arguments_what_the_job_used(job: Path, tmp_path: Path) -> None:
    """With stubs for qstat, to whom the job still runs, and for the change of the user."""
    tools = tmp_path / "bin"
    running = QSTAT.replace("/home/user/he\n\tat", str(job)).replace("Nov 28 22:25:14 2026", "Nov 28 22:25:14 2020")
    (tmp_path / "qstat.txt").write_text(running, encoding="utf-8")
    put_tool(tools, "qstat", f"cat {tmp_path}/qstat.txt")
    put_tool(tools, "runuser", f'echo "$2" > {tmp_path}/user; shift 3; exec "$@"')
    script = (
        (CLUSTERS / "pbs-epilogue.sh").read_text(encoding="utf-8").replace("PATH=/usr/sbin", f"PATH={tools}:/usr/sbin")
    )
    own = put_tool(tmp_path / "own", "gapwatch", f'exec {sys.executable} -m gapwatch "$@"')
    search = os.pathsep.join((str(ROOT), str(ROOT / "plugins")))
    variables = environment(tmp_path, GAPWATCH=str(own), PYTHONPATH=search, TMPDIR=str(tmp_path / "own"))
    used = "cpupercent=180,cput=00:09:00,mem=1048576kb,ncpus=2,vmem=2gb,walltime=00:10:00"
    words = ["123.pbs", "user", "users", "heat", "2003", "ncpus=2", used, "workq", "null", "3"]
    done = subprocess.run(
        ["sh", "-c", script, "epilogue", *words],
        env=variables,
        check=False,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0
    lines = job / "gapwatch-job-123.pbs.txt"
    wait_until(lambda: lines.exists() and lines.read_text().count("\n") == 3)
    assert lines.read_text().startswith(
        "job 123.pbs heat: FAILED with status 3 after 600 s on 1 node; used 0.9 of 2 cores (45.0 %);"
        " at most 1 GiB in memory\n"
    )
    assert (tmp_path / "user").read_text() == "user\n"
    wait_until(lambda: [path.name for path in (tmp_path / "own").iterdir()] == ["gapwatch"])


def test_the_page_shows_what_is_printed(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (job / "sacct.txt").write_text(SACCT.read_text(encoding="utf-8"), encoding="utf-8")
    page = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    shown = page.split("<!-- epilog: begin -->\n```text\n")[1].split("```\n<!-- epilog: end -->")[0]
    command, *lines = shown.splitlines()
    assert main(command.split()[2:]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_the_command_works_as_a_process(job: Path, tmp_path: Path) -> None:
    done = run("epilog", "--job", "7", "-o", "lines", home=job, PATH=os.environ["PATH"])
    assert done.returncode == 0, done.stderr
    assert (job / "lines").read_text().startswith("job 7 heat: ")
