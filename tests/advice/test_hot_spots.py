"""Where most was counted is said of runs of which no more can be said: those without times, and grade F."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from advisor import pipeline
from advisor.advice.hot_spots import describe_hot_spots
from advisor.extension.host.plugin_host import load_plugins
from advisor.formats import call_stacks
from advisor.output.markdown import render_comment

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.extension.host import PluginHost

STACKS = "main;solve;dot 60\nmain;solve;axpy 30\nmain;read 9\nmain;rest 1\n"


@pytest.fixture(scope="module")
def host() -> PluginHost:
    return load_plugins()


def test_shares_of_samples(tmp_path: Path) -> None:
    (tmp_path / "out.folded").write_text(STACKS)
    found = describe_hot_spots(call_stacks.advisor_read(tmp_path / "out.folded"))
    assert found is not None
    assert found.text == "Samples by region: dot 60.0 %, axpy 30.0 %, read 9.0 %."
    assert [bar.name for bar in found.pictures[0].bars] == ["dot", "axpy", "read"]  # type: ignore[union-attr]


def test_no_region_stands_out(tmp_path: Path) -> None:
    (tmp_path / "out.folded").write_text("".join(f"main;function{n};last{n} 1\n" for n in range(100)))
    assert describe_hot_spots(call_stacks.advisor_read(tmp_path / "out.folded")) is None


def test_advice_names_them(tmp_path: Path, host: PluginHost) -> None:
    (tmp_path / "out.folded").write_text(STACKS)
    advice = pipeline.advise([tmp_path / "out.folded"], pipeline.Options(), host)
    assert advice.grade.letter == "F"
    assert "dot 60.0 %" in render_comment(advice)


def test_kinds_of_code_are_told_by_names_of_libraries(tmp_path: Path) -> None:
    text = "main;solve;__strcmp_avx2 30\nmain;_int_malloc 12\nmain;free 8\nmain;solve 46\nmain;memcpy 4\n"
    (tmp_path / "out.folded").write_text(text)
    found = describe_hot_spots(call_stacks.advisor_read(tmp_path / "out.folded"))
    assert found is not None
    kinds = "30.0 % in comparing and scanning text and 20.0 % in allocating and freeing memory."
    assert found.text.endswith(f". Of all, {kinds}"), "less than 5 % is not named"


@pytest.mark.parametrize(
    ("file", "told"), [("./malloc/malloc.c", True), ("/build/glibc-2.31/malloc/malloc.c", True), ("src/free.c", False)]
)
def test_functions_of_the_program_are_not_the_library_s(file: str, told: bool, tmp_path: Path) -> None:
    (tmp_path / "out.folded").write_text("main;solve 60\nmain;free 36\nmain;read 4\n")
    profile = call_stacks.advisor_read(tmp_path / "out.folded")
    regions = tuple(replace(region, file=file) if region.name == "free" else region for region in profile.regions)
    found = describe_hot_spots(replace(profile, regions=regions))
    assert found is not None
    assert ("in allocating" in found.text) is told
