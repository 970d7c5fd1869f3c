"""A machine as the YAML of a machine model (docs/machines.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Final

from advisor.analysis import machines
from advisor.analysis.machines.records import Count, Machine, Number
from advisor.model.errors import UsageError
from advisor.support.atomic_write import atomic_write
from advisor.support.documents.field_types import dimension_of, fields_of, union_members

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: The unit in which a number of each dimension is written, and its size in the base unit.
_UNITS: Final = {
    "time": ("ns", 1e-9),
    "cycle count": ("cycles", 1.0),
    "size": ("B", 1.0),
    "bandwidth": ("GB/s", 1e9),
    "frequency": ("GHz", 1e9),
    "rate per cycle": ("op/cycle", 1.0),
    "bandwidth per cycle": ("B/cycle", 1.0),
    "width": ("bit", 1.0),
    "cost": ("USD/h", 1.0),
}


def check_model_name(name: str) -> None:
    """Raise ``UsageError`` for a name that can't be that of a model and its file."""
    if not _NAME.fullmatch(name) or name == machines.HOST:
        raise UsageError(f"a machine model can't be called {name!r}: letters, digits, dots, dashes, and not 'host'")


def write_machine(machine: Machine, folder: Path) -> Path:
    """Write the model into ``folder`` under its name, and return the file, which was read back."""
    target = folder / f"{machine.name}.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as partial:
        partial.write_text(render_machine(machine), encoding="utf-8")
    machines.load_machine(target)
    return target


def render_machine(machine: Machine) -> str:
    """Return the document that ``machines.load`` reads back as ``machine``; numbers to five significant digits."""
    return "".join(f"{line}\n" for line in _render_record(machine, Machine, ""))


def _render_record(value: object, hint: object, indent: str) -> Iterator[str]:
    record = next(one for one in union_members(hint) if isinstance(one, type) and is_dataclass(one))
    for field in fields_of(record):
        each = getattr(value, field.name)
        if each in (None, {}, ()):
            continue
        yield from _render_entry(field.key, each, field.hint, indent)


def _render_entry(key: str, value: object, hint: object, indent: str) -> Iterator[str]:
    if isinstance(value, Number | Count | str | tuple):
        yield f"{indent}{key}: {_format_scalar(value, hint)}"
    elif isinstance(value, dict):
        yield f"{indent}{key}:"
        for name, each in value.items():
            yield from _render_entry(json.dumps(str(name)), each, type(each), f"{indent}  ")
    else:
        yield f"{indent}{key}:"
        yield from _render_record(value, type(value), f"{indent}  ")


def _format_scalar(value: Number | Count | str | tuple[object, ...], hint: object) -> str:
    if isinstance(value, Number):
        dimension = next(found.name for one in union_members(hint) if (found := dimension_of(one)))
        unit, factor = _UNITS[dimension]
        return json.dumps(f"{_format_number(value / factor)} {unit} @{value.source}")
    if isinstance(value, Count):
        return json.dumps(f"{int(value)} @{value.source}")
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def _format_number(value: float) -> str:
    """Return five significant digits, all of a whole number, and no exponent."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = f"{value:.5g}"
    return f"{value:.12f}".rstrip("0") if "e" in text else text
