"""The studies: their manifests are read, their patches are a few lines, and the page names what they hold."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from advisor.support.documents import load_document
from advisor_coupling.manifest import Manifest

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies" / "npb"
PAGE = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["bt", "sp", "lu"])
def test_a_manifest_names_the_kernels_that_its_patch_puts_in(name: str) -> None:
    manifest = load_document(STUDIES / f"{name}.yaml", Manifest)
    lines = (STUDIES / f"{name}.patch").read_text(encoding="utf-8").splitlines()
    added = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
    assert len(added) <= 12
    for kernel in manifest.kernels:
        assert any(f'"{kernel.name}"' in line for line in added)


def test_the_page_has_a_part_for_each_program() -> None:
    for name in ("BT", "SP", "LU"):
        assert f"| {name} |" in PAGE
    assert "What differs, and why" in PAGE


def test_the_page_holds_the_tables_of_the_programs_that_come_along() -> None:
    table = runpy.run_path(str(ROOT / "studies" / "workloads" / "table.py"))
    entries = table["load_timed"]()
    assert len({one.program for one in entries}) == 14
    expected = "".join(f"{line}\n" for line in table["build_tables"](entries))
    assert table["BEGIN"] + expected + table["END"] in PAGE
