"""The documents on docs/formats.md and docs/formats/native.md are what they claim to be."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from native_documents import PROFILES
from profile_strategies import plain

from advisor.collect import sidecar
from advisor.formats import native
from advisor.model.records import MEASURES, Profile

DOCS = Path(__file__).parents[2] / "docs"
OWN = (DOCS / "formats" / "native.md").read_text(encoding="utf-8")
SIDECAR = (DOCS / "formats.md").read_text(encoding="utf-8").split("## gapwatch.json")[1]
PROGRAMS = re.findall(r"```python\n(.*?)```", OWN, re.DOTALL)
DOCUMENTS = re.findall(r"```json\n(.*?)```", OWN, re.DOTALL)


@pytest.mark.parametrize("text", DOCUMENTS)
def test_every_document_can_be_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text, encoding="utf-8")
    assert native.advisor_sniff(path) == 1
    assert native.advisor_read(path).program == json.loads(text)["program"]


def test_the_figure_is_the_one_of_the_tests(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(DOCUMENTS[1], encoding="utf-8")
    assert plain(native.advisor_read(tmp_path / "run.json")) == plain(native.advisor_read(PROFILES / "fig4.json"))


def test_the_program_writes_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(PROGRAMS[0], "native.md", "exec"), {})
    profile = native.advisor_read(tmp_path / "run.npz")
    assert len(profile.phases) == 1000
    assert profile.phases[7].arrays["work_s"].shape == (1, 64, 100)


def test_every_member_is_described() -> None:
    known = {"schema", "program", "run", "actual_s", "regions", "phases", "status", "synchronized"}
    for name in {field.name for field in fields(Profile)} | set(MEASURES) | known:
        assert f"`{name}`" in OWN or f'"{name}"' in OWN, name


def test_the_sidecar_can_be_read(tmp_path: Path) -> None:
    text = re.findall(r"```json\n(.*?)```", SIDECAR, re.DOTALL)[0]
    (tmp_path / "gapwatch.json").write_text(text, encoding="utf-8")
    said = sidecar.read_sidecar(tmp_path / "profile")
    assert said is not None
    assert all(getattr(said, field.name) for field in fields(said)), "the page shows every member"
