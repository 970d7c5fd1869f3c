"""What samples of Python functions say of the work in them."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from advisor.formats.recording import python_frames
from advisor.formats.recording.python_frames import _Sampled
from advisor.formats.recording.python_lines import LineKind

FUNCTION = ("evaluate", "farm.py")


def share_of(samples: dict[str, int]) -> dict[str, float]:
    """Return the shares of a function by its samples: names of the interpreter's functions, ``libm`` for a library."""
    counted: Counter[_Sampled] = Counter()
    for name, count in samples.items():
        inside = name != "libm"
        where = "/usr/lib/libpython3.11.so" if inside else "/lib/libm.so.6"
        counted[_Sampled(FUNCTION, ("farm.py", 8), "farm.py", where, name if inside else "sin", inside)] += count
    return python_frames._share(FUNCTION, counted, defaultdict(lambda: None))


@pytest.mark.parametrize(
    ("samples", "kind"),
    [
        ({"_PyEval_EvalFrameDefault": 10, "_Py_dict_lookup": 8, "unicode_hash": 2}, "keyed"),
        ({"_PyEval_EvalFrameDefault": 10, "_Py_dict_lookup": 4, "long_add": 2}, "keyed"),
        (
            {"_PyEval_EvalFrameDefault": 10, "_Py_dict_lookup": 4, "float_mul": 3, "PyFloat_FromDouble": 2},
            "interpreted",
        ),
        ({"_PyEval_EvalFrameDefault": 10, "_Py_dict_lookup": 4, "float_mul": 2, "libm": 4}, "interpreted"),
        ({"_PyEval_EvalFrameDefault": 10, "float_mul": 3}, "interpreted"),
    ],
)
def test_a_function_that_mostly_calculates_is_not_about_its_dictionaries(samples: dict[str, int], kind: str) -> None:
    found = share_of(samples)
    assert set(found) == {kind}
    assert found[kind] > 0.7


@pytest.mark.parametrize(
    ("file", "shares"),
    [
        ("/usr/lib/python3.11/copy.py", {"deep_copy": 1.0}),
        ("/usr/lib/python3/dist-packages/numba/core/typeinfer.py", {"jitted": 1.0}),
        ("/usr/lib/python3.11/multiprocessing/connection.py", {"pickled": 1.0}),
        ("/usr/lib/python3.11/multiprocessing/popen_fork.py", {}),
    ],
)
def test_what_the_library_of_python_does_is_told_by_its_files(file: str, shares: dict[str, float]) -> None:
    function = ("work", "farm.py")
    line = ("farm.py", 8)
    sample = _Sampled(function, line, file, "/usr/lib/libpython3.11.so", "_PyEval_EvalFrameDefault", True)
    found = python_frames._share(function, Counter({sample: 20}), defaultdict(lambda: None))
    assert {kind: share for kind, share in found.items() if share} == shares


def test_the_collection_of_garbage_is_told_from_the_code_that_makes_the_objects() -> None:
    found = share_of({"_PyEval_EvalFrameDefault": 20, "gc_collect_main": 50, "visit_decref": 20, "dict_traverse": 10})
    assert found == {"collected": pytest.approx(0.8), "interpreted": pytest.approx(0.2)}
    assert "collected" not in share_of({"_PyEval_EvalFrameDefault": 20, "libm": 80})


def test_what_a_line_imports_is_neither_compiled_nor_interpreted() -> None:
    line, function = ("work.py", 1), ("<module>", "work.py")
    file = "/usr/lib/python3/dist-packages/numba/core/types.py"
    sample = _Sampled(function, line, file, "/usr/lib/libpython3.11.so", "_PyEval_EvalFrameDefault", True)
    kinds = {line: python_frames._kind_of_line(LineKind.IMPORTS, Counter(other=20))}
    assert not any(python_frames._share(function, Counter({sample: 20}), kinds).values())


@pytest.mark.parametrize(
    ("compiled", "interpreted", "kind"),
    [("DOUBLE_add_X86_V3", 1, "stepwise"), ("DOUBLE_add_X86_V3", 4, None), ("DOUBLE_exp_X86_V4", 1, None)],
)
def test_formulas_of_large_arrays_are_evaluated_stepwise(compiled: str, interpreted: int, kind: str | None) -> None:
    """Not where the interpreter takes more than a tenth, as with small arrays, or a function most of the time."""
    place = ("step", "heat.py"), ("heat.py", 6), "heat.py"
    array = _Sampled(*place, "/usr/lib/numpy/_core/_multiarray_umath.so", compiled, False)
    python = _Sampled(*place, "/usr/lib/libpython3.11.so", "_PyEval_EvalFrameDefault", True)
    groups = Counter({python_frames._group(array): 20})
    groups[python_frames._group(python)] += interpreted
    assert python_frames._kind_of_line(LineKind.COMBINES, groups) == kind
