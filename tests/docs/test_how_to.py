"""What docs/how-to/ asks a contributor to write works as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
from command_line import run
from native_documents import PROFILES

from advisor.analysis.machines import load_machine
from advisor.formats import native
from advisor.model.errors import InputError

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
BLOCK = re.compile(r"^( *)```(?:python|yaml)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[str]:
    return [dedent(text) for _, text in BLOCK.findall((HOW_TO / f"{page}.md").read_text(encoding="utf-8"))]


def module(text: str, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(text, name, "exec"), vars(made))
    return made


def test_the_machine_is_read(tmp_path: Path) -> None:
    (tmp_path / "example-1000.yaml").write_text(blocks("add-a-machine-model")[0], encoding="utf-8")
    assert load_machine(str(tmp_path / "example-1000.yaml")).name == "example-1000"


def test_the_rule_passes_the_check(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(blocks("add-a-rule")[0], encoding="utf-8")
    done = run("rules", "check", "mine.yaml", home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_reader_reads_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = module(blocks("add-a-reader")[0], "sitetimer_hooks", monkeypatch)
    path = tmp_path / "heat.txt"
    path.write_text("sitetimer heat 12.5\nsolve 0 8.1\nsolve 1 11.9\n", encoding="utf-8")
    assert reader.advisor_sniff(path) == 1.0
    assert reader.advisor_read(path).phases[0].arrays["work_s"].ravel().tolist() == [8.1, 11.9]
    path.write_text("sitetimer heat 12.5\nsolve 0 8.1\nsolve one\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3"):
        reader.advisor_read(path)


def test_the_plugin_names_the_longest_region(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = module(blocks("add-a-plugin")[0], "longest_hooks", monkeypatch)
    (finding,) = plugin.advisor_findings(native.advisor_read(PROFILES / "fig4.json"))
    assert finding.measures == {"work_s": 10.0 + 15 + 15 + 16}


def test_the_screen_element_is_a_function() -> None:
    (function,) = blocks("add-a-screen-element")
    compile(f"from __future__ import annotations\n{function}", "screen", "exec")
