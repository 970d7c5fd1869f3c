"""What the compiler itself says of a loop: GCC's ``-fopt-info-vec``, Clang's ``-Rpass`` and ``-Rpass-missed``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, Literal

from advisor.support.limited_files import read_limited

if TYPE_CHECKING:
    from advisor_processor.compiled.binary import Binary
    from advisor_processor.compiled.loops import Loop

Kind = Literal["vectorized", "overlap", "call", "control", "order", "other"]

_LARGEST: Final = 64 << 20
_LINE: Final = re.compile(
    r"(?P<file>[^:\n]+):(?P<line>\d+):\d+: (?P<sort>optimized|missed|note|remark|warning): +(?P<text>.*)"
)
_VECTORIZED: Final = re.compile(r"loop vectorized|vectorized loop|basic block part vectorized")
#: What the wordings of both compilers mean, in the order in which they are looked for.
_MEANINGS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("overlap", re.compile(r"alias|data.refs?|unsafe dependent memory|identify array bounds|dependence distance")),
    ("call", re.compile(r"call|clobber", re.IGNORECASE)),
    ("control", re.compile(r"control flow|number of iterations|early exit|loop nest|multiple exits", re.IGNORECASE)),
    ("order", re.compile(r"reorder floating-point|reduction|associativ|cycle in dependenc", re.IGNORECASE)),
)
WORDS: Final[dict[Kind, str]] = {
    "vectorized": "vectorized",
    "overlap": "arrays might overlap",
    "call": "calls a function that it can't see into",
    "control": "leaves or branches",
    "order": "may not change the order of operations",
    "other": "not vectorized",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """One line of a report: the place, and what it means."""

    file: str
    line: int
    kind: Kind


def read_remarks(paths: Iterable[Path]) -> tuple[Remark, ...]:
    """Return the remarks of reports; other lines are left out. Raises ``InputError`` where one can't be read."""
    found: list[Remark] = []
    for path in paths:
        text = read_limited(path, _LARGEST).decode("utf-8", "replace")
        kinds = ((match, _classify_remark(match["sort"], match["text"])) for match in _LINE.finditer(text))
        found += [Remark(PurePath(match["file"]).name, int(match["line"]), kind) for match, kind in kinds if kind]
    return tuple(found)


def _classify_remark(sort: str, text: str) -> Kind | None:
    if _VECTORIZED.search(text):
        return "vectorized"
    meaning = next((kind for kind, pattern in _MEANINGS if pattern.search(text)), None)
    if meaning or sort == "missed" or "not vectorized" in text:
        return meaning or "other"
    return None


def find_loop_remark(loop: Loop, program: Binary, remarks: Sequence[Remark]) -> Kind | None:
    """Return what the compiler says of the source lines of a loop: the most telling of its remarks."""
    places = {program.find_line(one.address) for one in loop.body}
    lines = {(PurePath(place[0]).name, place[1]) for place in places if place}
    kinds = {remark.kind for remark in remarks if (remark.file, remark.line) in lines}
    return next((kind for kind in WORDS if kind in kinds), None)
