"""Prints the table of docs/validation.md: bounds of the loops beside what they take, in cycles of the machine model.

python3 table.py MODEL.yaml [--osaca ARCHITECTURE]    after make; needs valgrind, and gapwatch with its processor extra
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from advisor.analysis import machine_rates, machines
from advisor_processor import finite_cache
from advisor_processor.compiled import analysis, external_tools
from advisor_processor.source import instrumented_run
from advisor_processor.source.essential_accesses import count_essential_accesses

HERE = Path(__file__).resolve().parent
LOOPS = ("triad", "daxpy", "ddot", "horner", "jacobi", "gauss_seidel", "quotient", "reciprocal", "strided8")
IN_CACHE, OUT_OF_CACHE = 24576, 16 << 20
FLOPS = {"fp_add": 1, "fp_mul": 1, "fp_fma": 2, "fp_div": 1}


def measured_cycles(program: Path, loop: str, size: int, batches: int) -> float:
    """Return the least CPU time of one iteration in cycles, of several runs, by the clock beside them."""
    words = [str(program), loop, str(size), str(batches)]
    texts = [subprocess.run(words, capture_output=True, text=True, check=True).stdout for _ in range(3)]
    return min(float(text.split()[3]) for text in texts)


def counted(program: Path, loop: str, size: int, machine: machines.Machine) -> analysis.FunctionAnalysis:
    """Return the loop's function as callgrind saw it run once."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out.1"
        second = machine.caches["L2"]
        simulated = f"--LL={int(second.size or 0)},{int(second.ways or 8)},{int(second.line or 64)}"
        options = ["--tool=callgrind", "--dump-instr=yes", "--cache-sim=yes", simulated, f"--callgrind-out-file={out}"]
        subprocess.run(["valgrind", *options, str(program), loop, str(size), "1"], capture_output=True, check=True)
        run = analysis.analyse_run(out, machine)
    return next(one for one in run.functions if one.name == loop.rstrip("0123456789"))


def source_bounds(loop: str, machine: machines.Machine) -> tuple[float, float]:
    """Return M and MA of one iteration in cycles."""
    (source,) = instrumented_run.read_sources([HERE / "loops.c"])[1]
    body = next(each.body for each in source.loops if each.function == loop.rstrip("0123456789") and each.inner)
    assert body is not None
    operations = dict(body.work.operations)
    operations["load"], operations["store"], _ = count_essential_accesses(body)
    clock = machine_rates.clock_hz(machine) or 1.0
    busiest = machine_rates.busiest_unit(machine, operations)
    flops = sum(operations.get(unit, 0) * times for unit, times in FLOPS.items())
    return flops / (machine.flops_per_cycle or 1.0), busiest[1] * clock if busiest else 0.0


def iterations(loop: str, size: int) -> int:
    """Return how many iterations one call of a loop does (incore.c)."""
    n = size // 8
    each = {"triad": n // 3, "horner": n, "jacobi": n // 2 // 3 - 2, "gauss_seidel": n // 3 - 2, "strided8": n // 9}
    return each.get(loop, n // 2)


def in_cache(machine: machines.Machine, architecture: str | None) -> None:
    """Print the loops in the first cache."""
    print("| loop | | M | MA | MAC | MACS | measured | MACS / measured | bound by | llvm-mca | OSACA |")
    print("|---|---|--:|--:|--:|--:|--:|--:|---|--:|--:|")
    for level in ("O1", "O3"):
        program = HERE / "build" / f"incore-{level}"
        for loop in LOOPS:
            one = counted(program, loop, IN_CACHE, machine)
            times = iterations(loop, IN_CACHE)
            hot = max(one.schedule.loops, key=lambda each: each.trips.iterations if each.trips else 0)
            per = hot.trips.iterations / times if hot.trips else 1.0
            asked = [external_tools.run_llvm_mca(hot.loop.body)]
            asked.append(external_tools.run_osaca(hot.loop.body, architecture) if architecture else None)
            said = [f"{other.cycles * per:.2f}" if other else "" for other in asked]
            m, ma = source_bounds(loop, machine)
            mac, macs = one.schedule.mac_cycles / times, one.schedule.macs_cycles / times
            took = measured_cycles(program, loop, IN_CACHE, 300)
            cells = [f"{value:.2f}" for value in (m, ma, mac, macs, took, macs / took)]
            print(f"| {loop} | -{level} | {' | '.join(cells)} | {hot.bound_by} | {' | '.join(said)} |")


def out_of_cache(machine: machines.Machine) -> None:
    """Print the loops in memory, with the times that misses add."""
    clock = machine_rates.clock_hz(machine) or 1.0
    program = HERE / "build" / "incore-O3"
    print("\n| loop | MACS | roofline | ECM | measured | roofline / measured |")
    print("|---|--:|--:|--:|--:|--:|")
    for loop in LOOPS:
        one = counted(program, loop, OUT_OF_CACHE, machine)
        times = iterations(loop, OUT_OF_CACHE)
        access = max(one.schedule.busy.get(unit, 0.0) for unit in ("load", "store"))
        found = finite_cache.compose_cache_times(
            one.schedule.macs_cycles, access, one.misses, machine, one.last_cache_B
        )
        assert found is not None
        took = measured_cycles(program, loop, OUT_OF_CACHE, 8)
        bounds = [seconds * clock / times for seconds in (found.schedule_s, found.roofline_s, found.ecm_s)]
        print(f"| {loop} | {' | '.join(f'{value:.2f}' for value in (*bounds, took, bounds[1] / took))} |")


if __name__ == "__main__":
    model = machines.load_machine(Path(sys.argv[1]))
    in_cache(model, sys.argv[3] if len(sys.argv) > 3 else None)
    out_of_cache(model)
