"""Samples of Python programs: the function and line of Python, and whether the interpreter itself was at work."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats.recording.naming import short_path
from advisor.formats.recording.python_lines import LineKind, read_line_kinds
from advisor.trace.recordings.addresses import locate_addresses, sorted_objects
from advisor.trace.recordings.layout import PYTHON_BIT

if TYPE_CHECKING:
    from advisor.formats.recording.contents import Recording
    from advisor.formats.recording.recorded_threads import RecordedThread
    from advisor.model.records import FloatArray
    from advisor.trace.recordings.places import Places
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
#: Library code in which processes take and release locks, the compiled module of it, and what it makes of a template
#: to read and write a shared value. From this share of a line's samples on the line is about a lock.
_LOCKING: Final = ("/multiprocessing/synchronize.py", "/multiprocessing/sharedctypes.py", "/_multiprocessing.")
_LOCKED_VALUE: Final = (("getvalue", "<string>"), ("setvalue", "<string>"))
_LOCKED: Final = 0.2
#: What packs objects into messages of MPI, and copies what an array holds for that.
_SENDING: Final = "/mpi4py/"
#: Library code by which processes send each other objects.
_PACKING: Final = ("/multiprocessing/", "/concurrent/futures/process.py", "/loky/", "/cloudpickle/")
#: Of these, what starts, ends and looks after processes.
_STARTING: Final = (
    "/multiprocessing/popen_", "/multiprocessing/process.py", "/multiprocessing/util.py", "/multiprocessing/context.py",
)  # fmt: skip
#: Code of the interpreter that turns objects into bytes and back, and which part of a line's samples lie in it where
#: the line does nothing else: the rest makes the objects.
_PICKLING: Final = (
    "_Pickler_", "Pickler_", "_Unpickler_", "Unpickler_", "_pickle_", "Pdata_", "PyMemoTable_", "memo_put", "memo_get",
    "save_", "batch_list", "batch_dict", "load_counted_", "do_setitems", "do_append",
)  # fmt: skip
_PICKLE_OBJECT: Final = "/_pickle."
_PICKLED: Final = 0.2
#: Libraries by what they do: tables, patterns (and dates, which are read by them), documents; what of them is compiled.
_TABLES: Final = ("/pandas/",)
_PATTERNS: Final = ("/re/__init__.py", "/re/_", "/re.py", "/sre_", "/_strptime.py")
_MATCHING: Final = ("sre_", "_sre_", "SRE", "pattern_")
_DOCUMENTS: Final = ("/json/", "/_json.")
_COPIES: Final = ("/copy.py",)
#: What compiles functions of Python when they are called first; none of it is on the stack while the result runs.
_COMPILERS: Final = ("/numba/", "/llvmlite/")
_DECODING: Final = ("_parse_object", "_parse_array", "scan_once", "scanstring", "_match_number", "encoder_")
#: Functions of the interpreter, and of the C library, that compare what a search meets, and that copy.
_COMPARING: Final = (
    "PyObject_RichCompare", "do_richcompare", "object_richcompare", "PyUnicode_RichCompare", "unicode_richcompare",
    "unicode_eq", "unicode_compare", "_PyUnicode_Equal", "list_contains", "list_index", "list_count", "list_remove",
    "PyBool_FromLong", "long_richcompare", "long_compare", "float_richcompare", "tuplerichcompare",
    "PySequence_Contains", "_PySequence_IterSearch", "memcmp", "__memcmp", "bcmp",
)  # fmt: skip
_COPYING: Final = (
    "memmove", "__memmove", "memcpy", "__memcpy", "__mremap", "mremap", "realloc", "__libc_realloc", "list_concat",
    "list_slice", "list_ass_slice", "ins1", "list_insert", "_PyUnicode_FastCopy", "PyUnicode_Concat",
    "PyUnicode_Append", "resize_compact", "bytes_concat", "PyBytes_Concat", "_PyObject_Realloc", "__brk", "sysmalloc",
    "__munmap", "__GI_munmap", "__mmap", "__GI___mmap",
)  # fmt: skip
#: Functions of the interpreter that work on dictionaries, sets and text.
_KEYS_AND_TEXT: Final = (
    "dict", "_PyDict", "PyDict", "_Py_dict", "insertdict", "insert_to", "unicode", "_PyUnicode", "PyUnicode",
    "_Py_bytes_", "ascii_", "set_", "siphash", "_Py_HashBytes", "split", "rsplit", "fastsearch", "stringlib", "replace",
    "strip", "do_strip", "_Py_strhex", "find_first", "tuplehash", "tuple_hash", "lookdict", "ucs1lib",
)  # fmt: skip
#: Functions of the interpreter that look for cycles of objects that nobody needs; what goes through an object for them
#: is called after it (``dict_traverse``).
_COLLECTING: Final = (
    "gc_collect_", "visit_", "subtract_refs", "update_refs", "move_unreachable", "deduce_unreachable", "untrack_",
    "delete_garbage", "mark_all_reachable",
)  # fmt: skip
_TRAVERSE: Final = "traverse"
#: Functions of the interpreter that calculate: where they take more, dictionaries only hold the numbers.
_CALCULATING: Final = (
    "float_", "PyFloat_", "_PyFloat_", "long_add", "long_sub", "long_mul", "long_div", "long_mod", "long_true_divide",
    "x_add", "x_sub", "x_divrem", "k_mul", "PyLong_AsDouble", "PyNumber_", "binary_op", "complex_", "math_",
)  # fmt: skip
#: Of keys and text, what looks a name up: the code of a module keeps its variables in a dictionary.
_NAMES: Final = (
    "unicodekeys_lookup", "_Py_dict_lookup", "insertdict", "insert_to", "dict_set_item", "_PyDict_SetItem",
    "PyDict_SetItem", "PyDict_GetItem", "_PyDict_LoadGlobal", "_PyDict_GetItem",
)  # fmt: skip
_MODULE: Final = "<module>"
#: The compiled module that goes through the elements of arrays, and which part of a line's samples lie in it and in
#: memory that comes and goes, if arrays are so large that the interpreter takes next to nothing between.
_ELEMENTWISE: Final = "_multiarray_umath."
_WHOLE: Final = 0.9
#: Functions of elements that take longer than it takes to fetch them.
_EXPENSIVE: Final = re.compile(r"exp|log|pow|sin|cos|tan|svml")
#: Such a part of a line's samples says what the line does; of a function's, that it works on keys and text.
_MAIN: Final = 0.5
_KEYED: Final = 0.15
#: Kinds of what Python does, by the names of their seconds (``code.interpreted_s``).
KINDS: Final = (
    "interpreted", "lock", "pickled", "keyed", "listed", "regrown", "pattern", "decoded", "rowwise", "deep_copy",
    "collected", "jitted", "stepwise",
)  # fmt: skip

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
class _Sampled:
    """What a sample was in: a function, the program's own line, the innermost file of Python, and compiled code."""

    function: Function
    line: tuple[str, int | None]
    file: str
    object: str
    compiled: str  # "" where its name is not known
    interpreter: bool


