"""How files are accessed: patterns in counters of Darshan, the facts made of them, findings, and which rule fires."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from darshan_logs import log, table

from advisor import pipeline
from advisor.advice import facts
from advisor.analysis import bounds, gaps
from advisor.analysis.formatted_io import TEXT_SECONDS
from advisor.extension import host
from advisor.formats.darshan import rank_shares
from advisor.formats.darshan.hooks import advisor_findings
from advisor.formats.darshan.profile import from_log

if TYPE_CHECKING:
    from advisor.model.records import Advice, Profile

LARGE = {"BYTES_READ": 40e6, "READS": 40, "SIZE_READ_1M_4M": 40, "MAX_BYTE_READ": 40e6 - 1, "SEQ_READS": 39}


def profile(ranks: int = 1, *, shared: bool = False, module: str = "POSIX", **columns: float) -> Profile:
    """A run of 10 s in which every rank has a file with these counters, or all share one."""
    files = 1 if shared else ranks
    each = {name: [value] * files for name, value in columns.items()}
    owners = [-1] if shared else list(range(ranks))
    return from_log(log({module: table(module, owners, None, **each)}, ranks), Path("log"))


def values(found: Profile) -> dict[str, object]:
    made = bounds.compute_bounds(found)
    return dict(facts.collect_facts(found, made, gaps.attribute_gaps(found, made)).sites[0].values)


def advise(found: Profile) -> Advice:
    return pipeline.study_run(found, pipeline.Options(), host.load_plugins()).advice


def kinds(found: Profile) -> set[str]:
    return {one.kind for one in advisor_findings(found)}


def actions(advice: Advice) -> set[str]:
    return {name for one in advice.recommendations for name in (one.action, *one.alternatives)}


def test_reads_that_jump_back_are_random_but_for_the_first() -> None:
    calm = profile(READ=4.0, **LARGE)
    assert calm.counts["io_random_operations"].sum() == 0
    wild = profile(READ=4.0, **{**LARGE, "SEQ_READS": 9})
    assert wild.counts["io_random_operations"].sum() == 30
    assert values(wild)["io.random_share"] == pytest.approx(30 / 40)
    assert "random reads" in kinds(wild) - kinds(calm)
    assert "G-43" in actions(advise(wild)) - actions(advise(calm))


def test_of_a_shared_file_every_rank_has_a_first_operation() -> None:
    found = profile(4, shared=True, READ=4.0, **{**LARGE, "SEQ_READS": 36})
    assert found.counts["io_random_operations"].sum() == 0


def test_bytes_behind_the_extent_of_a_file_were_read_before() -> None:
    found = profile(4, shared=True, READ=16.0, **{**LARGE, "MAX_BYTE_READ": 10e6 - 1})
    assert found.counts["io_reread_bytes"].sum() == pytest.approx(30e6, abs=4)
    assert values(found)["io.reread_share"] == pytest.approx(0.75)
    assert "repeated reads" in kinds(found)
    first = advise(found).recommendations[0]
    assert (first.action, first.ceiling_s) == ("G-45", pytest.approx(3.0))


def test_what_is_written_too_is_not_read_in_vain() -> None:
    scratch = {**LARGE, "MAX_BYTE_READ": 10e6 - 1, "BYTES_WRITTEN": 10e6, "WRITES": 1, "SIZE_WRITE_10M_100M": 1}
    assert profile(READ=4.0, **scratch).counts["io_reread_bytes"].sum() == 0


def test_one_turn_from_reading_to_writing_is_no_pattern() -> None:
    both = {**LARGE, "WRITES": 40, "SIZE_WRITE_1M_4M": 40, "BYTES_WRITTEN": 40e6, "SEQ_WRITES": 39}
    assert profile(READ=1.0, WRITE=1.0, RW_SWITCHES=1, **both).counts["io_switches"].sum() == 0
    found = profile(READ=1.0, WRITE=1.0, RW_SWITCHES=61, **both)
    assert values(found)["io.switch_share"] == pytest.approx(60 / 80)
    assert "G-53" in actions(advise(found))


def test_a_rank_that_others_wait_for_is_advised_on_however_small_the_mean() -> None:
    posix = table("POSIX", [0], None, READ=[4.0], **{name: [value] for name, value in LARGE.items()})
    found = from_log(log({"POSIX": posix}, 512), Path("log"))
    advice = advise(found)
    assert advice.gaps[0].share < 0.001
    (first,) = [one for one in advice.recommendations if one.action == "G-46"]
    assert first.ceiling_s == pytest.approx(4.0 - 4.0 / 512, rel=0.01)
    assert "uneven ranks" in kinds(found)


def test_streams_and_small_operations_are_told_by_seconds() -> None:
    found = profile(module="STDIO", WRITES=1000, BYTES_WRITTEN=80e6, WRITE=3.0)
    assert values(found)["io.stdio_share"] == values(found)["io.small_seconds_share"] == 1.0
    assert {"G-50", "G-51"} <= actions(advise(found))
    text = {TEXT_SECONDS: np.array([[2.0]] + [[0.0]] * (len(found.regions) - 1))}
    digits = replace(found, counts={**found.counts, **text})
    assert values(digits)["io.small_seconds_share"] == pytest.approx(1 / 3), "the rest computes digits"
    mixed = profile(WRITES=200, SIZE_WRITE_100_1K=190, SIZE_WRITE_100M_1G=10, BYTES_WRITTEN=2e9, WRITE=4.0)
    assert values(mixed)["io.mean_operation_B"] > 1 << 20
    assert values(mixed)["io.small_seconds_share"] == pytest.approx(0.95)
    assert "G-51" in actions(advise(mixed))


@pytest.mark.parametrize(
    ("columns", "independent", "collective"),
    [
        ({"INDEP_WRITES": 64}, 1.0, 0.0),
        ({"COLL_WRITES": 64}, 0.0, 1.0),
        ({"INDEP_WRITES": 32, "COLL_WRITES": 32}, 0.0, 1.0),
    ],
)
def test_how_mpi_writes_files(columns: dict[str, float], independent: float, collective: float) -> None:
    found = profile(4, shared=True, module="MPI-IO", BYTES_WRITTEN=64 * 65536, WRITE=8.0, **columns)
    known = values(found)
    assert (known["io.independent_share"], known["io.collective_share"]) == (independent, collective)
    assert ("G-47" in actions(advise(found))) == (independent > 0)


def test_estimates_of_shared_files_keep_within_the_run() -> None:
    group, rank = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    found = rank_shares.limit_to_run(np.array([6.0, 2.0, 7.0, 1.0]), group, rank, np.array([10.0, 10.0]))
    assert np.bincount(rank, found).max() <= 10.0
    assert np.bincount(group, found) == pytest.approx([8.0, 8.0], rel=1e-3)
    hopeless = np.array([9.0, 9.0, 9.0, 9.0])
    assert rank_shares.limit_to_run(hopeless, group, rank, np.array([10.0, 10.0])).tolist() == hopeless.tolist()


def test_facts_of_patterns_are_unknown_where_nobody_counts() -> None:
    known = values(profile(module="STDIO", WRITES=1000, BYTES_WRITTEN=80e6, WRITE=3.0))
    assert not {"io.random_share", "io.reread_share", "io.switch_share", "io.bursts"} & set(known)


def test_bursts_of_the_heat_map_are_those_of_the_busiest_interface() -> None:
    columns = {name: [value] * 2 for name, value in LARGE.items()}
    posix = table("POSIX", [0, 1], None, READ=[4.0, 4.0], **columns)
    bursts = {("POSIX", 0): 5, ("STDIO", 0): 2, ("POSIX", 1): 3}
    found = from_log(replace(log({"POSIX": posix}, 2), bursts=bursts), Path("log"))
    assert found.counts["io_bursts"][0].tolist() == [5.0, 3.0]
    assert values(found)["io.bursts"] == 5.0
    assert "G-48" in actions(advise(found))


def test_a_note_says_when_the_bytes_move() -> None:
    posix = table("POSIX", [0], None, READ=[4.0], **{name: [value] for name, value in LARGE.items()})
    line = tuple(50.0 if 20 <= n < 30 or 60 <= n < 70 else 0.0 for n in range(100))
    found = from_log(replace(log({"POSIX": posix}), timelines={"POSIX": line}), Path("log"))
    (note,) = [note for note in found.notes if note.name == "I/O over time"]
    assert "18.0 % of the time, between 2.00 s and 6.80 s" in note.text
    assert note.penalty == 0.0
