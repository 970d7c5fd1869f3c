"""Recorded couplings, reference tables and made-up cases for the tests of the plugin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from yaml_files import read_yaml

from advisor_coupling.algebra import chain_windows
from advisor_coupling.cases import SECONDS, Chain, CouplingCase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

HERE = Path(__file__).parent
RECORDED = HERE / "profiles" / "coupling"


def reference() -> dict[str, Any]:
    tables: dict[str, Any] = read_yaml(HERE / "reference" / "coupling.yaml")
    return tables


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def names() -> list[str]:
    return sorted(
        str(path.relative_to(RECORDED).with_suffix(""))
        for path in RECORDED.rglob("*.json")
        if "measured" not in path.parts
    )


def case_of(found: Mapping[str, Any]) -> CouplingCase:
    """The case of a recorded file."""
    kernels = tuple(found["kernels"])
    times = {
        tuple(kernels.index(name) for name in chain.split(",")): np.array(values)
        for chain, values in (found["isolated_all_s"] | found["chains_all"]).items()
    }
    actual = np.array([found["actual_s"], found["actual_min_s"], found["actual_max_s"]])
    return CouplingCase(kernels, {}, found["iterations"], {SECONDS: times}, {SECONDS: actual}, {}, found["ranks"])


def made_up(
    alone: Sequence[float],
    factors: Mapping[int, Sequence[float]],
    *,
    noise: float = 0.0,
    rounds: int = 9,
    seed: int = 0,
    loop_count: int = 100,
    parameters: Mapping[str, float] | None = None,
) -> CouplingCase:
    """A case whose chains take ``factors`` times their kernels; every value with relative noise of its own."""
    random = np.random.default_rng(seed)
    size = len(alone)

    def repeats(value: float) -> npt.NDArray[np.float64]:
        return np.asarray(value * np.exp(noise * random.standard_normal(rounds)))

    times: dict[Chain, Any] = {(index,): repeats(value) for index, value in enumerate(alone)}
    for length, values in factors.items():
        for chain, factor in zip(chain_windows(size, length), values, strict=True):
            times[chain] = repeats(factor * sum(alone[index] for index in chain))
    whole = factors.get(size, [1.0])[0] * sum(alone) * loop_count
    kernels = tuple("abcdefgh"[:size])
    return CouplingCase(
        kernels, dict(parameters or {}), loop_count, {SECONDS: times}, {SECONDS: repeats(whole)}, {}, 1
    )  # fmt: skip
