"""Machine models: found by name or file, and the rates that bounds on run time are computed from.

A model is one YAML file in ``machine_models/`` or in a user's folder (``docs/machines.md``); ``host`` is the machine
at hand. Rates use the highest clock known, so that times computed from them stay lower bounds.
"""

from __future__ import annotations

import math
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from advisor import bundled, documents, units
from advisor.documents import scalars
from advisor.documents.field_types import dimension_of, fields_of, members
from advisor.errors import DocumentError, Problem, UsageError
from advisor.machines import local_machine
from advisor.machines.records import Count, Machine, Number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.resources.abc import Traversable

__all__ = [
    "Machine",
    "as_document",
    "barrier_s",
    "busiest_unit",
    "clock_hz",
    "host",
    "instruction_rates",
    "load",
    "names",
    "peak_flops_per_s",
    "unit_rates",
]

HOST = "host"
_SUFFIX = ".yaml"


def names(places: Iterable[Path] = ()) -> tuple[str, ...]:
    """The models that ``load`` knows by name, sorted; ``places`` are folders or files of users and plugins."""
    return (*sorted(_by_name(places)), HOST)


def load(name_or_path: str | Path, places: Iterable[Path] = ()) -> Machine:
    """The model of that name or in that file; a model in ``places`` goes before a bundled one of the same name.

    UsageError for a name that is not known, DocumentError with every mistake in the file.
    """
    text = str(name_or_path)
    if text == HOST:
        return host()
    if isinstance(name_or_path, Path) or text.endswith((_SUFFIX, ".yml")) or "/" in text:
        return _read(Path(text))
    known = _by_name(places)
    if text not in known:
        hint = scalars.suggestion(text, known)
        raise UsageError(f"no machine model '{text}'{hint}; there are {', '.join(names(places))}, or name a file")
    return _read(known[text])


def host() -> Machine:
    """The machine this runs on, as far as the system tells; functional units as in the model of its processor."""
    found = local_machine.detect()
    return local_machine.with_core_of(found, _model_of(local_machine.processor()))


def _by_name(places: Iterable[Path]) -> dict[str, Path | Traversable]:
    found: dict[str, Path | Traversable] = {_stem(file): file for file in bundled.documents("machine_models")}
    for place in places:
        files = sorted(place.glob(f"*{_SUFFIX}")) if place.is_dir() else [place]
        found |= {_stem(file): file for file in files}
    return found


def _stem(file: Path | Traversable) -> str:
    return file.name.removesuffix(_SUFFIX)


def _read(file: Path | Traversable) -> Machine:
    machine = documents.load(file, Machine)
    expected = Path(file.name).stem
    if machine.name != expected:
        message = f"name: found '{machine.name}', expected '{expected}' as the file is called"
        raise DocumentError([Problem(str(file), 1, 1, message)])
    return machine


def _model_of(processor: str | None) -> Machine | None:
    """The bundled model that lists the identity of ``processor``; only files that mention it are read."""
    if processor is None:
        return None
    for file in bundled.documents("machine_models"):
        if processor in file.read_text(encoding="utf-8"):
            machine = _read(file)
            if processor in machine.cpus:
                return machine
    return None


def clock_hz(machine: Machine) -> float | None:
    """The highest clock known, in hertz: times computed from it stay lower bounds."""
    return machine.boost or machine.frequency


def peak_flops_per_s(machine: Machine, processors: int) -> float | None:
    """Double-precision operations per second of so many processors (cores) at most; None if not known."""
    clock = clock_hz(machine)
    if clock is None or machine.flops_per_cycle is None:
        return None
    return processors * machine.flops_per_cycle * clock


def unit_rates(machine: Machine) -> dict[str, float]:
    """Operations on 64-bit numbers per second and core by functional unit, for the units that are known."""
    clock = clock_hz(machine)
    if clock is None:
        return {}
    return {name: unit.operations_per_cycle * clock for name, unit in machine.units.items()}


def instruction_rates(machine: Machine) -> dict[str, float]:
    """Instructions per second and core by functional unit, whatever their width, for the units that are known."""
    clock = clock_hz(machine)
    if clock is None:
        return {}
    return {name: unit.instructions_per_cycle * clock for name, unit in machine.units.items()}


def busiest_unit(
    machine: Machine, operations: Mapping[str, float], rates: Mapping[str, float] | None = None
) -> tuple[str, float] | None:
    """The unit that limits one core on these operations, and the seconds it takes; None if no rate is known.

    This is the time of the bounds MA and MAC (Hung and Davidson, section 3.2.1): no dependences, any schedule, the
    busiest unit decides. ``rates`` are those of operations on 64-bit numbers if not given. Units that share pipes add
    up; a kind of operation without a known rate is left out, so that the time stays a lower bound.
    """
    rates = unit_rates(machine) if rates is None else rates
    busy: dict[str, float] = {}
    for name, count in operations.items():
        if name in rates:
            pipes = next(unit.pipes or name for key, unit in machine.units.items() if key == name)
            busy[pipes] = busy.get(pipes, 0.0) + count / rates[name]
    return max(busy.items(), key=lambda item: item[1]) if busy else None


def barrier_s(machine: Machine, processors: int) -> float | None:
    """What a barrier of so many processors costs by the model ``base + per_doubling * log2 P``; None if not known."""
    cost = machine.synchronization
    if cost is None:
        return None
    return (cost.base or 0.0) + cost.per_doubling * math.log2(max(processors, 1))


def as_document(machine: Machine) -> dict[str, object]:
    """The machine as plain values for JSON; what is absent is left out.

    A number is ``{value, unit, text, source}``, its source a key of ``sources``; ``per_core`` holds what follows from
    the numbers: the peak and the rates of the functional units.
    """
    document = {field.key: _plain(getattr(machine, field.name), field.hint) for field in fields_of(Machine)}
    peak = peak_flops_per_s(machine, 1)
    rates = {name: _quantity(rate, "rate") for name, rate in unit_rates(machine).items()}
    document["per_core"] = _present({"peak": _quantity(peak, "rate") if peak else None, "units": rates})
    return _present(document)


def _plain(value: object, hint: object) -> object:
    if isinstance(value, Number):
        return _quantity(value, next(found.name for one in members(hint) if (found := dimension_of(one)))) | {
            "source": value.source
        }
    if isinstance(value, Count):
        return {"value": int(value), "source": value.source}
    if isinstance(value, dict):
        return {key: _plain(each, get_args(hint)[1]) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _present({field.key: _plain(getattr(value, field.name), field.hint) for field in fields_of(type(value))})
    return list(value) if isinstance(value, tuple) else value


def _quantity(value: float, dimension: str) -> dict[str, object]:
    base = units.DIMENSIONS[dimension].base
    return {"value": float(value), "unit": base, "text": units.format_quantity(value, dimension)}


def _present(document: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in document.items() if value not in (None, {}, [])}
