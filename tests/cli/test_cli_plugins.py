from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from command_line import run
from site_folder import plugin

from advisor import cli

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = """
    def show(args, services):
        rows = tuple((word, args.times) for word in args.words)
        shown = [Table("Words", (Column("word"), Column("times")), rows)]
        if args.also:
            shown.append(Text(" ".join(args.also)))
        if args.loud:
            shown.append(Text("LOUD"))
        return Report("Shown", tuple(shown))

    @hookimpl
    def advisor_commands(register):
        arguments = (
            Argument("words", "what to show", several=True),
            Argument("--times", "How often (100 % sure)", int, 2),
            Argument("--loud", "shout", bool),
            Argument("--kind", "which", choices=("a", "b")),
            Argument("--also", "more words", several=True),
        )
        register("show-words", "Shows words \\x1b[2J 100 %.", arguments, show)
        register("broken", "Breaks.", (), lambda args, services: 1 / 0)
        register("advise", "Takes our name.", (), show)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir(mode=0o755)
    plugin(folder, "own", COMMAND)
    monkeypatch.setenv("GAPWATCH_PLUGINS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_plugins_are_listed_with_what_is_wrong(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(site, "bad", "raise OSError('no licence')")
    assert cli.main(["plugins", "--format", "json"]) == 0
    plugins, commands, problems = json.loads(capsys.readouterr().out)["parts"]
    found = {row[0]: row for row in plugins["rows"]}
    assert found["native"][4] == ""
    assert "OSError: no licence" in found["bad"][4]
    assert found["own"][3] == "commands"
    assert [row[:2] for row in commands["rows"] if row[1] == "own"] == [["broken", "own"], ["show-words", "own"]]
    assert "the command 'advise' is taken" in problems["rows"][0][0]


def test_plugins_as_text(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plugins", "--width", "200"]) == 0
    out = capsys.readouterr().out
    assert "show-words" in out
    assert "\x1b" not in out


def test_a_command_of_a_plugin_runs(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show-words", "one", "t\x1bwo", "--times", "3", "--loud"]) == 0
    out = capsys.readouterr().out
    assert out.split("\n")[:3] == ["Shown", "", "Words"]
    assert "  one          3\n" in out
    assert "  t\\x1bwo      3\n" in out
    assert "LOUD" in out


def test_a_command_of_a_plugin_as_json(site: Path, tmp_path: Path) -> None:
    file = tmp_path / "words.json"
    assert cli.main(["show-words", "one", "--format", "json", "-o", str(file)]) == 0
    assert json.loads(file.read_text())["parts"][0]["rows"] == [["one", 2]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show-words"], "the following arguments are required: WORDS"),
        (["show-words", "a", "--kind", "c"], "invalid choice: 'c'"),
        (["broken"], "the command 'broken' of the plugin 'own' failed: ZeroDivisionError"),
        (["show-word"], "did you mean show-words?"),
    ],
)
def test_what_goes_wrong_with_a_command_is_a_line(
    arguments: list[str], message: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_help_of_a_command_is_cleaned_too(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show-words", "--help"]) == 0
    out = capsys.readouterr().out
    assert "\\x1b[2J" in out
    assert "How often (100 % sure)" in out
    assert "\x1b" not in out


def test_help_lists_the_commands_of_plugins(site: Path, tmp_path: Path) -> None:
    for _ in range(2):
        done = run("--help", home=tmp_path, GAPWATCH_PLUGINS=str(site))
        assert done.returncode == 0
        assert re.search(rb"show-words +Shows words \\x1b\[2J 100 %\.", done.stdout)
        assert b"Takes our name" not in done.stdout


def test_a_plugin_that_ends_the_process_ends_no_help(site: Path, tmp_path: Path) -> None:
    plugin(site, "ending", "import os; os._exit(7)")
    done = run("--help", home=tmp_path, GAPWATCH_PLUGINS=str(site))
    assert done.returncode == 0
    assert b"machines" in done.stdout


def test_a_plugin_in_the_configuration_directory_counts(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config" / "gapwatch"
    config.mkdir(parents=True, mode=0o755)
    site.rename(config / "plugins")
    monkeypatch.delenv("GAPWATCH_PLUGINS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config.parent))
    assert cli.main(["show-words", "one"]) == 0
    assert "  one       2\n" in capsys.readouterr().out


def test_an_option_of_several_values_may_be_given_again(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show-words", "a", "--also", "b", "c", "--also", "d"]) == 0
    assert "b c d" in capsys.readouterr().out
