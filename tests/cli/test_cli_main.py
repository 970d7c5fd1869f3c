from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from command_line import ROOT, run

from advisor import __version__, cli
from advisor.cli.commands import COMMANDS, HELP
from advisor.extension import command_list
from advisor.model.errors import DocumentError, GateCrossed, InputError, Problem

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

#: What must not be loaded only to show help.
HEAVY = {
    "numpy",
    "numba",
    "rich",
    "yaml",
    "watchdog",
    "pandas",
    "scipy",
    "otf2",
    "_otf2",
    "psutil",
    "pluggy",
    "decimal",
}
SHOW_MODULES = """
import sys
sys.argv[0] = "gapwatch"
from gapwatch import bind_own_package
bind_own_package()
from advisor.cli import main
code = main(sys.argv[1:])  # in this process, and not in a child of it
print(*sys.modules, sep="\\n", file=sys.stderr)
sys.exit(code)
"""


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of a command that raises ``error``."""

    def broken(_: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(COMMANDS["plugins"], "run_command", broken)
    return cli.main(["plugins"])


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["advise", "--help"], ["rules", "check", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    for _ in range(2):  # without and with a kept list of the plugins' commands
        done = run(*arguments, home=tmp_path, code=SHOW_MODULES)
        assert done.returncode == 0
        loaded = {name.partition(".")[0] for name in done.stderr.decode().split()}
        assert "argparse" in loaded
        assert loaded & HEAVY == set()


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert list(HELP) == list(COMMANDS)
    for name, words in HELP.items():
        assert re.search(rf"^  {name} +{re.escape(words[0].upper() + words[1:])}$", text, re.MULTILINE)


def test_help_of_an_installation_without_other_plugins_starts_no_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed, told, _ = command_list.read_listed_commands()
    monkeypatch.setattr(command_list, "read_listed_commands", lambda: (listed, told, False))
    monkeypatch.setattr("os.fork", lambda: pytest.fail("a process was started"))
    assert cli.main(["--help"]) == 0
    assert "\n  couple " in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"gapwatch {__version__}\n"


def test_without_a_command_there_is_help_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["advice"], "no command 'advice'; did you mean advise?"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["advise"], "the following arguments are required: PATH"),
        (["advise", "x", "--order", "random"], "invalid choice: 'random'"),
        (["advise", "x", "--cores", "0"], "expected a number of cores, found '0'"),
        (["advise", "x", "--fail-on", "Q > 3 %"], "no gap 'Q'"),
        (["advise", "x", "--verb"], "unrecognized arguments: --verb"),
        (["machines", "show", "--format", "xml", "host"], "invalid choice: 'xml'"),
        (["rules"], "the following arguments are required: COMMAND"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("gapwatch: ")
    assert message in err
    assert err.count("\n") == 1


def test_what_we_can_explain_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail_with(InputError("run\x1b[2J\n.json", "is empty", "3"), monkeypatch) == 2
    assert capsys.readouterr().err == "gapwatch: run\\x1b[2J\\n.json:3: is empty\n"


def test_every_mistake_of_a_document_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problems = [Problem("a.yaml", 7, 1, "second"), Problem("a.yaml", 3, 2, "first")]
    assert fail_with(DocumentError(problems), monkeypatch) == 2
    assert capsys.readouterr().err == "gapwatch: a.yaml:3:2: first\ngapwatch: a.yaml:7:1: second\n"


def test_a_crossed_gate_has_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail_with(GateCrossed("L is 8.00 s"), monkeypatch) == 1
    assert capsys.readouterr().err == "gapwatch: gate crossed: L is 8.00 s\n"


def test_files_that_cannot_be_opened_are_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail_with(PermissionError(13, "Permission denied", b"r\xff"), monkeypatch) == 2
    assert capsys.readouterr().err == "gapwatch: r\\udcff: Permission denied\n"


def test_too_little_memory_is_no_mistake_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail_with(MemoryError(), monkeypatch) == 2
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError("too deep"), OSError("lost")])
def test_our_own_mistakes_say_so(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail_with(error, monkeypatch) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"gapwatch: internal error: {type(error).__name__}")
    assert "GAPWATCH_DEBUG=1" in err
    assert err.count("\n") == 1


def test_the_traceback_is_there_for_who_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GAPWATCH_DEBUG", "1")
    assert fail_with(KeyError("a\x1b]0;b"), monkeypatch) == 3
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "in broken" in err
    assert "\x1b" not in err


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail_with(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr().err == "gapwatch: interrupted\n"


#: What only some runs need: those with traces, a history, experiments, several sizes, a machine, changed rules.
ON_DEMAND = {
    "advisor.analysis.machines", "advisor.history.history_queries", "advisor.trace.profile",
    "advisor.support.documents.composing", "advisor.advice.rules.cases", "advisor_coupling.results",
    "advisor_scaling.study", "advisor_simulation.replay.engine", "numpy.ma", "sqlite3", "statistics", "yaml",
}  # fmt: skip


def test_advice_on_a_small_profile_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    for _ in range(2):  # the first time the rules are read, and kept
        done = run("advise", str(ROOT / "tests" / "profiles" / "fig4.json"), home=tmp_path, code=SHOW_MODULES)
        assert done.returncode == 0
    loaded = set(done.stderr.decode().split())
    assert "numpy" in loaded
    packages = {name.partition(".")[0] for name in loaded}
    assert packages & {"scipy", "sympy", "numba", "matplotlib", "jinja2", "capstone", "tree_sitter", "dask"} == set()
    assert loaded & ON_DEMAND == set()


def test_commands_are_where_their_names_say() -> None:
    assert {name: module.NAME for name, module in COMMANDS.items()} == {name: name for name in COMMANDS}
