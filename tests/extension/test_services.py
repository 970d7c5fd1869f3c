"""What a plugin's command gets from gapwatch: every service, asked for by a command of a site's plugin."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from patience import wait_until
from site_folder import plugin

from advisor import cli
from advisor.cli import parsers, progress
from advisor.cli.services import HostServices
from advisor.extension.commands import Argument, Command
from advisor.extension.host import load_plugins
from advisor.history.database import HistoryWriter
from advisor.history.runs import ProfileUnit, RunStore
from advisor.model.errors import InputError, PluginError, UsageError
from advisor.model.reports import Bar, Bars, Report
from advisor.pipeline import Options, advise

if TYPE_CHECKING:
    from collections.abc import Sequence

PROFILES = Path(__file__).parents[1] / "profiles"
FIGURE = PROFILES / "fig4.json"
TRACES = {
    "otf2": PROFILES / "otf2" / "scorep-multiphase",
    "paraver": PROFILES / "paraver" / "faultlab-late4",
    "dimemas": PROFILES / "dimemas" / "faultlab-late4",
}
EVERYTHING = """
    from pathlib import Path

    def run(args, services):
        with services.show_progress("asking", total=8) as tell:
            profile = services.read(args.path)
            tell(1)
            folder = services.user_folder("cache")
            answers = (
                ("program", profile.program),
                ("runs", len(services.read_all(args.path))),
                ("verdict", services.advise(args.path).verdict),
                ("history", len(services.load_history(profile.program))),
                ("machine", services.load_machine(args.machine).name),
                ("half", services.find_service("one.half")(4)),
                ("folder", f"{folder.name} {folder.stat().st_mode & 0o777:o}"),
                ("command", " ".join(args.command)),
            )
        return Report("", (Table("", (Column("what"), Column("answer")), answers),))

    @hookimpl
    def advisor_commands(register):
        arguments = [
            Argument("path", "a profile", Path), Argument("--machine", "a model"),
            Argument("command", "what to run", remainder=True),
        ]
        register("ask", "Ask for everything.", arguments, run)

    @hookimpl
    def advisor_services():
        return {"one.half": lambda value: value / 2, "one.broken": lambda: [][0]}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("GAPWATCH_STATE", str(tmp_path / "state"))
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "one", EVERYTHING)
    monkeypatch.setenv("GAPWATCH_PLUGINS", str(folder))
    return folder


def services(folder: Path) -> HostServices:
    return HostServices(load_plugins([folder]))


def remember(folder: Path, count: int) -> None:
    """Put some runs into the history."""
    advice = advise([FIGURE], Options(), load_plugins())
    writer = HistoryWriter(folder)
    with writer.transaction() as connection:
        for number in range(count):
            unit = ProfileUnit(folder / f"{number}.json", "native", f"{number}")
            RunStore(connection).add_run(advice, (unit,), datetime.now(UTC))
    writer.close()


