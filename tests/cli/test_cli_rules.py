from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest

from advisor import cli
from advisor.advice import rules
from advisor.extension import host

if TYPE_CHECKING:
    from pathlib import Path

HOST = host.load_plugins()
#: The bundled rules with those of the plugins that come along.
BOOK = rules.load_default(HOST.rule_files(), HOST.collect_facts())
MISTAKES = """
    - id: X-1
      title: Do better
      step: 99
      issue: I-15
      targets: [Q]
      when: {gap: L, share: ">= 3 apples"}
      applies_to: [mpi]
      effort: 9
      typical_fraction: 0.5
      change: {}
      why: Because.
      how: {any: {text: Somehow.}}
      sources: [me]
      examples: [{case: fig4, expect: fires}]
      efort: 2
"""
SWITCHED = """
    - {id: A-29, enabled: false}
"""


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "gapwatch" / "rules"


def written(folder: Path, name: str, text: str) -> Path:
    """A rule file of a user."""
    file = folder / name
    file.write_text(textwrap.dedent(text), "utf-8")
    return file


def test_all_actions_are_listed_in_the_order_of_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "list", "--format", "json"]) == 0
    actions, steps = json.loads(capsys.readouterr().out)["parts"]
    assert {row[0] for row in actions["rows"]} == {action.id for action in BOOK.actions}
    assert [row[2] for row in actions["rows"]] == sorted(row[2] for row in actions["rows"])
    assert [row[0] for row in steps["rows"]] == [step.id for step in BOOK.steps]


@pytest.mark.parametrize("action", BOOK.actions, ids=lambda action: action.id)
def test_every_action_can_be_shown(action: rules.book.Action, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "show", action.id, "--width", "100"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{action.id}: ")
    for how in action.instructions:
        for code in filter(None, (how.before, how.after)):
            assert textwrap.indent(code.expandtabs(4).strip("\n"), "    ") in out
    for leaf in action.comparisons:
        assert str(getattr(leaf, "fact", None) or f"gap {getattr(leaf, 'gap', '')}") in out


def test_an_action_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "show", "A-29", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["id"] == "A-29"
    assert document["targets"] == ["L"]
    assert document["enabled"] is True
    assert {"gap", "share"} <= {key for part in document["when"]["all"] for key in part}
    assert {example["expect"] for example in document["examples"]} >= {"fires", "no_match"}


def test_an_unknown_action_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "show", "A-229"]) == 2
    assert "did you mean A-29?" in capsys.readouterr().err


def test_every_mistake_of_a_file_is_a_line_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "mine\x1b.yaml", MISTAKES)
    assert cli.main(["rules", "check", str(file)]) == 2
    lines = capsys.readouterr().out.split("\n")
    shown = str(file).replace("\x1b", "\\x1b")
    assert [row.removeprefix(f"{shown}:").split(":")[0] for row in lines if row] == ["4", "6", "7", "9", "16"]
    assert "did you mean 'effort'?" in lines[4]


def test_mistakes_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "check", str(written(tmp_path, "mine.yaml", MISTAKES)), "--format", "json"]) == 2
    (table,) = json.loads(capsys.readouterr().out)["parts"]
    assert [row[1] for row in table["rows"]] == [4, 6, 7, 9, 16]


def test_a_file_without_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "check", str(written(tmp_path, "mine.yaml", SWITCHED))]) == 0
    assert capsys.readouterr().out == "No errors.\n"


def test_a_missing_file_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "check", str(tmp_path / "none.yaml")]) == 2
    out, err = capsys.readouterr()
    assert "none.yaml" in out + err


def test_the_examples_of_all_rules_come_true(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "test"]) == 0
    count = sum(len(action.examples) for action in BOOK.actions)
    assert capsys.readouterr().out == f"{count} examples of {len(BOOK.actions)} actions, 0 failed.\n"


def test_examples_that_fail_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = next(file for file in rules.rule_loader.list_action_files() if file.name.startswith("4"))
    text = source.read_text("utf-8").replace("- id: A-29\n", "- id: A-29\n  replaces: A-29\n", 1)
    start = text.index("- id: A-29")
    mine = text[start : text.find("\n- id:", start + 1) % (len(text) + 1)]
    file = written(tmp_path, "mine.yaml", mine.replace("expect: fires", "expect: no_match"))
    assert cli.main(["rules", "test", "--rules", str(file), "--width", "200"]) == 2
    out = capsys.readouterr().out
    assert "Failed" in out
    assert "A-29" in out
    assert "mine.yaml:" in out


def test_rules_of_the_user_count_everywhere(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.mkdir(parents=True)
    written(config, "mine.yaml", SWITCHED)
    assert cli.main(["rules", "list", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["parts"][0]["rows"]
    assert [row[6] for row in rows if row[0] == "A-29"] == ["off"]
