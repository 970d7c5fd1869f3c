"""Caliper profiles: every layout tells the same, to the digits that Caliper's own reports print."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from caliper_files import END, as_split, native, write_split

from advisor.formats import caliper
from advisor.formats.caliper import call_path_builder
from advisor.model.errors import InputError
from advisor.model.records import Processor
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths

PROFILES = Path(__file__).parents[1] / "profiles"
RECORDED = PROFILES / "caliper"
IMBALANCE = RECORDED / "faultlab-imbalance30"
SLEEP = RECORDED / "faultlab-sleep4imbalance50"
LOOP = "timestep"
Key = tuple[str, str, str]


def printed(directory: Path) -> dict[Key, int]:
    """Nanoseconds of each region, loop and MPI function over all ranks, as cali-query printed them."""
    lines = (directory / "expected.txt").read_text().split("---")[1].splitlines()[1:]
    starts = [lines[0].index(name) for name in ("region", "loop", "mpi.function", "sum#sum#time")]
    found = {}
    for line in lines[1:]:
        words = [line[a:b].strip() for a, b in pairwise(starts)]
        found[words[0], words[1], words[2]] = int(line[starts[3] :].split()[0])
    return found


def key(paths: CallPaths, node: int) -> Key:
    """Region, loop and MPI function of a call path."""
    region = loop = function = ""
    while node >= 0:
        name, role = paths.nodes[node].name, paths.nodes[node].role
        if name == LOOP:
            loop = name
        elif name.startswith("MPI_"):
            function = name
        elif role != Role.ROOT:
            region = name
        node = paths.nodes[node].parent
    return region, loop, function


def labels(paths: CallPaths, node: int) -> tuple[str, ...]:
    """The names from the outermost region to the node."""
    own = () if paths.nodes[node].role == Role.ROOT else (paths.nodes[node].name,)
    return labels(paths, paths.nodes[node].parent) + own if node >= 0 else ()


def named(paths: CallPaths, values: np.ndarray[Any, Any] | None) -> dict[tuple[str, ...], list[float]]:
    assert values is not None
    return {labels(paths, n): values[n].tolist() for n in range(len(paths.nodes))}


@pytest.mark.parametrize("path", [IMBALANCE, IMBALANCE / "profile.json", SLEEP])
def test_totals_are_those_that_cali_query_prints(path: Path) -> None:
    paths = caliper.read_call_paths(path)
    assert paths.wall_s is not None
    expected = printed(path if path.is_dir() else path.parent)
    found = {key(paths, n): round(total * 1e9) for n, total in enumerate(paths.wall_s.sum(axis=1))}
    assert found == expected
    assert not paths.notes


@pytest.mark.parametrize("path", [IMBALANCE, SLEEP])
def test_iterations_of_each_rank_are_summed_up(path: Path) -> None:
    rows = re.findall(r"^ +(\d+) +\d+ phase1 +(\d+)", (path / "expected.txt").read_text(), re.MULTILINE)
    paths = caliper.read_call_paths(path)
    total = np.zeros(len(paths.processors))
    for rank, nanoseconds in rows:
        total[int(rank)] += int(nanoseconds)
    assert len(rows) == 20 * len(total)
    assert np.round(np.array(named(paths, paths.wall_s)[LOOP, "phase1"]) * 1e9).tolist() == total.tolist()


def test_calls_are_counted_and_the_end_of_an_iteration_is_no_call() -> None:
    paths = caliper.read_call_paths(IMBALANCE)
    visits = named(paths, paths.visits)
    assert visits[LOOP,] == [1, 1]
    assert visits[LOOP, "phase1"] == [20, 20]
    assert visits[LOOP, "sync", "MPI_Barrier"] == [40, 40]
    assert visits["MPI_Finalize",] == [1, 1]


def test_the_shortest_call_is_known() -> None:
    paths = caliper.read_call_paths(IMBALANCE)
    assert paths.wall_s is not None
    assert paths.visits is not None
    assert paths.shortest_s is not None
    called = paths.visits > 0
    assert (paths.shortest_s[called] > 0).all()
    mpi = [n for n, node in enumerate(paths.nodes) if node.name.startswith("MPI_")]
    assert (paths.shortest_s[mpi] * paths.visits[mpi] <= paths.wall_s[mpi]).all()


def test_the_injected_load_is_found() -> None:
    truth = json.loads((IMBALANCE / "truth.json").read_text())
    paths = caliper.read_call_paths(IMBALANCE)
    for phase in ("phase1", "phase2"):
        found = named(paths, paths.wall_s)[LOOP, phase]
        assert found == pytest.approx([0.26, 0.14], rel=0.05)
    assert truth["ranks"] == len(paths.processors)


@pytest.mark.parametrize("directory", [IMBALANCE, SLEEP])
def test_a_region_profile_for_hatchet_holds_the_times_of_each_rank(directory: Path) -> None:
    file = directory / "hatchet" / "region_profile.json"
    paths = caliper.read_call_paths(file)
    found = named(paths, paths.wall_s)
    records = json.loads(file.read_text())
    for record in records:
        own = tuple(record["path"].split("/")) if "path" in record else ()
        assert round(found[own][record["mpi.rank"]], 6) == record["time"]
    assert sum(record["time"] for record in records) == pytest.approx(sum(map(sum, found.values())))


@pytest.mark.parametrize("directory", [IMBALANCE, SLEEP])
def test_inclusive_times_are_near_those_of_the_runtime_report(directory: Path) -> None:
    """The report was made in the same run by a clock of its own."""
    paths = caliper.read_call_paths(directory / "hatchet" / "region_profile.json")
    own = named(paths, paths.wall_s)
    stack: list[str] = []
    rows = (directory / "hatchet" / "runtime-report.txt").read_text().splitlines()[1:]
    for row in rows:
        depth, (name, least, mean, most, _) = (len(row) - len(row.lstrip())) // 2, row.split()
        stack[depth:] = [name]
        below = [values for labels, values in own.items() if labels[: len(stack)] == tuple(stack)]
        took = np.sum(below, axis=0)[None if not below else slice(None)]
        if below and len(np.flatnonzero(took)) == len(paths.processors):
            assert [took.min(), took.mean(), took.max()] == pytest.approx(
                [float(least), float(mean), float(most)], abs=1e-3
            )
    assert len(rows) > 10


def test_all_layouts_tell_the_same(tmp_path: Path) -> None:
    records = json.loads((IMBALANCE / "profile.json").read_text())
    listed = {"records": records, "globals": {"mpi.world.size": "2"}, "attributes": {}}
    (tmp_path / "object.json").write_text(json.dumps(listed))
    (tmp_path / "compact.json").write_text(json.dumps(records))
    files = [tmp_path / "object.json", tmp_path / "compact.json", IMBALANCE / "profile.json"]
    files.append(as_split(records, tmp_path / "split.json", mpi_world_size="2"))
    (tmp_path / "one-line.json").write_text(json.dumps(json.loads(files[-1].read_text())))
    files.append(tmp_path / "one-line.json")
    expected = caliper.read_call_paths(IMBALANCE)
    for file in files:
        assert caliper.advisor_sniff(file) == 1.0
        found = caliper.read_call_paths(file)
        for name in ("wall_s", "visits", "shortest_s"):
            ours, theirs = named(found, getattr(found, name)), named(expected, getattr(expected, name))
            assert ours.keys() == theirs.keys()
            for label, values in theirs.items():
                assert ours[label] == pytest.approx(values, rel=1e-12, nan_ok=True), (file.name, name, label)
        assert found.processors == expected.processors
        assert found.ranks_expected == (None if file.name in ("compact.json", "profile.json") else 2)


def test_the_profile_says_who_waited() -> None:
    profile = caliper.advisor_read(IMBALANCE)
    assert profile.actual_s == pytest.approx(0.5246, abs=1e-4)
    assert profile.status["wait_s"] == "estimated"
    assert profile.status["wall_s"] == "measured"
    wait = profile.phases[0].arrays["wait_s"].sum(axis=(0, 2))
    assert wait[0] < 0.02
    assert wait[1] == pytest.approx(0.24, rel=0.1)


def test_a_region_named_like_a_library_call_is_the_programs_own() -> None:
    paths = caliper.read_call_paths(IMBALANCE)
    roles = {node.name: node.role for node in paths.nodes}
    assert roles["sync"] == Role.USER
    assert roles["MPI_Barrier"] == Role.BARRIER


def test_a_rank_alone_knows_how_many_there_were() -> None:
    paths = caliper.read_call_paths(IMBALANCE / "rank-1.cali")
    assert paths.processors == (Processor(1),)
    assert paths.ranks_expected == 2


def test_a_directory_is_one_run_when_its_files_are_of_different_ranks(tmp_path: Path) -> None:
    assert caliper.advisor_sniff(IMBALANCE) == 1.0
    (tmp_path / "a.cali").write_bytes((IMBALANCE / "rank-0.cali").read_bytes())
    assert caliper.advisor_sniff(tmp_path) == 1.0
    (tmp_path / "b.cali").write_bytes((IMBALANCE / "rank-0.cali").read_bytes())
    assert caliper.advisor_sniff(tmp_path) is None
    with pytest.raises(InputError, match=r"rank 0 is in a\.cali and b\.cali: several runs"):
        caliper.read_call_paths(tmp_path)


def test_a_directory_without_cali_files_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "profile.json").write_bytes((IMBALANCE / "profile.json").read_bytes())
    assert caliper.advisor_sniff(tmp_path) is None
    with pytest.raises(InputError, match=r"no \.cali files"):
        caliper.read_call_paths(tmp_path)


@pytest.mark.parametrize(
    ("names", "ranks"), [(("a", "b"), [0, 1]), (("r-1", "r-0"), [1, 0]), (("rank7", "rank3"), [7, 3])]
)
def test_files_without_ranks_are_numbered_by_their_names(
    tmp_path: Path, names: tuple[str, str], ranks: list[int]
) -> None:
    for n, name in enumerate(names):
        body = f"__rec=node,id=200,attr=20,data=work\n__rec=ctx,ref=200,attr=106,data={n + 1}000000000\n"
        native(tmp_path / f"{name}.cali", body)
    assert caliper.advisor_sniff(tmp_path) == (None if names == ("a", "b") else 1.0)
    paths = caliper.read_call_paths(tmp_path)
    seconds = dict(
        zip((processor.rank for processor in paths.processors), named(paths, paths.wall_s)["work",], strict=True)
    )
    assert seconds == {ranks[0]: 1.0, ranks[1]: 2.0}


def test_only_its_own_files_are_claimed() -> None:
    claimed = {path for path in PROFILES.rglob("*") if caliper.advisor_sniff(path) is not None}
    files = {path for path in claimed if path.is_file()}
    assert files == {
        p for p in RECORDED.rglob("*") if p.suffix == ".cali" or p.name in ("profile.json", "region_profile.json")
    }
    assert claimed - files == {IMBALANCE, SLEEP, RECORDED / "small", RECORDED / "topdown"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"data": [1, 2], "columns": []}',
        b'[{"path": "/etc", "time": 3}]',
        b"__recx",
    ],
)
def test_anything_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    assert caliper.advisor_sniff(tmp_path / "x.json") is None
    assert caliper.advisor_sniff(tmp_path) is None


NAMES = [
    "void f<int, T>(T&) [with T = std::vector<int, A>] [clone .cold]",
    "Matrix::operator[](unsigned long) const",
    "Rational::operator/(Rational const&)",
    "operator==\\,=x",
    "größe λ",
    "n" * 5000,
    "two\nlines",
]


@pytest.mark.parametrize("name", [*NAMES, "caf\udce9"])
def test_names_survive_in_cali_files(tmp_path: Path, name: str) -> None:
    escaped = re.sub(r"([\\,=])", r"\\\1", name).replace("\n", "\\n")
    body = f"__rec=node,id=200,attr=20,data={escaped}\n__rec=ctx,ref=200,attr=94=106,data=0=5\n"
    assert caliper.read_call_paths(native(tmp_path / "x.cali", body)).nodes[0].name == name


@pytest.mark.parametrize("name", NAMES)
def test_names_survive_in_json(tmp_path: Path, name: str) -> None:
    rows = [[0, 0.5, 1]]
    nodes: list[dict[str, Any]] = [{"label": "main", "column": "path"}, {"label": name, "column": "path", "parent": 0}]
    split = write_split(tmp_path / "s.json", rows, ["mpi.rank", "time", "path"], nodes, [True, True, False])
    assert [node.name for node in caliper.read_call_paths(split).nodes] == ["main", name]
    begin = {"event.begin#region": name, "path": "main", "mpi.rank": 0, "sum#time.duration.ns": 7}
    end = {"event.end#region": name, "path": f"main/{name}/{name}", "mpi.rank": 0, "sum#time.duration.ns": 7}
    (tmp_path / "r.json").write_text(json.dumps([begin, end], indent=1))
    assert [node.name for node in caliper.read_call_paths(tmp_path / "r.json").nodes] == ["main", name, name]


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    told = {
        "cmdline": "[/home/mia/bin/heat,--password,hunter2]", "user": "mia", "executablepath": "/home/mia/bin/heat",
        "launchdate": "1795223405", "iterations": "10", "cluster": "quartz", "cali.caliper.version": "2.12.0",
        "problem_size": "hunter2", "hostname": "node7", "token": "hunter2",
    }  # fmt: skip
    records = [{"path": "main", "mpi.rank": 0, "sum#time.duration.ns": 7}]
    (tmp_path / "x.json").write_text(json.dumps({"records": records, "globals": told}))
    paths = caliper.read_call_paths(tmp_path / "x.json")
    assert (paths.program, paths.started) == ("heat", "2026-11-21T01:10:05Z")
    assert paths.parameters == {"iterations": 10.0, "cluster": "quartz", "caliper": "2.12.0"}
    assert paths.processors == (Processor(0, 0, "node7"),)
    assert "hunter2" not in repr(paths)
    assert "mia" not in repr(paths)


SPOT = """\
__rec=node,id=300,attr=14,data=sec,parent=5
__rec=node,id=301,attr=10,data=65,parent=300
__rec=node,id=302,attr=8,data=min#inclusive#sum#time.duration,parent=301
__rec=node,id=303,attr=8,data=avg#inclusive#sum#time.duration,parent=301
__rec=node,id=304,attr=8,data=sum#inclusive#sum#time.duration,parent=301
__rec=node,id=16,attr=10,data=1612,parent=1
__rec=node,id=17,attr=8,data=mpi.world.size,parent=16
__rec=node,id=33,attr=20,data=main
__rec=node,id=34,attr=20,data=solve,parent=33
__rec=node,id=35,attr=92,data=MPI_Wait,parent=34
__rec=ctx,attr=302=303=304,data=0.1=0.5=2.0
__rec=ctx,ref=33,attr=302=303=304,data=9=10=40
__rec=ctx,ref=34,attr=302=303=304,data=5=7=28
__rec=ctx,ref=35,attr=302=303=304,data=1=2=8
__rec=node,id=40,attr=17,data=4
"""
UNIT = "__rec=node,id=12,attr=10,data=64,parent=3\n__rec=node,id=14,attr=8,data=attribute.unit,parent=12\n"


def test_sums_over_ranks_are_read_and_are_no_evidence(tmp_path: Path) -> None:
    """Inclusive times in seconds, as the recipe spot writes them: the mean rank's own times, and a grade of F."""
    paths = caliper.read_call_paths(native(tmp_path / "spot.cali", UNIT + SPOT, "__rec=globals,ref=40\n"))
    assert named(paths, paths.wall_s) == {
        (): [0.5],
        ("main",): [3.0],
        ("main", "solve"): [5.0],
        ("main", "solve", "MPI_Wait"): [2.0],
    }
    assert paths.ranks_expected == 4
    assert paths.status == "estimated"
    assert [(note.name, note.penalty) for note in paths.notes] == [("ranks added up", 1.0)]


