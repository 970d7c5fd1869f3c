"""Profiles of several files, spoiled as people spoil them: mixed, copied, swapped, in other units, incomplete.

Each ``Spoiled`` is a copy of a recorded run with one thing wrong, chosen by a seed. Every kind of damage leaves files
that can be read one by one; only together do they not make a run.
"""

from __future__ import annotations

import array
import random
import re
import shutil
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PROFILES: Final = Path(__file__).parent / "profiles"
#: Formats of which nothing tells how many files there were: the number of the rank is in names alone, or nowhere.
UNNUMBERED: Final = ("perf", "likwid", "kokkos")
KINDS: Final = ("mix", "duplicate", "swap", "unit", "omission")


@dataclass(frozen=True)
class Format:
    """A run of several files: where it is recorded, how its files are found by rank, and runs to mix it with."""

    name: str
    folder: Path
    pattern: str
    others: tuple[Path, ...]

    def files(self, folder: Path) -> dict[Path, list[Path]]:
        """Return the files by rank of each directory that holds some."""
        found: dict[Path, list[Path]] = {}
        for file in sorted(folder.rglob(self.pattern)):
            found.setdefault(file.parent, []).append(file)
        return found


FORMATS: Final = (
    Format(
        "caliper", PROFILES / "caliper/faultlab-sleep4imbalance50", "rank-*.cali",
        (PROFILES / "caliper/faultlab-imbalance30",),
    ),
    Format(
        "caliper", PROFILES / "caliper/faultlab-imbalance30", "rank-*.cali",
        (PROFILES / "caliper/faultlab-sleep4imbalance50",),
    ),
    Format(
        "tau", PROFILES / "tau/npb-bt.S.4-tau_exec-ebs", "profile.*",
        (PROFILES / "tau/npb-lu.S.2-callpath",),
    ),
    Format("otf2", PROFILES / "otf2/scorep-multiphase", "*.evt", (PROFILES / "otf2/scorep-is",)),
    Format("tau", PROFILES / "tau/faultlab-imbalance30", "profile.*", (PROFILES / "tau/npb-lu.S.2",)),
    Format("recorder", PROFILES / "recorder/node-user-iotest-9765-060453.040", "*.ts", ()),
    Format("perf", PROFILES / "perf/faultlab-imbalance30", "perf.script.rank*", (PROFILES / "perf/npb-cg.W.2",)),
    Format("likwid", PROFILES / "likwid/constructed", "out_*.csv", ()),
    Format("kokkos", PROFILES / "kokkos_timer/ranks", "node-*.json", ()),
)  # fmt: skip


@dataclass(frozen=True)
class Spoiled:
    """A spoiled copy at ``path``; ``kind`` is one of ``KINDS``.

    It is ``harmless`` where files have changed names and nothing but the names of ranks can follow from it.
    """

    path: Path
    kind: str
    what: str
    harmless: bool = False


def copied(made: Format, path: Path) -> Path:
    """Copy the files of the ranks, and what belongs to them, to ``path``; returns it."""
    foreign = shutil.ignore_patterns("*.json", "*.txt", "hatchet", "README*")

    def list_foreign(folder: str, names: list[str]) -> set[str]:
        return {name for name in foreign(folder, names) if not fnmatch(name, made.pattern)}

    shutil.copytree(made.folder, path, ignore=list_foreign)
    return path


def spoiled(folder: Path, seed: int) -> Spoiled:
    """Return a recorded run, copied into ``folder`` and spoiled as ``seed`` says."""
    draw = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    made = FORMATS[seed // len(KINDS) % len(FORMATS)]
    path = folder / f"{made.name}-{seed}" / made.folder.name
    copied(made, path)
    if (kind == "mix" and not made.others) or (kind == "omission" and made.name in UNNUMBERED):
        kind = "duplicate"
    if made.name == "otf2" and kind == "unit":
        kind = "duplicate"  # an archive states its clock once
    for where, files in made.files(path).items():
        state = draw.getstate()
        what = _spoil(made, kind, where, files, draw)
        if where != list(made.files(path))[-1]:
            draw.setstate(state)
    return Spoiled(path, kind, what, harmless=kind == "swap" and made.name not in ("otf2", "recorder"))


def _spoil(made: Format, kind: str, where: Path, files: list[Path], draw: random.Random) -> str:
    one, other = draw.sample(files, 2)
    if kind == "omission" and made.name == "tau" and len(files) > 2 and one == files[-1]:
        one = other  # TAU records neither communicators nor partners: nothing tells of a last rank
    if kind == "mix":
        strangers = [file for folder in made.others for file in sorted(folder.rglob(made.pattern))]
        stranger = draw.choice([file for file in strangers if file.parent.name == where.name] or strangers)
        shutil.copyfile(stranger, one)
        return f"{one.name} is {stranger.name} of another run"
    if kind == "duplicate":
        shutil.copyfile(other, one)
        return f"{one.name} is a copy of {other.name}"
    if kind == "swap":
        kept = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(kept)
        return f"{one.name} and {other.name} have changed names"
    if kind == "unit":
        factor = draw.choice((1e-6, 1e-3, 1e3, 1e6))
        scaled = _scale_ticks(one.read_bytes(), factor) if made.name == "recorder" else None
        one.write_bytes(scaled or b"\n".join(_scaled(made, one.read_bytes(), factor)))
        return f"times of {one.name} are {factor:g} of what they were"
    one.unlink()
    return f"{one.name} is missing"


def _scale_ticks(content: bytes, factor: float) -> bytes:
    """Return numbers of 32 bits, multiplied."""
    ticks = array.array("I", content)
    return array.array("I", [min(int(tick * factor), 0xFFFFFFFF) for tick in ticks]).tobytes()


def _scaled(made: Format, text: bytes, factor: float) -> Iterator[bytes]:
    """Yield the lines with all their times multiplied."""
    for line in text.split(b"\n"):
        if made.name == "tau":
            yield re.sub(
                rb'^(".*" \S+ \S+) (\S+) (\S+) ',
                lambda row: b"%s %.17g %.17g " % (row[1], float(row[2]) * factor, float(row[3]) * factor),
                line,
            )
        elif made.name == "perf":
            yield re.sub(rb"(\d+\.\d+)(?=: )", lambda time: b"%.6f" % (float(time[1]) * factor), line)
        elif made.name == "likwid":
            yield re.sub(rb"(?<=,)(\d+\.\d+)", lambda time: b"%.9f" % (float(time[1]) * factor), line)
        elif made.name == "kokkos":
            times = rb'("[a-z-]*time[a-z-]*" *: *)([\d.]+)'
            yield re.sub(times, lambda cell: b"%s%.9f" % (cell[1], float(cell[2]) * factor), line)
        elif line.startswith(b"__rec=ctx") and b",data=" in line:
            head, _, data = line.rpartition(b",data=")
            values = [
                b"%.17g" % (float(value) * factor) if float(value) > 1000 else value for value in data.split(b"=")
            ]
            yield head + b",data=" + b"=".join(values)
        else:
            yield line
