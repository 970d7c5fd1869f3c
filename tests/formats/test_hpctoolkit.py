"""HPCToolkit: both versions of its databases give the same seconds of frames, ranks and threads; damage is noticed."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import damage
import numpy as np
import pytest
from hpctoolkit_databases import FUNCTION, LINE, LOOP, Context, Run, write, write_experiment

from advisor.analysis import soundness
from advisor.formats import hpctoolkit
from advisor.formats.hpctoolkit import call_path_builder
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract
from advisor.trace.events import Role

if TYPE_CHECKING:
    from pathlib import Path


def example() -> Run:
    """Two ranks, of which the second has two threads: a loop with a line in it, a call out of it, and a wait."""
    line = Context("", [1.0, 2.0, 0.25], kind=LINE, line=12)
    wait = Context("MPI_Recv", [2.0, 0.5, 0.0], [Context("poll", [1.0, 0.5, 0.0], module="libmpi.so.40", file="")])
    loop = Context("", [0.5, 0.0, 0.0], [line, wait], kind=LOOP, line=11)
    solve = Context("solve", [0.25, 0.0, 0.0], [loop], line=9)
    main = Context("main", [0.0, 0.0, 0.0], [solve, Context("", [0.125, 0.0, 1.0], file="", module="/lib/libm.so")])
    return Run(main, [(0, 0, 0), (1, 1, 0), (1, 1, 1)])


WRITERS = {"version 4": write, "experiment.xml": write_experiment}
#: Seconds of the frames themselves; loops and lines are parts of the function that they are in.
OWN: dict[str, list[float]] = {
    "main": [0, 0, 0],
    "solve": [1.75, 2, 0.25],
    "MPI_Recv": [2, 0.5, 0],
    "poll": [1, 0.5, 0],
}


def read(path: Path) -> Profile:
    profile = hpctoolkit.advisor_read(path)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    return profile


def notes(profile: Profile) -> dict[str, str]:
    return {note.name: note.text for note in profile.notes}


def test_a_document_under_another_name(tmp_path: Path) -> None:
    database = write_experiment(example(), tmp_path / "database")
    document = (database / "experiment.xml").rename(database / "experiment_64.xml")
    assert hpctoolkit.advisor_sniff(document) == 1.0
    assert (
        hpctoolkit.read_call_paths(document).program
        == hpctoolkit.read_call_paths(write_experiment(example(), tmp_path / "b")).program
    )


@pytest.mark.parametrize("version", WRITERS)
def test_seconds_of_every_frame_and_thread(tmp_path: Path, version: str) -> None:
    paths = hpctoolkit.read_call_paths(WRITERS[version](example(), tmp_path / "database"))
    assert paths.wall_s is not None
    seconds = {node.name: paths.wall_s[n] for n, node in enumerate(paths.nodes)}
    for name, own in OWN.items():
        np.testing.assert_allclose(seconds[name], own, atol=1e-12)
    assert [(one.rank, one.thread) for one in paths.processors] == [(0, 0), (1, 0), (1, 1)]
    assert [one.host for one in paths.processors] == ["a8c00270", "a8c00271", "a8c00271"]
    callers = {node.name: paths.nodes[node.parent].name for node in paths.nodes[1:]}
    assert callers.items() >= {
        ("main", "<program root>"),
        ("solve", "main"),
        ("MPI_Recv", "solve"),
        ("poll", "MPI_Recv"),
    }
    assert paths.nodes[0].role == Role.ROOT
    solve = next(node for node in paths.nodes if node.name == "solve")
    assert (solve.file, solve.line) == ("app.c", 9)
    assert paths.status == "estimated"
    assert paths.program == "app"
    assert not paths.notes


def test_functions_without_names(tmp_path: Path) -> None:
    paths = hpctoolkit.read_call_paths(write(example(), tmp_path / "database"))
    assert "<unknown procedure> in libm.so" in [node.name for node in paths.nodes]


def test_what_libraries_do_belongs_to_the_call(tmp_path: Path) -> None:
    profile = read(write(example(), tmp_path / "database"))
    rows = {region.name: n for n, region in enumerate(profile.regions)}
    assert "poll" not in rows
    wait = profile.phases[0].arrays["wall_s"][rows["MPI_Recv"], :, 0]
    np.testing.assert_allclose(wait, [3, 1, 0])
    assert profile.actual_s == pytest.approx(4.875)
    assert profile.paradigms == ("mpi",)


@pytest.mark.parametrize("version", WRITERS)
def test_cpu_times_alone(tmp_path: Path, version: str) -> None:
    run = example()
    run.metrics = ["CPUTIME (sec)"]
    profile = read(WRITERS[version](run, tmp_path / "database"))
    assert profile.actual_s == pytest.approx(4.875)
    assert "busiest thread" in notes(profile)["CPU time for wall time"]
    rows = [n for n, region in enumerate(profile.regions) if region.name == "solve"]
    np.testing.assert_allclose(profile.phases[0].arrays["wall_s"][rows].sum(axis=0)[:, 0], [1.75, 2, 0.25])
    assert "cpu_s" not in profile.phases[0].arrays


def test_two_times(tmp_path: Path) -> None:
    run = example()
    run.metrics = ["CPUTIME (sec)", "cycles", "REALTIME (sec)"]
    paths = hpctoolkit.read_call_paths(write(run, tmp_path / "database"))
    assert paths.cpu_s is not None
    assert paths.wall_s is not None
    np.testing.assert_allclose(paths.cpu_s, paths.wall_s)
    run.metrics = ["cycles"]
    with pytest.raises(InputError, match="no time was sampled"):
        hpctoolkit.advisor_read(write(run, tmp_path / "database"))


def test_accelerators_are_left_out(tmp_path: Path) -> None:
    run = example()
    run.streams = 2
    profile = read(write(run, tmp_path / "database"))
    assert len(profile.processors) == 3
    assert "ignored: 2" in notes(profile)["accelerators left out"]


@pytest.mark.parametrize("version", WRITERS)
def test_names_survive(tmp_path: Path, version: str) -> None:
    names = ["void f<T>(T&) [with T = int] [clone .cold]", "größer<計算, &x>", "y" * 5000]
    main = Context("main", [1.0], [Context(name, [1.0]) for name in names])
    paths = hpctoolkit.read_call_paths(WRITERS[version](Run(main, [(0, 0, 0)]), tmp_path / "database"))
    assert [node.name for node in paths.nodes[2:]] == names


def test_a_single_thread_without_metric_db(tmp_path: Path) -> None:
    run = example()
    run.threads = run.threads[:1]
    paths = hpctoolkit.read_call_paths(write_experiment(run, tmp_path / "one", databases=False))
    assert paths.wall_s is not None
    np.testing.assert_allclose(paths.wall_s[:, 0], [0, 0, 1.75, 2, 1, 0.125])


def test_databases_are_claimed_and_nothing_else(tmp_path: Path) -> None:
    new, old = write(example(), tmp_path / "new"), write_experiment(example(), tmp_path / "old")
    for path in (new, old, new / "meta.db", new / "profile.db", old / "experiment.xml"):
        assert hpctoolkit.advisor_sniff(path) == 1.0
        assert read(path).actual_s == pytest.approx(4.875)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "other.xml").write_text("<experiment/>")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "meta.db").write_text("something else")
    declaration = tmp_path / "hpc-experiment.dtd"
    declaration.write_text("<!-- HPCToolkitExperiment -->\n<!ELEMENT HPCToolkitExperiment (Header)>\n")
    others = [
        declaration,
        tmp_path / "empty",
        tmp_path / "other.xml",
        tmp_path / "odd",
        tmp_path,
        *sorted(old.glob("*.metric-db")),
    ]
    assert [hpctoolkit.advisor_sniff(path) for path in others] == [None] * len(others)


def test_ranks_without_a_file(tmp_path: Path) -> None:
    run = example()
    run.threads = [(0, 0, 0), (0, 1, 0), (0, 3, 0)]
    database = write_experiment(run, tmp_path / "database")
    assert read(database).ranks_expected == 4
    next(database.glob("*-000003-000-*")).unlink()
    profile = read(database)
    assert profile.ranks == 2
    assert "on all threads" in notes(profile)["contradictions in the database"]


def test_sums_over_all_threads_are_compared(tmp_path: Path) -> None:
    database = write(example(), tmp_path / "database")
    content = (database / "profile.db").read_bytes()
    value = struct.pack("<Hd", 1, 4.875)
    assert value in content
    (database / "profile.db").write_bytes(content.replace(value, struct.pack("<Hd", 1, 4.9)))
    assert "REALTIME (sec)" in notes(read(database))["contradictions in the database"]


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("meta.db", b"meta\x04\x00", b"meta\x05\x00", "unsupported version 5.0"),
        ("meta.db", b"_meta.db", b"_meta.d", "end of the file is missing"),
        ("profile.db", b"_prof.db", b"", "end of the file is missing"),
        ("profile.db", b"HPCTOOLKITprof", b"HPCTOOLKITmeta", "is not a prof.db"),
        ("profile.db", struct.pack("<Hd", 1, 3.0), struct.pack("<Hd", 1, float("nan")), "is none"),
        ("profile.db", struct.pack("<Hd", 1, 3.0), struct.pack("<Hd", 1, -3.0), "is none"),
        ("profile.db", struct.pack("<IQ", 2, 1), struct.pack("<IQ", 2, 9_000_000), "out of order"),
    ],
)
def test_damage_of_version_4(tmp_path: Path, file: str, old: bytes, new: bytes, reason: str) -> None:
    database = write(example(), tmp_path / "database")
    content = (database / file).read_bytes()
    assert old in content
    (database / file).write_bytes(content.replace(old, new))
    with pytest.raises(InputError, match=reason):
        hpctoolkit.advisor_read(database)


def test_runs_in_one_database_are_refused_with_what_to_do(tmp_path: Path) -> None:
    run = example()
    run.threads = [(0, 0, 0)] * len(run.threads)
    with pytest.raises(InputError, match=r"of several runs.* a directory of its own \(hpcrun -o\)"):
        hpctoolkit.advisor_read(write(run, tmp_path / "database"))


def test_contexts_that_contain_themselves(tmp_path: Path) -> None:
    database = write(example(), tmp_path / "database")
    content = bytearray((database / "meta.db").read_bytes())
    section = struct.unpack_from("<Q", content, 0x48)[0]
    entry = struct.unpack_from("<Q", content, section)[0]
    size, below = struct.unpack_from("<QQ", content, entry)
    struct.pack_into("<QQ", content, below, size, below)
    (database / "meta.db").write_bytes(content)
    with pytest.raises(InputError, match="occurs twice"):
        hpctoolkit.advisor_read(database)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<!ELEMENT M EMPTY>", '<!ENTITY a "b">', "is not read"),
        ("HPCToolkitExperiment [", 'HPCToolkitExperiment SYSTEM "x.dtd" [', "outside of itself"),
        ('<PF i="3"', '<PF i="2"', "node 2 occurs twice"),
        ('<PF i="3"', '<PF i="x"', "without number"),
        ('n="1001"', 'n="77"', "in no table"),
        ('db-id="0"', 'db-id="2"', "no place among"),
        ('<M n="5" v="', '<M n="5" v="inf', "no value"),
        ('db-num-metrics="2"', 'db-num-metrics="3"', "holds 2 metrics"),
        ("</HPCToolkitExperiment>", "", "no sound XML"),
    ],
)
def test_documents_that_are_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = write_experiment(example(), tmp_path / "database") / "experiment.xml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=reason):
        hpctoolkit.advisor_read(path)


def test_metric_db_that_is_refused(tmp_path: Path) -> None:
    database = write_experiment(example(), tmp_path / "database")
    path = next(database.glob("*-000000-*"))
    whole = path.read_bytes()
    nan = whole[:-8] + struct.pack(">d", float("nan"))
    cases = {b"": "is not a metric-db", whole[:-1]: "by its header", whole.replace(b"00.10b", b"00.11b"): "version"}
    for content, reason in {**cases, nan[:-16] + nan[-8:] + nan[-8:]: "is nan"}.items():
        path.write_bytes(content)
        with pytest.raises(InputError, match=reason):
            hpctoolkit.advisor_read(database)
    path.rename(database / "odd.metric-db")
    with pytest.raises(InputError, match="neither rank nor thread"):
        hpctoolkit.advisor_read(database)


def test_what_is_missing(tmp_path: Path) -> None:
    database = write(example(), tmp_path / "database")
    (database / "profile.db").unlink()
    with pytest.raises(InputError, match=r"no profile\.db"):
        hpctoolkit.advisor_read(database)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"neither meta\.db nor"):
        hpctoolkit.advisor_read(tmp_path / "empty")
    run = example()
    run.threads[1] = run.threads[0]
    with pytest.raises(InputError, match="the same thread"):
        hpctoolkit.advisor_read(write(run, tmp_path / "database"))


def test_regions_beyond_the_limit_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_path_builder, "REGION_LIMIT", 4)
    main = Context("main", [9.0], [Context(f"f{n}", [float(n + 1)], kind=FUNCTION) for n in range(8)])
    profile = read(write(Run(main, [(0, 0, 0)]), tmp_path / "database"))
    assert sorted(region.name for region in profile.regions) == ["app", "f7", "main", "other functions"]
    assert profile.actual_s == 45


@pytest.mark.parametrize("file", ["meta.db", "profile.db"])
def test_files_cut_off_anywhere(tmp_path: Path, file: str) -> None:
    database = write(example(), tmp_path / "database")
    damage.every_prefix(database / file, tmp_path, hpctoolkit.advisor_read, database)


def test_a_document_cut_off_anywhere(tmp_path: Path) -> None:
    database = write_experiment(example(), tmp_path / "database")
    damage.every_prefix(database / "experiment.xml", tmp_path, hpctoolkit.advisor_read, database)


@pytest.mark.parametrize(
    ("writer", "file", "share"),
    [("version 4", "meta.db", 0.3), ("version 4", "profile.db", 0.15), ("experiment.xml", "experiment.xml", 0.15)],
)
def test_bits_turned_over(tmp_path: Path, writer: str, file: str, share: float) -> None:
    database = WRITERS[writer](example(), tmp_path / "database")
    tried = damage.TRIED
    silent = damage.bit_flips(database / file, tmp_path, hpctoolkit.advisor_read, database)
    assert silent < share * tried, "more than names, files, lines and numbers of ranks"


def test_functions_named_with_their_binary_are_calls(tmp_path: Path) -> None:
    send = Context("PMPI_Send [libmpi.so.12]", [1.0], module="/usr/lib/libmpi.so.12")
    paths = hpctoolkit.read_call_paths(write(Run(Context("main", [1.0], [send]), [(0, 0, 0)]), tmp_path / "database"))
    assert paths.nodes[-1].name == "MPI_Send"


def test_values_of_contexts_that_the_tree_leaves_out_add_nothing(tmp_path: Path) -> None:
    database = write(example(), tmp_path / "database")
    whole = read(database)
    file = database / "profile.db"
    found = file.read_bytes()
    old = struct.pack("<IQ", 8, 10)
    assert old in found
    file.write_bytes(found.replace(old, struct.pack("<IQ", 80, 10)))
    profile = read(database)
    assert profile.actual_s == pytest.approx(whole.actual_s)
    assert "in the summary" in notes(profile)["contradictions in the database"]
