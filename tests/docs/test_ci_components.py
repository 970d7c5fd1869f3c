"""The action for GitHub and the component for GitLab: pinned, and their commands run on the builds of the tutorial.

They were not run on the hosts: what is not a shell command (caches, uploads, comments) is only read here.
"""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import yaml
from command_line import ROOT
from test_ci_page import GITHUB, RECORDED, shell

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

ACTION: dict[str, Any] = yaml.load((ROOT / "action.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
HEAD, COMPONENT = yaml.load_all(
    (ROOT / "templates" / "advise" / "template.yml").read_text(encoding="utf-8"), yaml.BaseLoader
)
STEPS = {step.get("name", step.get("uses")): step for step in ACTION["runs"]["steps"]}


def advise(build: str, recorded: str, folder: Path, script: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run commands of a job on one build, in a fresh checkout at the same place with the history of the cache."""
    for old in ("profile", "temp", "gapwatch-runs"):
        shutil.rmtree(folder / old, ignore_errors=True)
    (folder / "temp").mkdir()
    shutil.copytree(RECORDED / recorded / "galaxy_trace", folder / "profile")
    return shell(
        script, folder, BUILD=build, CI_COMMIT_SHA=build, GAPWATCH_BUILD=build, PROFILE="profile",
        GAPWATCH_STATE=str(folder / ".gapwatch"), RUNNER_TEMP=str(folder / "temp"),
        GITHUB_STEP_SUMMARY=str(folder / "summary.md"), GITHUB_OUTPUT=str(folder / "output"), **more,
    )  # fmt: skip


def test_actions_of_others_are_named_by_commit_as_on_the_page() -> None:
    used = [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) for name in used)
    assert set(used) < {step["uses"] for step in GITHUB["jobs"]["gapwatch"]["steps"] if "uses" in step}
    assert "default" not in HEAD["spec"]["inputs"]["image"], "the user names the image, by its digest"


def test_every_input_is_used_and_no_other() -> None:
    text = json.dumps(ACTION["runs"])
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    assert set(re.findall(r"inputs\.(\w+)", json.dumps(COMPONENT))) == set(HEAD["spec"]["inputs"])
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), "an input is never part of a command"


def test_the_action_advises_and_applies_the_gates(tmp_path: Path) -> None:
    script = STEPS["Advise"]["run"] + "\n" + STEPS["Gates"]["run"]
    gates = "L > 10 %\nnew\n"
    assert advise("first", "v2-1", tmp_path, script, FAIL_ON=gates).returncode == 2, "no build before the first"
    good = advise("good", "v2-2", tmp_path, script, FAIL_ON=gates)
    assert good.returncode == 0, good.stdout
    bad = advise("bad", "v1-1", tmp_path, script, FAIL_ON=gates)
    assert bad.returncode == 1, bad.stdout
    assert "**Since build `good`**" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    [run] = json.loads((tmp_path / "temp" / "gapwatch.sarif").read_text(encoding="utf-8"))["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["A-28"]
    assert (tmp_path / "output").read_text().splitlines()[-1] == f"sarif-file={tmp_path}/temp/gapwatch.sarif"


def test_the_component_writes_its_reports_and_applies_the_gates(tmp_path: Path) -> None:
    job = COMPONENT["gapwatch"]
    script = "\n".join(job["script"])
    first = advise("first", "v2-1", tmp_path, script, GATES="")
    assert first.returncode == 0, first.stdout
    bad = advise("bad", "v1-1", tmp_path, script, GATES='--fail-on "L > 10 %" --fail-on new')
    assert bad.returncode == 1, bad.stdout
    reports = job["artifacts"]["reports"]
    entries = json.loads((tmp_path / reports["codequality"]).read_text(encoding="utf-8"))
    assert [entry["check_name"] for entry in entries] == ["A-28"]
    assert (tmp_path / reports["metrics"]).read_text(encoding="utf-8").endswith("# EOF\n")
    assert "**Since build `first`**" in (tmp_path / "comment.md").read_text(encoding="utf-8")
