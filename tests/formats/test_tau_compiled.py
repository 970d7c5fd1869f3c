"""Profiles of TAU read by compiled code are those read by Python, to the last bit."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tau_profiles import IMBALANCE, RUNS, write_profile

from advisor.formats import tau
from advisor.formats.tau import layout, sheet
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_compiled_and_plain_reading_agree_on_real_profiles() -> None:
    pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    for run in RUNS:
        plain, compiled = (tau.read_call_paths(run, way) for way in (False, True))
        assert plain.nodes == compiled.nodes
        for name in ("wall_s", "cpu_s", "visits", "bytes"):
            one, other = getattr(plain, name), getattr(compiled, name)
            assert (one is None and other is None) or np.array_equal(one, other), name


NUMBERS = st.one_of(
    st.integers(0, 10**17).map(str),
    st.floats(0, 1e17, allow_nan=False).map(lambda value: f"{value:.16G}"),
    st.floats(0, 1e17, allow_nan=False).map(lambda value: f"{value:.6g}"),
    st.sampled_from(
        ["0.1", "1e22", "1E-22", "9007199254740993", "5.", ".5", "+1", "1e", "1.2.3", "nan", "-0", "", "1e+5"]
    ),
)


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["f", "g", 'a "b" c', "longer name"]), st.lists(NUMBERS, min_size=5, max_size=5)),
        min_size=1,
        max_size=6,
    )
)
def test_compiled_and_plain_reading_agree_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, list[str]]]
) -> None:
    compiled = pytest.importorskip(
        "advisor.formats.tau.compiled_parser", reason="needs numba: pip install 'gapwatch[fast]'"
    )
    lines = [f'"{name}" {" ".join(numbers)} GROUP="TAU_USER" ' for name, numbers in rows]
    path = write_profile(tmp_path_factory.mktemp("run"), 0, *lines)
    part = sheet.read_frame(path)
    one, other = sheet.FunctionNames(), sheet.FunctionNames()
    parser = compiled.FunctionParser(other)
    results: list[object] = []
    for parse in (
        lambda: sheet.parse_functions(part, one),
        lambda: parser.parse_functions(part),
        lambda: parser.parse_functions(part),
    ):
        try:
            ids, values = parse()
            results.append((ids.tolist(), values.tobytes()))
        except InputError as error:
            results.append(str(error))
    assert results[0] == results[1] == results[2]


def test_names_in_another_order_are_looked_up(tmp_path: Path) -> None:
    compiled = pytest.importorskip(
        "advisor.formats.tau.compiled_parser", reason="needs numba: pip install 'gapwatch[fast]'"
    )
    lines = [f'"function {n}" {n} 0 {n}.25 {n}.25 0 GROUP="TAU_USER" ' for n in range(5000)]
    found = sheet.FunctionNames()
    parser = compiled.FunctionParser(found)
    for rank, order in enumerate((lines, lines[::-1], lines[::3])):
        part = sheet.read_frame(write_profile(tmp_path, rank, *order))
        ids, values = parser.parse_functions(part)
        assert ids.tolist() == values[:, 0].tolist()
        assert (values[:, 2] == values[:, 0] + 0.25).all()
    assert len(found.numbers) == 5000


def test_small_profiles_do_not_load_the_compiler() -> None:
    code = "import sys, pathlib, advisor.formats.tau as tau; tau.advisor_read(pathlib.Path(sys.argv[1]))"
    code += "; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, str(IMBALANCE)], check=False).returncode == 0


def test_sniffing_imports_nothing_heavy() -> None:
    code = "import sys, advisor.formats.tau; sys.exit(bool({'numpy', 'defusedxml', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert layout.detect_layout(IMBALANCE) == "profile"
