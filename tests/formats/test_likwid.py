"""Output of likwid-perfctr, made after its source: the profile holds the numbers that stand there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import damage
import numpy as np
import pytest
from likwid_output import Measured, csv, text

from advisor.analysis import soundness
from advisor.formats import likwid
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

PROFILES = Path(__file__).parents[1] / "profiles"
RUN = PROFILES / "likwid" / "constructed"
COLUMNS = ("HWThread 0", "HWThread 4")
FLOPS = {
    ("FP_ARITH_INST_RETIRED_SCALAR_DOUBLE", "PMC0"): [100, 200],
    ("FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE", "PMC1"): [10, 20],
    ("FP_ARITH_INST_RETIRED_512B_PACKED_SINGLE", "PMC2"): [1, 0],
}
SOLVE = Measured("solve", "FLOPS_DP", [2.0, 1.5], [3, 3], FLOPS, {"DP [MFLOP/s]": [0.0001, 0.0001]})


def notes(profile: Profile) -> dict[str, float]:
    return {note.name: note.penalty for note in profile.notes}


def count(profile: Profile, name: str, region: str) -> list[float]:
    rows = [n for n, each in enumerate(profile.regions) if each.name == region]
    found: list[float] = profile.counts[name][rows].sum(axis=0).tolist()
    return found


def test_regions_threads_and_ranks() -> None:
    profile = likwid.advisor_read(RUN)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    places = [(processor.rank, processor.thread, processor.host) for processor in profile.processors]
    assert places == [(0, 0, "n1"), (0, 1, "n1"), (1, 0, "n1"), (1, 1, "n1")]
    paths = likwid.read_call_paths(RUN)
    assert [node.name for node in paths.nodes] == ["solve", "exchange, halo"]
    assert paths.wall_s is not None
    assert paths.wall_s.tolist() == [[1.5, 1.25, 3.0, 2.5], [0.25, 0.5, 0.25, 0.5]]
    assert profile.status["wall_s"] == "estimated"
    assert profile.actual_s == 3.25
    assert count(profile, "calls", "solve")[0] == 20
    assert sum(count(profile, "misses.L2", "solve")) == 2 * 3 * 9000
    assert profile.counts["memory_bytes"].sum() == 64 * 2 * 4 * 320
    assert profile.counts["instructions"].sum() == 3 * 4 * 1_900_000
    assert set(notes(profile)) == {"waiting not known", "regions may overlap"}


@pytest.mark.parametrize("printed", [csv, text], ids=["csv", "text"])
def test_both_forms_tell_the_same(tmp_path: Path, printed: object) -> None:
    assert callable(printed)
    (tmp_path / "out").write_text(printed([SOLVE], COLUMNS))
    assert likwid.advisor_sniff(tmp_path / "out") == 1
    profile = likwid.advisor_read(tmp_path / "out")
    assert profile.phases[0].arrays["wall_s"][:, :, 0].tolist() == [[2.0], [0.0]] or profile.actual_s == 2.0
    assert profile.counts["flops"].sum(axis=0).tolist() == [100 + 40 + 16, 200 + 80]
    assert profile.counts["vectorized_ops"].sum(axis=0).tolist() == [56, 80]
    assert notes(profile) == {"waiting not known": 0.1}


def test_groups_that_took_turns(tmp_path: Path) -> None:
    once = {("INSTR_RETIRED_ANY", "FIXC0"): [300, 400]}
    first = Measured("solve", "FLOPS_DP", [3.0, 3.0], [3, 3], once | FLOPS, {"CPI": [1, 1]})
    memory = {("INSTR_RETIRED_ANY", "FIXC0"): [100, 200], ("L1D_REPLACEMENT", "PMC0"): [7, 9]}
    second = Measured("solve", "CACHES", [1.0, 1.0], [1, 1], memory, {"CPI": [1, 1]}, number=2)
    (tmp_path / "out.csv").write_text(csv([first, second], COLUMNS))
    paths = likwid.read_call_paths(tmp_path / "out.csv")
    assert paths.wall_s is not None
    assert paths.visits is not None
    assert paths.wall_s.tolist() == [[4.0, 4.0]]
    assert paths.visits.tolist() == [[4, 4]]
    assert paths.counts["instructions"].tolist() == [[400, 600]]
    assert paths.counts["misses.L1"].tolist() == [[28, 36]]
    assert paths.counts["flops"][0] == pytest.approx([156 * 4 / 3, 280 * 4 / 3])


def test_a_program_measured_as_a_whole(tmp_path: Path) -> None:
    part = Measured(None, "MEM", [2.5, 2.5], (), {("INSTR_RETIRED_ANY", "FIXC0"): [10, 20]},
                    {"Memory data volume [GBytes]": [1.5, 0.0]})  # fmt: skip
    custom = Measured(None, "Custom", [2.5, 2.5], (), {("LS_DISPATCH_LOADS", "PMC0"): [10, 20]})
    for name, one in (("a", part), ("b", custom)):
        (tmp_path / name).write_text(csv([one], COLUMNS))
        profile = likwid.advisor_read(tmp_path / name)
        assert profile.actual_s == pytest.approx(2.5)
        assert profile.regions[0].name == "the whole program"
        assert notes(profile) == {"waiting not known": 0.1, "no regions": 0.05}
    assert profile.counts["compiled_ops.load"].sum() == 30
    assert likwid.advisor_read(tmp_path / "a").counts["memory_bytes"].sum() == 1.5e9


@pytest.mark.parametrize(("second_s", "separate"), [(2.4, False), (3.5, True)])
def test_processes_that_end_apart_are_no_ranks(tmp_path: Path, second_s: float, separate: bool) -> None:
    for rank, took in enumerate((2.5, second_s)):
        part = Measured(None, "MEM", [took], (), {("INSTR_RETIRED_ANY", "FIXC0"): [10 + rank]}, {"CPI": [1]})
        (tmp_path / f"proc_{rank}.csv").write_text(csv([part], COLUMNS[:1]))
    assert ("ranks unlike" in notes(likwid.advisor_read(tmp_path))) == separate


@pytest.mark.parametrize(
    ("names", "together"),
    [
        (("MEM.csv", "FLOPS_DP.csv"), False),
        (("omp_1.csv", "omp_2.csv"), False),
        (("omp_0.csv", "omp_1.csv"), True),
        (("out_21307.csv", "out_21308.csv"), True),
        (("out_3_n1.csv", "out_5_n2.csv"), True),
        (("out.rank3.csv", "out.rank5.csv"), True),
    ],
)
def test_files_are_ranks_of_one_run_where_their_names_say_so(
    tmp_path: Path, names: tuple[str, ...], together: bool
) -> None:
    for file, took in zip(names, (2.0, 2.1), strict=True):
        (tmp_path / file).write_text(csv([replace(SOLVE, seconds=[took, took])], COLUMNS))
    assert (likwid.advisor_sniff(tmp_path) == 1) == together


def test_a_gpu_is_no_thread(tmp_path: Path) -> None:
    device = Measured("solve", "FLOPS_SP", [0.01], [1], {("SMSP_SASS_THREAD_INST_EXECUTED", "GPU0"): [5]}, {"SP": [1]})
    both = tmp_path / "both.out"
    both.write_text(text([SOLVE], COLUMNS) + text([device], ["GPU 0"]))
    profile = likwid.advisor_read(both)
    assert len(profile.processors) == len(COLUMNS)
    assert "devices left out" in notes(profile)
    both.write_text(text([device], ["GPU 0"]))
    with pytest.raises(InputError, match=r"counts of GPUs alone.*nsys profile"):
        likwid.advisor_read(both)


def test_the_rule_below_the_last_table_may_end_the_file(tmp_path: Path) -> None:
    whole = text([SOLVE], COLUMNS).rstrip("\n")
    assert whole.endswith("-+")
    (tmp_path / "x.out").write_text(whole)
    assert likwid.advisor_read(tmp_path / "x.out").actual_s == 2.0
    (tmp_path / "x.out").write_text(whole[:-3])
    with pytest.raises(InputError, match="not complete"):
        likwid.advisor_read(tmp_path / "x.out")


def test_columns_of_likwid_mpirun(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(csv([SOLVE], ("n1:0:0", "n2:3:8")))
    profile = likwid.advisor_read(tmp_path / "x.csv")
    assert [(processor.rank, processor.host) for processor in profile.processors] == [(0, "n1"), (3, "n2")]
    assert profile.ranks_expected == 4


def test_a_rank_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "out_2_n1.csv").write_bytes((RUN / "out_0_n1.csv").read_bytes())
    (tmp_path / "out_1_n1.csv").write_bytes((RUN / "out_1_n1.csv").read_bytes())
    profile = likwid.advisor_read(tmp_path)
    assert (profile.ranks, profile.ranks_expected) == (2, 3)


def test_unknown_values_are_not_counted(tmp_path: Path) -> None:
    events: dict[tuple[str, str], list[float | str]] = {
        ("INSTR_RETIRED_ANY", "FIXC0"): ["-", "-"],
        ("L2_RQSTS_MISS", "PMC0"): [5, "-"],
    }
    part = Measured("solve", "L2", [1.0, 1.0], [1, 1], events, {"CPI": ["-", "-"]})
    (tmp_path / "x.csv").write_text(csv([part], COLUMNS))
    profile = likwid.advisor_read(tmp_path / "x.csv")
    assert "instructions" not in profile.counts
    assert profile.counts["misses.L2"].sum() == 5


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("RDTSC Runtime [s],1.500000,", "RDTSC Runtime [s],-1.5,", "RDTSC Runtime [s] is below zero"),
        ("RDTSC Runtime [s],1.500000,", "RDTSC Runtime [s],1e99,", "the number 1e99 is impossible"),
        ("RDTSC Runtime [s],1.500000,", "RDTSC Runtime [s],x,", "'x' is not a number"),
        ("RDTSC Runtime [s],1.500000,", "RDTSC Runtime [s],1.5,1.5,", "expected 3 columns"),
        ("Group 1 Raw,MEM,7", "Group 1 Raw,MEM,9", "columns"),
        ("Group 1 Metric STAT,MEM,3", "Group 1 Metric STAT,MEM,99", "the table of 99 rows is not complete"),
        ("Group 1 Raw STAT", "Group 1 Raw", "another table than was announced"),
    ],
)  # fmt: skip
def test_damage_is_refused_with_its_place(tmp_path: Path, old: str, new: str, reason: str) -> None:
    content = (RUN / "out_0_n1.csv").read_text()
    assert old in content
    (tmp_path / "x.csv").write_text(content.replace(old, new))
    with pytest.raises(InputError) as caught:
        likwid.advisor_read(tmp_path / "x.csv")
    assert reason in str(caught.value)
    assert caught.value.place is not None


def test_contradictions_lower_the_grade(tmp_path: Path) -> None:
    content = (RUN / "out_0_n1.csv").read_text()
    for old, new in (("FIXC0,3000000,2700000", "FIXC0,3000000,2800000"), ("[s],1.500000,", "[s],1.600000,")):
        assert old in content
        (tmp_path / "x.csv").write_text(content.replace(old, new))
        assert notes(likwid.advisor_read(tmp_path / "x.csv"))["contradictions in tables"] == 0.3


def test_a_file_cut_off_anywhere(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    source = tmp_path / "whole" / "out_0_n1.csv"
    source.write_text(csv([SOLVE], COLUMNS))
    damage.every_prefix(source, tmp_path, likwid.advisor_read)
    source.write_text(text([SOLVE], COLUMNS).rstrip("\n") + "\n")
    damage.every_prefix(source, tmp_path, likwid.advisor_read)


def test_bits_turned_over(tmp_path: Path) -> None:
    tried = damage.TRIED
    silent = damage.bit_flips(RUN / "out_0_n1.csv", tmp_path, likwid.advisor_read)
    assert silent < 0.3 * tried, "more than names of regions, events, threads and calls"


def test_nothing_else_is_claimed() -> None:
    for other in PROFILES.iterdir():
        for path in (other, *other.rglob("*")) if other.name != "likwid" else ():
            assert likwid.advisor_sniff(path) is None, path
    assert likwid.advisor_sniff(RUN) == 1
    assert likwid.advisor_sniff(RUN.parent) is None
    assert np.isclose(likwid.advisor_read(RUN / "out_1_n1.csv").actual_s, 3.25)