def share_python(recording: Recording) -> dict[Function, dict[str, float]]:
    """Return for each function of Python the shares of its samples by kind (``KINDS``).

    Compiled code of NumPy counts as the interpreter's where that itself takes a good part of the function: between two
    of its calls lie some hundred nanoseconds, so that they take about a microsecond, which is the price of a call for
    one element. Where the interpreter hardly evaluates instructions, it runs long operations of its own, which no
    compiler makes shorter. Loading modules and packing data have no share either.
    """
    counted: dict[Function, Counter[_Sampled]] = defaultdict(Counter)
    for thread in recording.threads:
        for one in _samples_of(thread, recording.places):
            counted[one.function][one] += 1
    lines: dict[tuple[str, int | None], Counter[str]] = defaultdict(Counter)
    for samples in counted.values():
        for one, count in samples.items():
            lines[one.line][_group(one)] += count
    sends = len(recording.processes) > 1
    sources = _Sources(min(process.real_s for process in recording.processes))
    kinds = {line: _kind_of_line(sources.kind_at(line), groups) for line, groups in lines.items()}
    return {
        function: _share(function, samples, kinds | _find_packing(samples) if sends else kinds)
        for function, samples in counted.items()
    }


def _samples_of(thread: RecordedThread, places: Places) -> Iterator[_Sampled]:
    """Yield the samples of a thread in functions of Python."""
    process, callers = thread.process, thread.samples["callers"]
    chosen = np.flatnonzero((callers[:, 3] & PYTHON_BIT) > 0)
    located = locate_addresses(process, thread.samples["address"][chosen]).tolist()
    paths = [one.path for one in sorted_objects(process)]
    interpreter = [path == process.program or PurePath(path).name.startswith("libpython") for path in paths]
    for (number, offset), (inner, own) in zip(located, callers[chosen][:, 2:].tolist(), strict=True):
        path = paths[number] if number >= 0 else ""
        frames = places.get((path, offset), ())
        place, line = process.python.get(inner & _NUMBER), process.python.get(own & _NUMBER)
        yield _Sampled(
            name_python_function(process, inner, own)[0],
            (line.file or "", line.line) if line else ("", None),
            (place.file or "") if place else "",
            path,
            frames[-1].function if frames else "",
            number >= 0 and interpreter[number],
        )


