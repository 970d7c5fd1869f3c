from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from native_documents import PROFILES
from site_folder import load
from trace_builder import Line, build

from advisor.formats import native
from advisor.model.errors import InputError, UnknownFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.extension import host

FIGURE = native.advisor_read(PROFILES / "fig4.json")

GOOD = """
    @hookimpl
    def advisor_findings(profile, gaps):
        return [Finding("somebody else", "seen", profile.program, "all is well", {"gaps": len(gaps)})]
"""
SURE = """
    from advisor.formats import native
    @hookimpl
    def advisor_sniff(path):
        return 0.9
    @hookimpl
    def advisor_read(path):
        return native.advisor_read(path)
"""


def findings(loaded: host.PluginHost) -> list[tuple[str, str]]:
    return [(one.plugin, one.text) for one in loaded.collect_findings(FIGURE, (), (), None, ())]


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


def test_what_plugins_print_is_not_part_of_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load(
        tmp_path,
        loud="""
        import sys
        print("loading")
        @hookimpl
        def advisor_findings(profile):
            print("finding")
            sys.stdout = None
            return [Finding("loud", "note", "run", "all is well", {})]
        """,
    )
    assert findings(loaded) == [("loud", "all is well")]
    print("result")
    assert capsys.readouterr() == ("result\n", "loading\nfinding\n")


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
    assert loaded.read_profile(*loaded.find_profiles(path)).program == "fig4"


def test_arrays_of_a_profile_that_was_read_can_not_be_changed_by_accident(tmp_path: Path) -> None:
    loaded = load(tmp_path, reader=SURE)
    profile = loaded.read_profile(*loaded.find_profiles(PROFILES / "fig4.json"))
    with pytest.raises(ValueError, match="read-only"):
        profile.phases[0].arrays["work_s"][:] = 0


def test_an_unknown_format_is_named_with_the_known_ones(tmp_path: Path) -> None:
    never = SURE.replace("0.9", "None")
    with pytest.raises(UnknownFormatError, match=r"known here: first, second"):
        load(tmp_path, second=never, first=never.replace("None", "0")).find_profiles(PROFILES / "fig4.json")


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
        loaded.read_profile(*loaded.find_profiles(path))
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    loaded = load(tmp_path, reader=SURE)
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("pipe", "neither a file"), ("none", "No such file"), ("a\0b", "null byte")):
        with pytest.raises(InputError, match=reason):
            loaded.read_profile(*loaded.find_profiles(tmp_path / name))


def test_what_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(tmp_path, reader=SURE)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read everything
    with pytest.raises(InputError, match="Permission denied"):
        loaded.read_profile(*loaded.find_profiles(PROFILES / "fig4.json"))


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
    assert loaded.problems == ("plugin b: advisor_expected_gain failed: the expected gain 9 is outside 10 to 11",)


def test_files_that_a_plugin_brings_along_exist(tmp_path: Path) -> None:
    rules = "from pathlib import Path\n@hookimpl\ndef advisor_rules():\n    return [Path(__file__)]"
    missing = "from pathlib import Path\n@hookimpl\ndef advisor_machines():\n    return [Path('/no/such/file')]"
    loaded = load(tmp_path, rules=rules, missing=missing)
    assert loaded.rule_files() == (tmp_path.resolve() / "rules.py",)
    assert loaded.machine_files() == ()
    assert "/no/such/file is not a file" in loaded.problems[0]


FACT = """
    from advisor.advice.facts import Fact
    @hookimpl
    def advisor_facts():
        return [Fact("{name}", "count", "run", (), "", "as computed", {compute})]
"""


def test_a_fact_that_can_not_be_computed_is_unknown(tmp_path: Path) -> None:
    computed = {"a": "lambda profile, phase: 7.0", "b": "lambda profile, phase: 1 / 0", "c": "lambda *_: float('nan')"}
    bodies = {name: FACT.format(name=f"site.{name}", compute=compute) for name, compute in computed.items()}
    loaded = load(tmp_path, **bodies, d=FACT.format(name="site.a", compute="lambda *_: 8.0"))
    values = [fact.compute(FIGURE, None) for fact in loaded.collect_facts() if fact.compute]
    assert values == [7.0, None, None]
    assert loaded.problems == (
        "plugin d: advisor_facts failed: the fact 'site.a' is taken",
        "plugin b: the fact 'site.b' failed: ZeroDivisionError: division by zero",
        "plugin c: the fact 'site.c' failed: expected a finite number, found nan",
    )


def test_a_fact_of_events_is_computed_from_them_and_unknown_without_them(tmp_path: Path) -> None:
    body = FACT.format(name="site.a", compute="None, lambda profile, trace, phase: float(trace.ranks)")
    trace = build(Line(0).call(0.0, 1.0, "work"), Line(1).call(0.0, 1.0, "work"))
    loaded = load(tmp_path, a=body)
    with_events, without = loaded.collect_facts(lambda: trace)[0], loaded.collect_facts()[0]
    assert with_events.compute is not None
    assert without.compute is not None
    assert (with_events.compute(FIGURE, None), without.compute(FIGURE, None)) == (2.0, None)
    assert not loaded.problems


@pytest.mark.parametrize(("name", "compute"), [("run.wall_s", "lambda *_: 1.0"), ("", "lambda *_: 1.0"), ("x", "None")])
def test_a_fact_that_can_not_be_one_is_refused(tmp_path: Path, name: str, compute: str) -> None:
    loaded = load(tmp_path, odd=FACT.format(name=name, compute=compute))
    assert loaded.collect_facts() == ()
    assert "is not a new name, or has nothing to compute it" in loaded.problems[0]
