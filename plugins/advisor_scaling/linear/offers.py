"""Which machine, and how many nodes of it, for this job and this money: models at the prices of real offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.machines.records import (
    Bytes,
    BytesPerSecond,
    Count,
    DollarsPerHour,
    NumberSource,
    Seconds,
    iterate_numbers,
)
from advisor.model.errors import UsageError
from advisor.support import documents
from advisor.support.documents import FieldErrors
from advisor_scaling.linear import application, expressions, model
from advisor_scaling.linear.application import ApplicationModel, Column, machine_sizes
from advisor_scaling.linear.model import LinearModel
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    import sympy

    from advisor.analysis.machines import Machine

#: What is assumed of networks whose numbers nobody states: from the best of clusters to plain Ethernet, in s and s/B.
_LATENCY_S: Final = (1e-6, 30e-6)
_BYTE_S: Final = (1 / 50e9, 1 / 1e9)
#: … and of starting a loop.
_LOOP_S: Final = (0.0, 100e-9)
#: Programs reach the peak of a processor at best, and seldom less than this part of it.
_EFFICIENCY: Final = 0.02
_MOST_NODES: Final = 64


@dataclass(frozen=True, slots=True)
class Offer:
    """Nodes of a machine model for a price; numbers that differ from the model's are stated here."""

    name: str
    machine: str
    price: DollarsPerHour
    cores: Count | None = None
    memory: Bytes | None = None
    latency: Seconds | None = None
    bandwidth: BytesPerSecond | None = None


@dataclass(frozen=True, slots=True)
class OfferTable:
    """Offers of a ``date``; ValueError (``FieldErrors``) for a number whose source is not listed."""

    date: str
    sources: dict[str, NumberSource]
    offers: tuple[Offer, ...]

    def __post_init__(self) -> None:
        """Check that every number has its source."""
        problems = [
            (("offers",), f"{offer.name}: the source '{number.source}' is not listed in sources")
            for offer in self.offers
            for _, number in iterate_numbers(offer)
            if number.source not in self.sources
        ]
        if problems:
            raise FieldErrors(problems)


def load_offers(path: Path | None) -> OfferTable:
    """Return the offers in a file, or (None) the bundled ones; ``DocumentError`` with every mistake."""
    if path is not None:
        return documents.load_document(path, OfferTable)
    with as_file(files("advisor_scaling") / "offers.yaml") as bundled:
        return documents.load_document(bundled, OfferTable)


@dataclass(frozen=True, slots=True)
class Choice:
    """An offer with a number of nodes: seconds and dollars of the job, each from and to; whether its data fit."""

    offer: Offer
    nodes: int
    processors: int
    seconds: tuple[float, float]
    dollars: tuple[float, float]
    fits: bool | None


def rank_choices(
    stated: ApplicationModel,
    table: OfferTable,
    load_machine: Callable[[str], Machine],
    point: Mapping[str, float],
    memory: sympy.Expr | None = None,
    efficiency: float | None = None,
) -> list[Choice]:
    """Return every offer with 1, 2, 4 .. nodes for the job at ``point``, those with the lowest price first.

    ``memory`` are bytes of data on a processor. Intervals come from what is not known: numbers of networks that neither
    model nor offer states, and the part of the peak that the program reaches (``efficiency`` where runs told it).
    """
    ranks = next((name for name in stated.parameters if PROCESSORS.fullmatch(name)), None)
    if ranks is None:
        raise UsageError("the model has no number of processors P: how many nodes are worth it can't be told")
    found = []
    for offer in table.offers:
        machine = load_machine(offer.machine)
        cores = offer.cores or (machine.sockets or 1) * (machine.cores_per_socket or 1)
        models = _build_limits(stated, machine, offer, efficiency)
        nodes = 1
        while models is not None and nodes <= _MOST_NODES:
            place = {**point, ranks: float(nodes * cores)}
            at = np.array([[place[name] for name in stated.parameters]])
            low, high = (float(each(at)[0]) for each in models)
            price = float(offer.price) * nodes / 3600
            fits = _fits(machine, offer, memory, place, cores)
            found.append(
                Choice(offer, nodes, nodes * cores, (low, high), (low * price, high * price), fits)
            )  # fmt: skip
            nodes *= 2
    return sorted(found, key=lambda each: (each.fits is False, sum(each.dollars), sum(each.seconds)))


def _build_limits(
    stated: ApplicationModel, machine: Machine, offer: Offer, efficiency: float | None
) -> tuple[LinearModel, LinearModel] | None:
    """Return the model with the least and the largest costs that are possible; None where there is no clock."""
    rate = model.arithmetic_rate(machine)
    if rate is None:
        return None
    network = machine.network
    latency = offer.latency or (network.latency if network else None)
    bandwidth = offer.bandwidth or (network.bandwidth if network else None)
    known = model.known_costs(machine, stated)
    ends: list[dict[Column, float]] = []
    for end in (0, 1):
        part = efficiency or (1.0, _EFFICIENCY)[end]
        ends.append({
            **known,
            "loops": known.get("loops", _LOOP_S[end]),
            "operations": stated.costs.get("operations", 1.0 / (rate * part)),
            "messages": stated.costs.get("messages", float(latency) if latency else _LATENCY_S[end]),
            "bytes": stated.costs.get("bytes", 1.0 / float(bandwidth) if bandwidth else _BYTE_S[end]),
        })  # fmt: skip
    if missing := [column for column in stated.counts if column not in ends[0]]:
        raise UsageError(f"nothing states what {', '.join(missing)} cost; add seconds under costs: in the model")
    sizes = machine_sizes(machine)
    if offer.memory:
        cores = offer.cores or (machine.sockets or 1) * (machine.cores_per_socket or 1)
        sizes = replace(sizes, memory=float(offer.memory) / cores)
    counts = application.build_counts(stated, sizes)
    return LinearModel(stated.parameters, counts, ends[0]), LinearModel(stated.parameters, counts, ends[1])


def _fits(
    machine: Machine, offer: Offer, memory: sympy.Expr | None, place: Mapping[str, float], cores: int
) -> bool | None:  # fmt: skip
    """Return whether the data of all processors of a node fit into its memory; None where that is not known."""
    size = offer.memory or (machine.memory.size if machine.memory else None)
    if memory is None or size is None:
        return None
    symbols = {expressions.make_symbol(name): value for name, value in place.items()}
    needed = memory.subs(symbols)
    return None if needed.free_symbols else bool(float(needed) * cores <= float(size))


def pick_choices(choices: Sequence[Choice], budget: float | None) -> tuple[Choice | None, Choice | None, bool]:
    """Return the cheapest and, within the budget, the fastest choice that fits, and whether intervals part them.

    The budget counts at the upper end of the price, since what is promised has to hold.
    """
    able = [choice for choice in choices if choice.fits is not False]
    cheapest = min(able, key=lambda each: each.dollars[1], default=None)
    within = [each for each in able if budget is None or each.dollars[1] <= budget]
    fastest = min(within, key=lambda each: each.seconds[1], default=None)
    if cheapest is None:
        return None, None, False
    others = [each for each in able if each.offer is not cheapest.offer]
    return cheapest, fastest, all(cheapest.dollars[1] < other.dollars[0] for other in others)
