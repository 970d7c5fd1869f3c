"""CUBE archives that are damaged, hostile or odd: refused with member and place, or read with a note."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from cube_archives import Call, Cube, Metric, members_of, trimmed, write_tar

from advisor.analysis import soundness
from advisor.formats import cube
from advisor.formats.cube import anchor, archive, regions
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

HERE = Path(__file__).parents[1] / "profiles" / "cube"
VISITS = Metric("visits", {0: [1, 1], 1: [1, 1], 2: [4, 4], 3: [4, 4], 4: [2, 2]}, values="UINT64")
TIME = Metric("time", {0: [10, 9], 1: [9.5, 8], 2: [6, 5], 3: [1, 3], 4: [2, 0.5]}, stored="INCLUSIVE")


def read(path: Path) -> Profile:
    profile = cube.advisor_read(path)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    return profile


def notes(profile: Profile) -> dict[str, str]:
    return {note.name: note.text for note in profile.notes}


def document(change: tuple[str, str]) -> bytes:
    text = Cube([VISITS, TIME]).document()
    assert change[0] in text
    return text.replace(*change, 1).encode()


def with_document(tmp_path: Path, content: bytes) -> Path:
    made = Cube([VISITS, TIME]).write(tmp_path / "made.cubex")
    write_tar(tmp_path / "changed.cubex", [*(members_of(made) | {"anchor.xml": content}).items()])
    return tmp_path / "changed.cubex"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("<cube ", '<!DOCTYPE cube [<!ENTITY a "aaaa">]><cube '), "is not read"),
        (("<cube ", '<!DOCTYPE cube SYSTEM "http://example.org/cube.dtd"><cube '), "is not read"),
        (("<cube ", "<profile "), "is a profile, not a cube"),
        (("<system>", "<systen>"), "no sound XML"),
        (('<cnode id="4"', '<cnode id="3"'), "call path 3 is described twice"),
        (('<cnode id="4"', '<cnode id="7"'), "have gaps"),
        (('calleeId="2"', 'calleeId="22"'), "region 22, which is not described"),
        (('<location Id="1"', '<location Id="0"'), "occur twice"),
        (("<rank>1</rank>\n<type>process", "<rank>0</rank>\n<type>process"), "thread 0 of rank 0"),
        (('<region id="3"', '<region id="2"'), "region 2 is described twice"),
        (("<rank>1</rank>", "<rank>one</rank>"), "the rank is not a number"),
        (('begin="11"', 'begin="1e1"'), "not a line number"),
        (("<dtype>DOUBLE", "<dtype>HISTOGRAM(2)"), "are not read"),
        (("<uniq_name>time", "<uniq_name>visits"), "the same name"),
        (("<system>", "<system>" + "<a>" * 1001), "nested deeper"),
        (("<name>main", "<name>" + "m" * (2 << 20)), "longer than"),
        (("<name>main", f"<name {' '.join(f'a{n}={chr(34)}{chr(34)}' for n in range(1001))}>main"), "attributes"),
    ],
)
def test_documents_that_are_refused(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason) as refused:
        cube.advisor_read(with_document(tmp_path, document(change)))
    assert "anchor.xml" in str(refused.value) or "index" in str(refused.value)


@pytest.mark.parametrize(
    ("member", "old", "new", "reason"),
    [
        ("1.data", b"CUBEX.DATA", b"CUBEX.DATE", "does not begin with"),
        ("1.index", b"\x05\0\0\0\0\0", b"\x04\0\0\0\0\0", "announces 4 rows"),
        ("1.index", b"INDEX\1\0\0\0", b"INDEX\2\0\0\0", "byte order"),
        ("1.index", b"INDEX\1\0\0\0\0", b"INDEX\1\0\0\0\1", "version 1"),
        ("1.index", b"\2\0\0\0\3\0\0\0", b"\3\0\0\0\2\0\0\0", "out of order"),
        ("1.index", b"\4\0\0\0", b"\x09\0\0\0", "beyond"),
        ("1.data", np.array([6.0]).tobytes(), b"", "bytes of values"),
        ("1.data", np.array([6.0]).tobytes(), np.array([np.nan]).tobytes(), "time is nan"),
        ("1.data", np.array([6.0]).tobytes(), np.array([-6.0]).tobytes(), "time is negative"),
    ],
)
def test_values_that_are_refused(tmp_path: Path, member: str, old: bytes, new: bytes, reason: str) -> None:
    made = Cube([VISITS, TIME]).write(tmp_path / "made.cubex")
    members = members_of(made)
    assert old in members[member]
    members[member] = members[member].replace(old, new)
    write_tar(made, [*members.items()])
    with pytest.raises(InputError, match=reason):
        cube.advisor_read(made)


def test_packed_rows_that_unpack_to_something_else(tmp_path: Path) -> None:
    made = Cube([VISITS, TIME], packed=True).write(tmp_path / "made.cubex")
    longer = Cube([VISITS, TIME], packed=True, threads=(1, 1, 1))
    longer.metrics = [Metric("time", {n: [1, 1, 1] for n in range(5)}, "INCLUSIVE")]
    other = members_of(longer.write(tmp_path / "longer.cubex"))
    members = members_of(made)
    for content, reason in ((other["0.data"], "unpacks to"), (members["1.data"][:-3], "packed rows fill")):
        write_tar(made, [*(members | {"1.data": content}).items()])
        with pytest.raises(InputError, match=reason):
            cube.advisor_read(made)


def test_a_member_that_is_missing(tmp_path: Path) -> None:
    made = Cube([VISITS, TIME]).write(tmp_path / "made.cubex")
    members = members_of(made)
    for missing in ("anchor.xml", "1.data", "1.index"):
        write_tar(tmp_path / "less.cubex", [(one, content) for one, content in members.items() if one != missing])
        with pytest.raises(InputError, match="no such member"):
            cube.advisor_read(tmp_path / "less.cubex")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_members_that_are_no_files(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "links.cubex"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as made:
        entry = tarfile.TarInfo("anchor.xml")
        entry.type, entry.linkname = kind, "anchor.xml"
        made.addfile(entry)
    with pytest.raises(InputError, match="not a regular file"):
        cube.advisor_read(path)


def test_a_member_that_claims_more_than_the_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "huge.cubex"
    entry = tarfile.TarInfo("anchor.xml")
    for size, reason in ((1 << 20, "ends after 3 of"), (1 << 40, "is larger than")):
        entry.size = size
        path.write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + b"<cu")
        with pytest.raises(InputError, match=reason):
            cube.advisor_read(path)


def test_two_members_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "twice.cubex"
    write_tar(path, [("anchor.xml", b"<cube/>"), ("anchor.xml", b"<cube/>")])
    with pytest.raises(InputError, match="two members are called"):
        cube.advisor_read(path)


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MEMBER_LIMIT", 2)
    path = tmp_path / "many.cubex"
    write_tar(path, [(f"{n}.data", b"") for n in range(3)])
    with pytest.raises(InputError, match="more than 2 members"):
        cube.advisor_read(path)


def test_a_packed_document_that_grows(tmp_path: Path) -> None:
    content = gzip.compress(b"<cube>" + b" " * 50_000_000)
    with pytest.raises(InputError, match="unpacks to more"):
        cube.advisor_read(with_document(tmp_path, content))


def test_wrong_checksums_are_read_and_told(tmp_path: Path) -> None:
    content = bytearray(Cube([VISITS, TIME]).write(tmp_path / "run.cubex").read_bytes())
    content[148:154] = b"000001"
    (tmp_path / "run.cubex").write_bytes(content)
    assert "1 members" in notes(read(tmp_path / "run.cubex"))["wrong checksums in the archive"]


def test_contradictions_are_told(tmp_path: Path) -> None:
    rows = TIME.rows or {}
    found = read(Cube([VISITS, Metric("time", {**rows, 3: [7, 3]}, "INCLUSIVE")]).write(tmp_path / "a.cubex"))
    assert "time of call path 2 is less" in notes(found)["contradictions in the profile"]
    shortest = Metric("min_time", {3: [0.3, 0.1]}, values="MINDOUBLE")
    found = read(Cube([VISITS, TIME, shortest]).write(tmp_path / "b.cubex"))
    assert "shorter than its min_time" in notes(found)["contradictions in the profile"]
    changed = with_document(tmp_path, document(("<mangled_name>solve", "<mangled_name>solwe")))
    assert "two names, solve and solwe" in notes(read(changed))["contradictions in the profile"]


def test_calls_without_times_and_times_without_calls(tmp_path: Path) -> None:
    profile = read(Cube([VISITS]).write(tmp_path / "visits.cubex"))
    assert not profile.has_run_time
    assert "calls" in profile.counts
    assert read(Cube([TIME]).write(tmp_path / "time.cubex")).actual_s == 10
    with pytest.raises(InputError, match="describes no call paths"):
        cube.advisor_read(Cube([Metric("time")], calls=[]).write(tmp_path / "nothing.cubex"))


def test_locations_that_are_no_threads(tmp_path: Path) -> None:
    changed = with_document(tmp_path, document(("<type>thread</type>", "<type>accelerator</type>")))
    profile = read(changed)
    assert [one.rank for one in profile.processors] == [1]
    assert profile.ranks_expected == 2
    assert "1 locations are not threads" in notes(profile)["locations left out"]


def test_regions_beyond_the_limit_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "REGION_LIMIT", 4)
    described = [("app", "measurement", "artificial", "")]
    described += [(f"f{n}", "compiler", "function", "a.c") for n in range(9)]
    calls = [Call(0, 0, [Call(n + 1, n + 1) for n in range(9)])]
    time = Metric("time", {n: [float(n + 1)] for n in range(10)})
    profile = read(Cube([time], regions=described, calls=calls, threads=(1,)).write(tmp_path / "run.cubex"))
    assert [region.name for region in profile.regions] == ["app", "other regions", "f7", "f8"]
    assert profile.actual_s == 55
    assert "many regions" in notes(profile)


def test_too_many_call_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchor, "NODE_LIMIT", 4)
    with pytest.raises(InputError, match="more than 4 call paths"):
        cube.advisor_read(Cube([TIME]).write(tmp_path / "run.cubex"))


def test_a_trimmed_profile_is_the_same(tmp_path: Path) -> None:
    path = HERE / "faultlab-late4" / "profile.cubex"
    small = trimmed(path, tmp_path / "small.cubex")
    assert small.stat().st_size < 25_000
    whole, found = cube.read_call_paths(path), cube.read_call_paths(small)
    assert whole.run == found.run
    assert whole.nodes == found.nodes


def test_what_is_no_tar_archive(tmp_path: Path) -> None:
    for content, reason in ((b"x" * 700, "no header"), (b"", "not one member"), (bytes(1024), "not one member")):
        (tmp_path / "odd").write_bytes(content)
        with pytest.raises(InputError, match=reason):
            cube.advisor_read(tmp_path / "odd")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz"):
        pass
    (tmp_path / "odd").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="not one member"):
        cube.advisor_read(tmp_path / "odd")
