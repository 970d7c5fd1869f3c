"""What further passes over a recorded program showed, kept with its recording as ``passes.json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from advisor.model.records import Note
from advisor.support import strict_json
from advisor.support.atomic_write import atomic_write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAME: Final = "passes.json"
SCHEMA: Final = "gapwatch/passes/1"
_LIMIT_B: Final = 1 << 20


def write_conclusions(folder: Path, notes: Sequence[Note]) -> None:
    """Keep what the passes showed with the recording; raises ``OSError``."""
    rows = [{"name": one.name, "text": one.text, "penalty": one.penalty} for one in notes]
    with atomic_write(folder / NAME) as partial:
        partial.write_text(json.dumps({"schema": SCHEMA, "passes": rows}, indent=1) + "\n", encoding="utf-8")


def read_conclusions(folder: Path) -> tuple[Note, ...]:
    """Return what passes showed of a recording, nothing without any; raises ``InputError`` for damage."""
    path = folder / NAME
    if not path.is_file():
        return ()
    found = strict_json.read_json(path, _LIMIT_B).require_fields(("schema", "passes"))
    for key in ("schema", "passes"):
        if key not in found:
            raise strict_json.read_json(path, _LIMIT_B).make_error(f"the key {key!r} is missing")
    found["schema"].require_choice((SCHEMA,))
    notes = []
    for node in found["passes"].require_items():
        row = node.require_fields(("name", "text", "penalty"))
        if len(row) < len(("name", "text", "penalty")):
            raise node.make_error("expected name, text and penalty")
        penalty = min(row["penalty"].require_number(0), 1.0)
        notes.append(Note(row["name"].require_text(), row["text"].require_text(), penalty))
    return tuple(notes)
