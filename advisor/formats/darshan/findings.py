"""Small, unaligned and shared-file access, file by file: what Darshan sees and nothing else in a profile says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES, SMALL_IO_B, UNALIGNED_FILE, Finding
from advisor.model.units import format_bytes, format_seconds, format_share
from advisor.support.grouping import sum_by_group

if TYPE_CHECKING:
    from advisor.model.records import Causes, FloatArray, IntArray, Profile

#: Files with less of the I/O time than this, and access that is less of their operations, are not worth a word.
LEAST: Final = 0.01
NOTABLE: Final = 0.1
#: How many files of each kind are listed, those with the most time first.
LIMIT: Final = 20
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _FileAccess:
    """What was done with files, those of one row each alike but for numbers in their names; all columns (n,).

    ``seconds`` are sums over the ranks, ``ranks`` counts who reads or writes the file that most do.
    """

    names: tuple[str, ...]
    files: IntArray
    seconds: FloatArray
    operations: FloatArray
    bytes: FloatArray
    small: FloatArray
    unaligned: FloatArray
    shared: FloatArray
    ranks: IntArray


def build_findings(profile: Profile, causes: Causes) -> tuple[Finding, ...]:
    """Return a finding for each sort of access and file (or row of files with numbered names) where it matters."""
    rows = np.flatnonzero((causes.category == CAUSE_CATEGORIES.index("io")) & (causes.target >= 0))
    total = float(causes.seconds[rows].sum())
    if not total > 0:
        return ()
    found = _group_files(causes, rows)
    order = np.argsort(-found.seconds, kind="stable").tolist()
    worth = [n for n in order if found.seconds[n] >= LEAST * total and found.operations[n] > 0]
    written: list[Finding] = []
    for kind, counted, what in (
        ("small file access", found.small, f"move at most {format_bytes(SMALL_IO_B)}"),
        ("unaligned file access", found.unaligned, "begin inside a block of the file system"),
        ("shared file access", found.shared, "are in a file that several ranks read or write"),
    ):
        chosen = [n for n in worth if counted[n] >= NOTABLE * found.operations[n]][:LIMIT]
        written += [_build_finding(profile, found, n, kind, float(counted[n]), what, total) for n in chosen]
    return tuple(written)


def _group_files(causes: Causes, rows: IntArray) -> _FileAccess:
    """Return what the ``rows`` of the causes say of each file, or row of files with numbered names."""
    patterns = [_NUMBERS.sub("*", name) for name in causes.targets]
    names = tuple(dict.fromkeys(patterns))
    place = {name: n for n, name in enumerate(names)}
    group = np.array([place[pattern] for pattern in patterns])
    target = causes.target[rows]
    count = np.where(causes.size_class[rows] >= 0, causes.count[rows], 0)
    mean = causes.bytes[rows] / np.maximum(count, 1)
    unaligned = np.array([kind == UNALIGNED_FILE for kind in causes.kinds])[causes.kind[rows]]
    used = np.unique(np.stack((target[count > 0], causes.processor[rows][count > 0])), axis=1)
    ranks = np.bincount(used[0], minlength=len(patterns))
    members = np.bincount(group[np.unique(target)], minlength=len(names))
    single = {int(group[t]): causes.targets[t] for t in np.unique(target) if members[group[t]] == 1}

    def sum_by_pattern(values: FloatArray | IntArray) -> FloatArray:
        return sum_by_group(group[target], values.astype(np.float64), len(names))

    most = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(most, group, ranks)
    return _FileAccess(
        names=tuple(single.get(n, name) for n, name in enumerate(names)),
        files=members,
        seconds=sum_by_pattern(causes.seconds[rows]),
        operations=sum_by_pattern(count),
        bytes=sum_by_pattern(causes.bytes[rows]),
        small=sum_by_pattern(count * (mean <= SMALL_IO_B)),
        unaligned=sum_by_pattern(count * unaligned),
        shared=sum_by_pattern(count * (ranks[target] > 1)),
        ranks=most,
    )


def _build_finding(
    profile: Profile, found: _FileAccess, n: int, kind: str, counted: float, what: str, total_s: float
) -> Finding:
    """Return the finding on the file (or row of files) ``n``, of whose operations ``counted`` are ``what`` says."""
    operations, moved, seconds = (float(column[n]) for column in (found.operations, found.bytes, found.seconds))
    mean_s = seconds / len(profile.processors)
    many = int(found.files[n]) > 1
    files, take = (f"{found.files[n]:,} files: ", "they take") if many else ("", "the file takes")
    mean = format_bytes(moved / operations)
    several = f" ({found.ranks[n]:,} ranks)" if kind.startswith("shared") else ""
    text = (
        f"{files}{counted:,.0f} of {operations:,.0f} reads and writes {what}{several}, {mean} "
        f"on average; {take} {format_seconds(mean_s)} of each rank, {format_share(seconds / total_s)} of the I/O"
    )
    measures = {
        "files": float(found.files[n]),
        "operations": operations,
        kind.removesuffix(" file access") + "_operations": counted,
        "bytes": moved,
        "ranks": float(found.ranks[n]),
        "seconds": mean_s,
        "share_of_io": seconds / total_s,
        "share_of_run": mean_s / profile.actual_s if profile.has_run_time else 0.0,
    }
    return Finding("darshan", kind, found.names[n], text, measures)
