"""Ten slow programs of examples/computation: one call tells an agent where, why, how much, the code and the proof."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from typing import TYPE_CHECKING

import pytest
from command_line import ROOT
from patience import PATIENCE_S

from advisor.agents.answers import LIMIT, count_tokens, encode_answer
from advisor.agents.server import answer_call
from advisor.agents.workplace import Workplace
from advisor.cli import user_folders
from advisor.cli.next_commands import fill_commands
from advisor.cli.plugin_commands import build_plugin_report
from advisor.pipeline import Options

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("jsonschema", reason="the extra mcp is not installed")

#: How each program is started for a short run, and the actions against its fault.
CASES = {
    "unoptimized": (("./unoptimized", "400", "300"), "G-29"),
    "aliasing": (("./aliasing", "300", "500000"), "G-30"),
    "loop_order": (("./loop_order",), "G-32"),
    "functions": (("./functions", "600", "6"), "G-34"),
    "thrashing": (("./thrashing", "800"), "G-33"),
    "allocation": (("./allocation", "4096", "5000"), "G-31 G-37"),
    "ordered_sum": (("./ordered_sum", "1500", "200000"), "G-31"),
    "false_sharing": (("./false_sharing", "100000000"), "G-42"),
    "sleeping": (("./sleeping",), "G-26"),
    "locking": (("./locking", "2000000"), "G-56"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, each with its fault."""
    missing = [tool for tool in ("make", "cc", "gfortran") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    folder = tmp_path_factory.mktemp("programs") / "computation"
    shutil.copytree(ROOT / "examples" / "computation", folder)
    subprocess.run(["make", "-s", *CASES], cwd=folder, check=True, capture_output=True, timeout=PATIENCE_S)
    return folder


def open_workplace(folder: Path, state: Path) -> Workplace:
    host = user_folders.load_host()
    allowed = tuple((words[0],) for words, _ in CASES.values())
    report = partial(build_plugin_report, host)
    return Workplace((folder.resolve(),), allowed, state, host, Options(), report, fill_commands, PATIENCE_S)


@pytest.mark.parametrize("name", CASES)
def test_one_call_tells_all_that_an_agent_needs(name: str, built: Path, tmp_path: Path) -> None:
    """On a machine that does other things the run may tell too little; then the answer says so, and what to do."""
    words, actions = CASES[name]
    workplace = open_workplace(built, tmp_path / "state")
    measured = answer_call(workplace, "measure", {"command": list(words), "build": "start", "repeats": 1})
    assert "error" not in measured
    assert "gapwatch:" not in measured["printed"]
    answer = answer_call(workplace, "get_advice", {"run": str(measured["runs"][-1]["run"])})
    assert count_tokens(encode_answer(answer)) <= LIMIT
    proof = {"command": list(words), "build": "changed", "repeats": 5}
    assert answer["prove"] == {"measure": proof, "compare": {"before": "«start»", "after": "changed"}}
    if answer["verdict"] != "advice":
        assert answer["meaning"].startswith(("the run was disturbed", "no rule decides", "no gap is large"))
        assert answer["doubts"] or answer["needs"] or answer["verdict"] == "nothing significant"
        return
    if answer["grade"][0] > "B":
        return  # seconds are rough
    first = answer["items"][0]
    assert first["action"] in actions.split()
    assert first["at"].startswith(f"«{name}.")
    assert first["why"]
    assert first["evidence"]
    assert 0 < first.get("expected_s", first["ceiling_s"]) <= first["ceiling_s"]
    assert first["do"][0]["after"]
