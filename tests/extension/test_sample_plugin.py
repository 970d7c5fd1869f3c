"""The sample plugin of the documentation: built, installed beside gapwatch in a fresh environment, and at work."""

from __future__ import annotations

import shutil
from argparse import Namespace
from typing import TYPE_CHECKING

import pytest
from installed import ROOT, Environment, build, environment
from native_documents import PROFILES

from advisor.extension import host
from advisor.formats import native
from advisor.model.recommendations import Total
from advisor.model.records import Advice, Gap, Grade, Profile
from advisor.model.reports import Axis, Column, Line, Series, Table, Text

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = ROOT / "docs" / "sample_plugin"
FIGURE = native.advisor_read(PROFILES / "fig4.json")
GAPS = (
    Gap("L", ("L",), "IPCO", "IPCOL", 1.0, 1 / 47, "measured"),
    Gap("M'", ("M'",), "IPCOL", "IPCOLM", 4.0, 4 / 47, "measured"),
)


class Advising:
    """The services of an application that has advised on figure 4, and on ``earlier`` runs before."""

    earlier: tuple[Advice, ...] = ()

    def read(self, path: Path) -> Profile:
        return native.advisor_read(path)

    def advise(self, path: Path) -> Advice:
        grade = Grade("A", 1.0, ())
        return Advice(self.read(path), grade, (), GAPS, (), (), (), Total(0.0), (), (), "nothing significant")

    def load_history(self, program: str) -> tuple[Advice, ...]:
        return self.earlier


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    shutil.copytree(SAMPLE, source := tmp_path_factory.mktemp("sample") / "source")
    sample = build(source, "wheel", tmp_path_factory.mktemp("sample_wheel"))
    gapwatch = build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))
    return environment(tmp_path_factory.mktemp("environment"), str(gapwatch), str(sample))


def test_is_found_when_it_is_installed(installed: Environment) -> None:
    found = installed.found()
    assert found["plugins"]["core-hours"] == ["advisor-core-hours", None]
    assert found["plugins"]["native"] == ["gapwatch", None]
    assert "core-hours" in found["commands"]
    assert "run.core_hours" in found["facts"]


def test_the_command_line_knows_it(installed: Environment) -> None:
    plugins = installed.run("gapwatch", "plugins", cwd=installed.folder)
    assert "core-hours" in plugins.stdout, plugins.stderr
    assert "Show what each gap of a run costs" in installed.run("gapwatch", "--help", cwd=installed.folder).stdout
    own = installed.run("gapwatch", "core-hours", "--help", cwd=installed.folder)
    assert "Price of a core hour" in own.stdout, own.stderr


@pytest.fixture
def loaded(tmp_path: Path) -> host.PluginHost:
    """The sample as a plugin of a site's directory."""
    shutil.copytree(SAMPLE / "advisor_core_hours", tmp_path / "site" / "core_hours")
    for path in (tmp_path, *(tmp_path / "site").rglob("*"), tmp_path / "site"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return host.load_plugins([tmp_path / "site"], entry_points=False)


def test_its_finding_names_the_cost(loaded: host.PluginHost) -> None:
    (finding,) = loaded.collect_findings(FIGURE, (), GAPS, None, ())
    assert finding.plugin == "core_hours"
    assert finding.text == "The run took 0.0261 core hours, 0.00222 of them in gap M'."
    assert finding.measures == {"core_hours": 47 * 2 / 3600, "largest_gap_core_hours": 4 * 2 / 3600}
    assert loaded.collect_findings(FIGURE, (), (), None, ()) == ()
    assert loaded.problems == ()


def test_its_fact_is_the_cost(loaded: host.PluginHost) -> None:
    (fact,) = loaded.collect_facts()
    assert fact.compute is not None
    assert fact.compute(FIGURE, None) == 47 * 2 / 3600


def test_its_command_shows_the_costly_gaps_first(loaded: host.PluginHost) -> None:
    (command,) = loaded.collect_commands()
    report = loaded.run_command(command, Namespace(path=PROFILES / "fig4.json", price=None), Advising())
    assert report.title == "Core hours of fig4"
    assert report.parts == (
        Table(
            "",
            (Column("gap"), Column("time", "s"), Column("core hours")),
            (("M'", 4.0, 8 / 3600), ("L", 1.0, 2 / 3600)),
        ),
        Text("The whole run took 0.0261 core hours."),
    )
    priced = loaded.run_command(command, Namespace(path=PROFILES / "fig4.json", price=0.5), Advising())
    table = priced.parts[0]
    assert isinstance(table, Table)
    assert [row[3] for row in table.rows] == [4 / 3600, 1 / 3600]


def test_its_command_shows_what_earlier_runs_cost(loaded: host.PluginHost) -> None:
    (command,) = loaded.collect_commands()
    services = Advising()
    services.earlier = (services.advise(PROFILES / "fig4.json"),) * 2
    report = loaded.run_command(command, Namespace(path=PROFILES / "fig4.json", price=None), services)
    line = Line("", (1, 2), (94 / 3600, 94 / 3600))
    assert report.parts[2] == Series("Earlier runs", Axis("run"), Axis("core hours"), (line,))


def test_others_may_use_its_function(loaded: host.PluginHost) -> None:
    assert loaded.find_service("core-hours.of")(FIGURE, 3600.0) == 2.0