def _find_packing(samples: Counter[_Sampled]) -> dict[tuple[str, int | None], str]:
    """Return the lines at which a function packs or unpacks objects, as a call of mpi4py in small letters does."""
    packing: Counter[tuple[str, int | None]] = Counter()
    everything: Counter[tuple[str, int | None]] = Counter()
    for one, count in samples.items():
        everything[one.line] += count
        packs = _PICKLE_OBJECT in one.object or one.compiled.startswith(_PICKLING)
        packing[one.line] += count if packs else 0
    return {line: "pickled" for line, count in packing.items() if count and count >= _PICKLED * everything[line]}


def _is_locking(one: _Sampled) -> bool:
    """Return whether a sample is in what takes and releases locks of processes."""
    if (one.function[0], one.file) in _LOCKED_VALUE:
        return True
    return any(part in one.file or part in one.object for part in _LOCKING)


def _group(one: _Sampled) -> str:
    """Return what the code at a sample does for the line that it is at."""
    if _is_locking(one):
        return "locks"
    if any(part in one.file for part in _TABLES):
        return "rowwise" if one.interpreter else "tables"
    if one.compiled.startswith(_COMPARING):
        return "compares"
    if _SENDING in one.object or _PICKLE_OBJECT in one.object:
        return "sends"
    if one.compiled.startswith(_COPYING):
        return "copies"
    return "elements" if _ELEMENTWISE in one.object and not _EXPENSIVE.search(one.compiled) else "other"


def _kind_of_line(asked: LineKind, groups: Counter[str]) -> str | None:
    """Return the kind of all samples at a line, where what it asks for and what the samples lie in agree."""
    if groups["locks"] >= _LOCKED * groups.total():
        return "lock"
    most = _MAIN * groups.total()
    arrays = groups["elements"] + groups["copies"]
    if LineKind.COMBINES in asked and groups["elements"] >= most and arrays >= _WHOLE * groups.total():
        return "stepwise"
    if LineKind.IMPORTS in asked:
        return _LOADING
    if LineKind.SENDS in asked and groups["sends"] + groups["copies"] >= most:
        return "pickled"
    if LineKind.SEARCHES in asked and groups["compares"] >= most:
        return "listed"
    if LineKind.GROWS in asked and groups["copies"] >= most:
        return "regrown"
    if LineKind.EXTENDS in asked and groups["copies"] + groups["rowwise"] + groups["tables"] >= most:
        return "regrown"  # making a table of two costs more than to copy them
    return "rowwise" if groups["rowwise"] >= most else None


