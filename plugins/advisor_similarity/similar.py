"""The command ``gapwatch similar``: which known workloads a program or a profile resembles, and what helped there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError, UsageError
from advisor.model.reports import Bar, Bars, Column, Report, Table, Text
from advisor_similarity import library
from advisor_similarity.experience import experience
from advisor_similarity.features import features_of, groups
from advisor_similarity.library import Entry, entry_of
from advisor_similarity.neighbours import nearest
from advisor_similarity.tracing import Plan, architecture_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from advisor.extension.commands import Services
    from advisor.model.reports import Part
    from advisor_similarity.neighbours import Neighbour

_MEANS: Final = {
    "mix": "the proportions of the finer classes of operations",
    "centroid": "expression (9) of the centroids",
    "tanimoto": "the Tanimoto distance of the centroids",
    "matrix": "the Frobenius norm of the parallelism matrices",
    "profile": "expression (9) of where the time goes",
}


def run(args: Namespace, services: Services) -> Report:
    """Compare what the command line names with the library, or with each other; raises ``AdvisorError``."""
    if not 1 <= len(args.paths) <= 2:
        raise UsageError("one program, profile or known name is compared with the library, two with each other")
    if args.count < 1:
        raise UsageError(f"--count {args.count}: show at least 1")
    known = known_entries(services)
    entries = [_entry(word, known, services, args.by) for word in args.paths]
    if args.keep:
        library.keep(services.folder("data"), replace(entries[0], name=args.keep))
    by = args.by or _default(entries)
    others = entries[1:] or [entry for entry in known if entry.name != entries[0].name]
    found = nearest(entries[0], others, by, None if entries[1:] else args.count)
    parts = _parts(entries[0], found, by, len(others))
    kept = [Text(library.kept_as(args.keep))] if args.keep else []
    return Report(f"What {entries[0].name} is like", (*parts, *kept))


def known_entries(services: Services) -> list[Entry]:
    """Return all known workloads: those that come along, of the daemon's history, and the user's own.

    The later ones stand in the place of earlier ones of the same name.
    """
    found = {entry.name: entry for entry in (*library.starter(), *library.experienced(services.applied()))}
    found |= {entry.name: entry for entry in library.own(services.folder("data"))}
    return list(found.values())


def _entry(word: str, known: Sequence[Entry], services: Services, by: str | None) -> Entry:
    """Return what a word of the command line names: a known workload, a program, or a profile."""
    named = next((entry for entry in known if entry.name == word), None)
    if named is not None:
        return named
    path = Path(word)
    if not path.exists():
        raise InputError(path, "is neither a file nor the name of a known workload")
    if path.is_file() and architecture_of(path):
        return _observed(path, services, by)
    advice = services.advise(path)
    program = advice.profile.program or path.name
    return Entry(program, program, profile=features_of(advice), tried=experience(services.history(program)))


def _observed(path: Path, services: Services, by: str | None) -> Entry:
    """Run a program without arguments on the oracle machine."""
    from advisor_similarity.histogram import ROWS, frequent_cells
    from advisor_similarity.parallelism import observe, temporary_folder

    with temporary_folder() as folder, services.working(f"{path.name} on the oracle machine"):
        plan = Plan((str(path.resolve()),), rows=ROWS if by == "matrix" else 0)
        observed = observe(plan, services.folder("cache"), Path(folder), smoothability=False)
        return entry_of(observed.workload, path.name, matrix=frequent_cells(observed))


def _default(entries: Sequence[Entry]) -> str:
    return "mix" if all(entry.centroid for entry in entries) else "profile"


def _parts(this: Entry, found: Sequence[Neighbour], by: str, known: int) -> list[Part]:
    if not found:
        return [
            Text(f"None of the {known} other known workloads holds what is compared by {by}; --keep NAME keeps some.")
        ]
    bars = tuple(Bar(one.entry.name, one.distance) for one in found)
    parts: list[Part] = [Text(f"Compared by {_MEANS[by]}: 0 identical, 1 orthogonal.")]
    parts += [Bars("Distance", "", bars), _differences(found), *_tried(found), *_partly(this, found, by)]
    return parts


def _differences(found: Sequence[Neighbour]) -> Table:
    columns = (Column("workload"), Column("distance"), Column("most different"), Column("here"), Column("there"))
    rows = [
        (one.entry.name if not number else "", one.distance if not number else None, *difference)
        for one in found
        for number, difference in enumerate(one.differences or (("nothing", 0.0, 0.0),))
    ]
    return Table("Differences", columns, tuple(rows))


def _partly(this: Entry, found: Sequence[Neighbour], by: str) -> list[Part]:
    """Say which workloads were compared by a part of what is known of this one."""
    known = groups(this.profile)
    less = [one.entry.name for one in found if by == "profile" and not known <= groups(one.entry.profile)]
    told = "the gaps are all that the history keeps of a run"
    return [Text(f"Compared by what both have, not by all of it: {', '.join(less)} ({told}).")] if less else []


def _tried(found: Sequence[Neighbour]) -> list[Part]:
    said = [
        f"{one.entry.name}, {one.distance:.2f} away: there " + "; ".join(tried.words for tried in one.entry.tried) + "."
        for one in found
        if one.entry.tried
    ]
    return [Text(sentence) for sentence in said]
