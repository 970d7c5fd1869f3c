"""Findings, facts and advice on I/O that follow from Darshan logs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from darshan_logs import BTIO, CLEAN, IO, LOGS, log, read, shared, table, values

from advisor import pipeline
from advisor.analysis import bounds, gaps
from advisor.extension import host
from advisor.formats import darshan
from advisor.formats.darshan.profile import from_log
from advisor.output import terminal
from advisor.output.page import Page

if TYPE_CHECKING:
    from advisor.model.records import Finding, Profile

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("darshan") is None,
    reason="needs the package darshan, which has wheels up to Python 3.12: pip install 'gapwatch[cluster]'",
)


def test_io_has_its_seconds_and_everything_else_is_one_bound() -> None:
    found = read(IO)
    levels = bounds.compute_bounds(found)
    known = {bound.name: bound for bound in levels if bound.seconds is not None}
    (gap,) = gaps.attribute_gaps(found, levels)
    mean = float(found.phases[0].arrays["io_s"].sum()) / 2
    assert list(known) == ["IPC", "actual"]
    assert known["IPC"].status == "estimated"
    assert (gap.name, gap.status) == ("O", "measured")
    assert gap.seconds == pytest.approx(mean)
    assert known["IPC"].seconds == pytest.approx(found.actual_s - mean)
    for shares in (gap.regions, gap.processors, gap.iterations, gap.causes):
        assert sum(share.seconds for share in shares) == pytest.approx(gap.seconds)
    assert gap.causes[0].name == "POSIX write and sync on /tmp/work/prof/faultlab.0.dat"


def test_facts_about_io_have_values() -> None:
    found = values(read(IO))
    assert found["io.share"] == pytest.approx(0.0539, abs=1e-3)
    assert found["io.processors_share"] == 1.0
    assert found["io.small_seconds_share"] == pytest.approx(0.8391, abs=1e-3)
    assert found["io.unaligned_seconds_share"] == found["io.shared_share"] == 0.0
    assert found["io.metadata_share"] == pytest.approx(0.16, abs=0.01)
    assert found["io.one_processor"] is False
    assert "io.fsync_share" not in found, "Darshan adds the seconds of fsync to those of writing"
    assert found["io.forced_share"] == pytest.approx(0.835, abs=0.01)
    assert found["io.forced_B"] == pytest.approx(256 * 1024, rel=0.001)
    collective = values(read(BTIO))
    assert collective["io.unaligned_seconds_share"] == 0.0, "what is unaligned there is small"
    assert collective["io.fsync_share"] == 0.0


def file_findings(profile: Profile) -> list[Finding]:
    return [one for one in darshan.advisor_findings(profile) if one.kind.endswith(" file access")]


def test_findings_name_the_files_with_counts_bytes_and_seconds() -> None:
    (small,) = file_findings(read(IO))
    assert (small.kind, small.subject) == ("small file access", "/tmp/work/prof/faultlab.*.dat")
    assert small.measures["small_operations"] == small.measures["operations"] == 2560
    assert small.measures["bytes"] == 10485760
    assert small.measures["share_of_io"] == pytest.approx(0.99, abs=0.01)
    assert small.text.startswith("2 files: 2,560 of 2,560 reads and writes move at most 100 KiB, 4 KiB on average; ")
    kinds = {(one.kind, Path(one.subject).name) for one in darshan.advisor_findings(read(BTIO))}
    assert ("unaligned file access", "btio.full.out") in kinds
    both = file_findings(from_log(shared(4), Path("log")))
    assert [one.kind for one in both] == ["small file access", "shared file access"]
    assert "(4 ranks)" in both[1].text


def test_other_profiles_have_no_findings_here() -> None:
    from advisor.formats.native import advisor_read

    assert darshan.advisor_findings(advisor_read(LOGS.parent / "fig4.json")) == ()


def test_advice_on_a_directory_with_a_log() -> None:
    advice = pipeline.advise([LOGS / IO], pipeline.Options(), host.load_plugins())
    assert advice.profile.reader == "darshan"
    assert [finding.kind for finding in advice.findings] == ["small writes", "metadata", "small file access"]
    assert advice.verdict == "advice"
    first = advice.recommendations[0]
    assert (first.action, first.gaps) == ("G-19", ("O",))
    assert first.ceiling_s == pytest.approx(advice.gaps[0].seconds)


SMALL = {"WRITES": 500, "SIZE_WRITE_100_1K": 500, "BYTES_WRITTEN": 50_000, "WRITE": 1.0}


@pytest.mark.parametrize(
    ("columns", "ids", "ranks", "action"),
    [
        (SMALL, [1, 1, 1, 1], 4, "G-17"), (SMALL, [1, 2, 3, 4], 4, "G-18"), (SMALL, [1, 2], 5, "G-18"),
        ({"OPENS": 500, "META": 1.0}, [1, 2, 3, 4], 4, "G-23"),
    ],
)  # fmt: skip
def test_rules_about_io_fire_from_a_log_alone(
    columns: dict[str, float], ids: list[int], ranks: int, action: str
) -> None:
    """Each rank writes to one file, of its own or of all."""
    each = {name: [value] * len(ids) for name, value in columns.items()}
    found = from_log(log({"POSIX": table("POSIX", list(range(len(ids))), ids, **each)}, ranks), Path("log"))
    advice = pipeline.study_run(found, pipeline.Options(), host.load_plugins()).advice
    assert [one.action for one in advice.recommendations] == [action]


def test_one_rank_that_does_all_io_is_named() -> None:
    columns = {"WRITES": [9.0], "SIZE_WRITE_1M_4M": [9.0], "BYTES_WRITTEN": [18e6], "WRITE": [4.0]}
    found = from_log(log({"POSIX": table("POSIX", [0], None, **columns)}, 4), Path("log"))
    advice = pipeline.study_run(found, pipeline.Options(), host.load_plugins()).advice
    assert advice.gaps[0].seconds == pytest.approx(1.0)
    assert [one.action for one in advice.recommendations] == ["G-21"]


def test_that_io_is_short_says_nothing_about_the_rest() -> None:
    advice = pipeline.advise([LOGS / CLEAN], pipeline.Options(), host.load_plugins())
    assert advice.gaps[0].share < 0.01
    assert advice.verdict == "nothing significant"
    page = " ".join(terminal.render_screen(advice, Page(width=100)).split())
    assert "Nothing significant in input and output, and nothing else was recorded." in page


def test_much_io_always_has_an_action() -> None:
    columns = {"WRITES": [9.0] * 4, "SIZE_WRITE_1M_4M": [9.0] * 4, "BYTES_WRITTEN": [18e6] * 4}
    verdicts = []
    for seconds in (0.2, 4.0):
        posix = table("POSIX", [0, 1, 2, 3], None, WRITE=[seconds] * 4, **columns)
        found = from_log(log({"POSIX": posix}, 4), Path("log"))
        verdicts.append(pipeline.study_run(found, pipeline.Options(), host.load_plugins()).advice.verdict)
    assert verdicts == ["nothing significant", "advice"]
