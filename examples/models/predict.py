"""Changes tried on models of programs, and made in the programs: the gains side by side (README.md, "What if").

    python examples/models/predict.py [FIRST LAST] > gains.txt

Gains are shares: of the misses of a first cache of 32 KiB at one thread (valgrind counts those of the programs), of
transactions of coherence, and of the instructions of the busiest thread: counts, which a busy machine does not change.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from advisor.support.documents import Marked
from advisor.support.expressions import Expression
from advisor_simulation.mds.coherence import COHERENCE
from advisor_simulation.model.checks import read_model
from advisor_simulation.model.records import Decomposition, Model, Parallel, Step
from advisor_simulation.program.cache_check import CacheGeometry, count_misses
from advisor_simulation.program.model_check import simulate_plain
from advisor_simulation.program.program_model import FoldedProgram, fold_program, trace_program, write_program_model
from advisor_simulation.whatif.modelled.loop_order import block_loops, interchange_loops
from advisor_simulation.whatif.modelled.setting import ModelSetting, change_each_step, find_parallel_loops

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
THREADS = 4


@dataclass(frozen=True, slots=True)
class Case:
    """A program as it was and as it was changed (macros), what is done to its model, and what is counted."""

    name: str
    before: str
    after: str
    change: Callable[[Model, ModelSetting], Model | None]
    counts: str


def pad_array(name: str, items: int) -> Callable[[Model, ModelSetting], Model | None]:
    """Return the change that pads the rows of an array."""
    return lambda model, _: replace(model, arrays={**model.arrays, name: replace(model.arrays[name], pad=items)})


def widen_element(name: str, size_B: int) -> Callable[[Model, ModelSetting], Model | None]:
    """Return the change that gives each row of an array so many bytes."""

    def change(model: Model, _: ModelSetting) -> Model | None:
        array = model.arrays[name]
        sides = [side.value.evaluate_whole({}) for side in array.shape]
        row = int(array.element) * (sides[1] if len(sides) > 1 else 1)
        return replace(model, arrays={**model.arrays, name: replace(array, pad=(size_B - row) // int(array.element))})

    return change


def deal_out(kind: Literal["cyclic", "block-cyclic"], block: int) -> Callable[[Model, ModelSetting], Model | None]:
    """Return the change that deals out the indices of loops with uneven work one by one or in blocks."""

    def change(model: Model, _: ModelSetting) -> Model | None:
        uneven = [one for one in find_parallel_loops(model) if one.weight is not None and one.weight.value.names]
        dealt = {
            f"{one.over.value}_dealt": replace(
                model.domains[one.over.value],
                decomposition=Decomposition(kind, one.mark, Marked(Expression.parse(str(block)), one.mark)),
            )
            for one in uneven
        }

        def move_loop(step: Step) -> Step:
            if not isinstance(step, Parallel) or step not in uneven:
                return step
            return replace(step, over=Marked(f"{step.over.value}_dealt", step.mark))

        return change_each_step(replace(model, domains={**model.domains, **dealt}), move_loop)

    return change


def list_cases() -> list[Case]:
    """Return all cases."""
    found = []
    found += [
        Case(f"transposition {n}, blocks", f"KIND=1 N={n}", f"KIND=1 N={n} BLOCK=32", block_loops, "misses")
        for n in (540, 580, 600, 640, 700)
    ]
    for n in (64, 72, 80, 84, 88, 92, 96, 104):
        after = f"KIND=2 N={n} BLOCK=16 CHANGED=2"
        found.append(Case(f"product {n}, blocks", f"KIND=2 N={n}", after, block_loops, "misses"))
    found += [
        Case(f"columns {n}, order", f"KIND=3 N={n}", f"KIND=3 N={n}", interchange_loops, "misses")
        for n in (540, 580, 600, 640, 700)
    ]
    found += [
        Case(f"stencil {n}, order", f"KIND=4 N={n}", f"KIND=4 N={n}", interchange_loops, "misses")
        for n in (200, 240, 256, 300, 340)
    ]
    for n, columns, pad in ((256, 32, 8), (256, 64, 8), (512, 16, 8), (512, 64, 8), (512, 32, 16)):
        before = f"KIND=5 N={n} COLUMNS={columns}"
        found.append(Case(f"columns {n}, pad {pad}", before, f"{before} PAD={pad}", pad_array("a", pad), "misses"))
    for n, apart in ((500, 56), (700, 120), (900, 56), (1000, 120)):
        change = widen_element("part", 8 + apart)
        found.append(Case(f"counters {n}, apart", f"KIND=6 N={n}", f"KIND=6 N={n} APART={apart}", change, "sharing"))
    for n in (120, 200, 250, 301):
        for words, change in (("static,1", deal_out("cyclic", 1)), ("static,8", deal_out("block-cyclic", 8))):
            after = f"KIND=7 N={n} SCHEDULE=schedule({words})"
            found.append(Case(f"triangle {n}, {words}", f"KIND=7 N={n} SCHEDULE=", after, change, "load"))
    return found


def build_program(macros: str, changed: int, folder: Path) -> Path:
    """Return the compiled program."""
    program = folder / re.sub(r"\W+", "_", f"{macros} {changed}")
    words = [f"-D{word}" for word in macros.split()]
    if not any(word.startswith("-DCHANGED") for word in words):
        words.append(f"-DCHANGED={changed}")
    subprocess.run(
        ["gcc", "-O2", "-g", "-fopenmp", "-fno-tree-vectorize", *words, "-o", str(program), str(HERE / "changes.c")],
        check=True,
    )
    return program


def make_model(program: Path, folder: Path) -> tuple[Model, Path, FoldedProgram]:
    """Return the model of a program, where it stands, and what it was made of."""
    run = Path(tempfile.mkdtemp(dir=folder))
    traced = trace_program([str(program)], program, folder, run)
    folded = fold_program(traced, folder)
    path = run / "model.yaml"
    path.write_text(write_program_model(traced, folded, path), encoding="utf-8")
    return read_model(path), path, folded


def count_modelled(model: Model, path: Path, counts: str) -> float:
    """Return what a model makes of what is counted."""
    if counts == "misses":
        log = simulate_plain(model, path.parent, 1, CacheGeometry())[1]
        return float(log.transactions.sum())
    log = simulate_plain(model, path.parent, THREADS)[1]
    if counts == "sharing":
        return float(log.transactions[:, :, :COHERENCE].sum())
    return sum(float(entry.work.max()) for span in log.spans for entry in span.entries if not entry.serial)


def count_measured(program: Path, counts: str, folder: Path) -> float:
    """Return what is counted on a program: by valgrind, or by the tracer."""
    if counts == "misses":
        run = Path(tempfile.mkdtemp(dir=folder))
        found = count_misses([str(program)], program, CacheGeometry(), run, {"OMP_NUM_THREADS": "1"})
        return float(sum(one.read_misses + one.write_misses for one in found.values()))
    model, path, folded = make_model(program, folder)
    if counts == "sharing":
        return count_modelled(model, path, counts)
    total = 0.0
    for number in folded.order:
        phase = folded.phases[number]
        if phase.parallel:
            total += max(piece.end_count - piece.begin_count for piece in phase.pieces.values())
    return total


def compare_case(case: Case, folder: Path) -> tuple[float, float]:
    """Return the gain of a change as the model says and as the program shows, shares of what is counted."""
    before, after = build_program(case.before, 0, folder), build_program(case.after, 1, folder)
    model, path, _ = make_model(before, folder)
    setting = ModelSetting(
        path.parent, THREADS, 64, THREADS, lambda model: np.zeros((THREADS, THREADS), dtype=np.int64)
    )
    changed = case.change(model, setting) or model
    predicted = 1 - count_modelled(changed, path, case.counts) / count_modelled(model, path, case.counts)
    measured = 1 - count_measured(after, case.counts, folder) / count_measured(before, case.counts, folder)
    return predicted, measured


def main() -> None:
    """Print all cases, or some of them, and what their errors come to."""
    os.environ["OMP_NUM_THREADS"] = str(THREADS)
    cases = list_cases()
    first, last = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (0, len(cases))
    errors = []
    with tempfile.TemporaryDirectory(prefix="gapwatch-") as folder:
        for case in cases[first:last]:
            predicted, measured = compare_case(case, Path(folder))
            errors.append(abs(predicted - measured) / max(abs(measured), 1e-9))
            sign = "" if predicted * measured > 0 else "  wrong sign"
            print(f"{case.name:28} {predicted:8.1%} {measured:8.1%} {errors[-1]:8.1%}{sign}", flush=True)
    print(f"{len(errors)} cases, median error {np.median(errors):.1%}")


if __name__ == "__main__":
    main()
