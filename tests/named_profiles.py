"""Tiny profiles of every format in which one region has a given name, made from recorded ones."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otf2_archives import BARRIER, MPI, Archive

if TYPE_CHECKING:
    from collections.abc import Callable

PROFILES = Path(__file__).parent / "profiles"


def as_bytes(name: str) -> bytes:
    """A name as it stands in a file: lone surrogates are bytes that are no UTF-8."""
    return name.encode("utf-8", "surrogateescape")


def native(name: str, folder: Path) -> Path:
    document = json.loads((PROFILES / "fig4.json").read_text())
    document["regions"][0]["name"] = name
    (folder / "run.json").write_text(json.dumps(document))
    return folder / "run.json"


def otf2(name: str, folder: Path) -> Path:
    """Two ranks, one of which works longer; the name is put in place of another one of the same length."""
    stand_in = "Q" * len(as_bytes(name))
    with Archive(folder / "trace", ranks=2) as archive:
        main, work = archive.region("main"), archive.region(stand_in)
        barrier = archive.region("MPI_Barrier", paradigm=MPI)
        for rank in range(2):
            events: Any = archive.events(rank)
            events.enter(0, main)
            for start in range(0, 10**9, 10**8):
                middle, end = start + 10**7 * (2 + 6 * rank), start + 10**8 - 10**6 * (2 - rank)
                events.enter(start, work)
                events.leave(middle, work)
                events.enter(middle, barrier)
                events.mpi_collective_begin(middle)
                events.mpi_collective_end(end, BARRIER, archive.world, 0, 0, 0)
                events.leave(end, barrier)
            events.leave(10**9, main)
    definitions = folder / "trace" / "traces.def"
    content = definitions.read_bytes()
    assert content.count(stand_in.encode()) == 1
    definitions.write_bytes(content.replace(stand_in.encode(), as_bytes(name)))
    return folder / "trace"


def mpip(name: str, folder: Path) -> Path:
    """The function that holds a call site; the column is as wide as the longest name."""
    report = next((PROFILES / "mpip" / "faultlab-imbalance30").glob("*.mpiP"))
    before, sites, after = re.split(rb"(?<=-\n)( ID Lev .*?\n)(?=-{75}\n)", report.read_bytes(), flags=re.DOTALL)
    width = max(24, len(as_bytes(name)))
    rows = []
    for row in sites.splitlines():
        function = as_bytes(name) if row[33:].startswith(b"exchange ") else row[33:58].strip()
        rows.append(row[:33] + function.ljust(width) + b" " + row[58:])
    (folder / "app.mpiP").write_bytes(before + b"\n".join(rows) + b"\n" + after)
    return folder / "app.mpiP"


def edited(case: str, file: str, old: bytes, quote: Callable[[str], bytes] = as_bytes) -> Callable[[str, Path], Path]:
    """Return what puts a name in place of ``old`` in a recorded file."""

    def write(name: str, folder: Path) -> Path:
        shutil.copytree(PROFILES / case, folder / "run")
        content = (folder / "run" / file).read_bytes()
        assert old in content
        (folder / "run" / file).write_bytes(content.replace(old, old.replace(b"phase1", quote(name))))
        return folder / "run" / file

    return write


def in_json(name: str) -> bytes:
    return as_bytes(json.dumps(name, ensure_ascii=False)[1:-1])


#: By format: what writes the profile.
WRITERS: dict[str, Callable[[str, Path], Path]] = {
    "native": native,
    "otf2": otf2,
    "mpip": mpip,
    "talp json": edited("talp/faultlab-imbalance30", "talp.json", b'"phase1"', in_json),
    "talp table": edited("talp/faultlab-imbalance30-csv", "talp-process.csv", b"phase1,"),
    "talp report": edited("talp/faultlab-imbalance30-text", "stdout.txt", b" phase1\n"),
}
#: Formats in JSON hold characters, no bytes: undecodable names are refused.
JSON = ("native", "talp json")
#: Formats in which functions have no times of their own, so that gaps are not shown by function.
WITHOUT_TIMES = ("mpip",)


def expected(form: str, name: str) -> str:
    """What a reader makes of a name: the name; that of OTF2 has a sign of its own for what can't be printed."""
    if form != "otf2":
        return name
    decoded = as_bytes(name).decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in decoded)
