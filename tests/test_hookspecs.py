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

from advisor import hookspecs, host
from advisor.errors import InputError
from advisor.readers import native
from advisor.reports import Column, Table

if TYPE_CHECKING:
    from advisor.model import Advice, Profile

ROOT = Path(__file__).parents[1]
TABLE = (ROOT / "plugins" / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

HOOKS = {
    name: f"{name}({', '.join(inspect.signature(function).parameters)})"
    for name, function in inspect.getmembers(hookspecs, inspect.isfunction)
    if hasattr(function, "advisor_spec")
}


def test_the_table_names_every_hook_with_its_arguments() -> None:
    assert len(HOOKS) == 10
    assert sorted(re.findall(r"^\| `(advisor_\w+\(.*?\))`", TABLE, re.MULTILINE)) == sorted(HOOKS.values())


def test_the_tutorial_has_a_section_for_every_hook() -> None:
    assert sorted(re.findall(r"^### (advisor_\w+\(.*\))$", PAGE, re.MULTILINE)) == sorted(HOOKS.values())


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_says_what_it_returns(name: str) -> None:
    text = inspect.getdoc(getattr(hookspecs, name))
    assert text
    assert text.split()[0] in ("Return", "Register")


def from_page(folder: Path, number: int) -> host.Host:
    """A host with one block of the tutorial as its only plugin."""
    plugin(folder, "shown", BLOCKS[number])
    loaded = host.load([folder], entry_points=False)
    assert loaded.problems == ()
    return loaded


def test_the_reader_of_the_tutorial_reads(tmp_path: Path) -> None:
    loaded = from_page(tmp_path, 0)
    (tmp_path / "run17").write_text(
        "sitetimer heat 12.5\nsolve 0 8.1\nsolve 1 4\nsolve 1 4\nio 0 1\n", encoding="utf-8"
    )
    profile = loaded.read(*loaded.find(tmp_path / "run17"))
    assert [region.name for region in profile.regions] == ["io", "solve"]
    assert profile.phases[0].arrays["work_s"].tolist() == [[[1], [0]], [[8.1], [8]]]
    (tmp_path / "bad").write_text("sitetimer heat 12.5\nsolve 0\n", encoding="utf-8")
    with pytest.raises(InputError, match="bad:2: expected: region rank seconds"):
        loaded.read(*loaded.find(tmp_path / "bad"))


def test_the_findings_of_the_tutorial(tmp_path: Path) -> None:
    figure = native.advisor_read(PROFILES / "fig4.json")
    assert [one.text for one in from_page(tmp_path, 1).findings(figure, (), (), None, ())] == [
        "0 s are lost to imbalance."
    ]


def test_the_rules_of_the_tutorial(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("[]\n", encoding="utf-8")
    assert from_page(tmp_path, 2).rules() == (tmp_path.resolve() / "rules.yaml",)


def test_the_command_of_the_tutorial(tmp_path: Path) -> None:
    loaded = from_page(tmp_path, 3)
    (command,) = loaded.commands()

    class Reading:
        def read(self, path: Path) -> Profile:
            return native.advisor_read(path)

        def advise(self, path: Path) -> Advice:
            raise NotImplementedError

    report = loaded.run(command, Namespace(path=PROFILES / "fig4.json"), Reading())
    rows = (("region 1", None), ("region 2", None))
    assert report.parts == (Table("", (Column("region"), Column("file")), rows),)


def test_every_block_of_the_tutorial_is_tested() -> None:
    assert len(BLOCKS) == 4
