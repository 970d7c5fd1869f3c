"""What further passes over a recorded program showed, kept with its recording as ``passes.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.model.records import Note
from advisor.support import strict_json
from advisor.support.atomic_write import atomic_write

NAME: Final = "passes.json"
SCHEMA: Final = "gapwatch/passes/1"
_LIMIT_B: Final = 1 << 20
_ROW: Final = ("name", "text", "penalty")


@dataclass(frozen=True, slots=True)
class Conclusions:
    """What passes showed, in words, and the imbalance that did not come back in a second run (None: there was none)."""

    notes: tuple[Note, ...] = ()
    unrepeated_s: float | None = None


def write_conclusions(folder: Path, found: Conclusions) -> None:
    """Keep what the passes showed with the recording; raises ``OSError``."""
    rows = [{"name": one.name, "text": one.text, "penalty": one.penalty} for one in found.notes]
    document: dict[str, object] = {"schema": SCHEMA, "passes": rows}
    if found.unrepeated_s is not None:
        document["unrepeated_s"] = found.unrepeated_s
    with atomic_write(folder / NAME) as partial:
        partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read_conclusions(folder: Path) -> Conclusions:
    """Return what passes showed of a recording, nothing without any; raises ``InputError`` for damage."""
    path = folder / NAME
    if not path.is_file():
        return Conclusions()
    root = strict_json.read_json(path, _LIMIT_B)
    found = root.require_fields(("schema", "passes", "unrepeated_s"), needed=("schema", "passes"))
    found["schema"].require_choice((SCHEMA,))
    notes = []
    for node in found["passes"].require_items():
        row = node.require_fields(_ROW, needed=_ROW)
        penalty = min(row["penalty"].require_number(0), 1.0)
        notes.append(Note(row["name"].require_text(), row["text"].require_text(), penalty))
    return Conclusions(tuple(notes), found["unrepeated_s"].require_number(0) if "unrepeated_s" in found else None)