def _share(function: Function, samples: Counter[_Sampled], kinds: Mapping[Any, str | None]) -> dict[str, float]:
    found: Counter[str] = Counter()
    evaluating = called = text = calculating = 0
    for one, count in samples.items():
        kind = _kind_of_library(one)
        if kind != "lock" and any(part in one.file for part in _PACKING):
            return {} if any(part in one.file for part in _STARTING) else {"pickled": 1.0}
        kind = "collected" if _is_collecting(one) else kinds[one.line] or kind
        found[kind or ("interpreted" if one.interpreter else "")] += count
        if one.interpreter and not kind:
            evaluating += count if not one.compiled or one.compiled.startswith(_EVALUATING) else 0
            named = function[0] == _MODULE and one.compiled.startswith(_NAMES)
            text += count if one.compiled.startswith(_KEYS_AND_TEXT) and not named else 0
            calculating += count if one.compiled.startswith(_CALCULATING) else 0
        elif not kind:
            called += count if any(part in one.object for part in _NUMBERS) else 0
    total, inside = samples.total(), found.pop("interpreted", 0)
    if function[0] == _LOADING:
        return {}
    shares = {kind: count / total for kind, count in found.items() if kind in KINDS}
    if text >= _KEYED * inside > 0 and text >= calculating + called:
        return shares | {"keyed": inside / total}
    if evaluating < _LEAST_EVALUATING * inside:
        return shares
    return shares | {"interpreted": (inside + (called if inside >= _PER_ELEMENT * total else 0)) / total}


def _is_collecting(one: _Sampled) -> bool:
    """Return whether a sample is in the collection of garbage, which may come at any line that makes objects."""
    return one.interpreter and (one.compiled.startswith(_COLLECTING) or one.compiled.endswith(_TRAVERSE))


def _kind_of_library(one: _Sampled) -> str | None:
    """Return the kind of what a library does, by its names."""
    if _is_locking(one):
        return "lock"
    if any(part in one.file or part in one.object for part in _DOCUMENTS) or one.compiled.startswith(_DECODING):
        return "decoded"
    if one.file.endswith(_COPIES):
        return "deep_copy"
    if any(part in one.file or part in one.object for part in _COMPILERS):
        return "jitted"
    return "pattern" if any(part in one.file for part in _PATTERNS) or one.compiled.startswith(_MATCHING) else None


class _Sources:
    """The sources that functions were read from, each parsed once."""

    def __init__(self, begin_s: float) -> None:
        self.begin_s = begin_s
        self.files: dict[str, Mapping[int, LineKind]] = {}

    def kind_at(self, line: tuple[str, int | None]) -> LineKind:
        """Return what a line of the program does; nothing where its source is not to be had."""
        file, number = line
        if number is None or not PurePath(file).is_absolute():
            return LineKind.NOTHING
        if file not in self.files:
            self.files[file] = read_line_kinds(file, self.begin_s)
        return self.files[file].get(number, LineKind.NOTHING)


def count_python(
    samples: FloatArray, shares: Mapping[int, Mapping[str, float]], recording: Recording
) -> dict[str, FloatArray]:
    """Return the seconds of computation, and those of Python by kind, by region and processor; nothing without Python.

    ``shares`` are those of each row of a function of Python.
    """
    if not shares:
        return {}
    seconds = samples / max(process.samples_per_s for process in recording.processes)
    known = np.zeros_like(seconds)
    tables = {kind: np.zeros_like(seconds) for kind in KINDS}
    for row, one in shares.items():
        known[row] = seconds[row]
        for kind, share in one.items():
            tables[kind][row] = share * seconds[row]
    return {"code.all_s": seconds, "code.known_s": known, **{f"code.{kind}_s": table for kind, table in tables.items()}}
