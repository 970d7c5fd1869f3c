"""Where most was counted is said of runs of which no more can be said: those without times, and grade F."""

from __future__ import annotations

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
