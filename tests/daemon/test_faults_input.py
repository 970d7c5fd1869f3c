"""Partial, corrupt and hostile files, all in one directory that a daemon watches: each is told of, none harms another.

What each reader does with every prefix of its files and with flipped bits stands in its own ``test_*_damage.py``.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from daemon_runs import FIG4, Watch, profile

from advisor.history.database import open_read_only
from advisor.history.file_states import FileStates

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.records import Advice

PROFILES = Path(__file__).parents[1] / "profiles"
TEXT = json.dumps(FIG4)
CALLGRIND = (PROFILES / "callgrind" / "small" / "callgrind.out.rank0").read_bytes()


class Found(NamedTuple):
    """What became of a file: its state and reason, and the advice where it became a run."""

    state: str
    reason: str
    advice: Advice | None


def cubex(folder: Path, *members: tuple[tarfile.TarInfo, bytes]) -> None:
    with tarfile.open(folder / "profile.cubex", "w") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def link(name: str, target: str) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = tarfile.SYMTYPE, target
    return found


def with_work(folder: Path, text: str) -> None:
    """A document in which a number is ``text``."""
    (folder / "run.json").write_text(TEXT.replace('"actual_s": 47', f'"actual_s": {text}', 1))


def sparse(folder: Path) -> None:
    path = folder / "run.json"
    path.write_text(TEXT)
    os.truncate(path, 10 << 30)


def tau_without_a_rank(folder: Path) -> None:
    for rank in (0, 3):
        shutil.copy(PROFILES / "tau" / "npb-bt.S.4-tau_exec-ebs" / f"profile.{rank}.0.0", folder)


LAUGHS = b'<?xml version="1.0"?><!DOCTYPE cube [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><cube version="4.0">&b;</cube>'
OUTSIDE = b'<?xml version="1.0"?><!DOCTYPE cube SYSTEM "file:///etc/passwd"><cube version="4.0"></cube>'
DEEP = b'<?xml version="1.0"?><cube version="4.0">' + b"<a>" * 200_000
ANCHOR = tarfile.TarInfo("anchor.xml")

#: By the number of the fault: what writes it into a directory of its own, and the words that tell of it.
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "pc2-line": (lambda f: (f / "callgrind.out.1").write_bytes(b"".join(CALLGRIND.splitlines(True)[:40])), "ends"),
    "pc3-number": (lambda f: (f / "callgrind.out.1").write_bytes(CALLGRIND[:-1]), "cut off"),
    "pc6-zeros": (lambda f: (f / "run.json").write_bytes(TEXT[:300].encode() + bytes(4096)), "run.json:1:"),
    "pc10-nan": (lambda f: with_work(f, "NaN"), "NaN"),
    "pc10-infinite": (lambda f: with_work(f, "1e999"), "too large"),
    "pc10-negative": (lambda f: with_work(f, "-1"), "no time, or less"),
    "pc11-utf16": (lambda f: (f / "run.json").write_text(TEXT, encoding="utf-16"), "in no format"),
    "pc11-latin1": (lambda f: (f / "run.json").write_bytes(TEXT.replace("fig4", "caf\xe9").encode("latin-1")), "UTF-8"),
    "pc12-key": (lambda f: (f / "run.json").write_text(TEXT.replace("{", '{"program": "x", ', 1)), "program"),
    "pc14-clock": (lambda f: with_work(f, '"12:30:45"'), "12:30:45"),
    "pc14-comma": (lambda f: with_work(f, "1.234,5"), "run.json:1:"),
    "ho1-entity": (lambda f: cubex(f, (ANCHOR, LAUGHS)), "entit"),
    "ho1-external": (lambda f: cubex(f, (ANCHOR, OUTSIDE)), "anchor.xml"),
    "ho2-deep": (lambda f: cubex(f, (ANCHOR, DEEP)), "deep"),
    "ho4-deep": (lambda f: (f / "run.json").write_text(TEXT[:-1] + ', "x": ' + "[" * 100_000), "nested"),
    "ho4-digits": (lambda f: with_work(f, "9" * 5000), "digits"),
    "ho5-climbs": (lambda f: cubex(f, (tarfile.TarInfo("../../evil"), b"x"), (ANCHOR, b"<cube/>")), "cubex"),
    "ho5-link": (lambda f: cubex(f, (link("anchor.xml", "/etc/passwd"), b"")), "anchor.xml"),
    "ho8-pickle": (lambda f: np.savez(f / "run.npz", profile=np.array([{"a": 1}, TEXT], dtype=object)), "in no format"),
    "ho9-sparse": (sparse, "larger than"),
    "ho21-index": (
        lambda f: (f / "run.json").write_text(json.dumps(FIG4 | {"processors": 10**18})),
        "more than 1,000,000",
    ),
}
READ: dict[str, Callable[[Path], object]] = {
    "pc9-rank": tau_without_a_rank,
    "pc11-mark": lambda f: (f / "run.json").write_text(TEXT, encoding="utf-8-sig"),
    "sound": lambda f: profile(f / "run.json"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Found]:
    """What became of each of the files, in one run of a daemon over all of them."""
    top = tmp_path_factory.mktemp("input")
    watch = Watch(top)
    for name, write in {**{name: one[0] for name, one in REFUSED.items()}, **READ}.items():
        (watch.root / name).mkdir()
        write(watch.root / name)
    watch.once()
    assert not list(top.glob("evil")), "nothing is ever unpacked"
    advice = {run.path.parent.name: run.advice for run in watch.runs}
    advice |= {run.path.name: run.advice for run in watch.runs}
    connection = open_read_only(watch.state)
    rows = connection.execute("SELECT path, state, reason FROM files JOIN folders ON folders.id = folder").fetchall()
    assert sum(FileStates(connection).count_states().values()) == len(rows) == len(REFUSED) + len(READ) + 1
    connection.close()
    names = [os.path.basename(os.fsdecode(path)) for path, *_ in rows]
    return {name: Found(row[1], row[2] or "", advice.get(name)) for name, row in zip(names, rows, strict=True)}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_cannot_be_trusted_is_set_aside_with_its_reason(found: dict[str, Found], fault: str) -> None:
    one = found[fault]
    assert one.advice is None
    assert one.state == ("ignored" if REFUSED[fault][1] == "in no format" else "quarantined")
    assert REFUSED[fault][1] in one.reason


def test_pc9_a_rank_that_is_missing_is_said(found: dict[str, Found]) -> None:
    advice = found["pc9-rank"].advice
    assert advice is not None
    assert (advice.profile.ranks, advice.profile.ranks_expected) == (2, 4)
    assert any("2 of 4 ranks" in note.text for note in advice.grade.notes), advice.grade.notes


def test_pc11_a_byte_order_mark_is_no_damage(found: dict[str, Found]) -> None:
    assert found["pc11-mark"].state in ("ingested", "duplicate")


def test_the_sound_file_among_them_is_read(found: dict[str, Found]) -> None:
    assert found["sound"].state == "ingested"
