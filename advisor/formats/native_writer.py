"""From a Profile to a document of the project's own format ``gapwatch/profile/1`` (docs/formats/native.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import Causes, Note, Phase, Profile
from advisor.support.atomic_write import atomic_write

if TYPE_CHECKING:
    import numpy.typing as npt

    Store = Callable[[str, npt.NDArray[np.generic]], object]

_PLAIN: Final = (
    *("program", "run", "reader", "actual_s", "build", "started", "machine", "cores", "language", "executable"),
    *("ranks_expected", "clock_uncertainty_s", "job", "command"),
)

#: The note of a run with devices that was written without what they did.
WITHOUT_DEVICES: Final = Note(
    "devices left out", "what the devices did is not in this document: read the trace itself", 1.0
)


def write_profile(profile: Profile, path: Path) -> None:
    """Write the run to ``path``, as NPZ where the name ends so, else as JSON; raises ``OSError``.

    The account of devices is not written: what is read again says so, and gives no advice. The file appears under its
    name only when it is complete, so that a watcher never sees half of it.
    """
    if profile.devices is not None:
        profile = replace(profile, notes=(*profile.notes, WITHOUT_DEVICES))
    with atomic_write(path) as partial:
        if path.suffix == ".npz":
            _write_archive(profile, partial)
        else:
            text = json.dumps(
                _build_document(profile, lambda _, array: array.tolist()), allow_nan=False, ensure_ascii=False
            )
            partial.write_text(text + "\n", encoding="utf-8")


def _write_archive(profile: Profile, path: Path) -> None:
    arrays: dict[str, npt.NDArray[np.generic]] = {}

    def store_array(name: str, array: npt.NDArray[np.generic]) -> str:
        arrays[name] = array
        return name

    text = json.dumps(_build_document(profile, store_array), allow_nan=False)
    with path.open("wb") as stream:
        np.savez(stream, allow_pickle=False, profile=np.array(text), **arrays)


def _build_document(profile: Profile, store: Store) -> dict[str, object]:
    """Return the document; ``store_array`` is given each array with a name and returns what stands for it."""
    plain = {name: getattr(profile, name) for name in _PLAIN}
    document: dict[str, object] = {
        "schema": "gapwatch/profile/1",
        **{name: value for name, value in plain.items() if value is not None},
        "actual_s": profile.actual_s if profile.has_run_time else None,
        "processors": [_drop_missing(asdict(processor)) for processor in profile.processors],
        "regions": [_drop_missing(asdict(region)) for region in profile.regions],
        "phases": [_convert_phase(phase, f"phases.{i}", store) for i, phase in enumerate(profile.phases)],
        "status": dict(profile.status),
        "paradigms": list(profile.paradigms),
        "parameters": dict(profile.parameters),
        "outside": {key: store(f"outside.{i}", array) for i, (key, array) in enumerate(profile.outside.items())},
        "counts": {key: store(f"counts.{i}", array) for i, (key, array) in enumerate(profile.counts.items())},
        "notes": [_drop_missing(asdict(note)) for note in profile.notes],
    }
    if profile.sampled_code:
        document["sampled_code"] = [list(pair) for pair in profile.sampled_code]
    if profile.causes is not None:
        document["causes"] = _convert_causes(profile.causes, store)
    return document


def _drop_missing(record: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in record.items() if value is not None}


def _convert_phase(phase: Phase, name: str, store: Store) -> dict[str, object]:
    described: dict[str, object] = {"name": phase.name, "kind": phase.kind, "closed_by": phase.closed_by}
    series = {"regions": phase.regions, "start_s": phase.start_s, "duration_s": phase.duration_s, **phase.arrays}
    stored = {key: store(f"{name}.{key}", array) for key, array in series.items() if array is not None}
    return _drop_missing(described) | stored


def _convert_causes(causes: Causes, store: Store) -> dict[str, object]:
    columns = {field.name: getattr(causes, field.name) for field in fields(Causes)}
    return {
        name: store(f"causes.{name}", column) if isinstance(column, np.ndarray) else list(column)
        for name, column in columns.items()
    }
