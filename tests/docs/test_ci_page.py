"""The jobs on docs/ci.md: their YAML is read, and their commands are run on the recorded builds of the tutorial."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from command_line import ROOT, environment
from patience import PATIENCE_S

from advisor.cli import parsers
from advisor.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
GITLAB, GITHUB = (yaml.load(text, yaml.BaseLoader) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
RECORDED = ROOT / "examples" / "tutorial" / "recorded"
JOB: list[str] = GITLAB["gapwatch"]["script"]
STEPS: list[str] = next(
    step["run"].splitlines() for step in GITHUB["jobs"]["gapwatch"]["steps"] if step.get("name") == "Advise"
)
[SARIF] = [line for line in STEPS if "sarif" in line]


def shell(script: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=environment(folder, PATH=path, **more), timeout=PATIENCE_S,
        text=True, encoding="utf-8", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False,
    )  # fmt: skip


def build(name: str, recorded: str, folder: Path, job: list[str]) -> subprocess.CompletedProcess[str]:
    """A job on one build: a fresh checkout at the same place, and the history from the cache."""
    shutil.rmtree(folder / "profiles", ignore_errors=True)
    shutil.copytree(RECORDED / recorded / "galaxy_trace", folder / "profiles" / name / "galaxy_trace")
    return shell("\n".join(job), folder, BUILD=name, GAPWATCH_STATE=str(folder / ".gapwatch"))


def test_the_job_passes_a_good_build_and_fails_where_the_imbalance_is_back(tmp_path: Path) -> None:
    gates = [*JOB[:2], JOB[-1]]
    first = build("first", "v2-1", tmp_path, gates)
    assert first.returncode == 2, first.stdout
    assert "gate 'new' cannot be judged: no earlier run of another build is known" in first.stdout
    good = build("good", "v2-2", tmp_path, gates)
    assert good.returncode == 0, good.stdout
    bad = build("bad", "v1-1", tmp_path, JOB)
    assert bad.returncode == 1, bad.stdout
    assert "the gate is L > 10 %" in bad.stdout
    comment = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith("<!-- gapwatch: galaxy -->\n")
    assert "**Since build `good`**" in comment
    entries = json.loads((tmp_path / "codequality.json").read_text(encoding="utf-8"))
    assert [entry["check_name"] for entry in entries] == ["A-28"]
    assert (tmp_path / "metrics.txt").read_text(encoding="utf-8").endswith("# EOF\n")
    done = shell(SARIF, tmp_path, BUILD="bad", GAPWATCH_STATE=str(tmp_path / ".gapwatch"))
    assert done.returncode == 0, done.stdout
    [run] = json.loads((tmp_path / "gapwatch.sarif").read_text(encoding="utf-8"))["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["A-28"]


def test_both_hosts_run_the_same_commands_but_for_their_own_reports() -> None:
    steps: dict[str, Any] = {step["name"]: step for step in GITHUB["jobs"]["gapwatch"]["steps"] if "name" in step}
    job = [line for line in JOB if "codequality" not in line and "openmetrics" not in line]
    assert [*[line for line in STEPS if line != SARIF], steps["Gates"]["run"]] == job
    assert [steps["Install"]["run"]] == GITLAB["gapwatch"]["before_script"]
    assert steps["Record"]["run"].splitlines()[1:] == GITLAB["record"]["script"]
    assert steps["Keep the history"]["with"]["key"] == steps["Fetch the history"]["with"]["key"]
    assert list(steps).index("Gates") == len(steps) - 1, "all else is there also where a gate is crossed"


def test_every_option_exists() -> None:
    for line in [*JOB, SARIF]:
        name, *rest = re.findall(r'"[^"]*"|\S+', line)[1:]
        parsers.build_command_parser(COMMANDS[name]).parse_args([word.strip('"') for word in rest])


@contextmanager
def code_host(notes: list[dict[str, object]]) -> Iterator[tuple[str, list[tuple[str, str, dict[str, str]]]]]:
    """An address that answers like the notes of a merge request, and what it was asked to write."""
    written: list[tuple[str, str, dict[str, str]]] = []

    class Answer(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            if size:
                written.append((self.command, self.path, json.loads(self.rfile.read(size))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({} if size else notes).encode())

        do_GET = do_PUT = do_POST = _answer

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", written
        finally:
            server.shutdown()
            thread.join()


def test_a_comment_is_written_once_and_then_replaced(tmp_path: Path) -> None:
    (tmp_path / "comment.md").write_text("<!-- gapwatch: galaxy -->\nadvice\n", encoding="utf-8")
    [script] = GITLAB["comment"]["script"]
    others = [{"id": 4, "body": "Looks good."}, {"id": 5, "body": "<!-- gapwatch: other -->\nadvice"}]
    own = {"id": 6, "body": "<!-- gapwatch: galaxy -->\nold advice"}
    body = {"body": "<!-- gapwatch: galaxy -->\nadvice\n"}
    notes = "/projects/7/merge_requests/3/notes"
    for there, method, path in ((others, "POST", notes), ([*others, own], "PUT", f"{notes}/6")):
        with code_host(there) as (address, written):
            names = {"CI_API_V4_URL": address, "CI_PROJECT_ID": "7", "CI_MERGE_REQUEST_IID": "3", "GAPWATCH_TOKEN": "t"}
            done = shell(script, tmp_path, no_proxy="127.0.0.1", **names)
        assert done.returncode == 0, done.stdout
        assert written == [(method, path, body)]