def test_a_command_gets_every_service(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remember(site.parent / "state", 2)
    machine = PROFILES.parents[1] / "machine_models" / "epyc-9654.yaml"
    assert machine.is_file()
    asked = ["ask", str(FIGURE), "--machine", str(machine), "--format", "json", "--", "mpirun", "-n", "4", "--", "x"]
    assert cli.main(asked) == 0
    written, complaints = capsys.readouterr()
    assert complaints == ""
    assert dict(json.loads(written)["parts"][0]["rows"]) == {
        "program": "fig4",
        "runs": 1,
        "verdict": "advice",
        "history": 2,
        "machine": "epyc-9654",
        "half": 2.0,
        "folder": "gapwatch 700",
        "command": "mpirun -n 4 -- x",
    }


def test_all_runs_are_read_oldest_first(site: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    document = json.loads(FIGURE.read_text(encoding="utf-8"))
    for day in (3, 1, 2):
        text = json.dumps({**document, "run": f"day {day}", "started": f"2026-01-0{day}T00:00:00Z"})
        (runs / f"{day}.json").write_text(text, encoding="utf-8")
    asked = services(site)
    assert [one.run for one in asked.read_all(runs)] == ["day 1", "day 2", "day 3"]
    assert asked.read(runs).run == "day 3"


def test_history_is_what_the_daemon_keeps(site: Path) -> None:
    asked = services(site)
    assert asked.load_history("fig4") == ()
    remember(site.parent / "state", 3)
    earlier = asked.load_history("fig4")
    assert [one.verdict for one in earlier] == ["advice"] * 3
    assert earlier[0].profile.phases[0].arrays == {}
    assert asked.load_history("another") == ()


def test_machines_by_name_and_of_this_host(site: Path) -> None:
    asked = services(site)
    assert asked.load_machine(None).name == "host"
    assert asked.load_machine("epyc-9654").name == "epyc-9654"
    with pytest.raises(UsageError, match="epyc-9654"):
        asked.load_machine("epyc-965")


@pytest.mark.parametrize("purpose", ["cache", "data", "config"])
def test_folders_are_the_users_own(site: Path, purpose: Literal["cache", "data", "config"]) -> None:
    folder = services(site).user_folder(purpose)
    assert folder.is_dir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder == site.parent / f"XDG_{purpose.upper()}_HOME" / "gapwatch"
    assert services(site).user_folder(purpose) == folder


# Events


@pytest.mark.parametrize("reader", TRACES)
def test_traces_are_read_whatever_their_format(site: Path, reader: str) -> None:
    asked = services(site)
    found = [one for one in asked.host.find_profiles(TRACES[reader]) if one.reader == reader]
    trace = asked.read_trace(found[0].path)
    assert len(trace.time_s) > 0
    assert trace.ranks == asked.read(found[0].path).ranks


def test_what_is_no_trace_is_said(site: Path) -> None:
    with pytest.raises(InputError, match=r"fig4\.json: is not a trace: the format 'native' holds no events"):
        services(site).read_trace(FIGURE)


def test_of_several_traces_one_has_to_be_named(site: Path) -> None:
    with pytest.raises(InputError, match=r"holds \d+ traces, such as .*; choose one"):
        services(site).read_trace(PROFILES / "paraver")


# What plugins offer to each other


def test_a_service_that_fails_names_its_plugin(site: Path) -> None:
    with pytest.raises(PluginError, match=r"the service 'one\.broken' of the plugin 'one' failed: IndexError"):
        services(site).find_service("one.broken")()


def test_errors_of_ours_pass_through_a_service(site: Path) -> None:
    plugin(
        site, "two", "@hookimpl\ndef advisor_services():\n    return {'two.fit': fit}\ndef fit(): raise UsageError('x')"
    )
    with pytest.raises(UsageError, match=r"^x$"):
        services(site).find_service("two.fit")()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("three.fit", "needs 'three.fit' of the plugin 'three', which is not installed"),
        ("one.fit", "needs 'one.fit' of the plugin 'one': it does not offer that"),
        ("bad.fit", "needs 'bad.fit' of the plugin 'bad': ZeroDivisionError"),
    ],
)
def test_a_missing_service_names_the_plugin_that_is_needed(site: Path, name: str, reason: str) -> None:
    plugin(site, "bad", "1 / 0")
    with pytest.raises(PluginError) as caught:
        services(site).find_service(name)
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize("answer", ["3", "{1: print}", "{'x': 3}", "{'': print}"])
def test_services_that_are_none_are_a_problem(site: Path, answer: str) -> None:
    plugin(site, "odd", f"@hookimpl\ndef advisor_services():\n    return {answer}")
    asked = services(site)
    with pytest.raises(PluginError):
        asked.find_service("odd.x")
    assert any(problem.startswith("plugin odd: advisor_services failed") for problem in asked.host.problems)


# Arguments


def command(*arguments: Argument) -> Command:
    return Command("one", "do", "Does it.", arguments, lambda args, services: Report("", ()))


def parsed(arguments: Sequence[Argument], *given: str) -> dict[str, object]:
    found = vars(parsers.parse_plugin_arguments(command(*arguments), given))
    return {name: found[name] for name in ("path", "run_it", "n") if name in found}


