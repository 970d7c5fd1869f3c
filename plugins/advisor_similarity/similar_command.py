"""The command ``gapwatch similar``: which known workloads a program or a profile resembles, and what helped there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError, UsageError
from advisor.model.reports import Bar, Bars, Column, Part, Report, Table, Text
from advisor.model.units import format_seconds
from advisor.support.documents import suggest_word
from advisor_similarity import library
from advisor_similarity.features import advice_features, feature_groups
from advisor_similarity.library import LibraryEntry, build_entry, find_experience
from advisor_similarity.neighbours import NEAR, Neighbour, find_nearest
from advisor_similarity.performance import OPERATIONS, compare_performance, predict_seconds
from advisor_similarity.qemu_tracing import TracePlan, find_architecture

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandServices

#: Distances of what the oracle machine saw.
ORACLE_MEASURES: Final = ("mix", "centroid", "tanimoto", "matrix")
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
    timed = parse_amounts(args.timed or (), "--timed", "MACHINE=SECONDS")
    entries[0] = replace(entries[0], seconds=entries[0].seconds | timed)
    if args.keep or timed:
        library.store_entry(services.user_folder("data"), replace(entries[0], name=args.keep or entries[0].name))
    by = args.by or ("mix" if all(entry.centroid for entry in entries) else "profile")
    others = entries[1:] or [entry for entry in known if entry.name != entries[0].name]
    found = find_nearest(entries[0], others, by, None if entries[1:] else args.count)
    parts = _build_parts(entries[0], found, by, len(others))
    if args.predict:
        parts.insert(0, _describe_prediction(entries[0], known, args.predict, by))
    parts += _performance_table(entries, by) if len(entries) == 2 else []
    kept = [Text(library.describe_storage(args.keep or entries[0].name))] if args.keep or timed else []
    return Report(f"What {entries[0].name} is like", (*parts, *kept))


def parse_amounts(words: Sequence[str], option: str, form: str) -> dict[str, float]:
    """Return the positive numbers of words such as ``epyc=12.5``; raises ``UsageError`` with the form expected."""
    found = {}
    for word in words:
        name, _, amount = word.rpartition("=")
        try:
            value = float(amount)
        except ValueError:
            value = 0.0
        if not name or not 0 < value < math.inf:
            raise UsageError(f"{option} {word}: {form} is expected, with a positive number")
        found[name] = value
    return found


def load_known_entries(services: CommandServices) -> list[LibraryEntry]:
    """Return all known workloads: those that come along, of the daemon's history, and the user's own.

    The later ones stand in the place of earlier ones of the same name; those of the team's libraries before the
    user's own.
    """
    experienced = library.build_experienced(services.find_applied_actions())
    shared = library.load_shared(library.find_shared_folders())
    bundled = (*library.load_starter(), *library.load_programs())
    found = {entry.name: entry for entry in (*bundled, *experienced, *shared)}
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


def _describe_prediction(this: LibraryEntry, known: Sequence[LibraryEntry], machine: str, by: str) -> Text:
    """Say what the program would take on a machine, and how far that can be trusted; raises ``UsageError``."""
    if not this.centroid:
        raise UsageError(f"{this.name} has no operations to predict from: gapwatch parallelism --save NAME -- ./app")
    if machine in this.seconds:
        return Text(f"{this.name} took {format_seconds(this.seconds[machine])} on {machine}: measured, not predicted.")
    found = predict_seconds(this, known, machine, by if by in ORACLE_MEASURES else "mix")
    if found is None:
        names = {name for entry in known for name in entry.seconds}
        hint = suggest_word(machine, names) or " (gapwatch similar NAME --timed MACHINE=SECONDS notes what one took)"
        raise UsageError(f"no other known program was timed on {machine}{hint}")
    nearest, distance = found.neighbours[0]
    basis = "its operations" if found.reference == OPERATIONS else f"its time on {found.reference}"
    text = f"On {machine}: about {format_seconds(found.seconds)}"
    if found.low_s is None or found.high_s is None:
        text += ", with no interval, as fewer than four programs were timed there"
    else:
        text += f" ({format_seconds(found.low_s)} to {format_seconds(found.high_s)}, 80 % of the known programs)"
    text += f", from {basis} and {len(found.neighbours)} other programs; the nearest is {nearest}, {distance:.2f} away."
    return Text(f"{text} Far from all of them: take it as a guess." if distance > NEAR else text)


def _performance_table(entries: Sequence[LibraryEntry], by: str) -> list[Part]:
    """Return how alike two workloads perform on the machines that both ran on (the source's Tables 13 to 16)."""
    if not all(entry.centroid for entry in entries):
        return []
    alike = compare_performance(entries[0], entries[1])
    columns = (Column("machine"), Column(entries[0].name, "s"), Column(entries[1].name, "s"), Column("apart by"))
    rows = tuple((name, entries[0].seconds[name], entries[1].seconds[name], apart) for name, apart in alike.items())
    title = "Performance similarity: operations a second, 0 alike, towards 1 not"
    return [Table(title, columns, rows)] if rows else []


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
        f"{one.entry.name}{_describe_origin(one.entry)}, {one.distance:.2f} away: there "
        + "; ".join(tried.description for tried in one.entry.tried)
        + "."
        for one in found
        if one.entry.tried
    ]
    return [Text(sentence) for sentence in said]


def _describe_origin(entry: LibraryEntry) -> str:
    return f" (from {entry.origin})" if entry.origin else ""
