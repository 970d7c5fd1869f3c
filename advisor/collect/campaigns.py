"""Parameters of a run that the folder of its profile states, as campaigns of Score-P for Extra-P are laid out.

A campaign is a folder with one folder for each run, ``PROGRAM.p64.n128.r2`` or ``mm.x10y1z1.r1``: letters that name a
parameter, its value (a comma is a decimal point), and ``r`` with the number of the repeat. One folder alone may be
called like that by chance; two with the same names and other values or repeats are a campaign. A single pair by
itself, such as ``v2``, is more often the name of a build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_PAIR: Final = re.compile(r"([A-Za-z_]+)(\d+(?:[.,]\d+)?)")
_FOLDER: Final = re.compile(r"(?:(?P<program>[A-Za-z_][\w-]*)\.)?(?P<pairs>(?:[A-Za-z_]+\d+(?:[.,]\d+)?[.,]?)+)")
_REPEAT: Final = "r"
#: So many folders beside one are looked at.
_LIMIT: Final = 10_000


def stated_parameters(path: Path) -> dict[str, float]:
    """Return the parameters that the folder of the profile at ``path`` states, none where it is in no campaign."""
    for folder in (path, path.parent):
        found = _parameters(folder.name) if folder.is_dir() else None
        if found and any(_alike(found, other) for other in _beside(folder)):
            return {name: value for name, value in found.items() if name != _REPEAT}
    return {}


def _parameters(name: str) -> dict[str, float] | None:
    """Return names and values in the name of a folder, None where it is not made of them."""
    whole = _FOLDER.fullmatch(name)
    pairs = _PAIR.findall(whole["pairs"]) if whole else []
    if whole is None or len({key for key, _ in pairs}) < len(pairs) or (whole["program"] is None and len(pairs) == 1):
        return None
    return {key: float(value.replace(",", ".")) for key, value in pairs}


def _beside(folder: Path) -> list[dict[str, float]]:
    try:
        names = [one.name for _, one in zip(range(_LIMIT), folder.parent.iterdir(), strict=False)]
    except OSError:
        return []
    return [found for name in names if name != folder.name and (found := _parameters(name))]


def _alike(one: dict[str, float], other: dict[str, float]) -> bool:
    names = one.keys() - {_REPEAT}
    return bool(names) and names == other.keys() - {_REPEAT}
