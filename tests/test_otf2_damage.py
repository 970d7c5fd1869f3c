"""Damaged, foreign and absurd OTF2 archives: one message that names file and place, and nothing lost in silence."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import _otf2
import damage
import pytest
from otf2_archives import CHUNK, Archive

from advisor.errors import InputError
from advisor.readers.otf2 import process, read_trace
from advisor.readers.otf2.archive import promised

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.traces.events import Trace

TRACES = Path(__file__).parent / "profiles" / "otf2"
DEFINITIONS, FIRST, ANCHOR = "eztrace_log.def", "eztrace_log/0.evt", "eztrace_log.otf2"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A copy of a small archive of two ranks, to be damaged."""
    return Path(shutil.copytree(TRACES / "eztrace-imbalance" / "trace" / "faultlab_so_trace", tmp_path / "trace"))


def flip(file: Path, byte: int, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[byte] ^= 1 << bit
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("file", "byte", "bit", "reason", "place"),
    [
        (FIRST, 1491, 6, "time runs backwards", "event 100"),
        (FIRST, 1173, 7, "holds 457 of 464 events", None),
        (FIRST, 2977, 4, "cannot be read: .*Invalid size", "event 237"),
        (FIRST, 3, 0, "no valid chunk header", "byte 0"),
        (FIRST, 16, 2, "events in 5928 bytes are impossible", "byte 0"),
        ("eztrace_log/0.def", 0, 7, "no valid chunk header", "byte 0"),
        (DEFINITIONS, 231, 5, "cannot be read", None),
        (DEFINITIONS, 48, 5, "holds 78 of 81 definitions", None),
        (ANCHOR, 4, 1, "not an OTF2 anchor file", "byte 0"),
        (ANCHOR, 27, 6, "chunks of .* bytes are impossible", None),
        (ANCHOR, 69, 2, "don't have support", None),
    ],
)
def test_a_flipped_bit_is_found_and_its_place_named(
    archive: Path, file: str, byte: int, bit: int, reason: str, place: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    flip(archive / file, byte, bit)
    with pytest.raises(InputError, match=reason) as caught:
        read_trace(archive)
    assert caught.value.path == archive / file
    assert caught.value.place == place
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", ""), "libotf2's own messages stay inside"


@pytest.mark.parametrize("name", ["eztrace-imbalance", "scorep-threads"])
def test_flipped_bits_never_do_more_than_refuse_the_archive(name: str, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(TRACES / name, tmp_path / "copy"))
    files = sorted(file for file in copy.rglob("*") if file.suffix in (".otf2", ".def", ".evt"))
    chance = random.Random(20)
    outcomes = set()
    for _ in range(250 if damage.FULL else 30):
        file = chance.choice(files)
        whole = file.read_bytes()
        for _ in range(chance.choice((1, 1, 4))):
            flip(file, chance.randrange(len(whole)), chance.randrange(8))
        try:
            outcomes.add(len(read_trace(copy).locations))
        except InputError as error:
            outcomes.add(Path(error.path).is_relative_to(copy))
        file.write_bytes(whole)
    assert outcomes == {2, True}


@pytest.mark.parametrize("file", [ANCHOR, DEFINITIONS, FIRST, "eztrace_log/0.def"])
def test_a_file_cut_off_anywhere_is_named(archive: Path, file: str) -> None:
    """Without its last byte, which means nothing, a file may still say all."""
    whole, content = read_trace(archive), (archive / file).read_bytes()
    lengths = random.Random(3).sample(range(len(content)), min(len(content), 150 if damage.FULL else 10))
    for length in [*lengths, len(content) - 1]:
        (archive / file).write_bytes(content[:length])
        found = read_or_refused(archive)
        if isinstance(found, Path):
            assert found == archive / file, length
            continue
        assert len(content) - length <= 2
        assert found.time_s.tolist() == whole.time_s.tolist()
        assert found.regions == whole.regions


def read_or_refused(archive: Path) -> Trace | Path:
    """Return the trace, or the file for whose sake it was refused."""
    try:
        return read_trace(archive)
    except InputError as error:
        return Path(error.path)


@pytest.mark.parametrize("file", [ANCHOR, DEFINITIONS, FIRST, "eztrace_log/0.def"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_named(archive: Path, file: str, share: float) -> None:
    content = (archive / file).read_bytes()
    (archive / file).write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError) as caught:
        read_trace(archive)
    assert caught.value.path == archive / file


@pytest.mark.parametrize("file", [DEFINITIONS, FIRST, "eztrace_log/0.def"])
def test_a_foreign_file_is_named(archive: Path, file: str) -> None:
    (archive / file).write_bytes(b"%PDF-1.7\n" * 50)
    with pytest.raises(InputError) as caught:
        read_trace(archive)
    assert caught.value.path == archive / file


def test_a_missing_event_file_is_counted_and_its_rank_kept(archive: Path) -> None:
    (archive / FIRST).unlink()
    trace = read_trace(archive)
    assert [location.rank for location in trace.locations] == [0, 1]
    assert trace.first[:2].tolist() == [0, 0]
    assert trace.first[2] > 300
    assert [(note.name, note.text) for note in trace.notes] == [
        ("event files missing", "1 of 2 locations have no event file")
    ]
    assert (0, 1) in {trace.communicators[number] for number in trace.comm.tolist() if number >= 0}


def test_without_any_event_file_nothing_can_be_said(archive: Path) -> None:
    for file in (archive / "eztrace_log").glob("*.evt"):
        file.unlink()
    with pytest.raises(InputError, match="no event file of any location"):
        read_trace(archive)


def test_a_missing_file_of_local_definitions_is_no_small_matter(archive: Path) -> None:
    (archive / "eztrace_log/0.def").unlink()
    with pytest.raises(InputError, match=r"0\.def: missing"):
        read_trace(archive)
    (archive / "eztrace_log/1073741823.def").unlink()
    assert len(read_trace(archive).kind) == 749, "an archive without any local definitions has none to apply"


def test_a_missing_file_of_definitions_is_named(archive: Path) -> None:
    (archive / DEFINITIONS).unlink()
    with pytest.raises(InputError, match=r"eztrace_log\.def: cannot be read: .*does not exist"):
        read_trace(archive)


def test_definitions_that_end_between_chunks_are_not_read_for_ever(tmp_path: Path) -> None:
    with Archive(tmp_path / "many") as archive:
        for number in range(6000):
            archive.events().enter(number, archive.region(f"a function with a name of some length, number {number}"))
    file = tmp_path / "many" / "traces.def"
    assert len(read_trace(tmp_path).regions) == 6000
    with file.open("r+b") as content:
        content.truncate(CHUNK)
    with pytest.raises(InputError, match=r"traces\.def: cannot be read"):
        read_trace(tmp_path)


def test_events_of_undefined_regions_are_kept_and_counted(archive: Path) -> None:
    flip(archive / FIRST, 4220, 5)
    trace = read_trace(archive)
    assert "undefined region" in {trace.regions[number].name for number in trace.region.tolist() if number >= 0}
    assert [note.text for note in trace.notes] == ["1 events belong to regions without definition"]


def test_event_files_of_several_chunks_are_counted_in_full(tmp_path: Path) -> None:
    with Archive(tmp_path / "long") as archive:
        for time in range(60_000):
            archive.events().enter(time, archive.region("work"))
    file = tmp_path / "long" / "traces" / "0.evt"
    assert file.stat().st_size > 2 * CHUNK
    assert promised(file, CHUNK) == 60_000
    assert len(read_trace(tmp_path).kind) == 60_000
    flip(file, CHUNK, 0)
    with pytest.raises(InputError, match=rf"0\.evt:byte {CHUNK}: damaged"):
        read_trace(tmp_path)
    flip(file, CHUNK, 0)
    with file.open("r+b") as content:
        content.truncate(2 * CHUNK)
    with pytest.raises(InputError, match=r"0\.evt"):
        read_trace(tmp_path)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os; os.kill(os.getpid(), 11)", r"libotf2 crashed \(SIGSEGV\)"),
        ("import os; os.abort()", r"libotf2 crashed \(SIGABRT\)"),
        ("raise MemoryError('no room')", "MemoryError: no room"),
        ("import time; time.sleep(60)", "did not get on"),
    ],
)
def test_whatever_happens_in_the_reading_process_is_one_message(
    archive: Path, program: str, reason: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process, "_START", program)
    monkeypatch.setattr(process, "SILENCE_S", 2.0)
    with pytest.raises(InputError, match=reason):
        read_trace(archive)
    assert capfd.readouterr() == ("", "")


