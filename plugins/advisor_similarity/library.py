"""The workloads that are known: those that come along, the user's own, and what was tried in a program and won."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from advisor.model.errors import InputError
from advisor.model.lists import join_names
from advisor.model.records import Advice, FloatArray, KnownDocument
from advisor_similarity.features import Features, advice_features
from advisor_similarity.measures import Cells
from advisor_similarity.steps import COARSE, FINE_NAMES

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from advisor.advice.earlier_runs import AppliedAction
    from advisor_similarity.workload import Workload


OWN: Final = "workloads.json"
#: The environment variable that names directories of a team's workloads.
SHARED: Final = "GAPWATCH_WORKLOADS"
_LARGEST_B: Final = 64 << 20
#: Workloads of a file that are named, at most.
_NAMED: Final = 3
#: A run that is faster by less than this share is not faster.
_LEAST_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """One known workload: what it is, its centroid or its profile or both, and what was tried.

    ``program`` is the label that runs of one program share, ``about`` says size and build in words. ``matrix`` holds
    the most frequent cells of the parallelism matrix, where single cycles were kept. ``seconds`` is what it took on
    machines, by their names. ``origin`` says whose library it is from, where that is not the user's.
    """

    name: str
    program: str
    about: str = ""
    architecture: str = ""
    centroid: tuple[float, ...] = ()
    fine: dict[str, float] = field(default_factory=dict)
    cycles: int = 0
    operations: int = 0
    instructions: int = 0
    smoothability: float | None = None
    matrix: Cells = ()
    profile: Features = field(default_factory=dict)
    tried: tuple[TriedActions, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    origin: str = ""


def load_starter() -> tuple[LibraryEntry, ...]:
    """Return the workloads that come along: common kernels, measured (``examples/workloads``)."""
    return _read_entries(resources.files("advisor_similarity") / "known" / "starter.json")


def load_programs() -> tuple[LibraryEntry, ...]:
    """Return the public programs that come along, measured (``studies/workloads``)."""
    return _read_entries(resources.files("advisor_similarity") / "known" / "programs.json")


def load_own(folder: Path) -> tuple[LibraryEntry, ...]:
    """Return the user's workloads; raises ``InputError`` where the file is damaged."""
    path = folder / OWN
    return _read_entries(path) if path.exists() else ()


def load_shared(folders: Sequence[Path]) -> tuple[LibraryEntry, ...]:
    """Return the workloads of libraries that a team shares: all JSON files of the folders, each entry with its origin.

    Raises ``InputError`` where a folder or a file can't be read.
    """
    found: list[LibraryEntry] = []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(folder, f"is not a directory of workloads ({SHARED} names it)")
        for path in sorted(folder.glob("*.json")):
            found += [replace(entry, origin=entry.origin or str(path)) for entry in _read_entries(path)]
    return tuple(found)


def find_shared_folders() -> list[Path]:
    """Return the directories that the environment variable ``GAPWATCH_WORKLOADS`` names."""
    return [Path(part) for part in os.environ.get(SHARED, "").split(os.pathsep) if part]


def build_experienced(applied: Sequence[AppliedAction]) -> list[LibraryEntry]:
    """Return the programs to which the daemon knows an action was applied, as they were before that."""
    return [
        LibraryEntry(
            f"{program} before {one.action}", program, profile=advice_features(one.before), tried=(from_applied(one),)
        )
        for one in applied
        if (program := one.before.profile.program) and one.before.profile.has_run_time
    ]


def describe_storage(name: str) -> str:
    """Return the sentence on where a workload was stored."""
    return f"Kept in your library as '{name}'; gapwatch similar takes this name."


def store_entry(folder: Path, entry: LibraryEntry) -> None:
    """Write a workload to the user's library, replacing one of the same name.

    What it does not hold, the profile of a workload with a centroid for example, stays as it was.
    """
    known = {one.name: one for one in load_own(folder)}
    known[entry.name] = _merge_entries(known.get(entry.name), entry)
    part = folder / f"{OWN}.{os.getpid()}"
    part.write_bytes(msgspec.json.format(msgspec.json.encode(tuple(known.values()))))
    part.replace(folder / OWN)


def keep_workloads(path: Path, folder: Path) -> KnownDocument:
    """Keep the workloads of a file in the library at ``folder``, each with where it came from; return what they are.

    One that the user has under its name stays. Raises ``InputError`` where the file is no library.
    """
    found = _read_entries(path)
    folder.mkdir(parents=True, exist_ok=True)
    known = {one.name for one in load_own(folder)}
    for entry in found:
        if entry.name not in known:
            store_entry(folder, replace(entry, about=entry.about or f"from {path}"))
    many = f"{len(found)} workload{'' if len(found) == 1 else 's'}"
    source = " of an oracle machine" if any(entry.centroid for entry in found) else ""
    return KnownDocument(f"{many}{source} ({join_names([one.name for one in found], _NAMED)})")


