"""CUBE files: every call path and thread as Cube's own tools print it, wait states, damage and hostile archives."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cube_archives import Call, Cube, Metric, members_of, write_tar

from advisor.analysis import soundness
from advisor.formats import cube
from advisor.model.records import Profile
from advisor.support import contract
from advisor.trace.events import Role

HERE = Path(__file__).parents[1] / "profiles" / "cube"
REAL = sorted(HERE.glob("*/profile.cubex"))
#: `cube_dump -s csv`: call path, thread, visits, exclusive seconds.
CELL = re.compile(r"^(\d+),(\d+),(\d+),([\d.e+-]+)$", re.MULTILINE)
#: `cube_stat -t`: region, calls, exclusive and inclusive seconds of all threads.
REGION = re.compile(r'^"([^"]+)",(\d+),([\d.e+-]+),([\d.e+-]+),', re.MULTILINE)
#: `cube_dump` of bytes: name of the call path, its number, one column for each thread.
BYTES = re.compile(r"^.+\(id=(\d+)\) +(\d+) +(\d+) *$", re.MULTILINE)

VISITS = Metric("visits", {0: [1, 1], 1: [1, 1], 2: [4, 4], 3: [4, 4], 4: [2, 2]}, values="UINT64")
TIME = Metric("time", {0: [10, 9], 1: [9.5, 8], 2: [6, 5], 3: [1, 3], 4: [2, 0.5]}, stored="INCLUSIVE")
#: Own seconds of the call paths of TIME, in the order of the document.
OWN = np.array([[0.5, 1], [1.5, 2.5], [5, 2], [1, 3], [2, 0.5]])


def name(path: Path) -> str:
    return path.parent.name


def expected(path: Path) -> str:
    return "".join(report.read_text() for report in sorted(path.parent.glob("expected*.txt")))


def agrees(value: float, printed: str) -> bool:
    """Whether a value is what was printed, to the digits that were printed."""
    digits = len(re.sub(r"e.*|[.]", "", printed).lstrip("0"))
    size = math.floor(math.log10(float(printed))) if float(printed) else 0
    return abs(value - float(printed)) <= 0.51 * 10.0 ** (size - digits + 1)


def read(path: Path) -> Profile:
    profile = cube.advisor_read(path)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    return profile


def notes(profile: Profile) -> dict[str, str]:
    return {note.name: note.text for note in profile.notes}


@pytest.mark.parametrize("path", REAL, ids=name)
def test_every_call_path_and_thread_is_what_cube_dump_prints(path: Path) -> None:
    paths = cube.read_call_paths(path)
    assert paths.visits is not None
    assert paths.wall_s is not None
    cells = CELL.findall(expected(path))
    assert len(cells) == paths.visits.size
    numbers = re.findall(r'<cnode id="(\d+)"', members_of(path)["anchor.xml"].decode())
    for number, thread, visits, seconds in cells:
        node = numbers.index(number)
        assert paths.visits[node, int(thread)] == int(visits)
        assert agrees(paths.wall_s[node, int(thread)], seconds)


@pytest.mark.parametrize("path", REAL, ids=name)
def test_every_region_is_what_cube_stat_prints(path: Path) -> None:
    paths = cube.read_call_paths(path)
    assert paths.visits is not None
    assert paths.wall_s is not None
    regions = REGION.findall(expected(path))
    assert len(regions) > 15
    for region, calls, own, _total in regions:
        mine = [n for n, node in enumerate(paths.nodes) if node.name == region]
        assert paths.visits[mine].sum() == int(calls)
        assert agrees(paths.wall_s[mine].sum(), own), region


def test_bytes_are_what_cube_dump_prints() -> None:
    path = HERE / "faultlab-late4" / "profile.cubex"
    paths = cube.read_call_paths(path)
    assert paths.bytes is not None
    parts = dict(re.findall(r"data of the metric (\w+)\n(.*?)(?=Print|--- )", expected(path), re.DOTALL))
    sent, received = (
        {int(node): (int(first), int(second)) for node, first, second in BYTES.findall(parts[name])}
        for name in ("bytes_sent", "bytes_received")
    )
    for n, node in enumerate(paths.nodes):
        if node.name == "MPI_Sendrecv":
            assert tuple(paths.bytes[n]) == sent[n] == (2621440, 2621440)
        if node.name in ("MPI_Allreduce", "MPI_Gather"):
            assert tuple(paths.bytes[n]) == tuple(np.add(sent[n], received[n]))


def test_what_a_run_of_score_p_holds() -> None:
    profile = read(HERE / "faultlab-late4" / "profile.cubex")
    assert profile.program == "faultlab_scorep"
    assert [(one.rank, one.thread, one.host) for one in profile.processors] == [(0, 0, "vm"), (1, 0, "vm")]
    assert profile.paradigms == ("mpi",)
    assert agrees(profile.actual_s, "0.754633")
    assert agrees(profile.outside["start-up"][0], "0.26415")
    rows = {region.name: n for n, region in enumerate(profile.regions)}
    phase = profile.phases[0]
    waiting = phase.arrays["wait_s"][rows["MPI_Sendrecv"], :, 0]
    assert waiting[1] > 0.07 > 0.002 > waiting[0], "rank 0 works 4 ms before each of 20 sends"
    assert profile.status["wait_s"] == "estimated"
    main = profile.regions[rows["phase1"]]
    assert (main.file, main.line) == ("/home/usr/res/faultlab/faultlab.c", 117)
    assert not profile.notes


def test_threads() -> None:
    path = HERE / "faultlab-ompfalse" / "profile.cubex"
    profile = read(path)
    assert [(one.rank, one.thread) for one in profile.processors] == [(0, 0), (0, 1)]
    assert profile.paradigms == ("mpi", "openmp")
    threaded = {region.name for region in profile.regions if region.threaded}
    assert "!$omp parallel @faultlab.c:186" in threaded
    assert profile.outside["idle"][0] == 0 < profile.outside["idle"][1]
    assert not profile.notes


@pytest.mark.parametrize(
    "change",
    [(), ("packed",), ("big_endian",), ("dense",), ("gzipped",), ("old_system",), ("packed", "big_endian", "dense")],
    ids=lambda change: "+".join(change) or "plain",
)
def test_every_way_of_storing_gives_the_same(tmp_path: Path, change: tuple[str, ...]) -> None:
    made = Cube([VISITS, TIME])
    for option in change:
        setattr(made, option, True)
    paths = cube.read_call_paths(made.write(tmp_path / "run.cubex"))
    assert paths.wall_s is not None
    assert paths.visits is not None
    np.testing.assert_allclose(paths.wall_s, OWN)
    np.testing.assert_array_equal(paths.visits[:, 0], [1, 1, 4, 4, 2])
    assert [(one.rank, one.host) for one in paths.processors] == [(0, "n1"), (1, "n1")]
    assert [node.parent for node in paths.nodes] == [-1, 0, 1, 2, 1]
    assert paths.nodes[0].role == Role.ROOT
    assert paths.nodes[3].role == Role.RECV


def test_metrics_count_call_paths_in_orders_of_their_own(tmp_path: Path) -> None:
    numbered = [Call(5, 0, [Call(0, 1, [Call(3, 2)]), Call(4, 1, [Call(1, 2, [Call(2, 3)])])])]
    totals = {5: [63.0], 0: [9.0], 3: [8.0], 4: [22.0], 1: [6.0], 2: [4.0]}
    for stored in ("INCLUSIVE", "EXCLUSIVE", "SIMPLE"):
        wanted = [32, 1, 8, 16, 2, 4] if stored == "INCLUSIVE" else [63, 9, 8, 22, 6, 4]
        made = Cube([Metric("time", totals, stored=stored)], calls=numbered, threads=(1,))
        paths = cube.read_call_paths(made.write(tmp_path / "run.cubex"))
        assert paths.wall_s is not None
        assert paths.wall_s[:, 0].tolist() == wanted, stored


def test_names_of_otf2_cli_profile(tmp_path: Path) -> None:
    made = Cube([replace(metric, name=f"met_{metric.name}") for metric in (VISITS, TIME)])
    paths = cube.read_call_paths(made.write(tmp_path / "run.cubex"))
    assert paths.wall_s is not None
    np.testing.assert_allclose(paths.wall_s, OWN)


def test_rows_that_are_not_stored_are_nothing(tmp_path: Path) -> None:
    sent = Metric("bytes_sent", {4: [100, 200]}, values="UINT64")
    atomic = Metric("bytes_received", {3: [30, 60]}, values="TAU_ATOMIC")
    paths = cube.read_call_paths(Cube([VISITS, TIME, sent, atomic]).write(tmp_path / "run.cubex"))
    assert paths.bytes is not None
    assert paths.bytes.tolist() == [[0, 0], [0, 0], [0, 0], [30, 60], [100, 200]]


def test_the_shortest_call_is_unknown_where_there_was_none(tmp_path: Path) -> None:
    visits = Metric("visits", {**(VISITS.rows or {}), 4: [2, 0]}, values="UINT64")
    time = Metric("time", {**(TIME.rows or {}), 4: [2, 0]}, stored="INCLUSIVE")
    shortest = Metric("min_time", {3: [0.1, 0.2], 4: [0.5, 1.7976931348623157e308]}, values="MINDOUBLE")
    paths = cube.read_call_paths(Cube([visits, time, shortest]).write(tmp_path / "run.cubex"))
    assert paths.shortest_s is not None
    np.testing.assert_array_equal(paths.shortest_s[3:], [[0.1, 0.2], [0.5, np.nan]])
    assert not paths.notes


def test_wait_states_of_scalasca(tmp_path: Path) -> None:
    special = Metric("mpi_latesender_wo", {3: [0.1, 0.5]})
    sender = Metric("mpi_latesender", {3: [0.2, 2.5], 4: [0, 0.25]}, below=[special])
    idle = Metric("omp_idle_threads", {1: [0.25, 0]})
    other = Metric("mpi_barrier_wait")
    made = Cube([VISITS, Metric("time", TIME.rows, stored="INCLUSIVE", below=[sender, idle, other])])
    path = made.write(tmp_path / "trace.cubex")
    paths = cube.read_call_paths(path)
    assert list(paths.waits) == ["late sender"], "a special case is part of the wait state above it"
    assert paths.waits["late sender"].tolist() == [[0, 0], [0, 0], [0, 0], [0.2, 2.5], [0, 0.25]]
    assert paths.wall_s is not None
    assert paths.wall_s[1].tolist() == [1.25, 2.5], "idle threads do not run the program"
    profile = read(path)
    assert profile.status["wait_s"] == "measured"
    row = [region.name for region in profile.regions].index("MPI_Recv")
    np.testing.assert_allclose(profile.phases[0].arrays["wait_s"][row, :, 0], [0.2, 2.75])
    np.testing.assert_allclose(profile.phases[0].arrays["transfer_s"][row, :, 0], [2.8, 0.75])


def test_hardware_counters(tmp_path: Path) -> None:
    misses = Metric("PAPI_L1_DCM", {0: [9, 9], 1: [9, 9], 2: [7, 7], 3: [0, 0], 4: [0, 0]}, "INCLUSIVE", "UINT64")
    broken = Metric("PAPI_L2_DCM", {2: [-5, 7]}, values="INT64")
    profile = read(Cube([VISITS, TIME, misses, broken]).write(tmp_path / "run.cubex"))
    row = [region.name for region in profile.regions].index("solve")
    assert profile.counts["misses.L1"][row].tolist() == [7, 7]
    assert "misses.L2" not in profile.counts
    assert "PAPI_L2_DCM is negative" in notes(profile)["contradictions in the profile"]


NAMES = [
    "std::vector<std::map<int, Foo<true> > >::operator[](unsigned long) const",
    "void apply<T>(T&) [with T = int] [clone .cold]",
    "größer · 計算 & <co>",
    "latin-1 \udce9t\udce9",
    "x\x1b[2J\x1b]0;title\x07 evil\u202e",
    "[bold]a:b@c=>d|e;f\\n%s${x}`y`&amp;<b>#",
    "x" * 5000,
]


def test_names_survive(tmp_path: Path) -> None:
    described = [("app", "measurement", "artificial", ""), *((one, "compiler", "function", "a.cpp") for one in NAMES)]
    calls = [Call(0, 0, [Call(n + 1, n + 1) for n in range(len(NAMES))])]
    time = Metric("time", {n: [1.0] for n in range(len(NAMES) + 1)})
    made = Cube([time], regions=described, calls=calls, threads=(1,))
    path = made.write(tmp_path / "run.cubex")
    assert b"\xe9t\xe9" in path.read_bytes()
    assert b"\x1b[2J" in path.read_bytes()
    assert [node.name for node in cube.read_call_paths(path).nodes[1:]] == NAMES


def test_only_cube_archives_are_claimed(tmp_path: Path) -> None:
    assert all(cube.advisor_sniff(path) == 1.0 for path in REAL)
    others = {"empty": b"", "text": b"x" * 600, "cube": b"<cube/>"}
    for other, content in others.items():
        (tmp_path / other).write_bytes(content)
    write_tar(tmp_path / "tar", [("readme.txt", b"hello"), ("1.dat", b"")])
    (tmp_path / "sub").mkdir()
    assert [cube.advisor_sniff(path) for path in sorted(tmp_path.iterdir())] == [None] * 5
    whole = REAL[0].read_bytes()
    (tmp_path / "cut").write_bytes(whole[:150_000])
    assert cube.advisor_sniff(tmp_path / "cut") == 1.0, "a file still being written is a CUBE file all the same"
