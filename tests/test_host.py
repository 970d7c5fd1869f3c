from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import pytest
from native_documents import PROFILES
from site_folder import load

from advisor.errors import InputError, PluginError, UnknownFormatError, UsageError
from advisor.readers import native

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from advisor import host
from advisor.commands import Column, Report, Table, Text

FIGURE = native.advisor_read(PROFILES / "fig4.json")

GOOD = """
    @hookimpl
    def advisor_findings(profile, gaps):
        return [Finding("somebody else", "seen", profile.program, "all is well", {"gaps": len(gaps)})]
"""
SURE = """
    from advisor.readers import native
    @hookimpl
    def advisor_sniff(path):
        return 0.9
    @hookimpl
    def advisor_read(path):
        return native.advisor_read(path)
"""


def findings(loaded: host.Host) -> list[tuple[str, str]]:
    return [(one.plugin, one.text) for one in loaded.findings(FIGURE, (), (), None, ())]


# Failing plugins


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise ValueError('no idea\\nat all')", "ValueError: no idea at all"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("raise BaseException", "BaseException"),
        ("return (Finding('a', 'b', 'c', 'd') for _ in range(3))", "expected a list of Finding, found generator"),
        ("return 'text'", "expected a list of Finding, found str"),
        ("return None", "expected a list of Finding, found NoneType"),
        ("return [Finding('a', 'b', 'c', 'd', {'x': float('nan')})]", "[0].measures.x: expected a finite number"),
        ("return [Finding('a', 'b', 'c', None)]", "[0].text: expected a string, found NoneType"),
        ("return [Finding('a', 'b', 'c', 'x' * 10**6)]", "1,000,000 characters"),
        ("return [Finding('a', 'b', 'c', 'x' * 99_999)] * 11", "more than 1,000,000 characters"),
        ("return [Finding('a', 'b', 'c', 'd')] * 1001", "at most 1,000"),
        ("return [{'text': 'd'}]", "[0]: expected Finding, found dict"),
        (
            "class Odd(list):\n            def __len__(self): raise OSError('gone')\n        return Odd()",
            "OSError: gone",
        ),
        ("class Odd(Exception):\n            def __str__(self): raise OSError\n        raise Odd", "Odd"),
    ],
)
def test_a_plugin_that_fails_loses_only_its_own_result(tmp_path: Path, body: str, problem: str) -> None:
    bad = f"""
    @hookimpl
    def advisor_findings(profile):
        {body}
    """
    loaded = load(tmp_path, a_good=GOOD, bad=bad, z_good=GOOD)
    assert findings(loaded) == [("a_good", "all is well"), ("z_good", "all is well")]
    assert len(loaded.problems) == 1
    assert loaded.problems[0].startswith("plugin bad: advisor_findings failed: ")
    assert problem in loaded.problems[0]
    findings(loaded)
    assert len(loaded.problems) == 1


def test_an_interrupt_by_the_user_is_no_failure_of_a_plugin(tmp_path: Path) -> None:
    loaded = load(tmp_path, slow="@hookimpl\ndef advisor_findings():\n    raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        findings(loaded)


def test_a_plugin_gets_the_arguments_that_it_names(tmp_path: Path) -> None:
    body = """
    @hookimpl
    def advisor_findings(history, machine):
        return [Finding("", "k", "s", f"{history} {machine}")]
    """
    assert findings(load(tmp_path, picky=body)) == [("picky", "() None")]


def test_no_plugin_can_end_the_chain_before_the_others(tmp_path: Path) -> None:
    first = """
    @hookimpl(tryfirst=True)
    def advisor_findings():
        return [Finding("", "k", "s", "mine alone")]
    """
    loaded = load(tmp_path, a=GOOD, first=first, z=GOOD)
    assert [name for name, _ in findings(loaded)] == ["a", "first", "z"]


# Reading


def test_the_surest_reader_reads(tmp_path: Path) -> None:
    doubtful = SURE.replace("0.9", "0.2").replace("native.advisor_read(path)", "1 / 0")
    loaded = load(tmp_path, a=doubtful, b=SURE)
    path = PROFILES / "fig4.json"
    assert loaded.sniff_all(path) == (("b", 0.9), ("a", 0.2))
    assert loaded.read(path).program == "fig4"


def test_arrays_of_a_profile_that_was_read_can_not_be_changed_by_accident(tmp_path: Path) -> None:
    profile = load(tmp_path, reader=SURE).read(PROFILES / "fig4.json")
    with pytest.raises(ValueError, match="read-only"):
        profile.phases[0].arrays["work_s"][:] = 0


def test_an_unknown_format_is_named_with_the_known_ones(tmp_path: Path) -> None:
    never = SURE.replace("0.9", "None")
    with pytest.raises(UnknownFormatError, match=r"known here: first, second"):
        load(tmp_path, second=never, first=never.replace("None", "0")).read(PROFILES / "fig4.json")


@pytest.mark.parametrize("answer", ["2", "'high'", "float('nan')", "1 / 0", "True"])
def test_a_reader_that_can_not_say_how_sure_it_is_is_not_asked(tmp_path: Path, answer: str) -> None:
    loaded = load(tmp_path, odd=SURE.replace("0.9", answer), reader=SURE)
    assert loaded.sniff_all(PROFILES / "fig4.json") == (("reader", 0.9),)
    assert "plugin odd: advisor_sniff failed" in loaded.problems[0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise InputError(path, 'half a record', '3:1')", ":3:1: half a record"),
        ("raise KeyError('no key')", "the reader 'reader' failed: KeyError"),
        ("import sys; sys.exit(3)", "the reader 'reader' failed: SystemExit: 3"),
        ("return None", "expected Profile, found NoneType (read by 'reader')"),
        ("return replace(native.advisor_read(path), actual_s=float('inf'))", "actual_s: expected a finite number"),
        ("return replace(native.advisor_read(path), processors=())", "processors: there are none"),
        ("return replace(native.advisor_read(path), cores='4')", "cores: expected an integer or None, found str"),
        ("return replace(native.advisor_read(path), status={})", "status.work_s: is missing"),
    ],
)
def test_what_a_reader_can_not_read_is_one_clear_error(tmp_path: Path, body: str, message: str) -> None:
    reader = "from dataclasses import replace" + SURE.replace("return native.advisor_read(path)", body)
    loaded = load(tmp_path, reader="\n    " + reader)
    path = PROFILES / "fig4.json"
    with pytest.raises(InputError) as caught:
        loaded.read(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    loaded = load(tmp_path, reader=SURE)
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("pipe", "neither a file"), ("none", "No such file"), ("a\0b", "null byte")):
        with pytest.raises(InputError, match=reason):
            loaded.read(tmp_path / name)


