"""Recordings as files: what a header declares, what a process says, and what damage does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from daemon_runs import Watch
from handmade_recordings import PROCESS, write_rank

from advisor.collect.recorder.wrappers import fortran_bindings, parse_prototypes, wrapped_functions, write_wrappers
from advisor.formats import recording
from advisor.formats.recording.contents import read_recording
from advisor.model.errors import InputError
from advisor.trace.recordings import passes
from advisor.trace.recordings.command import RunCommand, write_command
from advisor.trace.recordings.layout import RECORD, map_records
from advisor.trace.recordings.passes import Conclusions, write_conclusions
from advisor.trace.recordings.places import PLACES_FILE, CodePlace, read_places, write_places
from advisor.trace.recordings.processes import read_process

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """
typedef int MPI_Comm; typedef int MPI_Datatype; typedef int MPI_Request; typedef struct { int x; } MPI_Status;
__attribute__((visibility("default"))) int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest,
    int tag, MPI_Comm comm) __attribute__((pointer_with_type_tag(MPI,1,3)));
extern int MPI_Waitany(int count, MPI_Request array_of_requests[], int *indx, MPI_Status *);
int MPI_Group_range_incl(int group, int n, int ranges[][3], int *newgroup);
int MPI_Finalize(void);
int MPI_Pcontrol(const int level, ...);
int MPI_T_init_thread(int required, int *provided);
int PMPI_Send(const void *buf, int count);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Request_c2f(MPI_Request request);
double MPI_Wtime(void);
"""


def test_prototypes_of_a_header() -> None:
    found = {one.name: one for one in parse_prototypes(HEADER)}
    assert "MPI_Pcontrol" not in found
    assert "MPI_T_init_thread" not in found
    assert "MPI_Wtime" not in found
    assert found["MPI_Finalize"].declaration == "void"
    assert found["MPI_Send"].parameters == (
        "const void *a0", "int a1", "MPI_Datatype a2", "int a3", "int a4", "MPI_Comm a5"
    )  # fmt: skip
    assert found["MPI_Waitany"].parameters[1:] == ("MPI_Request a1[]", "int *a2", "MPI_Status * a3")
    assert found["MPI_Group_range_incl"].parameters[2] == "int a2[][3]"


def test_what_talks_to_nobody_is_not_wrapped() -> None:
    names = [one.name for one in wrapped_functions(HEADER)]
    assert names == ["MPI_Send", "MPI_Waitany", "MPI_Finalize"]
    text = write_wrappers(wrapped_functions(HEADER))
    assert "int PMPI_Send(" in text
    assert "completed(r, handles[*a2], &a1[*a2], a3)" in text
    assert "mpi_send_f08_" in fortran_bindings(wrapped_functions(HEADER))


def test_a_recording_by_hand(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_rank(tmp_path, rank)
    assert recording.advisor_sniff(tmp_path) == 1
    trace = recording.read_trace(tmp_path)
    assert trace.ranks == 2
    assert trace.communicators == ((0, 1),)
    assert {location.host for location in trace.locations} == {"node\\1"}
    profile = recording.advisor_read(tmp_path)
    assert profile.program == "app"
    assert profile.actual_s == pytest.approx(8e-6)


def test_files_belong_to_the_recording_once_it_is_complete(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_rank(tmp_path, rank)
    write_command(tmp_path, RunCommand(("./app",), str(tmp_path)))
    files = [path for path in sorted(tmp_path.iterdir()) if path.is_file()]
    assert {recording.advisor_sniff(path) for path in files} == {None}, "the program may still run"
    write_places(tmp_path, {})
    write_conclusions(tmp_path, Conclusions())
    for path in (*files, tmp_path / PLACES_FILE, tmp_path / passes.NAME):
        assert recording.advisor_sniff(path) == 1, path
        assert recording.advisor_read(path).actual_s == pytest.approx(8e-6)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert recording.advisor_sniff(tmp_path / "notes.txt") is None


def test_the_daemon_reads_a_recording_when_it_is_complete(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    folder = watch.root / "run"
    folder.mkdir()
    for rank in (0, 1):
        write_rank(folder, rank)
    assert watch.once().runs == []
    write_places(folder, {})
    assert len(Watch(tmp_path).once().runs) == 1


def test_zeros_behind_the_last_record_are_no_records(tmp_path: Path) -> None:
    path = write_rank(tmp_path, 0)
    assert len(map_records(path)) == 6
    path.write_bytes(path.read_bytes() + bytes(6400))
    assert len(map_records(path)) == 6
    path.write_bytes(path.read_bytes()[:100])
    assert len(map_records(path)) == 1


def test_damaged_records_are_refused_with_their_place(tmp_path: Path) -> None:
    path = write_rank(tmp_path, 0)
    content = bytearray(path.read_bytes())
    content[2 * 64 + 7] = 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match="byte 128"):
        recording.read_trace(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "rank one 2",
        "communicator 1 0-99999999999",
        "communicator 1 0-2",
        "thread 0",
        "object 1 2 3",
        "file -7 x",
        "children nan",
        "time -1 0",
    ],
)
def test_damaged_lines_are_refused_with_their_number(tmp_path: Path, line: str) -> None:
    write_rank(tmp_path, 0)
    path = tmp_path / "node.10.process"
    path.write_text(PROCESS.format(rank=0) + line + "\n", encoding="ascii")
    with pytest.raises(InputError, match=f"line {len(PROCESS.splitlines()) + 1}"):
        read_process(path)


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    write_rank(tmp_path, 0)
    path = tmp_path / "node.10.process"
    path.write_text(PROCESS.format(rank=0) + "thread-end 0 90", encoding="ascii")
    assert read_process(path).threads[0].end_ns == 9000


def test_a_directory_without_processes_is_no_recording(tmp_path: Path) -> None:
    assert recording.advisor_sniff(tmp_path) is None
    with pytest.raises(InputError, match="no recording"):
        recording.advisor_read(tmp_path)


def test_a_program_that_crashed_at_once_leaves_nothing_to_read(tmp_path: Path) -> None:
    """Only the first record and the begin of its thread are there, as behind a fault in the first line of main."""
    path = write_rank(tmp_path, 0)
    with path.open("r+b") as file:
        file.truncate(RECORD.itemsize)
    process = tmp_path / "node.10.process"
    process.write_text(process.read_text().replace("thread-end 0 9000 5100\nend\n", ""))
    with pytest.raises(InputError, match="no process got so far"):
        read_recording(tmp_path)


def test_places_are_kept(tmp_path: Path) -> None:
    places = {("/a/b", 16): (CodePlace("inner", "x.c", 3), CodePlace("outer", "x.c", 9)), ("/l", 1): (CodePlace("f"),)}
    places |= {("/new\nline/back\\slash\t", 7): (CodePlace("g", "y.c", 1),)}
    write_places(tmp_path, places)
    assert read_places(tmp_path) == places
    assert read_places(tmp_path / "nowhere") == {}


def test_the_machine_is_told_in_seconds(tmp_path: Path) -> None:
    file = tmp_path / "node.10.process"
    file.write_text(
        PROCESS.format(rank=0) + "machine begin 1 2 3 100 50 4 5 6 100\nmachine end 101 2 3 200 50 4 5 6 100\n"
    )
    found = read_process(file)
    assert found.machine_begin == pytest.approx(0.21)
    assert found.machine_end == pytest.approx(1.21)
    file.write_text(PROCESS.format(rank=0) + "machine begin 1 2 3 100 50 4 5 6 0\n")
    with pytest.raises(InputError):
        read_process(file)


def write_family(folder: Path, full: str, *, of_worker: bool) -> None:
    """A program and a child of fork of the same length, one of which stopped recording at 2.5 us."""
    head = PROCESS.replace("rank {rank} 2\n", "").replace("communicator 1 0-1\n", "")
    for number in range(2):
        path = write_rank(folder, number)
        records = np.fromfile(path, dtype=RECORD)
        records["event"] = 0  # no messages without ranks
        records.tofile(path)
        text = head.replace("pid 10 1", f"pid {10 + number} {1 + 9 * number}")
        more = ("forked 900\n" if number else "") + (f"full {full} 2500\n" if of_worker == bool(number) else "")
        (folder / f"node.{10 + number}.process").write_text(text.replace("thread 0", f"{more}thread 0", 1), "ascii")


@pytest.mark.parametrize(
    ("full", "words"), [("memory", "address space"), ("limit", "size limit"), ("disk", "the disk")]
)
def test_a_worker_that_stops_recording_ends_alone(tmp_path: Path, full: str, words: str) -> None:
    write_family(tmp_path, full, of_worker=True)
    first, second = read_recording(tmp_path).threads
    assert (len(first.records), first.span.end_ns) == (6, 9000)
    assert len(second.records) < 6
    assert second.span.end_ns is None
    (note,) = (note for note in recording.advisor_read(tmp_path).notes if note.name == "recording cut short")
    assert words in note.text
    assert "1 of 2" in note.text


def test_with_the_program_itself_all_end(tmp_path: Path) -> None:
    write_family(tmp_path, "limit", of_worker=False)
    assert all(thread.span.end_ns is None for thread in read_recording(tmp_path).threads)
