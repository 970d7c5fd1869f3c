"""Samples of Python programs: the function and line of Python, and whether the interpreter itself was at work."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.recording.naming import short_path
from advisor.trace.recordings.addresses import locate_addresses, sorted_objects
from advisor.trace.recordings.layout import PYTHON_BIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.formats.recording.contents import Recording
    from advisor.model.records import FloatArray
    from advisor.trace.recordings.processes import Process

#: A frame that the interpreter puts between calls from C, and what loads modules.
_TRAMPOLINE: Final = "<interpreter trampoline>"
_LOADING: Final = "import"
_IMPORTING: Final = "<frozen importlib"
_NUMBER: Final = ~int(PYTHON_BIT)

#: Name and file, as of all sampled functions.
Function = tuple[str, str | None]


def name_python_function(process: Process, inner: int, own: int) -> tuple[Function, int | None]:
    """Return the function of Python that computes, and the line of the program's own code that it is at.

    ``inner`` is the place of the innermost function, ``own`` that of the innermost of the program itself. A function of
    a library stands at the line that led to it; loading modules is called ``import``.
    """
    place = process.python.get(own & _NUMBER)
    called = process.python.get(inner & _NUMBER, place)
    if place is None or called is None:
        return ("unknown code", None), None
    if called.function == _TRAMPOLINE:
        called = place
    name = _LOADING if (called.file or "").startswith(_IMPORTING) else called.function.replace(".<locals>", "")
    return (name, short_path(place.file)), place.line


def interpreted_shares(recording: Recording) -> dict[Function, float]:
    """Return for each function of Python the share of its samples that lie in the interpreter, and not in libraries.

    Loading modules has no share: it is the interpreter's own work, and no loop of the program.
    """
    seen: dict[Function, list[int]] = {}
    for thread in recording.threads:
        callers = thread.samples["callers"]
        chosen = np.flatnonzero((callers[:, 3] & PYTHON_BIT) > 0)
        if not len(chosen):
            continue
        located = locate_addresses(thread.process, thread.samples["address"][chosen])[:, 0].tolist()
        interpreter = [
            one.path == thread.process.program or PurePath(one.path).name.startswith("libpython")
            for one in sorted_objects(thread.process)
        ]
        for number, (inner, own) in zip(located, callers[chosen][:, 2:].tolist(), strict=True):
            counted = seen.setdefault(name_python_function(thread.process, inner, own)[0], [0, 0])
            counted[0] += 1
            counted[1] += number >= 0 and interpreter[number]
    shares = {function: inside / samples for function, (samples, inside) in seen.items()}
    return {function: 0.0 if function[0] == _LOADING else share for function, share in shares.items()}


def count_interpreted(samples: FloatArray, share: Mapping[int, float], recording: Recording) -> dict[str, FloatArray]:
    """Return the seconds of computation, and those in the interpreter, by region and processor; nothing without Python.

    ``share`` is the part of each row in the interpreter, for functions of Python.
    """
    if not share:
        return {}
    seconds = samples / max(process.samples_per_s for process in recording.processes)
    inside, known = np.zeros_like(seconds), np.zeros_like(seconds)
    for row, part in share.items():
        inside[row], known[row] = part * seconds[row], seconds[row]
    return {"code.all_s": seconds, "code.known_s": known, "code.interpreted_s": inside}