# Gains, facts, rules, machines


def test_the_first_plugin_with_an_answer_gives_the_expected_gain(tmp_path: Path) -> None:
    recommendation: Any = None
    bodies = {
        "a": "@hookimpl\ndef advisor_expected_gain():\n    return None",
        "b": "@hookimpl\ndef advisor_expected_gain():\n    return (9.0, 10.0, 11.0)",
        "c": "@hookimpl\ndef advisor_expected_gain():\n    return (2, 1.5, 2.5)",
        "d": "@hookimpl\ndef advisor_expected_gain():\n    return (3.0, 3.0, 3.0)",
    }
    loaded = load(tmp_path, **bodies)
    assert loaded.expected_gain(FIGURE, recommendation, None) == (2, 1.5, 2.5)
    assert loaded.problems == ("plugin b: advisor_expected_gain failed: the expected gain 9 lies outside of 10 to 11",)


def test_files_that_a_plugin_brings_along_exist(tmp_path: Path) -> None:
    rules = "from pathlib import Path\n@hookimpl\ndef advisor_rules():\n    return [Path(__file__)]"
    missing = "from pathlib import Path\n@hookimpl\ndef advisor_machines():\n    return [Path('/no/such/file')]"
    loaded = load(tmp_path, rules=rules, missing=missing)
    assert loaded.rules() == (tmp_path.resolve() / "rules.py",)
    assert loaded.machines() == ()
    assert "/no/such/file is no file" in loaded.problems[0]


FACT = """
    from advisor.facts import Fact
    @hookimpl
    def advisor_facts():
        return [Fact("{name}", "count", "run", (), "", "as computed", {compute})]
"""


def test_a_fact_that_can_not_be_computed_is_unknown(tmp_path: Path) -> None:
    computed = {"a": "lambda profile, phase: 7.0", "b": "lambda profile, phase: 1 / 0", "c": "lambda *_: float('nan')"}
    bodies = {name: FACT.format(name=f"site.{name}", compute=compute) for name, compute in computed.items()}
    loaded = load(tmp_path, **bodies, d=FACT.format(name="site.a", compute="lambda *_: 8.0"))
    values = [fact.compute(FIGURE, None) for fact in loaded.facts() if fact.compute]
    assert values == [7.0, None, None]
    assert loaded.problems == (
        "plugin d: advisor_facts failed: the fact 'site.a' is taken",
        "plugin b: the fact 'site.b' failed: ZeroDivisionError: division by zero",
        "plugin c: the fact 'site.c' failed: expected a finite number, found nan",
    )


@pytest.mark.parametrize(("name", "compute"), [("run.wall_s", "lambda *_: 1.0"), ("", "lambda *_: 1.0"), ("x", "None")])
def test_a_fact_that_can_not_be_one_is_refused(tmp_path: Path, name: str, compute: str) -> None:
    loaded = load(tmp_path, odd=FACT.format(name=name, compute=compute))
    assert loaded.facts() == ()
    assert "is no new name, or has nothing to compute it" in loaded.problems[0]


# Commands


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
    return lambda: loaded.run(loaded.commands()[0], Namespace(path="x", times=3), services)


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
        ("return Report('it', ('text',))", "parts[0]: expected Text or Table, found str"),
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
    assert [(one.plugin, one.name) for one in loaded.commands(reserved=("advise",))] == [("a", "show")]
    assert [text.partition(":")[0] for text in loaded.problems] == ["plugin b", "plugin c"]
    assert all("is taken" in text for text in loaded.problems)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("register('Show', 'help', (), print)", "'Show' is no name"),
        ("register('--x', 'help', (), print)", "'--x' is no name"),
        ("register('show', ' ', (), print)", "has no help text"),
        ("register('show', 'help', (Argument('-p', ''),), print)", "'-p' is no name for an argument"),
        ("register('show', 'h', (), print); register('show', 'h', (), print)", "registered twice"),
        ("register(3, 'help', (), print)", "TypeError"),
    ],
)
def test_a_command_that_can_not_be_one_is_refused(tmp_path: Path, call: str, message: str) -> None:
    loaded = load(tmp_path, odd=f"@hookimpl\ndef advisor_commands(register):\n    {call}")
    assert loaded.commands() == ()
    assert message in loaded.problems[0]