REST = (Argument("path", "p"), Argument("--n", "n", int, 1), Argument("run-it", "100 % of it", remainder=True))


def test_the_remainder_is_everything_behind_the_dashes() -> None:
    assert parsed(REST, "x", "--n", "2", "--", "a", "--n", "--", "b") == {
        "path": "x", "n": 2, "run_it": ["a", "--n", "--", "b"]
    }  # fmt: skip
    assert parsed(REST, "x") == {"path": "x", "n": 1, "run_it": []}
    assert parsed(REST, "x", "--") == {"path": "x", "n": 1, "run_it": []}


def test_a_remainder_may_be_required() -> None:
    rest = (Argument("run-it", "what", required=True, remainder=True),)
    assert parsed(rest, "--", "a") == {"run_it": ["a"]}
    with pytest.raises(UsageError, match="the following argument is required: -- RUN-IT"):
        parsed(rest)


def test_without_a_remainder_the_dashes_are_as_always() -> None:
    assert parsed((Argument("path", "p"),), "--", "-x") == {"path": "-x"}
    with pytest.raises(UsageError):
        parsed(REST, "x", "stray")


def test_help_shows_the_remainder() -> None:
    shown = parsers.build_plugin_parser(command(*REST)).format_help()
    assert "PATH -- RUN-IT ..." in " ".join(shown.split())
    assert "-- RUN-IT ...: 100 % of it" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        "Argument('--rest', 'r', remainder=True)",
        "Argument('rest', 'r', int, remainder=True)",
        "Argument('rest', 'r', remainder=True), Argument('more', 'm', remainder=True)",
    ],
)
def test_a_remainder_that_can_not_be_one_is_refused(site: Path, arguments: str) -> None:
    plugin(site, "odd", f"@hookimpl\ndef advisor_commands(register):\n    register('odd', 'h', [{arguments}], print)")
    loaded = load_plugins([site], entry_points=False)
    assert [one.name for one in loaded.collect_commands()] == ["ask"]
    assert "remainder" in loaded.problems[0]


# Progress


def test_steps_tell_how_long_the_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    steps = progress._StepProgress("work", 40)
    assert steps.describe_progress(100.0) == "0 s"
    steps.set_done(0)
    now[0] = 103.0
    steps.set_done(12)
    assert steps.describe_progress(100.0) == "12 of 40, 3 s, about 7 s left"
    steps.set_done(40)
    assert steps.describe_progress(100.0) == "40 of 40, 3 s, about 0 s left"


def test_stages_change_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    line = Terminal()
    monkeypatch.setattr(sys, "stderr", line)
    monkeypatch.setattr(progress, "_PATIENCE", 0.001)
    monkeypatch.setattr(progress, "_PERIOD", 0.001)
    monkeypatch.setenv("TERM", "xterm")
    with progress.show_stages("reading") as stage:
        wait_until(lambda: "reading: " in line.getvalue())
        stage("simulating")
        wait_until(lambda: "simulating: " in line.getvalue())
    assert line.getvalue().endswith("\r")


def test_a_part_of_a_report_is_drawn_into_a_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'gapwatch[html]'")
    bars = Bars("Ranks of $p$", "s", (Bar("_rank 0", 1.0), Bar("rank 1", 2.0, 1.5, 2.5)))
    HostServices(load_plugins(())).write_picture(bars, tmp_path / "ranks.svg")
    drawn = (tmp_path / "ranks.svg").read_text(encoding="utf-8")
    assert all(words in drawn for words in ("Ranks of $p$", "_rank 0", "rank 1"))


def test_steps_of_an_earlier_time_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    steps = progress._StepProgress("work", 100)
    steps.set_done(90)
    assert steps.describe_progress(0.0) == "90 of 100, 0 s"
    now[0] = 600.0
    steps.set_done(95)
    assert steps.describe_progress(0.0) == "95 of 100, 600 s, about 10 min left"


def test_steps_without_a_total_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "monotonic", lambda: 0.0)
    steps = progress._StepProgress("work", None)
    steps.set_done(7)
    assert steps.describe_progress(0.0) == "7, 0 s"