def test_another_package_of_the_same_name_does_not_get_in_the_way(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vendor" / "advisor").mkdir(parents=True)
    (tmp_path / "vendor" / "advisor" / "__init__.py").write_text("raise ImportError('not this one')")
    monkeypatch.syspath_prepend(tmp_path / "vendor")
    assert len(read_trace(archive).kind) == 749


def raw(path: Path, define: Callable[[object], None], location: int, region: int) -> None:
    """Write an archive with one event, enter ``region``, of ``location``, and whatever ``define`` defines."""
    archive = _otf2.Archive_Open(
        str(path), "traces", _otf2.FILEMODE_WRITE, 1 << 20, 1 << 20, _otf2.SUBSTRATE_POSIX, _otf2.COMPRESSION_NONE
    )
    flush = _otf2.FlushCallbacks(pre_flush=lambda *_: _otf2.FLUSH, post_flush=None)
    _otf2.Archive_SetFlushCallbacks(archive, flush, None)
    _otf2.Archive_SetSerialCollectiveCallbacks(archive)
    _otf2.Archive_OpenEvtFiles(archive)
    events = _otf2.Archive_GetEvtWriter(archive, location)
    _otf2.EvtWriter_Enter(events, None, 7, region)
    _otf2.Archive_CloseEvtWriter(archive, events)
    _otf2.Archive_CloseEvtFiles(archive)
    definitions = _otf2.Archive_GetGlobalDefWriter(archive)
    _otf2.GlobalDefWriter_WriteClockProperties(definitions, 10**9, 0, 10, 2**64 - 1)
    define(definitions)
    _otf2.Archive_CloseGlobalDefWriter(archive, definitions)
    _otf2.Archive_Close(archive)


def test_absurd_definitions_are_borne(tmp_path: Path) -> None:
    location, region, none = 10**18, 2**32 - 2, 2**32 - 1
    names = ["", "evil\x1b[31m\u202ename\n", "x" * 5000, "node"]

    def define(writer: object) -> None:
        for number, name in enumerate(names):
            _otf2.GlobalDefWriter_WriteString(writer, number, name)
        for node, parent in ((4, 5), (5, 4)):
            _otf2.GlobalDefWriter_WriteSystemTreeNode(writer, node, 99, 99, parent)
        process, thread = _otf2.LOCATION_GROUP_TYPE_PROCESS, _otf2.LOCATION_TYPE_CPU_THREAD
        _otf2.GlobalDefWriter_WriteLocationGroup(writer, 2**31, 1, process, 4, none)
        _otf2.GlobalDefWriter_WriteLocation(writer, location, 1, thread, 2**62, 2**31)
        _otf2.GlobalDefWriter_WriteLocation(writer, 3, 1, thread, 1, 77)
        role, paradigm, flags = _otf2.REGION_ROLE_FUNCTION, _otf2.PARADIGM_USER, _otf2.REGION_FLAG_NONE
        _otf2.GlobalDefWriter_WriteRegion(writer, region, 1, 2, 2, role, paradigm, flags, 2, 2**31, 0)
        group = _otf2.GROUP_TYPE_COMM_GROUP
        members = [0, 2**40, 2**63]
        _otf2.GlobalDefWriter_WriteGroup(writer, 1, 0, group, _otf2.PARADIGM_MPI, _otf2.GROUP_FLAG_NONE, members)
        _otf2.GlobalDefWriter_WriteComm(writer, 1, 0, 1, 1, _otf2.COMM_FLAG_NONE)

    raw(tmp_path / "absurd", define, location, region)
    trace = read_trace(tmp_path)
    assert [(x.rank, x.thread, x.host) for x in trace.locations] == [(0, 0, None)]
    assert trace.regions[0].name == "evil\ufffd[31m\ufffdname\ufffd"
    assert trace.regions[0].file == "x" * 5000
    assert trace.regions[0].line == 2**31
    assert trace.region.tolist() == [0]
    assert [note.name for note in trace.notes] == ["locations left out"]


def test_an_archive_without_clock_or_locations_says_so(tmp_path: Path) -> None:
    raw(tmp_path / "bare", lambda _writer: None, 0, 0)
    with pytest.raises(InputError, match="defines no threads of execution"):
        read_trace(tmp_path)