def build_entry(
    workload: Workload, name: str, about: str = "", matrix: Cells = (), *, sampled: bool = False
) -> LibraryEntry:
    """Return a workload as an entry of the library; of one that was ``sampled`` cycles and operations of the whole run.

    What a run takes is compared with its operations, so these must be all of them.
    """
    if sampled and workload.operations:
        factor = workload.executed / workload.operations
        workload = replace(workload, cycles=round(workload.cycles * factor), operations=workload.executed)
    return LibraryEntry(
        name=name, program=workload.name, about=about, architecture=workload.architecture,
        centroid=workload.centroid, fine=workload.fine, cycles=workload.cycles, operations=workload.operations,
        instructions=workload.instructions, smoothability=workload.smoothability,
        matrix=matrix,
    )  # fmt: skip


def collect_centroids(entries: Sequence[LibraryEntry]) -> FloatArray:
    """Return the centroids (n, 5) of entries that have one."""
    return np.array([entry.centroid for entry in entries], dtype=np.float64).reshape(-1, len(COARSE))


def collect_fine_vectors(entries: Sequence[LibraryEntry]) -> FloatArray:
    """Return operations a cycle by finer class (n, classes) of entries that have a centroid."""
    names = FINE_NAMES[:-1]
    return np.array([[entry.fine.get(name, 0.0) for name in names] for entry in entries]).reshape(-1, len(names))


def _merge_entries(old: LibraryEntry | None, new: LibraryEntry) -> LibraryEntry:
    if old is None:
        return new
    kept = new if new.centroid else old
    return replace(
        kept, profile=new.profile or old.profile, tried=new.tried or old.tried, seconds=old.seconds | new.seconds
    )


def _read_entries(path: Traversable | Path) -> tuple[LibraryEntry, ...]:
    try:
        data = path.read_bytes()
        if len(data) > _LARGEST_B:
            raise InputError(str(path), f"is larger than {_LARGEST_B >> 20} MiB")
        entries = msgspec.json.decode(data, type=tuple[LibraryEntry, ...])
    except OSError as error:
        raise InputError(str(path), f"can't be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(str(path), f"is not a library of workloads: {error}") from error
    wrong = next((entry for entry in entries if entry.centroid and not _is_sound(entry)), None)
    if wrong is not None:
        raise InputError(
            str(path),
            f"{wrong.name!r}: its centroid is not {len(COARSE)} numbers from 0 up, or its seconds are not positive",
        )
    return entries


def _is_sound(entry: LibraryEntry) -> bool:
    values = (*entry.centroid, *entry.fine.values(), *entry.seconds.values())
    sound = all(np.isfinite(value) and value >= 0 for value in values) and all(entry.seconds.values())
    return len(entry.centroid) == len(COARSE) and sound


@dataclass(frozen=True, slots=True)
class TriedActions:
    """Actions that were carried out between two builds: the share of the run time that was won, and of the ceiling.

    More than one action were carried out together; what each of them won is not known then.
    """

    actions: tuple[str, ...]
    won: float
    of_ceiling: float

    @property
    def description(self) -> str:
        """``A-24 won 11 %``."""
        won = f"won {self.won:.0%}" if self.won >= 0 else f"lost {-self.won:.0%}"
        return f"{' and '.join(self.actions)} {won.replace('%', ' %')}"


def from_applied(one: AppliedAction) -> TriedActions:
    """Return what the daemon knows of an action that was applied."""
    return TriedActions((one.action,), one.won_s / one.before.profile.actual_s, one.won_s / one.ceiling_s)


def find_experience(history: Sequence[Advice]) -> tuple[TriedActions, ...]:
    """Return what was tried from build to build: advice that a later build no longer needs, and the time it won.

    ``history`` is oldest first. Runs of one build, runs on other numbers of processors and builds in which no advice
    went away teach nothing.
    """
    found = (_compare_builds(before, after) for before, after in pairwise(_select_last_runs(history)))
    return tuple(one for one in found if one is not None)


def _select_last_runs(history: Sequence[Advice]) -> list[Advice]:
    """Return the last run of every build, in the order of their first."""
    last: dict[str, Advice] = {}
    for advice in history:
        if advice.profile.build and advice.profile.has_run_time:
            last[advice.profile.build] = advice
    return list(last.values())


def _compare_builds(before: Advice, after: Advice) -> TriedActions | None:
    if len(before.profile.processors) != len(after.profile.processors):
        return None
    still = {item.fingerprint for item in after.recommendations}
    gone = {item.action: item for item in before.recommendations if item.fingerprint not in still}
    won_s = before.profile.actual_s - after.profile.actual_s
    if not gone or abs(won_s) < _LEAST_SHARE * before.profile.actual_s:
        return None
    ceiling_s = sum(item.ceiling_s for item in gone.values())
    return TriedActions(
        tuple(sorted(gone)), won_s / before.profile.actual_s, won_s / ceiling_s if ceiling_s > 0 else 0.0
    )