def test_times_without_a_unit_are_microseconds(tmp_path: Path) -> None:
    records = [{"path": "main", "mpi.rank": 0, "sum#time.duration": 2500000.0}]
    (tmp_path / "x.json").write_text(json.dumps(records))
    paths = caliper.read_call_paths(tmp_path / "x.json")
    assert named(paths, paths.wall_s) == {("main",): [2.5]}
    assert paths.notes[0].name == "unit of times unknown"


def test_threads_and_openmp_barriers(tmp_path: Path) -> None:
    names = ["mpi.rank", "omp.thread.id", "omp.sync", "sum#time.duration.ns", "path"]
    nodes = [
        {"label": "solve", "column": "path"},
        {"label": "barrier", "column": "omp.sync"},
        {"label": "0", "column": "omp.thread.id"},
        {"label": "1", "column": "omp.thread.id"},
    ]
    rows: list[list[object]] = [
        [0, 2, None, 5e9, 0],
        [0, 3, None, 3e9, 0],
        [0, 3, 1, 2e9, 0],
        [0, None, None, 1e9, None],
    ]
    paths = caliper.read_call_paths(
        write_split(tmp_path / "x.json", rows, names, nodes, [True, False, False, True, False])
    )
    assert paths.processors == (Processor(0), Processor(0, 1))
    assert named(paths, paths.wall_s) == {(): [1, 0], ("solve",): [5, 3], ("solve", "barrier"): [0, 2]}
    assert [node.role for node in paths.nodes] == [Role.ROOT, Role.USER, Role.OMP_BARRIER]


def test_too_many_regions_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_path_builder, "_REGIONS", 5)
    records = [{"path": f"main/r{n}", "mpi.rank": 0, "sum#time.duration.ns": 1e9} for n in range(20)]
    (tmp_path / "x.json").write_text(json.dumps(records))
    paths = caliper.read_call_paths(tmp_path / "x.json")
    found = named(paths, paths.wall_s)
    assert found["other regions",] == [16.0]
    assert sum(map(sum, found.values())) == 20
    assert paths.notes[0].name == "too many regions"


def test_an_unclosed_file_is_read_with_a_note(tmp_path: Path) -> None:
    body = "__rec=node,id=200,attr=20,data=work\n__rec=ctx,ref=200,attr=106,data=5\n"
    paths = caliper.read_call_paths(native(tmp_path / "x.cali", body, end=""))
    assert [note.name for note in paths.notes] == ["Caliper file without end"]
    assert not caliper.read_call_paths(native(tmp_path / "x.cali", body, END)).notes


def test_what_cannot_be_opened_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert caliper.advisor_sniff(tmp_path / "loop") is None
    assert caliper.advisor_sniff(tmp_path) is None
    assert caliper.advisor_sniff(tmp_path / "nothing") is None
