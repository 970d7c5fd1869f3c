"""What numba compiles while a program runs: by its files in a tree of calls, by what it took in all without one."""

from __future__ import annotations

import json
import marshal
from typing import TYPE_CHECKING

import pytest

from advisor.formats import call_stacks

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

TABLE = """         5000 function calls in 7.000 seconds

   Ordered by: cumulative time

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
        1    0.000    0.000    7.000    7.000 heat.py:1(<module>)
     1000    2.000    0.002    2.000    0.002 heat.py:9(relax)
      2/1    0.000    0.000    4.000    4.000 dispatcher.py:388(_compile_for_args)
     1000    1.000    0.001    4.000    0.004 typeinfer.py:580(resolve)
     1000    1.500    0.001    1.500    0.001 inspect.py:744(cleandoc)
     1000    1.500    0.001    1.500    0.001 {built-in method builtins.isinstance}
      996    1.000    0.001    1.000    0.001 {built-in method posix.urandom}
"""


def seconds(profile: Profile, kind: str) -> dict[str, float]:
    rows = zip(profile.regions, profile.counts[f"code.{kind}_s"].sum(axis=1), strict=True)
    return {region.name: round(float(value), 6) for region, value in rows if value}


def test_without_a_tree_the_compiler_shares_what_is_not_the_programs(tmp_path: Path) -> None:
    (tmp_path / "profile.txt").write_text(TABLE)
    profile = call_stacks.advisor_read(tmp_path / "profile.txt")
    # 4 of the 5 s of libraries: in proportion, since nothing tells who called what
    assert seconds(profile, "jitted") == pytest.approx({
        "resolve": 0.8, "cleandoc": 1.2, "{built-in method builtins.isinstance}": 1.2,
        "{built-in method posix.urandom}": 0.8,
    })  # fmt: skip
    assert seconds(profile, "interpreted") == {"relax": 2.0}, "modules of Python are none of the program's own"


def test_statistics_tell_it_too(tmp_path: Path) -> None:
    path = tmp_path / "profile.prof"
    compiler = ("/v/site-packages/numba/core/dispatcher.py", 388, "_compile_for_args")
    statistics = {
        ("heat.py", 9, "relax"): (10, 10, 2.0, 2.0, {}),
        compiler: (1, 1, 0.5, 3.0, {}),
        ("~", 0, "<built-in method builtins.isinstance>"): (9, 9, 2.5, 2.5, {compiler: (9, 9, 2.5, 2.5)}),
    }
    path.write_bytes(marshal.dumps(statistics))
    profile = call_stacks.advisor_read(path)
    assert sum(seconds(profile, "jitted").values()) == pytest.approx(3.0)


def test_in_a_tree_all_below_the_compiler_is_its(tmp_path: Path) -> None:
    names = (
        ("relax", "/me/heat.py"), ("_compile_for_args", "/v/lib/python3.12/site-packages/numba/core/dispatcher.py"),
        ("wrapper", "/usr/lib/python3.12/functools.py"), ("safe_cuda_api_call", "/v/numba/cuda/cudadrv/driver.py"),
    )  # fmt: skip
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": name, "file": file} for name, file in names]},
        "profiles": [{
            "type": "sampled", "name": "main", "unit": "seconds", "startValue": 0, "endValue": 6,
            "samples": [[0], [0, 1], [0, 1, 2], [0, 3]], "weights": [1, 1, 3, 1],
        }],
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(document))
    profile = call_stacks.advisor_read(tmp_path / "run.json")
    assert seconds(profile, "jitted") == {"_compile_for_args": 1.0, "wrapper": 3.0}
