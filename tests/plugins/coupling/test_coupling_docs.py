"""The page on coupling says what the program takes: keys of the manifest, examples of files."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING

import yaml
from coupling_data import HERE

from advisor_coupling import results
from advisor_coupling.manifest import Manifest

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (HERE.parent / "docs" / "plugins" / "coupling.md").read_text(encoding="utf-8")


def test_every_key_of_a_manifest_is_explained() -> None:
    section = PAGE.split("## The manifest")[1].split("## What is computed")[0]
    cells = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert listed == {field.name for field in fields(Manifest)} - {"mark"}


def test_the_manifest_on_the_page_is_the_one_of_the_examples() -> None:
    (block,) = re.findall(r"   ```yaml\n(.*?)   ```", PAGE, re.DOTALL)
    example = (HERE.parent / "examples" / "coupling" / "pair.yaml").read_text()
    assert yaml.safe_load("\n".join(line[3:] for line in block.splitlines())) == yaml.safe_load(example)


def test_the_results_on_the_page_are_read(tmp_path: Path) -> None:
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "toy.coupling.json"
    path.write_text(block)
    document = results.read_results(path)
    assert [run.kind for run in document.runs] == ["chain", "chain", "chain", "application"]
    (case,) = results.build_cases(document)
    assert case.samples["seconds"][(0, 1)].tolist() == [0.035]
