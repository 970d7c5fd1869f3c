"""The contract as it is published: the pages name every hook with its exact arguments, and what they show works."""

from __future__ import annotations

import inspect
import re
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from native_documents import PROFILES
from site_folder import plugin

from advisor.extension import hookspecs, host
from advisor.formats import native
from advisor.model.errors import InputError
from advisor.model.reports import Column, Table

if TYPE_CHECKING:
    from advisor.model.records import Advice, Profile

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "plugins.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((DOCS / "hooks").iterdir())}

HOOKS = {
    name: f"{name}({', '.join(inspect.signature(function).parameters)})"
    for name, function in inspect.getmembers(hookspecs, inspect.isfunction)
    if hasattr(function, "advisor_spec")
}


def test_the_table_names_every_hook_with_its_arguments() -> None:
    assert len(HOOKS) == 12
    rows = re.findall(r"^\| \[`(advisor_\w+\(.*?\))`\]\(hooks/(\w+)\.md\)", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((call, name) for name, call in HOOKS.items())


def test_there_is_a_page_for_every_hook() -> None:
    assert {name: text.splitlines()[0] for name, text in PAGES.items()} == {
        name: f"# {call}" for name, call in sorted(HOOKS.items())
    }


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_says_what_it_returns(name: str) -> None:
    text = inspect.getdoc(getattr(hookspecs, name))
    assert text
    assert text.split()[0] in ("Return", "Register")


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def from_page(folder: Path, text: str) -> host.PluginHost:
    """A host with the program of a page as its only plugin."""
    [program] = blocks(text)
    plugin(folder, "shown", program)
    loaded = host.load_plugins([folder], entry_points=False)
    assert loaded.problems == ()
    return loaded


def test_the_reader_of_the_tutorial_reads(tmp_path: Path) -> None:
    loaded = from_page(tmp_path, PAGE)
    (tmp_path / "run17").write_text(
        "sitetimer heat 12.5\nsolve 0 8.1\nsolve 1 4\nsolve 1 4\nio 0 1\n", encoding="utf-8"
    )
    profile = loaded.read_profile(*loaded.find_profiles(tmp_path / "run17"))
    assert [region.name for region in profile.regions] == ["io", "solve"]
    assert profile.phases[0].arrays["work_s"].tolist() == [[[1], [0]], [[8.1], [8]]]
    (tmp_path / "bad").write_text("sitetimer heat 12.5\nsolve 0\n", encoding="utf-8")
    with pytest.raises(InputError, match="bad:2: expected: region rank seconds"):
        loaded.read_profile(*loaded.find_profiles(tmp_path / "bad"))


def test_the_findings_of_the_tutorial(tmp_path: Path) -> None:
    figure = native.advisor_read(PROFILES / "fig4.json")
    assert [
        one.text for one in from_page(tmp_path, PAGES["advisor_findings"]).collect_findings(figure, (), (), None, ())
    ] == ["0 s are lost to imbalance."]


def test_the_rules_of_the_tutorial(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("[]\n", encoding="utf-8")
    assert from_page(tmp_path, PAGES["advisor_rules"]).rule_files() == (tmp_path.resolve() / "rules.yaml",)


def test_the_command_of_the_tutorial(tmp_path: Path) -> None:
    loaded = from_page(tmp_path, PAGES["advisor_commands"])
    (command,) = loaded.collect_commands()

    class Reading:
        def read(self, path: Path) -> Profile:
            return native.advisor_read(path)

        def advise(self, path: Path) -> Advice:
            raise NotImplementedError

    report = loaded.run_command(command, Namespace(path=PROFILES / "fig4.json"), Reading())
    rows = (("region 1", None), ("region 2", None))
    assert report.parts == (Table("", (Column("region"), Column("file")), rows),)


def test_every_program_on_the_pages_is_tested() -> None:
    shown = {name for name, text in PAGES.items() if blocks(text)}
    assert shown == {"advisor_findings", "advisor_rules", "advisor_commands"}
