"""Build CRASH, run all versions, simulate them on as many processors, and advise on a trace where EZTrace is installed.

python run.py                      # 2 threads; prints the table of README.md
python run.py --simulate-only      # 16 processors of the SPP-1600, no compiler needed
`chrt -r 1 python run.py` keeps other load away.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from advisor.analysis import bounds, gaps, machines
from advisor.analysis.machines.records import Number, NumberSource
from advisor_simulation.mds.report import coherence_seconds
from advisor_simulation.mds.run import simulate_model
from advisor_simulation.model.checks import read_model
from advisor_simulation.model.world import build_world

HERE = Path(__file__).resolve().parent
VERSIONS = ("SP", "SD", "SD2", "SD3", "SD4", "SD8")
#: What a line from another core takes on the machine at hand, seconds: assumed, as is one from memory.
NEAR_S, MEMORY_S = 60e-9, 90e-9
#: Multiply-adds per unit of weight, so that the loops last longer than the clock is coarse; cycles of the program.
GRAIN, CYCLES, TRIES = 1.0, 300, 5


@dataclass(frozen=True, slots=True)
class Measured:
    """One version: the shortest of several runs, and the barrier's cost in it; seconds."""

    seconds: float
    barrier_s: float
    checksum: float


def model_of(version: str) -> Path:
    """Return the model of a version."""
    return HERE / f"crash-{version}.yaml"


def measured(version: str, threads: int, program: Path, parts: Path) -> Measured:
    """Return what a version takes on this machine."""
    words = [program, version, threads, CYCLES, GRAIN, HERE / "mesh.txt", HERE / "elements.txt", parts]
    runs = []
    for _ in range(TRIES):
        done = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, timeout=120)
        runs.append(json.loads(done.stdout))
    best = min(runs, key=lambda run: run["seconds"])
    return Measured(best["seconds"], min(run["barrier_s"] for run in runs), best["checksum"])


def simulated_s(version: str, processors: int, unit_s: float, barrier_s: float) -> float:
    """Return what the simulation says of a version, when one unit of weight takes ``unit_s``."""
    model = read_model(model_of(version))
    machine = machines.load_machine("convex-spp1600")
    sources = machine.sources | {"run": NumberSource("a run of version SP on one thread")}
    machine = replace(machine, sources=sources, frequency=Number(1 / unit_s, "run"))
    costs = replace(
        model.costs, memory=MEMORY_S / unit_s, near=NEAR_S / unit_s, far=NEAR_S / unit_s, line=64.0,
        barrier=barrier_s / unit_s, barrier_per_doubling=0.0,
    )  # fmt: skip
    parameters = model.parameters | {"cycles": float(CYCLES)}
    return simulate_model(
        replace(model, costs=costs, parameters=parameters), HERE, machine, processors
    ).profile.actual_s


def write_parts(path: Path, threads: int) -> None:
    """Write the sub-domain of each element, as the simulation decomposes the mesh."""
    world = build_world(read_model(model_of("SD")), HERE, threads)
    np.savetxt(path, world.owner["mesh"], fmt="%d")


def compare(threads: int) -> None:
    """Print measured and simulated times of all versions on ``threads`` processors."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["make", "-s", "-C", str(HERE), f"BUILD={scratch}"], check=True)
        program, parts = Path(scratch) / "crash", Path(scratch) / "parts.txt"
        write_parts(parts, threads)
        one = measured("SP", 1, program, Path("-"))
        unit_s = one.seconds / (simulated_s("SP", 1, 1e-9, 0.0) / 1e-9)
        print(f"one unit of weight takes {unit_s * 1e9:.3f} ns (version SP, one thread)\n")
        print("| version | measured, ms | simulated, ms | error |\n|---|---|---|---|")
        for version in VERSIONS:
            found = measured(version, threads, program, parts)
            if found.checksum != one.checksum:
                raise SystemExit(f"{version}: another result than version SP")
            said = simulated_s(version, threads, unit_s, found.barrier_s)
            error = said / found.seconds - 1
            print(f"| {version} | {found.seconds * 1e3:.1f} | {said * 1e3:.1f} | {error:+.1%} |")
        advise(program, threads, parts, Path(scratch))


def advise(program: Path, threads: int, parts: Path, scratch: Path) -> None:
    """Print the advice on a trace of version SP."""
    if shutil.which("eztrace") is None:
        print("\nno trace: install eztrace to get advice on a run")
        return
    words = ["eztrace", "-t", "openmp", "-o", scratch, program, "SP", threads, CYCLES, GRAIN]
    words += [HERE / "mesh.txt", HERE / "elements.txt", parts]
    subprocess.run(list(map(str, words)), check=True, cwd=scratch, capture_output=True, timeout=120)
    traces = sorted(scratch.rglob("*.otf2"))
    print(flush=True)
    subprocess.run([sys.executable, "-m", "gapwatch", "advise", str(traces[0])], check=False)


def on_spp1600() -> None:
    """Print the gaps of all versions on 16 processors of the SPP-1600 model."""
    machine = machines.load_machine("convex-spp1600")
    print("| version | time, ms | C' without false sharing | X: false sharing | X: migration | L | M' | D | S' |")
    print("|---|---|---|---|---|---|---|---|---|")
    for version in VERSIONS:
        profile = simulate_model(read_model(model_of(version)), HERE, machine, 16).profile
        found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile))}
        kinds = coherence_seconds(profile)
        columns = (kinds["communication"], kinds["false sharing"], kinds["migration"])
        columns += tuple(found[name] for name in ("L", "M'", "D", "S'"))
        shown = " | ".join(f"{seconds * 1e3:.2f}" for seconds in (profile.actual_s, *columns))
        print(f"| {version} | {shown} |")


def main(words: list[str] | None = None) -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulate-only", action="store_true", help="the models on 16 processors of the SPP-1600")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(words)
    if options.simulate_only:
        on_spp1600()
    else:
        compare(options.threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
