"""Samples of Python programs: the function and line of Python, and whether the interpreter itself was at work."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
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
#: Compiled modules whose calls work on numbers, one or many.
_NUMBERS: Final = ("/numpy/", "/numpy.libs/", "/math.", "/cmath.", "/libm.so", "/libm-")
#: Functions of the interpreter that evaluate instructions, or make and free the objects between two of them, and the
#: share of its time that they take at least in a loop.
_EVALUATING: Final = (
    "_PyEval_EvalFrame", "_TAIL_CALL_", "_PyObject_Malloc", "_PyObject_Free", "PyObject_Malloc", "PyObject_Free",
)  # fmt: skip
_LEAST_EVALUATING: Final = 0.12
#: From this share of a function's samples in the interpreter on, its calls of compiled code are brief.
_PER_ELEMENT: Final = 0.15
#: Library code by which processes send each other objects.
_PACKING: Final = ("/multiprocessing/", "/concurrent/futures/process.py", "/loky/", "/cloudpickle/")

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


@dataclass(frozen=True, slots=True)
class PythonShares:
    """The parts of a function's samples in the interpreter, or in brief calls from there, and in packing data."""

    interpreted: float
    pickled: float


@dataclass(slots=True)
class _Seen:
    samples: int = 0
    interpreter: int = 0
    evaluating: int = 0
    called: int = 0


def share_python(recording: Recording) -> dict[Function, PythonShares]:
    """Return for each function of Python the shares of its samples.

    Compiled code of NumPy counts as the interpreter's where that itself takes a good part of the function: between two
    of its calls lie some hundred nanoseconds, so that they take about a microsecond, which is the price of a call for
    one element. Where the interpreter hardly evaluates instructions, it runs long operations of its own, such as a
    search in a list, which no compiler makes shorter. Loading modules and packing data have no share either.
    """
    seen: dict[Function, _Seen] = defaultdict(_Seen)
    packing: set[Function] = set()
    for thread in recording.threads:
        callers = thread.samples["callers"]
        chosen = np.flatnonzero((callers[:, 3] & PYTHON_BIT) > 0)
        if not len(chosen):
            continue
        located = locate_addresses(thread.process, thread.samples["address"][chosen]).tolist()
        objects = [one.path for one in sorted_objects(thread.process)]
        interpreter = [
            path == thread.process.program or PurePath(path).name.startswith("libpython") for path in objects
        ]
        numbers = [any(part in path for part in _NUMBERS) for path in objects]
        for (number, offset), (inner, own) in zip(located, callers[chosen][:, 2:].tolist(), strict=True):
            function = name_python_function(thread.process, inner, own)[0]
            seen[function].samples += 1
            if number >= 0 and interpreter[number]:
                seen[function].interpreter += 1
                frames = recording.places.get((objects[number], offset), ())
                seen[function].evaluating += not frames or frames[-1].function.startswith(_EVALUATING)
            seen[function].called += number >= 0 and numbers[number]
            place = thread.process.python.get(inner & _NUMBER)
            if place and any(part in (place.file or "") for part in _PACKING):
                packing.add(function)
    return {function: _share(function, one, function in packing) for function, one in seen.items()}


def _share(function: Function, seen: _Seen, packing: bool) -> PythonShares:
    if packing or function[0] == _LOADING:
        return PythonShares(0.0, float(packing))
    if seen.evaluating < _LEAST_EVALUATING * seen.interpreter:
        return PythonShares(0.0, 0.0)
    inside = seen.interpreter / seen.samples
    brief = seen.called / seen.samples if inside >= _PER_ELEMENT else 0.0
    return PythonShares(inside + brief, 0.0)


def count_python(
    samples: FloatArray, shares: Mapping[int, PythonShares], recording: Recording
) -> dict[str, FloatArray]:
    """Return the seconds of computation, and those of Python, by region and processor; nothing without Python.

    ``shares`` are those of each row of a function of Python.
    """
    if not shares:
        return {}
    seconds = samples / max(process.samples_per_s for process in recording.processes)
    inside, pickled, known = np.zeros_like(seconds), np.zeros_like(seconds), np.zeros_like(seconds)
    for row, one in shares.items():
        inside[row], pickled[row], known[row] = one.interpreted * seconds[row], one.pickled * seconds[row], seconds[row]
    return {
        "code.all_s": seconds,
        "code.known_s": known,
        "code.interpreted_s": inside,
        "code.pickled_s": pickled,
    }
