"""Machine models: found by name or file.

A model is one YAML file in ``machine_models/`` or in a user's folder (``docs/machines.md``); ``load_host_machine`` is
the machine at hand. What bounds on run time are computed from its numbers is in ``machine_rates``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_args

from advisor.analysis.machine_rates import peak_flops_per_s, unit_rates
from advisor.analysis.machines import local_machine
from advisor.analysis.machines.records import Count, Machine, Number
from advisor.model import units
from advisor.model.errors import DocumentError, Problem, UsageError
from advisor.support import bundled, documents
from advisor.support.documents import scalars
from advisor.support.documents.field_types import dimension_of, fields_of, union_members

HOST = "host"
_SUFFIX = ".yaml"
#: The memory that a system reports changes a little with its kernel.
_SAME_MEMORY = 0.05


def list_model_names(places: Iterable[Path] = ()) -> tuple[str, ...]:
    """The models that ``load_machine`` knows by name, sorted; ``places`` are folders or files of users and plugins."""
    return (*sorted(_files_by_name(places)), HOST)


def load_machine(name_or_path: str | Path, places: Iterable[Path] = ()) -> Machine:
    """The model of that name or in that file; a model in ``places`` takes precedence over a bundled one.

    UsageError for a name that is not known, DocumentError with every mistake in the file.
    """
    text = str(name_or_path)
    if text == HOST:
        return load_host_machine()
    if isinstance(name_or_path, Path) or text.endswith((_SUFFIX, ".yml")) or "/" in text:
        return _read_model(Path(text))
    known = _files_by_name(places)
    if text not in known:
        hint = scalars.suggest_word(text, known)
        raise UsageError(
            f"no machine model '{text}'{hint}; there are {', '.join(list_model_names(places))}, or name a file"
        )
    return _read_model(known[text])


def load_host_machine() -> Machine:
    """The machine this runs on, as the system describes it; functional units come from its processor's model."""
    found = local_machine.detect_machine()
    return local_machine.add_core_units(found, _find_processor_model(local_machine.identify_processor()))


def fits_host(machine: Machine) -> bool:
    """Return whether a model has the sockets, cores, vector width and memory of the machine this runs on."""
    found = local_machine.detect_machine()
    alike = all(
        getattr(machine, name) == getattr(found, name)
        for name in ("sockets", "cores_per_socket", "threads_per_core", "vector_width")
    )
    sizes = [one.memory.size if one.memory else None for one in (machine, found)]
    return alike and _nearly_equal(*sizes)


def _nearly_equal(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and abs(one - other) <= _SAME_MEMORY * other)


def _files_by_name(places: Iterable[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {_model_name(file): file for file in bundled.list_documents("machine_models")}
    for place in places:
        files = sorted(place.glob(f"*{_SUFFIX}")) if place.is_dir() else [place]
        found |= {_model_name(file): file for file in files}
    return found


def _model_name(file: Path) -> str:
    return file.name.removesuffix(_SUFFIX)


def _read_model(file: Path) -> Machine:
    machine = documents.load_document(file, Machine)
    expected = Path(file.name).stem
    if machine.name != expected:
        message = f"name: found '{machine.name}', expected '{expected}' as the file is called"
        raise DocumentError([Problem(str(file), 1, 1, message)])
    return machine


def _find_processor_model(processor: str | None) -> Machine | None:
    """The bundled model that lists the identity of ``processor``; only files that mention it are read."""
    if processor is None:
        return None
    for file in bundled.list_documents("machine_models"):
        if processor in file.read_text(encoding="utf-8"):
            machine = _read_model(file)
            if processor in machine.cpus:
                return machine
    return None


def to_document(machine: Machine) -> dict[str, object]:
    """The machine as plain values for JSON; what is absent is left out.

    A number is ``{value, unit, text, source}``, its source a key of ``sources``; ``per_core`` holds what follows from
    the numbers: the peak and the rates of the functional units.
    """
    document = {field.key: _to_plain(getattr(machine, field.name), field.hint) for field in fields_of(Machine)}
    peak = peak_flops_per_s(machine, 1)
    rates = {name: _quantity_document(rate, "rate") for name, rate in unit_rates(machine).items()}
    document["per_core"] = _drop_absent({"peak": _quantity_document(peak, "rate") if peak else None, "units": rates})
    return _drop_absent(document)


def _to_plain(value: object, hint: object) -> object:
    if isinstance(value, Number):
        return _quantity_document(
            value, next(found.name for one in union_members(hint) if (found := dimension_of(one)))
        ) | {"source": value.source}
    if isinstance(value, Count):
        return {"value": int(value), "source": value.source}
    if isinstance(value, dict):
        return {key: _to_plain(each, get_args(hint)[1]) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _drop_absent(
            {field.key: _to_plain(getattr(value, field.name), field.hint) for field in fields_of(type(value))}
        )
    return list(value) if isinstance(value, tuple) else value


def _quantity_document(value: float, dimension: str) -> dict[str, object]:
    base = units.DIMENSIONS[dimension].base
    return {"value": float(value), "unit": base, "text": units.format_quantity(value, dimension)}


def _drop_absent(document: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in document.items() if value not in (None, {}, [])}
