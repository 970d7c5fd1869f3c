"""TALP: every way of writing gives the times of every region and rank, and nothing is counted twice."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from advisor.analysis import gaps, soundness
from advisor.analysis.bounds import compute_bounds
from advisor.formats import talp
from advisor.formats.talp import json_document
from advisor.formats.talp.division import divide_regions
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract
from advisor.trace.events import Role

HERE = Path(__file__).parents[1] / "profiles" / "talp"
JSON = sorted(HERE.glob("*/talp.json"))
TABLE = HERE / "faultlab-imbalance30-csv" / "talp-process.csv"
TEXT = HERE / "faultlab-imbalance30-text" / "stdout.txt"
OVERSUBSCRIBED = HERE / "npb-bt.S.4-text" / "stdout.txt"
EVERY = (*JSON, TABLE, TEXT, OVERSUBSCRIBED)
IMBALANCED = [path for path in EVERY if "imbalance" in path.parent.name]
#: In `expected.txt`, made by a script from the JSON: nanoseconds and calls by region and rank.
REGION = re.compile(r"^region (\w+):", re.MULTILINE)
RANK = re.compile(r"rank (\d+): elapsed (\d+) useful (\d+) mpi (\d+) calls (\d+) measurements (\d+)")
#: In the report on stderr.
SUMMARY = re.compile(r"Name: +(\w+)\n.*?Rank: +(\d+)\n.*?Elapsed time: +(\d+) ns\n.*?Useful time: +(\d+) ns\n")

Cell = tuple[str, int]


def name(path: Path) -> str:
    return path.parent.name


def expected(path: Path) -> dict[Cell, tuple[int, ...]]:
    """Elapsed, useful and MPI nanoseconds, calls and measurements, as the report beside a recording states them."""
    found: dict[Cell, tuple[int, ...]] = {}
    parts = REGION.split((path.parent / "expected.txt").read_text())[1:]
    for region, text in zip(parts[::2], parts[1::2], strict=True):
        found |= {(region, int(rank)): tuple(map(int, values)) for rank, *values in RANK.findall(text)}
    return found


def notes(profile: Profile) -> dict[str, str]:
    return {note.name: note.text for note in profile.notes}


def edit(tmp_path: Path, path: Path, *changes: tuple[str, str]) -> Path:
    shutil.copytree(path.parent, tmp_path / "run", dirs_exist_ok=True)
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "run" / path.name).write_text(text)
    return tmp_path / "run" / path.name


@pytest.mark.parametrize("path", JSON, ids=name)
def test_every_value_of_regions_and_ranks(path: Path) -> None:
    recording = json_document.read_recording(path)
    cells = expected(path)
    assert len(cells) == len(recording.regions) * len(recording.ranks)
    for (region, rank), values in cells.items():
        at = recording.regions.index(region), recording.ranks.index(rank)
        names = ("elapsedTime", "usefulTime", "mpiTime", "numMpiCalls", "numMeasurements")
        assert tuple(int(recording.values[key][at]) for key in names) == values


@pytest.mark.parametrize("path", JSON, ids=name)
def test_nothing_is_counted_twice(path: Path) -> None:
    """All regions together are the region of the whole run, to the nanosecond, on every rank."""
    paths = talp.read_call_paths(path)
    assert paths.wall_s is not None
    assert paths.visits is not None
    in_mpi = np.array([node.role == Role.COMM_OTHER for node in paths.nodes])
    whole = {rank: values for (region, rank), values in expected(path).items() if region == "Global"}
    for rank, (elapsed, useful, mpi, calls, _) in whole.items():
        own = paths.wall_s[:, rank] * 1e9
        assert own.sum() == pytest.approx(elapsed, abs=1)
        assert own[in_mpi].sum() == pytest.approx(mpi, abs=1)
        assert own[~in_mpi].sum() == pytest.approx(useful, abs=1)
        assert paths.visits[in_mpi, rank].sum() == calls
    assert paths.actual_s == max(values[0] for values in whole.values()) / 1e9


@pytest.mark.parametrize("path", EVERY, ids=name)
def test_real_recordings_hold_no_contradictions(path: Path) -> None:
    assert talp.advisor_sniff(path) == 1
    profile = talp.advisor_read(path)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert all(note.penalty == 0 for note in profile.notes)
    assert {processor.host for processor in profile.processors} == {"vm"}
    assert profile.paradigms == ("mpi",)


@pytest.mark.parametrize("path", IMBALANCED, ids=name)
def test_the_injected_imbalance_shows(path: Path) -> None:
    profile = talp.advisor_read(path)
    found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(profile, compute_bounds(profile))}
    true = json.loads((path.parent / "truth.json").read_text())
    work = true["measured_wall_s"]
    rank = [sum(sum(work[region][q]) for region in ("phase1", "phase2")) for q in range(2)]
    assert found["L"] == pytest.approx(0.12, rel=0.08)
    assert found["L"] == pytest.approx(max(rank) - sum(rank) / 2, abs=6e-3)


@pytest.mark.parametrize("path", [path for path in IMBALANCED if "preload" not in name(path)], ids=name)
def test_regions_are_those_of_the_program(path: Path) -> None:
    profile = talp.advisor_read(path)
    true = json.loads((path.parent / "truth.json").read_text())["measured_wall_s"]
    assert "main_loop" in notes(profile)["regions taken apart"]
    names = [region.name for region in profile.regions]
    assert "main_loop" not in names
    for region in ("phase1", "phase2"):
        own = profile.phases[0].arrays["wall_s"][names.index(region), :, 0]
        assert own == pytest.approx([sum(iterations) for iterations in true[region]], abs=1e-3)


def test_a_region_called_sync_is_the_programs() -> None:
    paths = talp.read_call_paths(TABLE)
    assert {node.name: node.role for node in paths.nodes}["sync"] == Role.USER


def test_the_table_and_the_report_hold_what_json_holds() -> None:
    table, report = talp.read_call_paths(TABLE), talp.read_call_paths(TEXT)
    assert [node.name for node in table.nodes] == [node.name for node in report.nodes]
    assert table.wall_s is not None
    assert report.wall_s is not None
    assert table.wall_s.sum(axis=0) * 1e9 == pytest.approx([538988079, 537499294], abs=1)
    assert report.visits is None, "the report does not say how many calls there were"
    cells = {(region, int(rank)): int(useful) for region, rank, _, useful in SUMMARY.findall(text_of_report())}
    for region in ("phase1", "phase2", "sync", "reduce"):
        row = next(n for n, node in enumerate(report.nodes) if node.name == region)
        assert report.wall_s[row] * 1e9 == pytest.approx([cells[region, 0], cells[region, 1]], abs=1)


def text_of_report() -> str:
    lines = [line.partition("]: ### ")[2] for line in TEXT.read_text().splitlines() if "]: ### " in line]
    return re.sub(r"\n(Process|CpuSet)[^\n]*", "", "\n".join(lines))


def test_efficiencies_of_talp_are_not_used() -> None:
    profile = talp.advisor_read(HERE / "npb-bt.S.4" / "talp.json")
    assert "0.27, is not used; from the times of all ranks 0.254" in notes(profile)["TALP's efficiencies"]
    assert "calls 2 of its metrics impossible" in notes(talp.advisor_read(OVERSUBSCRIBED))["TALP's efficiencies"]


def test_a_report_of_sums_alone_is_refused_with_the_way_out(tmp_path: Path) -> None:
    sums = TEXT.read_text().split("DLB[vm:21059]: ################# Monitoring Region Summary")[0]
    (tmp_path / "out.txt").write_text(sums)
    assert talp.advisor_sniff(tmp_path / "out.txt") == 1
    with pytest.raises(InputError, match="--talp-summary=all"):
        talp.advisor_read(tmp_path / "out.txt")
    shutil.copy(TABLE.with_name("talp-pop.csv"), tmp_path)
    assert talp.advisor_sniff(tmp_path / "talp-pop.csv") == 1
    with pytest.raises(InputError, match="table of processes"):
        talp.advisor_read(tmp_path / "talp-pop.csv")


def test_the_table_of_sums_is_read_with_that_of_processes(tmp_path: Path) -> None:
    assert talp.advisor_sniff(TABLE.with_name("talp-pop.csv")) is None
    assert talp.advisor_read(TABLE.with_name("talp-pop.csv")).actual_s == 0.538988079
    changed = edit(tmp_path, TABLE.with_name("talp-pop.csv"), (",825315862,", ",825315863,"))
    assert "825315862" in notes(talp.advisor_read(changed))["contradictions in TALP's numbers"]


def test_of_several_runs_in_a_table_the_last_is_read(tmp_path: Path) -> None:
    lines = TABLE.read_text().splitlines(keepends=True)
    again = [
        line.replace(",21070,", ",30000,").replace("538988079,537238452", "538988080,537238453") for line in lines[1:]
    ]
    (tmp_path / "talp-process.csv").write_text("".join([*lines, *again]))
    profile = talp.advisor_read(tmp_path / "talp-process.csv")
    assert profile.actual_s == 0.538988080
    assert "not the 1 run before it" in notes(profile)["several runs in one file"]


def test_the_report_may_stand_between_other_output(tmp_path: Path) -> None:
    lines = TEXT.read_text().splitlines(keepends=True)
    mixed = "".join(f"[1,0]<stderr>:{line}step {n}\n" for n, line in enumerate(lines))
    (tmp_path / "job.out").write_text("x" * 9000 + "\n" + mixed)
    assert talp.advisor_sniff(tmp_path / "job.out") == 1
    assert talp.advisor_read(tmp_path / "job.out").actual_s == talp.advisor_read(TEXT).actual_s


def test_a_missing_rank_is_told(tmp_path: Path) -> None:
    document = json.loads((HERE / "npb-bt.S.4" / "talp.json").read_text())
    document["Process"]["Global"].pop(2)
    (tmp_path / "talp.json").write_text(json.dumps(document))
    profile = talp.advisor_read(tmp_path / "talp.json")
    assert (profile.ranks, profile.ranks_expected) == (3, 4)
    assert "contradictions in TALP's numbers" in notes(profile)


def hybrid(**values: int) -> dict[str, object]:
    process = {"rank": 0, "hostname": "n1", "numMeasurements": 1, "numMpiCalls": 10, "numOmpThreads": 4}
    process |= {"cycles": 4000, "instructions": 8000, "numOmpParallels": 5, "elapsedTime": 10**9}
    process |= {"usefulTime": 2 * 10**9, "mpiTime": 2 * 10**8, "mpiWorkerIdleTime": 6 * 10**8}
    process |= {"ompLoadImbalanceTime": 8 * 10**8, "ompSerializationTime": 4 * 10**8, "ompSchedulingTime": 0}
    return {"dlbVersion": "3.7.0", "Process": {"Global": [process, process | {"rank": 1} | values]}}


def test_threads_are_averaged(tmp_path: Path) -> None:
    (tmp_path / "talp.json").write_text(json.dumps(hybrid(usefulTime=2 * 10**9)))
    paths = talp.read_call_paths(tmp_path / "talp.json")
    assert paths.wall_s is not None
    found = {node.name: paths.wall_s[n].tolist() for n, node in enumerate(paths.nodes)}
    assert found == {
        "Global": pytest.approx([0.5, 0.5]),
        "MPI in Global": pytest.approx([0.2, 0.2]),
        "OpenMP load imbalance in Global": pytest.approx([0.2, 0.2]),
        "OpenMP serialization in Global": pytest.approx([0.1, 0.1]),
    }
    profile = talp.advisor_read(tmp_path / "talp.json")
    soundness.check_profile(profile)
    assert profile.paradigms == ("mpi", "openmp")
    assert "4 threads" in notes(profile)["threads averaged"]
    assert profile.counts["instructions"][0].tolist() == [8000, 8000]


def test_nothing_is_said_about_calls_that_are_not_known() -> None:
    profile = talp.advisor_read(JSON[0])
    assert profile.causes is None
    assert "messages" not in profile.counts
    assert profile.phases[0].arrays["wait_s"].any()


def test_counters_that_were_not_measured_are_absent() -> None:
    assert not {"instructions", "cycles"} & talp.advisor_read(JSON[0]).counts.keys()


def test_regions_without_one_of_the_whole_run(tmp_path: Path) -> None:
    document = json.loads((HERE / "faultlab-imbalance30" / "talp.json").read_text())
    document["Process"] = {region: document["Process"][region] for region in ("phase1", "phase2")}
    del document["Application"]
    (tmp_path / "talp.json").write_text(json.dumps(document))
    division = divide_regions(json_document.read_recording(tmp_path / "talp.json"))
    assert (division.whole, division.parts, division.left_out) == (0, (1,), ()), "phase2 could be inside phase1"
    document["Process"]["phase2"][1] |= {"elapsedTime": 200000000, "usefulTime": 200000000}
    (tmp_path / "talp.json").write_text(json.dumps(document))
    assert divide_regions(json_document.read_recording(tmp_path / "talp.json")).parts == (0, 1)
    assert "no region of the whole run" in notes(talp.advisor_read(tmp_path / "talp.json"))


@pytest.mark.parametrize(
    ("path", "old", "new", "reason", "place"),
    [
        (
            JSON[0],
            '        "usefulTime": ',
            '        "usefulTime": -',
            "at least 0",
            r"Process\.Global\[0\]\.usefulTime",
        ),
        (JSON[0], '"rank": 1', '"rank": 0', "twice", "Process"),
        (TABLE, "288077410", "2880774.0", "impossible", "line 3"),
        (TABLE, "288077410,", "288077410", "26 cells below 27", "line 3"),
        (TABLE, "Hostname", "Hostnam", "column hostname is missing", "line 1"),
        (TEXT, "283518266 ns", "283518266 us", "not a time", "line"),
        (TEXT, "### Rank:                                     1\n", "", "without Rank", "line"),
    ],
)
def test_mistakes_are_refused_with_their_place(
    tmp_path: Path, path: Path, old: str, new: str, reason: str, place: str
) -> None:
    changed = edit(tmp_path, path, (old, new))
    with pytest.raises(InputError, match=reason) as caught:
        talp.advisor_read(changed)
    assert re.match(place, caught.value.place or "")


def test_what_talp_did_not_write_is_not_claimed(tmp_path: Path) -> None:
    for path in HERE.glob("*/expected.txt"):
        assert talp.advisor_sniff(path) is None
    (tmp_path / "x").write_text('{"dlb": 1}')
    assert talp.advisor_sniff(tmp_path / "x") is None
    assert talp.advisor_sniff(tmp_path) is None
    (tmp_path / "x").write_text("DLB[vm:1]: dlb 3.7.0\n")
    assert talp.advisor_sniff(tmp_path / "x") is None


def keep_sums(path: Path, tmp_path: Path) -> Path:
    """Write the recording as DLB does without ``--talp-summary=all``."""
    document = json.loads(path.read_text())
    del document["Process"]
    sums = tmp_path / "sums.json"
    sums.write_text(json.dumps(document))
    return sums


@pytest.mark.parametrize("path", [path for path in JSON if "npb" not in path.parent.name], ids=name)
def test_sums_over_ranks_give_the_same_imbalance(path: Path, tmp_path: Path) -> None:
    full, sums = talp.advisor_read(path), talp.advisor_read(keep_sums(path, tmp_path))
    wanted, found = (
        {gap.name: gap.seconds for gap in gaps.attribute_gaps(each, compute_bounds(each))} for each in (full, sums)
    )
    assert sums.ranks == full.ranks
    assert found["L"] == pytest.approx(wanted["L"], abs=2e-3 * full.actual_s)
    assert sums.actual_s == pytest.approx(full.actual_s, rel=1e-6)
    assert "ranks added up" in notes(sums)


def test_sums_that_contradict_their_means(tmp_path: Path) -> None:
    path = keep_sums(HERE / "npb-bt.S.4" / "talp.json", tmp_path)
    document = json.loads(path.read_text())
    document["Application"]["Global"]["usefulTime"] *= 2
    path.write_text(json.dumps(document))
    assert "contradictions in TALP's numbers" in notes(talp.advisor_read(path))
