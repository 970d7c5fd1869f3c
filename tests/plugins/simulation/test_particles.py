"""The seven versions of a particle code, against what the source's table 2 and its text say of FSS-PRISM."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "particles"


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("particle_versions", EXAMPLE / "versions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_example()


@pytest.fixture(scope="module")
def found(example: ModuleType) -> dict[str, dict[str, Any]]:
    return {
        size: {version: example.simulate_version(version, problem) for version in example.VERSIONS}
        for size, problem in example.SIZES.items()
    }


@pytest.mark.parametrize(
    ("before", "after", "gap"), [("P2i", "P3x", "C'"), ("P3x", "P4a", "C'"), ("P4a", "P4b", "C'"), ("P4b", "P6a", "C'")]
)
@pytest.mark.parametrize("size", ["small", "large"])
def test_a_version_lowers_the_gap_that_it_aims_at(
    before: str, after: str, gap: str, size: str, found: dict[str, dict[str, Any]]
) -> None:
    assert found[size][after][gap] < found[size][before][gap]


def test_the_other_decomposition_lowers_imbalance(found: dict[str, dict[str, Any]]) -> None:
    small, large = found["small"], found["large"]
    assert small["P3x"]["M'"] < small["P2i"]["M'"]
    assert large["P3x"]["L"] + large["P3x"]["M'"] < large["P2i"]["L"] + large["P2i"]["M'"]


def test_versions_are_ordered_as_in_the_source(found: dict[str, dict[str, Any]]) -> None:
    small, large = ({version: each["time"] for version, each in found[size].items()} for size in ("small", "large"))
    for times in (small, large):
        assert times["P2i"] > times["P3x"] > times["P4a"] > times["P4b"]
        assert min(times, key=times.__getitem__) == "P6a"
    assert small["P5b"] > small["P4b"]
    assert large["P5b"] < large["P4b"]
    others = [{version: time for version, time in times.items() if version != "P6a"} for times in (small, large)]
    assert [min(times, key=times.__getitem__) for times in others] == ["P4b", "P5b"]


def test_two_versions_need_less_memory(example: ModuleType) -> None:
    for problem in example.SIZES.values():
        copies = [example.copies_bytes(version, problem) for version in ("P4b", "P5a", "P5b", "P6a")]
        assert copies[0] > copies[1] > copies[2] == copies[3] == 0


def test_the_page_shows_what_is_found(example: ModuleType, found: dict[str, dict[str, Any]]) -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    for size in example.SIZES:
        for version, each in found[size].items():
            row = " | ".join(f"{1e3 * each[name]:.2f}" for name in ("time", "C'", "M'", "S'"))
            assert f"| {version} | {row} |" in page
