"""Does running two kernels block by block win what their coupling costs? Ten sizes around the first two caches.

    make && python blocks.py [DIRECTORY]

Each kernel's arrays are 0.5 to 2 times as large as a cache. In every round the kernels run by themselves, together, and
together in blocks of half the points, so that both have the data in a pass that one had before. What the coupling
costs, with its interval, stands beside what the blocks win; `advised` is whether the advice would name it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from advisor.analysis.machines import load_machine
from advisor_coupling import experiment, losses, manifest, results
from advisor_coupling.cases import SECONDS
from advisor_coupling.model import build_case_model
from advisor_coupling.results import CacheRecord

HERE = Path(__file__).resolve().parent
#: Bytes that a kernel touches for each point, and updates of points in a run.
POINT_B, UPDATES = 24, 3e7
RATIOS = (0.5, 0.7, 1.0, 1.4, 2.0)
ROUNDS = 21
#: Numbers of points are multiples of that, so that blocks begin at a line of the cache as the arrays do.
ALIGNED = 64
#: From this share of the run on the actions against coupling fire.
ADVISED = 0.03
PLAN = """\
program: pair
kernels:
  - {{name: react_a, uses: [a]}}
  - {{name: react_b, uses: [b]}}
arrays: {{a: {bytes} * N, b: {bytes} * N}}
parameters: {{N: [{points}]}}
loop_count: {passes}
command: [{program}, "{{N}}", "{{passes}}"]
application: [{program}, "{{N}}", "{passes}", "{block}"]
environment: {{GAPWATCH_CHAIN: "{{chain}}", GAPWATCH_PASSES: "{{passes}}"}}
metrics: [{{name: seconds, prints: ", cpu {{value}} s"}}]
baseline: none
repetitions: {rounds}
"""


def measure_size(points: int, caches: dict[str, CacheRecord], folder: Path) -> results.ExperimentDocument:
    """Return the experiment with so many points; it goes on where it was interrupted."""
    source = folder / f"pair{points}.yaml"
    passes, block = max(int(UPDATES / points), 1), points // 2
    source.write_text(
        PLAN.format(bytes=POINT_B, points=points, passes=passes, block=block, program=HERE / "pair", rounds=ROUNDS)
    )
    plan, kept = manifest.read_manifest(source), source.with_suffix(".coupling.json")
    document = experiment.open_experiment(plan, source, kept, "", caches)
    return experiment.run_steps(plan, source, document, kept, lambda _: None)


def compare_size(document: results.ExperimentDocument, label: str) -> str:
    """Return a row: the coupling, what it costs with its interval, what blocks won, and whether that lies inside."""
    (case,) = results.build_cases(document)
    model = build_case_model(case)
    (pair,) = model.couplings
    together = case.loop_count * float(np.nanmedian(case.samples[SECONDS][0, 1]))
    won = together - float(np.nanmedian(case.application[SECONDS]))
    known = losses.compute_losses(document, [model], {}, 1)
    advised = known is not None and known.worst is not None and pair.excess.value / together >= ADVISED
    low, high = 1e3 * pair.excess.low, 1e3 * pair.excess.high
    inside = low <= 1e3 * won <= high
    return (
        f"{label:10} {pair.value.value:8.3f} {1e3 * pair.excess.value:8.2f} ({low:7.2f} to {high:7.2f}) "
        f"{1e3 * won:8.2f} {pair.excess.value / together:7.1%}  {'yes' if inside else 'no':6} "
        f"{known.kernels if advised and known else '-'}"
    )


def main() -> None:
    """Measure all sizes and print the table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    machine = load_machine("host", ())
    known = {name: CacheRecord(float(one.size), 1) for name, one in machine.caches.items() if one.size}
    print("size        coupling  cost ms      interval        won ms   share  inside advised")
    for name in [*known][:2]:
        for ratio in RATIOS:
            points = ALIGNED * round(ratio * known[name].bytes / POINT_B / ALIGNED)
            print(compare_size(measure_size(points, known, folder), f"{ratio:g} {name}"), flush=True)


if __name__ == "__main__":
    main()
