"""Documents of the project's own format, whole and with a mistake, and files that hold them."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

PROFILES = Path(__file__).parent / "profiles"

#: A run with one of everything that can be stated.
FULL: dict[str, Any] = {
    "schema": "gapwatch/profile/1",
    "program": "heat",
    "run": "17",
    "actual_s": 10.0,
    "processors": [{"rank": 0, "host": "n1"}, {"rank": 0, "thread": 1, "from_s": 0.5, "to_s": 9}],
    "regions": [{"name": "solve", "file": "heat.c", "line": 12, "threaded": True}, {"name": "exchange"}],
    "phases": [
        {
            "name": "step",
            "kind": "parallel",
            "closed_by": "MPI_Allreduce",
            "start_s": [0, 4.5],
            "duration_s": [4.5, 5],
            "regions": [0, 1],
            "wall_s": [[[3, 4], [2, 2]], [[1, 0.5], [1, 1]]],
            "os_s": [[[-0.001, 0], [0, 0]], [[0, 0], [0, 0]]],
        },
        {"name": "end", "regions": [1], "wall_s": [[0.5, 0.25]]},
    ],
    "status": {"wall_s": "measured", "os_s": "estimated"},
    "build": "v1.2",
    "started": "2026-11-20T10:00:00Z",
    "machine": "laptop",
    "cores": 4,
    "language": "c",
    "paradigms": ["mpi", "openmp"],
    "parameters": {"n": 4096, "solver": "cg"},
    "outside": {"start-up": [0.5, 0.25]},
    "counts": {"messages": [[0, 0], [16, 12]]},
    "causes": {
        **{"kinds": ["late sender"], "targets": [], "category": [1], "kind": [0], "phase": [0], "call": [1]},
        **{"caller": [-1], "processor": [0], "partner": [1], "target": [-1], "size_class": [11], "seconds": [0.5]},
        **{"count": [2], "bytes": [2048]},
    },
    "notes": [{"name": "clock", "text": "one node only", "penalty": 0.05, "collect": "date"}],
    "ranks_expected": 1,
    "clock_uncertainty_s": 1e-6,
    "sampled_code": [[4464, 12], [4470, 3]],
    "reader": "timers of heat",
}


def written(folder: Path, document: object) -> Path:
    path = folder / "run.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def archived(folder: Path, document: object, **arrays: npt.NDArray[Any]) -> Path:
    path = folder / "run.npz"
    np.savez(path, profile=np.array(json.dumps(document)), **arrays)
    return path


def changed(*path: str | int, to: object) -> dict[str, Any]:
    """``FULL`` with one value replaced."""
    document = copy.deepcopy(FULL)
    at: Any = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return document


#: A phase whose wall time is the array ``wall`` of an archive.
WALL = {"name": "step", "regions": [0, 1], "wall_s": "wall"}


def npy(array: npt.NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()
