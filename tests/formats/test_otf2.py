"""Reading OTF2 archives: what EZTrace and Score-P recorded, and archives written for the purpose."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from otf2_archives import BARRIER, BCAST, OPENMP, REGION_IDS, Archive, Printed, listing

from advisor.formats.otf2 import advisor_read, advisor_sniff, decoding, read_trace
from advisor.formats.otf2 import hooks as reader
from advisor.formats.otf2.trace_builder import detect_language
from advisor.model.errors import InputError, UsageError
from advisor.support import compiling
from advisor.trace.events import Kind, Role, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otf2_writer import Order


TRACES = Path(__file__).parents[1] / "profiles" / "otf2"
#: Recorded archives with the global offset of their clock, in ticks.
RECORDED = {
    "eztrace-imbalance": 0,
    "eztrace-io": 0,
    "eztrace-lu": 0,
    "eztrace-subcommunicators": 0,
    "eztrace-threads": 0,
    "scorep-is": 8408485279902,
    "scorep-multiphase": 9159832553865,
    "scorep-threads": 12086868490849,
}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what numba compiles out of the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def anchor(name: str) -> Path:
    return next((TRACES / name).rglob("*.otf2"))


def same(one: Trace, other: Trace) -> bool:
    """Whether two traces are equal to the bit."""
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(Trace)]
    return all(a.dtype == b.dtype and np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)


def rows(trace: Trace, offset: int) -> list[list[Printed]]:
    """Return the events of each location as otf2-print would list them: without meetings that only times tell."""
    ticks = np.rint(trace.time_s / trace.ticks_s).astype(np.int64) + offset
    names = [region.name for region in trace.regions]
    found = [
        Printed(Kind(kind).name, tick, names[region] if region >= 0 else None)
        for kind, tick, region in zip(trace.kind.tolist(), ticks.tolist(), trace.region.tolist(), strict=True)
    ]
    parts = [found[begin:end] for begin, end in zip(trace.first[:-1].tolist(), trace.first[1:].tolist(), strict=True)]
    return [[one for one in part if (one.kind, one.region) != ("COLLECTIVE", "MPI_Comm_split")] for part in parts]


def expected(text: str) -> list[list[Printed]]:
    """Return a listing by location, Fortran's names of MPI calls written as C's."""
    renamed = {}
    for location, events in sorted(listing(text).items()):
        renamed[location] = [
            event._replace(region=f"MPI_{event.region[4:].rstrip('_').capitalize()}")
            if event.region and event.region.startswith("mpi_")
            else event
            for event in events
        ]
    return list(renamed.values())


@pytest.mark.parametrize("name", ["eztrace-subcommunicators", "scorep-is"])
def test_every_event_is_that_of_the_stored_listing(name: str) -> None:
    text = (TRACES / name / "listing.txt").read_text()
    assert rows(read_trace(anchor(name)), RECORDED[name]) == expected(text)


@pytest.mark.skipif(shutil.which("otf2-print") is None, reason="needs otf2-print (Debian: otf2-tools)")
@pytest.mark.parametrize("name", RECORDED)
def test_every_event_is_that_of_otf2_print(name: str) -> None:
    text = subprocess.run(["otf2-print", anchor(name)], capture_output=True, text=True, check=True).stdout
    found = [events for events in rows(read_trace(anchor(name)), RECORDED[name]) if events]
    assert found == expected(text)


@pytest.mark.parametrize("name", ["eztrace-io", "eztrace-lu", "scorep-threads"])
def test_compiled_decoding_gives_the_same(name: str) -> None:
    pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    assert same(read_trace(anchor(name), compiled=True), read_trace(anchor(name), compiled=False))


def test_compiled_decoding_takes_every_kind_of_event(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    write_every_kind(tmp_path / "all")
    plain = read_trace(tmp_path, compiled=False)
    assert same(read_trace(tmp_path, compiled=True), plain)
    assert set(np.unique(plain.kind).tolist()) == set(Kind) - {Kind.ONE_SIDED}  # that is the recorder's


@pytest.mark.parametrize("order", ["little", "big"])
def test_every_kind_of_event_keeps_its_data(tmp_path: Path, order: Order) -> None:
    write_every_kind(tmp_path / "all", order)
    trace = read_trace(tmp_path)
    found = list(
        zip(
            [Kind(kind).name for kind in trace.kind.tolist()],
            trace.partner.tolist(),
            trace.tag.tolist(),
            trace.size.tolist(),
            trace.request.tolist(),
            strict=True,
        )
    )
    assert found == [
        ("ENTER", -1, -1, -1, 0),
        ("SEND", 1, 7, 2**40, 0),
        ("RECV", 1, 2**31 - 1, 0, 0),
        ("ISEND", 1, 8, 16, 2**63),
        ("ISEND_DONE", -1, -1, -1, 2**63),
        ("IRECV_POST", -1, -1, -1, 5),
        ("IRECV", 1, 9, 24, 5),
        ("COLLECTIVE", 1, -1, 300, 0),
        ("COLLECTIVE", -1, -1, 12, 6),
        ("FORK", -1, -1, 4, 0),
        ("TEAM_BEGIN", -1, -1, -1, 0),
        ("TEAM_END", -1, -1, -1, 0),
        ("JOIN", -1, -1, -1, 0),
        ("IO", 0, -1, 4096, 0),
        ("LEAVE", -1, -1, -1, 0),
    ]
    assert trace.files == ("restart.dat",)
    assert {trace.communicators[number] for number in trace.comm.tolist() if number >= 0} == {(0, 1)}
    assert [note.text for note in trace.notes] == ["ignored: 2 metrics, 1 parameters"]


def write_every_kind(path: Path, order: Order = "little") -> None:
    """Write an archive of two ranks, the first with one event of every kind, metrics and a parameter."""
    with Archive(path, ranks=2, order=order) as archive:
        handle = archive.io_handle("restart.dat")
        main, world, events = archive.region("main"), archive.world, archive.events()
        events.enter(10, main)
        events.metric(11, 0, 1, 4, 5)
        events.mpi_send(12, 1, world, 7, 2**40)
        events.mpi_recv(13, 1, world, 2**31 - 1, 0)
        events.mpi_isend(14, 1, world, 8, 16, 2**63)
        events.mpi_isend_complete(15, 2**63)
        events.mpi_irecv_request(16, 5)
        events.mpi_irecv(17, 1, world, 9, 24, 5)
        events.mpi_collective_begin(18)
        events.mpi_collective_end(19, BCAST, world, 1, 100, 200)
        events.non_blocking_collective_complete(20, BARRIER, world, 2**32 - 1, 4, 8, 6)
        events.thread_fork(21, OPENMP, 4)
        events.thread_team_begin(22, world)
        events.parameter_int(23, 0, 3)
        events.thread_team_end(24, world)
        events.thread_join(25, OPENMP)
        events.io_operation_complete(26, handle, 4096, 1)
        events.metric(27, 0, 1, 4, 6)
        events.leave(28, main)


def test_eztrace_with_repeated_definitions_is_read_in_full() -> None:
    trace = read_trace(TRACES / "eztrace-imbalance")
    assert [(location.rank, location.thread) for location in trace.locations] == [(0, 0), (1, 0)]
    assert (trace.tool, trace.program) == ("EZTrace", "faultlab_so")
    assert [region.name for region in trace.regions].count("phase1") == 1
    used = {trace.regions[index].name for index in np.unique(trace.region).tolist() if index >= 0}
    assert {"phase1", "phase2", "MPI_Barrier", "MPI_Allreduce", "Working", "EZTrace finalize"} <= used
    collective = trace.kind == Kind.COLLECTIVE
    assert {trace.communicators[index] for index in np.unique(trace.comm[collective]).tolist()} == {(0, 1)}
    assert trace.notes == ()


def test_threads_of_a_rank_are_told_apart() -> None:
    trace = read_trace(TRACES / "scorep-threads")
    assert [(x.rank, x.thread, x.host) for x in trace.locations] == [(0, 0, "vm"), (0, 1, "vm")]
    assert (trace.tool, trace.program) == ("Score-P 8.4", "faultlab_scorep")
    parallel = next(region for region in trace.regions if region.role == Role.OMP_PARALLEL)
    assert parallel.line == 186
    assert parallel.file is not None
    assert parallel.file.endswith("faultlab.c")
    assert trace.size[trace.kind == Kind.FORK].tolist() == [2] * 20


def test_io_has_bytes_and_file_names() -> None:
    trace = read_trace(TRACES / "eztrace-io")
    io = np.flatnonzero(trace.kind == Kind.IO)
    rank = np.searchsorted(trace.first, io, side="right") - 1
    assert trace.size[io[rank == 1]].tolist() == [4096] * 1280
    first = io[rank == 0]
    data = trace.files.index("/data/run/prof/faultlab.0.dat")
    assert trace.size[first][trace.partner[first] == data].tolist() == [4096] * 1280
    assert set(trace.partner[io[rank == 1]].tolist()) == {-1}, "EZTrace defines the handles of rank 0 only"
    roles = {region.name: region.role for region in trace.regions}
    assert {roles[name] for name in ("open", "write", "close", "fopen", "fwrite")} == {Role.IO}


def test_receives_of_fortran_programs_get_the_communicator_of_their_sends() -> None:
    trace = read_trace(TRACES / "eztrace-subcommunicators")
    received = trace.kind == Kind.IRECV
    rank = np.searchsorted(trace.first, np.flatnonzero(received), side="right") - 1
    assert trace.partner[received].tolist() == ((rank + 2) % 4).tolist()
    assert [trace.communicators[number] for number in trace.comm[received].tolist()] == [
        (2, 0) if even else (3, 1) for even in (rank % 2 == 0).tolist()
    ]


def test_clocks_are_corrected_as_recorded(tmp_path: Path) -> None:
    with Archive(tmp_path / "clocks", ranks=2, resolution=10**6) as archive:
        for rank in range(2):
            for time in (900, 1000, 1500, 2000, 2501, 3000, 3100):
                archive.events(rank).enter(time, archive.region("work"))
        for time, offset in ((1000, 100), (2000, -200), (3000, 400)):
            archive.clock_offset(1, time, offset)
    for compiled in ways():
        trace = read_trace(tmp_path, compiled)
        ticks = np.rint(trace.time_s * 1e6).astype(int) + 900
        assert ticks[trace.first[1] :].tolist() == [1030, 1100, 1450, 1800, 2602, 3400, 3560]
        assert ticks[: trace.first[1]].tolist() == [900, 1000, 1500, 2000, 2501, 3000, 3100]


def test_a_single_measured_offset_corrects_nothing(tmp_path: Path) -> None:
    with Archive(tmp_path / "one") as archive:
        archive.clock_offset(0, 1000, 500)
        for time in (1000, 2000):
            archive.events().enter(time, archive.region("work"))
    assert np.rint(read_trace(tmp_path).time_s * 1e9).tolist() == [0, 1000]


def ways() -> list[bool]:
    """Return the decoders that there are: plain (False), compiled (True)."""
    return [False, True] if find_spec("numba") else [False]


@pytest.mark.parametrize("ids", [[1, 0], {0: 1, 1: 0}], ids=["dense", "sparse"])
def test_local_ids_become_global_ones(tmp_path: Path, ids: list[int] | dict[int, int]) -> None:
    with Archive(tmp_path / "maps") as archive:
        regions = [archive.region(name) for name in ("one", "two", "three")]
        for time, region in enumerate([*regions, 5]):
            archive.events().enter(10 + time, region)
        archive.id_map(0, REGION_IDS, ids)
    for compiled in ways():
        trace = read_trace(tmp_path, compiled)
        names = [trace.regions[index].name for index in trace.region.tolist()]
        assert names == ["two", "one", "three", "undefined region"], "ids that are not listed stand for themselves"


@pytest.mark.parametrize(("first", "resolution"), [(1_763_700_000_000_000_000, 10**9), (2**63, 2_600_024_864)])
def test_times_are_exact_to_the_tick_however_large(tmp_path: Path, first: int, resolution: int) -> None:
    with Archive(tmp_path / "late", resolution=resolution) as archive:
        for time in (0, 1, 3, 1_000_000_007):
            archive.events().enter(first + time, archive.region("work"))
    trace = read_trace(tmp_path)
    assert trace.time_s.tolist() == [ticks / resolution for ticks in (0, 1, 3, 1_000_000_007)]
    assert trace.ticks_s == 1 / resolution


def test_times_far_from_the_recorded_start_stay_exact(tmp_path: Path) -> None:
    with Archive(tmp_path / "far") as archive:
        archive.events().enter(0, archive.region("work"))
        archive.events().leave(2**60 + 1, archive.region("work"))
    trace = read_trace(tmp_path)
    assert trace.time_s.tolist() == [0.0, (2**60 + 1) / 1e9]


def test_locations_without_events_are_kept(tmp_path: Path) -> None:
    with Archive(tmp_path / "idle", ranks=3, threads=2) as archive:
        archive.events(2).enter(5, archive.region("work"))
        archive.events(5)
    trace = read_trace(tmp_path)
    assert [(x.rank, x.thread) for x in trace.locations] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert trace.first.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert trace.ranks == 3


def test_compiled_decoding_cannot_be_had_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "find_spec", lambda _name: None)
    monkeypatch.setattr(compiling, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"gapwatch\[fast\]"):
        read_trace(anchor("eztrace-threads"), compiled=True)
    assert same(read_trace(anchor("eztrace-threads")), read_trace(anchor("eztrace-threads"), compiled=False))


def test_large_archives_are_decoded_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    seen = []
    monkeypatch.setattr(decoding, "choose_decoder", lambda compiled: seen.append(compiled) or 1 / 0)
    for worth in (0, 10**9):
        monkeypatch.setattr(reader, "_LOADING", worth)
        with pytest.raises(ZeroDivisionError):
            read_trace(anchor("eztrace-threads"))
    assert seen == [True, False]


def test_reading_a_small_archive_imports_neither_numba_nor_the_otf2_package() -> None:
    code = (
        "import sys; from pathlib import Path; from advisor.formats.otf2 import read_trace;"
        f"read_trace(Path({str(anchor('eztrace-threads'))!r}));"
        "print([name for name in ('numba', 'otf2', '_otf2', 'scipy', 'rich') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


def test_reading_works_where_the_shell_limits_memory() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30));"
        "from pathlib import Path; from advisor.formats.otf2 import read_trace;"
        f"print(len(read_trace(Path({str(anchor('eztrace-threads'))!r})).kind))"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    assert done.stdout == b"311\n"


def test_a_place_without_an_archive_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no OTF2 archive"):
        read_trace(tmp_path)
    with pytest.raises(InputError, match="no OTF2 archive"):
        read_trace(tmp_path / "nowhere")
    assert advisor_sniff(tmp_path) is None


def test_anchor_files_and_their_directories_are_claimed_and_parts_only_with_them(tmp_path: Path) -> None:
    assert advisor_sniff(TRACES / "eztrace-io") is None
    assert advisor_sniff(anchor("scorep-is").parent) == 1.0
    parts = [file for file in anchor("scorep-is").parent.rglob("*") if file.suffix in (".def", ".evt")]
    assert {advisor_sniff(part) for part in parts} == {0.1}
    (tmp_path / "lonely.evt").write_bytes(parts[0].read_bytes())
    with pytest.raises(InputError, match="no OTF2 archive here"):
        advisor_read(tmp_path / "lonely.evt")
    assert advisor_sniff(anchor("scorep-is")) == 1.0
    assert advisor_sniff(TRACES / "README.md") is None
    (tmp_path / "output.txt").write_text("[OTF2] src/OTF2_Archive.c:195: error: the library says something")
    assert advisor_sniff(tmp_path / "output.txt") is None
    (tmp_path / "foreign.otf2").write_text("not a trace")
    assert advisor_sniff(tmp_path / "foreign.otf2") is None
    (tmp_path / "other.otf2").write_text("not a trace")
    with pytest.raises(InputError, match="2 OTF2 archives here"):
        read_trace(tmp_path)


@pytest.mark.parametrize(
    ("files", "calls", "language"),
    [
        (["a/ssor.f", None, "rhs.F90", "timers.c"], [], "fortran"),
        (["solve.cpp", "halo.cc", "old.f90"], ["mpi_send_"], "cxx"),
        (["main.c", "mpi.h"], ["MPI_Send"], "c"),
        ([None, "libm.so", "stencil.v2"], ["MPI_Init", "mpi_bcast_"], "fortran"),
        ([], ["MPI_WAITALL__"], "fortran"),
        ([], ["MPI_Send", "MPI_SEND", "mpi_private_t_x", "_mpi_"], None),
    ],
)
def test_the_language_is_told_by_sources_or_by_the_names_of_calls(
    files: list[str | None], calls: list[str], language: str | None
) -> None:
    assert detect_language(files, calls) == language


def test_the_profile_of_a_fortran_program_says_so() -> None:
    told = {name: read_trace(anchor(name)).language for name in ("eztrace-lu", "eztrace-io", "scorep-is")}
    assert told == {"eztrace-lu": "fortran", "eztrace-io": None, "scorep-is": "c"}
    assert advisor_read(anchor("eztrace-lu")).language == "fortran"
