"""The commands that plugins register, and the reports that they return."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from site_folder import load

from advisor.extension.commands import CommandRegistry, DeferredFunction
from advisor.model.errors import PluginError, UsageError
from advisor.model.reports import Column, Report, Table, Text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COMMAND = """
    def run(args, services):
        {run}
    @hookimpl
    def advisor_commands(register):
        register("{name}", "Shows it.", [Argument("path", "what"), Argument("--times", "how often", int, 2)], run)
"""


def command(folder: Path, run: str) -> Callable[[], Report]:
    loaded = load(folder, one=COMMAND.format(name="show", run=run))
    services: Any = None
    return lambda: loaded.run_command(loaded.collect_commands()[0], Namespace(path="x", times=3), services)


def test_a_command_returns_a_report(tmp_path: Path) -> None:
    run = 'return Report("it", (Table("t", (Column("s", "s"),), ((float(args.times),),)), Text(args.path)))'
    report = command(tmp_path, run)()
    assert report.title == "it"
    assert report.parts == (Table("t", (Column("s", "s"),), ((3.0,),)), Text("x"))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("return 3", "expected Report, found int"),
        ("raise IndexError('7')", "IndexError: 7"),
        ("raise SystemExit(4)", "SystemExit: 4"),
        ("return Report('it', (Table('t', (Column('a'),), ((1, 2),)),))", "parts[0].rows[0]: 2 cells for 1 columns"),
        (
            "return Report('it', (Table('t', (Column('a'),), ((float('inf'),),)),))",
            "parts[0].rows[0][0]: expected a fin",
        ),
        ("return Report('it', (Table('t', (Column('a', 'km'),), ()),))", "parts[0].columns[0].unit: expected one of"),
        (
            "return Report('it', ('text',))",
            "parts[0]: expected Text or Code or Table or Bars or Series or HeatMap, found str",
        ),
        (
            "return Report('it', (Table('t', (Column('a'),), ((b'',),)),))",
            "expected a string or an integer or a number or",
        ),
    ],
)
def test_a_command_that_fails_is_an_error_of_its_plugin(tmp_path: Path, run: str, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        command(tmp_path, run)()
    assert str(caught.value).startswith("the command 'show' of the plugin 'one' failed: ")
    assert message in str(caught.value)


def test_a_command_may_refuse_its_arguments(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such region"):
        command(tmp_path, "raise UsageError('no such region')")()


def test_two_commands_of_one_name_are_one_command_and_a_problem(tmp_path: Path) -> None:
    bodies = {name: COMMAND.format(name="show", run="return None") for name in ("a", "b")}
    loaded = load(tmp_path, **bodies, c=COMMAND.format(name="advise", run="return None"))
    assert [(one.plugin, one.name) for one in loaded.collect_commands(reserved=("advise",))] == [("a", "show")]
    assert [text.partition(":")[0] for text in loaded.problems] == ["plugin b", "plugin c"]
    assert all("is taken" in text for text in loaded.problems)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("register('Show', 'help', (), print)", "'Show' is not a valid command name"),
        ("register('--x', 'help', (), print)", "'--x' is not a valid command name"),
        ("register('show', ' ', (), print)", "has no help text"),
        ("register('show', 'help', (Argument('-p', ''),), print)", "'-p' is not a valid argument name"),
        ("register('show', 'h', (), print); register('show', 'h', (), print)", "registered twice"),
        ("register(3, 'help', (), print)", "TypeError"),
    ],
)
def test_a_command_that_can_not_be_one_is_refused(tmp_path: Path, call: str, message: str) -> None:
    loaded = load(tmp_path, odd=f"@hookimpl\ndef advisor_commands(register):\n    {call}")
    assert loaded.collect_commands() == ()
    assert message in loaded.problems[0]


@pytest.mark.parametrize("plugin", ["coupling", "processor", "scaling", "similarity", "simulation"])
def test_functions_that_are_imported_later_are_there(plugin: str) -> None:
    hooks = import_module(f"advisor_{plugin}.hooks")
    registry = CommandRegistry(plugin)
    hooks.advisor_commands(registry)
    services = hooks.advisor_services() if hasattr(hooks, "advisor_services") else {}
    offered = [one.run for one in registry.commands] + list(services.values())
    deferred = [one for one in offered if isinstance(one, DeferredFunction)]
    assert deferred
    for one in deferred:
        assert callable(getattr(import_module(one.module), one.function))


def test_a_function_is_imported_when_it_is_called() -> None:
    assert DeferredFunction("math", "hypot")(3.0, 4.0) == 5.0
    with pytest.raises(ModuleNotFoundError):
        DeferredFunction("there_is_no_such_module", "run")()
