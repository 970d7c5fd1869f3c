"""TAU's profiles as XML: what is in them is what TAU's own files of the same run say."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np
import pytest

from advisor.analysis import soundness
from advisor.formats import tau
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

FUNCTIONS = (("main()", "TAU_DEFAULT"), ('solve(std::list<"x">&)', "TAU_USER"), ("MPI_Allreduce()", "MPI"))
EVENT = "Message size for all-reduce"
#: Calls, calls from it, exclusive and inclusive microseconds, by rank and function.
ROWS = {
    0: ((1, 2, 100000, 2000000), (1, 0, 1400000, 1400000), (9, 0, 500000, 500000)),
    1: ((1, 2, 100000, 2000000), (1, 0, 900000, 900000), (9, 0, 1000000, 1000000)),
}
COMMON = {"Executable": "/home/user/heat", "Hostname": "n1"}


def definitions(thread: str) -> str:
    functions = "".join(
        f'<event id="{n}"><name>{escape(name)}</name><group>{group}</group></event>\n'
        for n, (name, group) in enumerate(FUNCTIONS)
    )
    metric = '<metric id="0"><name>TIME</name>\n<units>unknown</units>\n</metric>\n'
    event = f'<userevent id="0"><name>{EVENT}</name></userevent>\n'
    return f'\n<definitions thread="{thread}">\n{metric}{functions}{event}</definitions>\n'


def describe(rank: int, told: dict[str, str]) -> str:
    attributes = "".join(
        f"<attribute>\n<name>{name}</name>\n<value>{value}</value>\n</attribute>\n" for name, value in told.items()
    )
    place = f'id="{rank}.0.0.7{rank}" node="{rank}" context="0" thread="0"'
    return f"<thread {place}>\n<metadata>\n{attributes}</metadata>\n</thread>\n"


def profile(rank: int, share: float = 1.0) -> str:
    rows = "\n".join(
        f"{n} {calls} {below} {exclusive * share:g} {inclusive * share:g} "
        for n, (calls, below, exclusive, inclusive) in enumerate(ROWS[rank])
    )
    return (
        f'<profile thread="{rank}.0.0.7{rank}">\n<timestamp>1</timestamp>\n<interval_data metrics="0 ">\n{rows}\n'
        f"</interval_data>\n<atomic_data>\n0 9 8 8 8 576\n</atomic_data>\n</profile>\n"
    )


def merged(totals: bool = True) -> str:
    """All ranks in a document each, as ``TauUnifyMPI`` puts them one behind the other."""
    documents = [definitions("*"), describe(1, {"pid": "71"}) + profile(1), describe(0, COMMON) + profile(0)]
    if totals:
        sums = np.sum([ROWS[0], ROWS[1]], axis=0)
        rows = "\n".join(f"{n} {' '.join(map(str, row))} " for n, row in enumerate(sums.tolist()))
        table = f'<derivedinterval_data metrics="0 ">\n{rows}\n</derivedinterval_data>\n'
        documents.append(f'<derivedprofile derivedentity="total">\n{table}</derivedprofile>\n')
    return "\n\0 ".join(f"<profile_xml>\n{document}\n</profile_xml>" for document in documents) + "\n\0"


def write_files(folder: Path) -> Path:
    """Write the same run as TAU does without merging."""
    told = "".join(f"<attribute><name>{n}</name><value>{v}</value></attribute>" for n, v in COMMON.items())
    folder.mkdir()
    for rank, rows in ROWS.items():
        lines = [f'"{name}" {" ".join(map(str, row))} 0 GROUP="{group}"'
                 for (name, group), row in zip(FUNCTIONS, rows, strict=True)]  # fmt: skip
        content = [f"{len(rows)} templated_functions_MULTI_TIME",
                   f"# Name Calls Subrs Excl Incl ProfileCalls # <metadata>{told}</metadata>", *lines, "0 aggregates",
                   "1 userevents", "# eventname numevents max min mean sumsqr",
                   f'"{EVENT}" 9 8 8 8 576', ""]  # fmt: skip
        (folder / f"profile.{rank}.0.0").write_text("\n".join(content))
    return folder


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_same_as_in_files(tmp_path: Path, pack: type[bytes]) -> None:
    (tmp_path / "tauprofile.xml").write_bytes(pack(merged().encode()))
    assert tau.advisor_sniff(tmp_path / "tauprofile.xml") == 1
    found, files = tau.advisor_read(tmp_path / "tauprofile.xml"), tau.advisor_read(write_files(tmp_path / "files"))
    soundness.check_profile(found)
    assert (found.program, found.actual_s, found.ranks) == ("heat", 2.0, 2)
    assert found.regions == files.regions
    assert [note.name for note in found.notes] == [note.name for note in files.notes]
    for name, values in files.phases[0].arrays.items():
        assert np.array_equal(found.phases[0].arrays[name], values), name
    assert {name: values.tolist() for name, values in found.counts.items()} == {
        name: values.tolist() for name, values in files.counts.items()
    }


def test_a_rank_that_lacks_in_the_totals_is_noticed(tmp_path: Path) -> None:
    lost = merged().replace(profile(1), "").replace(describe(1, {"pid": "71"}), "")
    (tmp_path / "tauprofile.xml").write_text(lost)
    notes = {note.name: note for note in tau.advisor_read(tmp_path / "tauprofile.xml").notes}
    assert "totals of 3 functions (main())" in notes["contradictions in the profile"].text


def test_the_last_snapshot_of_each_thread_counts(tmp_path: Path) -> None:
    for rank in ROWS:
        thread = f"{rank}.0.0.7{rank}"
        first = f"<profile_xml>\n{describe(rank, COMMON)}{definitions(thread)}{profile(rank, 0.25)}</profile_xml>\n"
        (tmp_path / f"snapshot.{rank}.0.0").write_text(f"{first}<profile_xml>\n{profile(rank)}</profile_xml>\n")
    assert tau.advisor_sniff(tmp_path) == 1
    found = tau.advisor_read(tmp_path)
    assert (found.program, found.actual_s, found.ranks) == ("heat", 2.0, 2)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("</profile_xml>\n\0", "", "cut off"),
        ("0 1 2 100000", "7 1 2 100000", "not defined"),
        ("0 1 2 100000", "1 1 2 100000", "twice"),
        ("0 1 2 100000", "0 1 2 1_0", "expected a number and 4 values"),
        ('node="1"', 'node="0"', "twice"),
        ('id="1.0.0.71"', 'id="1.0.0.72"', "not described"),
        ("</interval_data>", "</interval>", "no sound XML"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, before: str, after: str, reason: str) -> None:
    text = merged(totals=False)
    file = tmp_path / "tauprofile.xml"
    file.write_text(after.join(text.rsplit(before, 1)))
    with pytest.raises(InputError, match=reason):
        tau.advisor_read(file)


def test_every_prefix_and_turned_bits_are_refused_or_read(tmp_path: Path) -> None:
    content = merged().encode()
    file = tmp_path / "tauprofile.xml"
    for length in range(60, len(content) - 20, 11):
        file.write_bytes(content[:length])
        try:
            notes = {note.name for note in tau.advisor_read(file).notes}
        except InputError:
            continue
        assert "contradictions in the profile" in notes, length
    random = np.random.default_rng(1)
    for place in random.integers(0, len(content), 600).tolist():
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(random.integers(8))
        file.write_bytes(bytes(damaged))
        try:
            soundness.check_profile(tau.advisor_read(file))
        except InputError:
            continue
