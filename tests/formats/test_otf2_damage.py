"""Damaged, foreign and absurd OTF2 archives: one message that names file and place, and nothing lost in silence."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import damage
import numpy as np
import pytest
from otf2_archives import Archive
from otf2_writer import CHUNK, EVENTS, NONE_32, NONE_64, definition_file, event_file, pack_record, write_archive

from advisor.formats.otf2 import read_trace
from advisor.formats.otf2.chunks import find_chunks
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.trace.events import Trace

TRACES = Path(__file__).parents[1] / "profiles" / "otf2"
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
        (FIRST, 1173, 7, "holds 457 of 464 events", "byte 0"),
        (FIRST, 2977, 4, "an integer of 29 bytes is impossible", "byte 2978"),
        (FIRST, 3, 0, "no valid chunk header", "byte 0"),
        (FIRST, 16, 2, "events in 5928 bytes are impossible", "byte 0"),
        ("eztrace_log/0.def", 0, 7, "no valid chunk header", "byte 0"),
        (DEFINITIONS, 231, 5, "an integer of 32 bytes is impossible", "byte 231"),
        (DEFINITIONS, 48, 5, "holds 78 of 81 definitions", None),
        (ANCHOR, 4, 1, "not an OTF2 anchor file", "byte 0"),
        (ANCHOR, 27, 6, "chunks of .* bytes are impossible", None),
        (ANCHOR, 69, 2, "no end mark", "byte 69"),
        (ANCHOR, 28, 1, "stored in an unknown way", None),
    ],
)
def test_a_flipped_bit_is_found_and_its_place_named(
    archive: Path, file: str, byte: int, bit: int, reason: str, place: str | None
) -> None:
    flip(archive / file, byte, bit)
    with pytest.raises(InputError, match=reason) as caught:
        read_trace(archive)
    assert caught.value.path == archive / file
    assert caught.value.place == place
    assert "\n" not in str(caught.value)


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
        ("event files missing", "locations without an event file: 1 of 2")
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
    with pytest.raises(InputError, match=r"eztrace_log\.def: cannot be read: No such file"):
        read_trace(archive)


def test_definitions_that_end_between_chunks_are_not_read_for_ever(tmp_path: Path) -> None:
    with Archive(tmp_path / "many") as archive:
        for number in range(6000):
            archive.events().enter(number, archive.region(f"a function with a name of some length, number {number}"))
    file = tmp_path / "many" / "traces.def"
    assert len(read_trace(tmp_path).regions) == 6000
    with file.open("r+b") as content:
        content.truncate(CHUNK)
    with pytest.raises(InputError, match=r"traces\.def:byte .*: damaged: ends between two chunks"):
        read_trace(tmp_path)


def test_events_of_undefined_regions_are_kept_and_counted(archive: Path) -> None:
    flip(archive / FIRST, 4220, 5)
    trace = read_trace(archive)
    assert "undefined region" in {trace.regions[number].name for number in trace.region.tolist() if number >= 0}
    assert [note.text for note in trace.notes] == ["events of undefined regions: 1"]


def test_event_files_of_several_chunks_are_counted_in_full(tmp_path: Path) -> None:
    with Archive(tmp_path / "long") as archive:
        for time in range(60_000):
            archive.events().enter(time, archive.region("work"))
    file = tmp_path / "long" / "traces" / "0.evt"
    assert file.stat().st_size > 2 * CHUNK
    assert sum(chunk.events for chunk in find_chunks(file, CHUNK)) == 60_000
    assert len(read_trace(tmp_path).kind) == 60_000
    flip(file, CHUNK, 0)
    with pytest.raises(InputError, match=rf"0\.evt:byte {CHUNK}: damaged"):
        read_trace(tmp_path)
    flip(file, CHUNK, 0)
    with file.open("r+b") as content:
        content.truncate(2 * CHUNK)
    with pytest.raises(InputError, match=r"0\.evt"):
        read_trace(tmp_path)


@pytest.mark.parametrize(("byte", "value", "reason"), [(28, 2, "SIONlib"), (29, 2, "compressed")])
def test_what_cannot_be_read_is_said_with_what_to_do(archive: Path, byte: int, value: int, reason: str) -> None:
    content = bytearray((archive / ANCHOR).read_bytes())
    content[byte] = value
    (archive / ANCHOR).write_bytes(content)
    with pytest.raises(InputError, match=rf"{reason}.* record again with SCOREP_TRACING_\w+=false"):
        read_trace(archive)


def raw(path: Path, definitions: list[bytes], location: int, region: int) -> None:
    """Write an archive with one event, enter ``region``, of ``location``, a clock, and the ``definitions``."""
    clock = pack_record(5, "QQQQ", (10**9, 0, 10, NONE_64), "little")
    time, record = np.array([7], dtype=np.uint64), np.array([EVENTS["enter"][0]], dtype=np.uint8)
    events = event_file(time, record, np.array([[region]], dtype=np.uint64))
    write_archive(path, [clock, *definitions], {location: (definition_file([], "little"), events)})


def test_absurd_definitions_are_borne(tmp_path: Path) -> None:
    location, region = 10**18, 2**32 - 2
    process, thread, function, user, mpi, comm_group = 1, 1, 1, 1, 4, 5
    names = ["", "evil\x1b[31m\u202ename\n", "x" * 5000, "node"]
    definitions = [
        *((10, "IS", (number, name)) for number, name in enumerate(names)),
        *((12, "IIII", (node, 99, 99, parent)) for node, parent in ((4, 5), (5, 4))),
        (13, "IIBII", (2**31, 1, process, 4, NONE_32)),
        (14, "QIBQI", (location, 1, thread, 2**62, 2**31)),
        (14, "QIBQI", (3, 1, thread, 1, 77)),
        (15, "IIIBIIIIBBI", (region, 1, 2, 0, 2, 2**31, 0, 2, function, user, 0)),
        (18, "IIBILBBI", (1, 0, 0, 3, [0, 2**40, 2**63], comm_group, mpi, 0)),
        (22, "IIIII", (1, 0, 1, 1, 0)),
    ]
    raw(tmp_path / "absurd", [pack_record(*each, "little") for each in definitions], location, region)
    trace = read_trace(tmp_path)
    assert [(x.rank, x.thread, x.host) for x in trace.locations] == [(0, 0, None)]
    assert trace.regions[0].name == "evil\ufffd[31m\ufffdname\ufffd"
    assert trace.regions[0].file == "x" * 5000
    assert trace.regions[0].line == 2**31
    assert trace.region.tolist() == [0]
    assert [note.name for note in trace.notes] == ["event files of other locations", "locations left out"]


def test_a_name_without_end_is_refused_with_its_place_and_other_long_strings_are_not(tmp_path: Path) -> None:
    with Archive(tmp_path / "long") as archive:
        archive.string("a comment " * 20_000)
        archive.events().enter(1, archive.region("work"))
    assert [region.name for region in read_trace(tmp_path).regions] == ["work"]
    with Archive(tmp_path / "longer") as archive:
        archive.events().enter(1, archive.region("n" * 100_001))
    place = (tmp_path / "longer" / "traces.def").read_bytes().index(b"nnn")
    with pytest.raises(InputError, match=rf"traces\.def:byte {place}: a name of 100,001 characters; at most 100,000"):
        read_trace(tmp_path / "longer")


def test_an_archive_without_clock_or_locations_says_so(tmp_path: Path) -> None:
    raw(tmp_path / "bare", [], 0, 0)
    with pytest.raises(InputError, match="defines no threads of execution"):
        read_trace(tmp_path)
