"""One program recorded by three tools: one Profile, one advice, and what each of them could say alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor import pipeline
from advisor.extension import host
from advisor.model.records import BOUND_NAMES

ROOT = Path(__file__).parents[2]
TOGETHER = ROOT / "tests" / "profiles" / "together"
PAGE = ROOT / "docs" / "validation.md"
OPTIONS = pipeline.Options(machine="xeon-8480")
PARTS = {
    "EZTrace": TOGETHER / "stencil_trace",
    "perf": TOGETHER / "perf.txt",
    "callgrind": TOGETHER / "callgrind",
    "all together": TOGETHER,
}
SECTION = re.compile(r"(?<=<!-- together: begin -->\n).*?(?=\n<!-- together: end -->)", re.DOTALL)


def table() -> str:
    """The bounds that each tool gives, and all of them."""
    plugins = host.load_plugins()
    found = {name: pipeline.advise([path], OPTIONS, plugins) for name, path in PARTS.items()}
    rows = ["| bound, s | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    for name in BOUND_NAMES:
        cells = []
        for advice in found.values():
            [bound] = [each for each in advice.bounds if each.name == name]
            mark = "~" if bound.status in ("estimated", "modelled") else ""
            cells.append("-" if bound.seconds is None else f"{mark}{bound.seconds:.3g}")
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    rows.append(
        "| first item | "
        + " | ".join(a.recommendations[0].action if a.recommendations else a.verdict for a in found.values())
        + " |"
    )
    return "\n".join(rows)


def test_three_recordings_are_one_run() -> None:
    runs, problems = pipeline.read_runs([TOGETHER], OPTIONS, host.load_plugins())
    assert problems == ()
    [run] = runs
    assert run.reader == "otf2+perf+callgrind"
    assert (run.program, run.build, run.cores) == ("stencil", "1.0", 2)
    assert [note.name for note in run.notes if note.name == "merged"] == ["merged"]


def test_the_counts_are_those_of_callgrind_at_the_functions_of_the_trace() -> None:
    [run], _ = pipeline.read_runs([TOGETHER], OPTIONS, host.load_plugins())
    [alone], _ = pipeline.read_runs([PARTS["callgrind"]], OPTIONS, host.load_plugins())
    for name, counts in alone.counts.items():
        if name != "calls":
            assert run.counts[name].sum() == pytest.approx(counts.sum()), name


def test_the_injected_imbalance_is_found() -> None:
    advice = pipeline.advise([TOGETHER], OPTIONS, host.load_plugins())
    gaps = {gap.name: gap.seconds for gap in advice.gaps}
    assert gaps["L"] == pytest.approx(0.3 * 0.4, rel=0.05, abs=0.005)
    assert advice.recommendations[0].action == "A-28"


def test_the_page_lists_the_bounds_of_today(request: pytest.FixtureRequest) -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = SECTION.search(page)
    assert found is not None
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text(page[: found.start()] + table() + page[found.end() :], encoding="utf-8")
    else:
        assert found[0] == table(), "run: pytest --rewrite-golden tests/pipeline/test_together.py"
