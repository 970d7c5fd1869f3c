"""The command ``gapwatch suite``: what a benchmark suite covers, which members are redundant, which few stand for all.

The paper's other use of centroids (its conclusions): a suite should cover the space of workloads without repeating it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import UsageError
from advisor.model.reports import Column, HeatMap, Part, Report, Table, Text
from advisor.support.documents import suggest_word
from advisor_similarity.neighbours import compute_pairwise_distances, has_measure
from advisor_similarity.similar_command import load_known_entries, parse_amounts

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandServices
    from advisor.model.records import FloatArray
    from advisor_similarity.library import LibraryEntry


_MOST_IN_MAP = 30


@dataclass(frozen=True, slots=True)
class Coverage:
    """How near the nearest member of a suite is: to the average workload, to the worst one (its index)."""

    mean: float
    largest: float
    farthest: int


def compute_coverage(distances: FloatArray, suite: list[int], weights: FloatArray) -> Coverage:
    """Return how well the members ``suite`` cover all workloads of ``distances`` (n, n): 0 all in it, 1 none near.

    Each workload counts by its weight (n,), those without any not at all.
    """
    near = distances[:, suite].min(axis=1)
    farthest = int(np.where(weights > 0, near, -1.0).argmax())
    return Coverage(float(np.average(near, weights=weights)), float(near[farthest]), farthest)


def find_redundant(distances: FloatArray, suite: list[int], nearer_than: float) -> list[tuple[int, int, float]]:
    """Return members that another member can replace: (member, its stand-in, their distance), nearest pair first.

    A stand-in stays in the suite, so that leaving out all that are listed loses no more than ``nearer_than``.
    """
    pairs = sorted((float(distances[a, b]), a, b) for place, a in enumerate(suite) for b in suite[place + 1 :])
    left: set[int] = set()
    kept: set[int] = set()
    found = []
    for apart, first, second in pairs:
        if apart > nearer_than:
            break
        gone, stays = (second, first) if second not in kept else (first, second)
        if gone in left or stays in left or gone in kept:
            continue
        left.add(gone)
        kept.add(stays)
        found.append((gone, stays, apart))
    return found


def choose_representatives(distances: FloatArray, count: int, weights: FloatArray) -> list[int]:
    """Return ``count`` workloads that stand for all (n, n): the mean distance to the nearest of them is small.

    The mean weighs each workload (n,). Greedy choice, then exchanges of one member for another as long as they help
    (k-medoids, Kaufman and Rousseeuw).
    """
    n = len(distances)
    chosen: list[int] = []
    for _ in range(min(count, n)):
        chosen.append(
            min(
                (k for k in range(n) if k not in chosen), key=lambda k: _mean_distance(distances, [*chosen, k], weights)
            )
        )
    while (better := _find_exchange(distances, chosen, weights)) is not None:
        chosen = better
    return chosen


def _find_exchange(distances: FloatArray, chosen: list[int], weights: FloatArray) -> list[int] | None:
    cost = _mean_distance(distances, chosen, weights)
    for place in range(len(chosen)):
        for other in range(len(distances)):
            trial = [*chosen[:place], other, *chosen[place + 1 :]]
            if other not in chosen and _mean_distance(distances, trial, weights) < cost - 1e-12:
                return trial
    return None


def _mean_distance(distances: FloatArray, chosen: list[int], weights: FloatArray) -> float:
    return float(np.average(np.min(distances[:, chosen], axis=1), weights=weights))


def run_suite(args: Namespace, services: CommandServices) -> Report:
    """Say how well the named workloads cover the known ones, or choose some that do; raises ``UsageError``."""
    if not 0.0 <= args.near <= 1.0:
        raise UsageError(f"--near {args.near:g}: distances are between 0 and 1")
    known = [entry for entry in load_known_entries(services) if has_measure(entry, args.by)]
    if not known:
        raise UsageError(f"no known workload can be compared by {args.by}")
    if args.representatives is not None and not 1 <= args.representatives <= len(known):
        raise UsageError(f"--representatives {args.representatives}: choose 1 to {len(known)} of the known workloads")
    distances = compute_pairwise_distances(known, args.by)
    members = _find_members(args.names, known) or list(range(len(known)))
    weights = _spread_weights(parse_amounts(args.mix or (), "--mix", "NAME=WEIGHT"), known)
    parts: list[Part] = [_describe_coverage(distances, members, known, weights, bool(args.names))]
    parts += [] if args.names else [_program_table(known)]
    parts += [_redundant_table(distances, members, known, args.near), *_distance_map(distances, members, known)]
    if args.representatives is not None:
        parts.insert(0, _representatives_table(distances, args.representatives, known, weights))
    return Report("A suite of workloads", tuple(parts))


def _find_members(names: list[str], known: list[LibraryEntry]) -> list[int]:
    """Return the indices of workloads by name; the name of a program means all of its workloads."""
    found: list[int] = []
    for name in names or []:
        same = [number for number, entry in enumerate(known) if name in (entry.name, entry.program)]
        if not same:
            programs = dict.fromkeys(word for entry in known for word in (entry.program, entry.name))
            raise UsageError(
                f"{name!r} is not a known workload{suggest_word(name, programs)}; gapwatch suite lists them"
            )
        found += same
    return list(dict.fromkeys(found))


def _spread_weights(mix: dict[str, float], known: list[LibraryEntry]) -> FloatArray:
    """Return the weight (n,) of each known workload, all alike without a mix; a program's is shared by its workloads.

    What the mix does not name has none: it is no part of the site's work.
    """
    if not mix:
        return np.ones(len(known))
    weights = np.zeros(len(known))
    for name, weight in mix.items():
        members = _find_members([name], known)
        weights[members] += weight / len(members)
    return weights


def _describe_coverage(
    distances: FloatArray, members: list[int], known: list[LibraryEntry], weights: FloatArray, chosen: bool
) -> Text:
    if not chosen:
        return Text(f"{len(known)} workloads are known. Name some to see how well they cover the others.")
    found = compute_coverage(distances, members, weights)
    return Text(
        f"{len(members)} of {len(known)} known workloads: the nearest member is {found.mean:.3f} away on average and "
        f"{found.largest:.3f} at most, from {known[found.farthest].name}."
    )


def _program_table(known: list[LibraryEntry]) -> Table:
    count = Counter(entry.program for entry in known)
    rows = tuple((name, number, next(e.name for e in known if e.program == name)) for name, number in count.items())
    return Table("Known programs", (Column("program"), Column("workloads"), Column("one of them")), rows)


def _redundant_table(distances: FloatArray, members: list[int], known: list[LibraryEntry], near: float) -> Table:
    rows = [
        (known[gone].name, known[stays].name, apart) for gone, stays, apart in find_redundant(distances, members, near)
    ]
    columns = (Column("could be left out"), Column("because of"), Column("distance"))
    return Table(f"Redundant members: closer to another one than {near:g}", columns, tuple(rows))


def _representatives_table(distances: FloatArray, count: int, known: list[LibraryEntry], weights: FloatArray) -> Table:
    chosen = choose_representatives(distances, count, weights)
    nearest = distances[:, chosen].argmin(axis=1)
    found = compute_coverage(distances, chosen, weights)
    total = float(weights.sum())
    rows = tuple(
        (known[member].name, int((nearest == place).sum()), float(weights[nearest == place].sum()) / total)
        for place, member in enumerate(chosen)
    )
    title = f"Representatives: the nearest is {found.mean:.3f} away on average, {found.largest:.3f} at most"
    return Table(title, (Column("workload"), Column("stands for"), Column("of the mix", "share")), rows)


def _distance_map(distances: FloatArray, members: list[int], known: list[LibraryEntry]) -> list[Part]:
    if len(members) > _MOST_IN_MAP:
        return []
    names = tuple(known[member].name for member in members)
    cells = tuple(tuple(float(distances[a, b]) for b in members) for a in members)
    return [HeatMap("Distances", "", names, names, cells)]
