"""Small application models for tests, as text and as what is simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis import machines
from advisor_simulation.mds.run import SimulatedRun, simulate_model
from advisor_simulation.model.checks import read_model

if TYPE_CHECKING:
    from pathlib import Path

    from advisor_simulation.mds.engine import SimulationSettings
    from advisor_simulation.model.records import Model

FIGURE = """\
aml: 1
name: two regions, two iterations
unit: s
tables:
  first: {{values: [{0}]}}
  second: {{values: [{1}]}}
domains: {{both: {{size: 2}}}}
control:
  - loop: iterations
    times: 2
    do:
      - {{parallel: region 1, over: both, weight: "first[t, i]"}}
      - {{parallel: region 2, over: both, weight: "second[t, i]"}}
"""
#: The loads of the source's figures 4 and 5.
FIGURE_4 = FIGURE.format("[10, 5], [5, 6]", "[10, 15], [15, 16]")
FIGURE_5 = FIGURE.format("[15, 5], [5, 15]", "[5, 15], [15, 5]")

#: Round numbers for costs: a line of four items of eight bytes, two processors on each node.
COSTS = "costs: {memory: 50, near: 20, far: 100, line: 32 B, node: 2, barrier: 7}"


def model(text: str, folder: Path) -> Model:
    path = folder / "model.yaml"
    path.write_text(text, encoding="utf-8")
    return read_model(path)


def run(
    text: str, folder: Path, processors: int = 2, finite: bool = False, settings: SimulationSettings | None = None
) -> SimulatedRun:
    machine = machines.load_machine("convex-spp1600")
    return simulate_model(model(text, folder), folder, machine, processors, finite, settings)


def small(control: str, extra: str = "", head: str = COSTS) -> str:
    """Return a model over a domain of ``n`` = 8 indices with an array A of 8 rows of 4 items, one line each."""
    return f"""\
aml: 1
name: small
{head}
parameters: {{n: 8}}
domains: {{line: {{size: n}}, pair: {{size: P}}}}
arrays: {{A: {{shape: [n, 4]}}, F: {{shape: [n]}}}}
{extra}
control:
{control}
"""
