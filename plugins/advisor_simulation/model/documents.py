"""Files of models: of machines, and of applications."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from advisor.model.errors import AdvisorError
from advisor.model.records import KnownDocument

_SUFFIXES: Final = frozenset({".yaml", ".yml"})
#: Models are written by hand.
_LARGEST_B: Final = 4 << 20


def identify_model(path: Path) -> KnownDocument | None:
    """Return what model a file holds, and how it is used; None where it holds none without mistakes."""
    if path.suffix not in _SUFFIXES or path.stat().st_size > _LARGEST_B:
        return None
    from advisor.analysis import machines
    from advisor_simulation.model import checks

    try:
        found = machines.load_machine(path)
        return KnownDocument(f"a model of the machine {found.name}; gapwatch advise --machine {path.name} uses it")
    except AdvisorError:
        pass
    try:
        model = checks.read_model(path)
        return KnownDocument(f"a model of the application {model.name}; gapwatch simulate {path.name} runs it")
    except AdvisorError:
        return None


def quote_text(text: str) -> str:
    """Return text as a quoted YAML scalar: names come from programs and may hold anything."""
    plain = "".join(sign if sign.isprintable() and sign.isascii() else "?" for sign in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"')[:200] + '"'
