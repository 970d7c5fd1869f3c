"""timemory's JSON: regions of trees and lists, by rank."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.analysis import soundness
from advisor.formats import timemory
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

HERE = Path(__file__).parents[1] / "profiles" / "timemory"


@pytest.mark.parametrize("name", ["wall.tree.json", "wall_clock.json"])
def test_documents_are_read(name: str) -> None:
    assert timemory.advisor_sniff(HERE / name) == 1
    profile = timemory.advisor_read(HERE / name)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert profile.ranks == profile.ranks_expected == 2


def test_seconds_of_a_tree_are_those_of_the_document() -> None:
    """Two threads are added up: the longest rank takes 58.636 / 2 s, and inner-loop-1 20.249 + 12.689 s of rank 0."""
    profile = timemory.advisor_read(HERE / "wall.tree.json")
    assert profile.actual_s == pytest.approx(58.636469722 / 2)
    wall = profile.phases[0].arrays["wall_s"][:, :, 0]
    inner = [region.name for region in profile.regions].index("generate_history/inner-loop-1")
    assert wall[inner, 0] == pytest.approx((20.24913635 + 12.6886) / 2, rel=1e-4)
    assert profile.regions[inner].file == "hatchet_tests.cpp"
    assert profile.regions[inner].line == 118
    assert [note.name for note in profile.notes] == ["threads not told apart"]


def test_calls_of_mpi_are_told_from_work() -> None:
    profile = timemory.advisor_read(HERE / "wall_clock.json")
    rows = [region.name for region in profile.regions]
    phase = profile.phases[0]
    reduce = rows.index("MPI_Allreduce")
    assert phase.arrays["wall_s"][rows.index("solve"), :, 0].tolist() == pytest.approx([9.4, 4.4])
    communicated = phase.arrays["wait_s"][reduce] + phase.arrays["transfer_s"][reduce]
    assert communicated[:, 0].tolist() == pytest.approx([1.5, 6.5])
    assert profile.counts["calls"][reduce].tolist() == [150, 150]


def test_threads_of_a_list_are_columns(tmp_path: Path) -> None:
    document = json.loads((HERE / "wall_clock.json").read_text())
    metric = document["timemory"]["wall_clock"]
    metric["ranks"] = [metric["ranks"][0]]
    metric["num_ranks"] = metric["mpi_size"] = 1
    entries = metric["ranks"][0]["graph"]
    for entry in entries:
        entry["prefix"] = entry["prefix"].replace("|0|00", "|00")
    entries += [dict(entry, prefix=entry["prefix"].replace("|00", "|01")) for entry in entries[1:2]]
    entries[-1]["depth"] = 0
    (tmp_path / "run.json").write_text(json.dumps(document))
    profile = timemory.advisor_read(tmp_path / "run.json")
    assert [(each.rank, each.thread) for each in profile.processors] == [(0, 0), (0, 1)]


def test_other_metrics_are_named(tmp_path: Path) -> None:
    text = (HERE / "wall_clock.json").read_text().replace('"wall_clock": {', '"peak_rss": {')
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match="holds neither wall_clock nor cpu_clock, but peak_rss"):
        timemory.advisor_read(tmp_path / "run.json")


def test_units_and_depths_are_checked(tmp_path: Path) -> None:
    text = (HERE / "wall_clock.json").read_text()
    (tmp_path / "ms.json").write_text(text.replace('"unit_repr": "sec"', '"unit_repr": "msec"'))
    assert timemory.advisor_read(tmp_path / "ms.json").actual_s == pytest.approx(0.01336)
    for old, new, reason in (
        ('"unit_repr": "sec"', '"unit_repr": "MB"', "not a unit of time"),
        ('"depth": 2', '"depth": 7', "a region of depth 7"),
    ):
        (tmp_path / "bad.json").write_text(text.replace(old, new, 1))
        with pytest.raises(InputError, match=reason):
            timemory.advisor_read(tmp_path / "bad.json")
