"""The command ``gapwatch similar``: which known workloads a program or a profile resembles, and what helped there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError, UsageError
from advisor.model.reports import Bar, Bars, Column, Report, Table, Text
from advisor_similarity import library
from advisor_similarity.experience import find_experience
from advisor_similarity.features import advice_features, feature_groups
from advisor_similarity.library import LibraryEntry, build_entry
from advisor_similarity.neighbours import find_nearest
from advisor_similarity.qemu_tracing import TracePlan, find_architecture

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from advisor.extension.commands import CommandServices
    from advisor.model.reports import Part
    from advisor_similarity.neighbours import Neighbour

_MEANS: Final = {
    "mix": "the proportions of the finer classes of operations",
    "centroid": "expression (9) of the centroids",
    "tanimoto": "the Tanimoto distance of the centroids",
    "matrix": "the Frobenius norm of the parallelism matrices",
    "profile": "expression (9) of where the time goes",
}


def run_similar(args: Namespace, services: CommandServices) -> Report:
    """Compare what the command line names with the library, or with each other; raises ``AdvisorError``."""
    if not 1 <= len(args.paths) <= 2:
        raise UsageError("one program, profile or known name is compared with the library, two with each other")
    if args.count < 1:
        raise UsageError(f"--count {args.count}: show at least 1")
    known = load_known_entries(services)
    entries = [_resolve_entry(word, known, services, args.by) for word in args.paths]
    if args.keep:
        library.store_entry(services.user_folder("data"), replace(entries[0], name=args.keep))
    by = args.by or _default_measure(entries)
    others = entries[1:] or [entry for entry in known if entry.name != entries[0].name]
    found = find_nearest(entries[0], others, by, None if entries[1:] else args.count)
    parts = _build_parts(entries[0], found, by, len(others))
    kept = [Text(library.describe_storage(args.keep))] if args.keep else []
    return Report(f"What {entries[0].name} is like", (*parts, *kept))


def load_known_entries(services: CommandServices) -> list[LibraryEntry]:
    """Return all known workloads: those that come along, of the daemon's history, and the user's own.

    The later ones stand in the place of earlier ones of the same name.
    """
    found = {
        entry.name: entry
        for entry in (*library.load_starter(), *library.build_experienced(services.find_applied_actions()))
    }
    found |= {entry.name: entry for entry in library.load_own(services.user_folder("data"))}
    return list(found.values())


def _resolve_entry(word: str, known: Sequence[LibraryEntry], services: CommandServices, by: str | None) -> LibraryEntry:
    """Return what a word of the command line names: a known workload, a program, or a profile."""
    named = next((entry for entry in known if entry.name == word), None)
    if named is not None:
        return named
    path = Path(word)
    if not path.exists():
        raise InputError(path, "is neither a file nor the name of a known workload")
    if path.is_file() and find_architecture(path):
        return _observe_program(path, services, by)
    advice = services.advise(path)
    program = advice.profile.program or path.name
    return LibraryEntry(
        program, program, profile=advice_features(advice), tried=find_experience(services.load_history(program))
    )


def _observe_program(path: Path, services: CommandServices, by: str | None) -> LibraryEntry:
    """Run a program without arguments on the oracle machine."""
    from advisor_similarity.histogram import ROWS, frequent_cells
    from advisor_similarity.parallelism import observe_program, temporary_folder

    with temporary_folder() as folder, services.show_progress(f"{path.name} on the oracle machine"):
        plan = TracePlan((str(path.resolve()),), rows=ROWS if by == "matrix" else 0)
        observed = observe_program(plan, services.user_folder("cache"), Path(folder), smoothability=False)
        return build_entry(observed.workload, path.name, matrix=frequent_cells(observed))


def _default_measure(entries: Sequence[LibraryEntry]) -> str:
    return "mix" if all(entry.centroid for entry in entries) else "profile"


def _build_parts(this: LibraryEntry, found: Sequence[Neighbour], by: str, known: int) -> list[Part]:
    if not found:
        return [
            Text(f"None of the {known} other known workloads holds what is compared by {by}; --keep NAME keeps some.")
        ]
    bars = tuple(Bar(one.entry.name, one.distance) for one in found)
    parts: list[Part] = [Text(f"Compared by {_MEANS[by]}: 0 identical, 1 orthogonal.")]
    parts += [
        Bars("Distance", "", bars),
        _differences_table(found),
        *_describe_tried(found),
        *_describe_partial(this, found, by),
    ]
    return parts


def _differences_table(found: Sequence[Neighbour]) -> Table:
    columns = (Column("workload"), Column("distance"), Column("most different"), Column("here"), Column("there"))
    rows = [
        (one.entry.name if not number else "", one.distance if not number else None, *difference)
        for one in found
        for number, difference in enumerate(one.differences or (("nothing", 0.0, 0.0),))
    ]
    return Table("Differences", columns, tuple(rows))


def _describe_partial(this: LibraryEntry, found: Sequence[Neighbour], by: str) -> list[Part]:
    """Say which workloads were compared by a part of what is known of this one."""
    known = feature_groups(this.profile)
    less = [one.entry.name for one in found if by == "profile" and not known <= feature_groups(one.entry.profile)]
    told = "the gaps are all that the history keeps of a run"
    return [Text(f"Compared by what both have, not by all of it: {', '.join(less)} ({told}).")] if less else []


def _describe_tried(found: Sequence[Neighbour]) -> list[Part]:
    said = [
        f"{one.entry.name}, {one.distance:.2f} away: there "
        + "; ".join(tried.description for tried in one.entry.tried)
        + "."
        for one in found
        if one.entry.tried
    ]
    return [Text(sentence) for sentence in said]
