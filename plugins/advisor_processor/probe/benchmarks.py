"""``gapwatch machines import``: the outputs of benchmarks -> a machine model, written as YAML."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

from advisor.analysis.machines.records import Machine, Memory, Network, Number, NumberSource, iterate_numbers
from advisor.model.errors import UsageError
from advisor.model.reports import Column, Report, Table, Text
from advisor.model.units import format_quantity
from advisor_processor.probe.model_document import check_model_name, write_machine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.analysis.machines.records import Measurement

#: Measurements of one number that lie further apart are of different machines.
_APART: Final = 1.5
#: Of a bandwidth that is measured by itself, what messages one after the other reach at the most and at the least.
_ALONE: Final = (0.4, 1.1)
_TIMES: Final = ("network.latency", "network.barrier")
_BY_TIMES: Final = "size by time"


def import_benchmarks(found: Sequence[Measurement], name: str, base: Machine | None, folder: Path) -> Report:
    """Write ``folder/NAME.yaml`` with the numbers that benchmarks measured, all others as in ``base``.

    Raises ``UsageError`` where measurements contradict each other.
    """
    check_model_name(name)
    chosen = choose_measurements(found)
    machine = build_machine(name, base, chosen)
    target = write_machine(machine, folder)
    rows = tuple(
        (one.field, format_quantity(one.value, "time" if one.field in _TIMES else "bandwidth"), one.tool, str(one.path))
        for one in chosen
    )
    columns = (Column("number"), Column("value"), Column("measured by"), Column("file"))
    parts = (Text(f"Written to {target}; use it with --machine {name}"), Table("Measured", columns, rows))
    return Report(f"{machine.name}: {machine.title}", parts)


def choose_measurements(found: Sequence[Measurement]) -> list[Measurement]:
    """Return the best measurement of each number: the shortest time, the highest bandwidth.

    Raises ``UsageError`` where two of one number, or a bandwidth and the time of long messages, do not fit together.
    """
    chosen = []
    for field in dict.fromkeys(one.field for one in found):
        every = [one for one in found if one.field == field]
        alone = [one for one in every if one.tool.endswith(_BY_TIMES)]
        together = [one for one in every if one not in alone]
        for kind in (alone, together):
            least, most = (choose(kind, key=lambda one: one.value, default=None) for choose in (min, max))
            if least and most and most.value > _APART * least.value:
                _refuse_pair(least, most)
        best = (min if field in _TIMES else max)(together or alone, key=lambda one: one.value)
        for one in alone if together else ():
            if not _ALONE[0] <= one.value / best.value <= _ALONE[1]:
                _refuse_pair(one, best)
        chosen.append(best)
    return chosen


def _refuse_pair(one: Measurement, other: Measurement) -> None:
    unit = "time" if one.field in _TIMES else "bandwidth"
    told = " and ".join(f"{format_quantity(each.value, unit)} in {each.path}" for each in (one, other))
    raise UsageError(f"{one.field} is {told}: these are not of the same machine; import them under two names")


def build_machine(name: str, base: Machine | None, chosen: Sequence[Measurement]) -> Machine:
    """Return ``base`` (None: an otherwise unknown machine) with the numbers of ``chosen``."""
    if base is None:
        base = Machine(name, name, "Measured by benchmarks; nothing else is known of it.", {})
    sources = dict(base.sources)
    parts: dict[str, dict[str, Any]] = {"network": {}, "memory": {}}
    for one in chosen:
        part, field = one.field.split(".")
        source = f"{one.tool.split()[0]} {field}"
        sources[source] = NumberSource(f"{one.tool}, {one.path.name}")
        parts[part][field] = Number(float(f"{one.value:.4g}"), source)
    network, memory = base.network, base.memory
    if parts["network"]:
        network = replace(network or Network(), **parts["network"])
    if parts["memory"]:
        memory = replace(memory or Memory(), **parts["memory"])
    rest = [getattr(base, field.name) for field in fields(base) if field.name not in ("network", "memory")]
    named = {number.source for part in (*rest, network, memory) for _, number in iterate_numbers(part)}
    kept = {key: source for key, source in sources.items() if key in named}
    title = base.title if base.name == name else f"{base.title}, measured"
    return replace(
        base, name=name, title=title, sources=kept, network=network, memory=memory,
        cpus=base.cpus if base.name == name else (),
    )  # fmt: skip
