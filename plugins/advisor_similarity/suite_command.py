"""The command ``gapwatch suite``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from advisor.model.errors import UsageError
from advisor.model.reports import Column, HeatMap, Report, Table, Text
from advisor.support.documents import suggestion
from advisor_similarity.neighbours import has, pairwise_distances
from advisor_similarity.similar import known_entries
from advisor_similarity.suite import coverage, redundant, representatives

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import Services
    from advisor.model.records import FloatArray
    from advisor.model.reports import Part
    from advisor_similarity.library import Entry

_MOST_IN_MAP = 30


def run(args: Namespace, services: Services) -> Report:
    """Say how well the named workloads cover the known ones, or choose some that do; raises ``UsageError``."""
    if not 0.0 <= args.near <= 1.0:
        raise UsageError(f"--near {args.near:g}: distances lie between 0 and 1")
    known = [entry for entry in known_entries(services) if has(entry, args.by)]
    if not known:
        raise UsageError(f"no known workload can be compared by {args.by}")
    if args.representatives is not None and not 1 <= args.representatives <= len(known):
        raise UsageError(f"--representatives {args.representatives}: choose 1 to {len(known)} of the known workloads")
    distances = pairwise_distances(known, args.by)
    members = _members(args.names, known) or list(range(len(known)))
    parts: list[Part] = [_covered(distances, members, known, bool(args.names))]
    parts += [] if args.names else [_programs(known)]
    parts += [_redundant(distances, members, known, args.near), *_map(distances, members, known)]
    if args.representatives is not None:
        parts.insert(0, _chosen(distances, args.representatives, known))
    return Report("A suite of workloads", tuple(parts))


def _members(names: list[str], known: list[Entry]) -> list[int]:
    """Return the indices of workloads by name; the name of a program means all of its workloads."""
    found: list[int] = []
    for name in names or []:
        same = [number for number, entry in enumerate(known) if name in (entry.name, entry.program)]
        if not same:
            programs = dict.fromkeys(word for entry in known for word in (entry.program, entry.name))
            raise UsageError(f"{name!r} is no known workload{suggestion(name, programs)}; gapwatch suite lists them")
        found += same
    return list(dict.fromkeys(found))


def _covered(distances: FloatArray, members: list[int], known: list[Entry], chosen: bool) -> Text:
    if not chosen:
        return Text(f"{len(known)} workloads are known. Name some to see how well they cover the others.")
    found = coverage(distances, members)
    return Text(
        f"{len(members)} of {len(known)} known workloads: the nearest member is {found.mean:.3f} away on average and "
        f"{found.largest:.3f} at most, from {known[found.farthest].name}."
    )


def _programs(known: list[Entry]) -> Table:
    count = Counter(entry.program for entry in known)
    rows = tuple((name, number, next(e.name for e in known if e.program == name)) for name, number in count.items())
    return Table("Known programs", (Column("program"), Column("workloads"), Column("one of them")), rows)


def _redundant(distances: FloatArray, members: list[int], known: list[Entry], near: float) -> Table:
    rows = [(known[gone].name, known[stays].name, apart) for gone, stays, apart in redundant(distances, members, near)]
    columns = (Column("could be left out"), Column("because of"), Column("distance"))
    return Table(f"Redundant members: another one is nearer than {near:g}", columns, tuple(rows))


def _chosen(distances: FloatArray, count: int, known: list[Entry]) -> Table:
    chosen = representatives(distances, count)
    nearest = distances[:, chosen].argmin(axis=1)
    found = coverage(distances, chosen)
    rows = tuple((known[member].name, int((nearest == place).sum())) for place, member in enumerate(chosen))
    title = f"Representatives: the nearest is {found.mean:.3f} away on average, {found.largest:.3f} at most"
    return Table(title, (Column("workload"), Column("stands for")), rows)


def _map(distances: FloatArray, members: list[int], known: list[Entry]) -> list[Part]:
    if len(members) > _MOST_IN_MAP:
        return []
    names = tuple(known[member].name for member in members)
    cells = tuple(tuple(float(distances[a, b]) for b in members) for a in members)
    return [HeatMap("Distances", "", names, names, cells)]
