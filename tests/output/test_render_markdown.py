"""Comments on pull requests: one screen, the same text for the same advice, and names that stay names."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import advice_samples as samples
import pytest
from daemon_runs import Watch, profile
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from page_elements import Elements

from advisor import cli
from advisor.advice.earlier_runs import find_base
from advisor.analysis.comparison import compare_builds
from advisor.model.errors import UsageError
from advisor.output.markdown import render_comment

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.records import Advice

FIGURE = Path(__file__).parents[1] / "profiles" / "fig4.json"
HOSTILE = (
    "operator[]",
    "</script><img src=x onerror=alert(1)>",
    "[/]",
    "\x1b[2J",
    "x" * 5000,
    "größer→",
    "a](http://x)",
    "`` ` ``",
    "a | b",
    "--><b>",
    "@everyone #1",
    "</details>",
    "`",
)


def shown(advice: Advice, **more: object) -> Elements:
    text = render_comment(advice, **more)  # type: ignore[arg-type]
    return Elements(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def named(name: str, advice: Advice) -> Advice:
    """Advice in which everything that a profile or a plugin names has this name."""
    items = tuple(
        replace(item, region=name, phase=name, file=name, title=name, why=name, rule_place=name)
        for item in advice.recommendations
    )
    run = replace(advice.profile, program=name, build=name)
    return replace(advice, profile=run, recommendations=items, problems=(name,))


def built(build: str, slower_s: float = 0.0) -> Advice:
    """The sample as of another build, with more load imbalance."""
    made = samples.full()
    place = [bound.name for bound in made.bounds].index("IPCOL")
    levels = tuple(
        replace(one, seconds=one.seconds + slower_s) if at >= place and one.seconds is not None else one
        for at, one in enumerate(made.bounds)
    )
    gaps = tuple(replace(one, seconds=one.seconds + slower_s) if one.name == "L" else one for one in made.gaps)
    run = replace(made.profile, build=build, actual_s=made.profile.actual_s + slower_s)
    return replace(made, profile=run, bounds=levels, gaps=gaps)


def test_the_comment_on_the_sample(golden: Callable[[str, str], None]) -> None:
    advice = built("v2", 2.0)
    text = render_comment(advice, compare_builds([built("v1")], [advice]))
    golden(text, "advice.md")
    assert text == render_comment(advice, compare_builds([built("v1")], [advice]))
    visible = text.partition("<details>")[0]
    assert len(visible.splitlines()) < 40
    assert text.startswith("<!-- gapwatch: jacobi -->\n")


@pytest.mark.parametrize("sample", [samples.full, samples.nothing, samples.insufficient, samples.without_phases])
def test_every_verdict_has_a_comment(sample: Callable[[], Advice]) -> None:
    advice = sample()
    page = shown(advice)
    assert page.names.count("details") == min(3, len(advice.recommendations)) + bool(advice.gaps)
    if not advice.recommendations:
        assert advice.verdict.capitalize() in page.text


def test_what_changed_stands_first() -> None:
    before, after = built("v1"), built("v2", 2.0)
    text = shown(after, since=compare_builds([before], [after])).text
    assert "Since build v1: run time +2.00 s (one run each: noise unknown)" in text
    assert text.index("Since build") < text.index("To do next")
    assert shown(after).text.count("Since build") == 0
    steady = compare_builds([before, before], [before, before])
    assert "±0 s (within noise)" in shown(before, since=steady).text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_do_nothing_and_stay_what_they_are(name: str) -> None:
    page = shown(named(name, samples.full()))
    allowed = {"h3", "p", "code", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"}
    assert set(page.names) <= allowed | {"ul", "li"}
    assert page.names.count("details") == shown(samples.full()).names.count("details")
    if len(name) < 100 and name.isprintable():
        assert name in page.text


@given(st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_no_name_changes_the_page(name: str) -> None:
    plain, page = shown(named("x", samples.full())), shown(named(name, samples.full()))
    assert sorted(set(page.names)) == sorted(set(plain.names)) or not name.strip()
    assert page.names.count("td") == plain.names.count("td")
    assert page.names.count("details") == plain.names.count("details")


# Which build is the base


def test_the_base_is_the_last_other_build() -> None:
    past = [built("v1"), built("v2"), built("v3")]
    found = find_base(built("v3", 1.0), past)
    assert found is not None
    assert (found.change.before, found.change.after, found.change.runs) == ("v2", "v3", (1, 2))
    named_base = find_base(built("v3"), past, "v1")
    assert named_base is not None
    assert named_base.change.before == "v1"


def test_without_an_earlier_build_there_is_no_base() -> None:
    assert find_base(built("v1"), [built("v1")]) is None
    with pytest.raises(UsageError, match="is of the build 'v9'; there are v2"):
        find_base(built("v1"), [built("v2")], "v9")


def test_the_command_compares_with_the_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    daemon = Watch(tmp_path)
    profile(daemon.root / "1.json", run="1", build="v1", started=datetime(2026, 1, 1, tzinfo=UTC).isoformat())
    daemon.once()
    later = tmp_path / "later.json"
    later.write_text(json.dumps(json.loads(FIGURE.read_text(encoding="utf-8")) | {"build": "v2", "actual_s": 50}))
    asked = ["advise", str(later), "--format", "markdown", "--state", str(daemon.state)]
    assert cli.main(asked) == 0
    text = capsys.readouterr().out
    assert "**Since build `v1`**: run time +3.00 s (one run each: noise unknown)" in text
    assert cli.main([*asked, "--base", "v7"]) == 2
    assert "no earlier run of 'fig4' is of the build 'v7'; there are v1" in capsys.readouterr().err
    assert cli.main(["advise", str(later), "--format", "markdown"]) == 0
    assert "Since build" not in capsys.readouterr().out
