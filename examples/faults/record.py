"""Record the cases of ``cases.yaml`` with EZTrace: one directory per case, see ``README.md``."""

from __future__ import annotations

import argparse
import getpass
import hashlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parent.parent / "tests" / "profiles" / "faults"
LAUNCHER = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
VERSION = "1.0"
#: Flags that set the size of the problem; all others make another program of it.
PARAMETERS = ("iters", "base", "work", "rate", "halo")
FILES = ("stencil", "libstencil.so", "libeztrace-stencil.so")
#: Regions that only compute: what they take beyond their work, the machine took for others.
COMPUTING = ("serial_part", "compute_fluxes", "update_cells", "update_edges")


@dataclass(frozen=True, slots=True)
class Case:
    """One line of ``cases.yaml``."""

    name: str
    faults: tuple[str, ...]
    ranks: int
    flags: tuple[str, ...]
    threads: int = 1
    tracer: str = "openmp"
    strength: str | None = None
    cores: int | None = None

    @property
    def sidecar(self) -> dict[str, object]:
        """What the trace does not tell: cores, build, language, parameters."""
        values = {flag.removeprefix("--"): value for flag, value in zip(self.flags[::2], self.flags[1::2], strict=True)}
        faults = sorted(f"{name}={value}" for name, value in values.items() if name not in PARAMETERS)
        return {
            "build": f"{VERSION}+{hashlib.sha256(' '.join(faults).encode()).hexdigest()[:7]}",
            "cores": self.cores or self.ranks * self.threads,
            "language": "c",
            "ranks_expected": self.ranks,
            "parameters": {name: _number(value) for name, value in values.items() if name in PARAMETERS},
        }


def _number(text: str) -> str | int | float:
    """Return the number that ``text`` is, else ``text``."""
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class Settings:
    """How to launch, where the program was built, where recordings go, what is good enough."""

    launcher: tuple[str, ...]
    build: Path
    out: Path
    tries: int
    limit: float


def load_cases(path: Path) -> list[Case]:
    """Return the cases of ``path``."""
    rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [Case(**row | {"faults": tuple(row["faults"]), "flags": tuple(shlex.split(row["flags"]))}) for row in rows]


def disturbance(truth: dict[str, Any]) -> float:
    """Return the share of the loop's time that other load took from computing regions (the slowest rank counts)."""
    lost = 0.0
    for region in COMPUTING:
        measured = truth["measured_wall_s"].get(region, [])
        planned = [_planned(truth, region, rank) for rank in range(len(measured))]
        excess = [
            [wall - plan for wall, plan in zip(*rows, strict=True)] for rows in zip(measured, planned, strict=True)
        ]
        lost += sum(max(column) for column in zip(*excess, strict=True))
    return lost / float(truth["loop_wall_s"])


def _planned(truth: dict[str, Any], region: str, rank: int) -> list[float]:
    """Return what ``region`` should take in each iteration: the work of its busiest thread, and sleeping."""
    nothing = [0.0] * truth["iterations"]
    asleep = truth["injected_os_s"].get(region, {rank: nothing})[rank]
    if "injected_thread_s" in truth and region in truth["injected_thread_s"]:
        work = [max(column) for column in zip(*truth["injected_thread_s"][region][rank], strict=True)]
    else:
        work = truth["injected_s"].get(region, {rank: nothing})[rank]
    return [a + b for a, b in zip(work, asleep, strict=True)]


def build(directory: Path, tracer: str) -> Path:
    """Build program and EZTrace module for ``tracer``; return where they are."""
    target = directory / tracer
    compiler = {"OMPI_CC": "clang"} if tracer == "ompt" else {}
    command = ["make", "-s", "-C", str(HERE), f"BUILD={target}", "all", "module"]
    subprocess.run(command, env=os.environ | compiler, check=True)
    return target


def run(case: Case, settings: Settings, directory: Path) -> dict[str, Any]:
    """Run ``case`` under EZTrace in ``directory``; return the ground truth."""
    for name in FILES:
        shutil.copy(settings.build / case.tracer / name, directory)
    # Everything by relative names: they stand in the trace.
    modules = f"openmpi posixio {case.tracer} stencil"
    tracer = ["eztrace", "-l", ".", "-t", modules, "-o", ".", "./stencil"]
    program = [*case.flags, "--threads", str(case.threads)]
    command = [*settings.launcher, "-np", str(case.ranks), *tracer, *program]
    environment = {
        "OMP_WAIT_POLICY": "passive",
        "OMP_NUM_THREADS": str(case.threads),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    done = subprocess.run(
        command, cwd=directory, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode != 0:
        raise SystemExit(f"{case.name}: {done.stdout}{done.stderr}")
    truth: dict[str, Any] = json.loads((directory / "truth.json").read_text(encoding="utf-8"))
    return truth


def keep(case: Case, directory: Path, out: Path) -> Path:
    """Move a recording from ``directory`` to its place under ``out``, with its sidecar."""
    target = out / case.name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in ("stencil_trace", "truth.json"):
        shutil.move(str(directory / name), target / name)
    text = json.dumps(case.sidecar, indent=2)
    (target / "gapwatch.json").write_text(text + "\n", encoding="utf-8")
    return target


def leaks(directory: Path) -> list[str]:
    """Return the files that name this machine, its user or its directories."""
    names = {str(Path.home()), str(HERE), tempfile.gettempdir(), getpass.getuser() + "@"}
    host = socket.gethostname()
    # A short host name is found by chance in any binary file.
    words = [name.encode() for name in names | ({host} if len(host) > 3 else set())]
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(word in path.read_bytes() for word in words)]


def record(case: Case, settings: Settings) -> str:
    """Record ``case`` several times, keep the run that other load disturbed least; return a line for the table."""
    shortest, lost, tries = float("inf"), float("inf"), 0
    while tries < settings.tries or (lost > settings.limit and tries < 3 * settings.tries):
        tries += 1
        with tempfile.TemporaryDirectory() as scratch:
            truth = run(case, settings, Path(scratch))
            # Whatever disturbs a run makes it longer.
            if truth["loop_wall_s"] < shortest:
                shortest, lost = truth["loop_wall_s"], disturbance(truth)
                named = leaks(keep(case, Path(scratch), settings.out))
                if named:
                    raise SystemExit(f"{case.name}: names of this machine in {', '.join(named)}")
    size = sum(path.stat().st_size for path in (settings.out / case.name).rglob("*") if path.is_file())
    shape = f"{case.name:26} {case.ranks}x{case.threads} {case.strength or '':5}"
    return f"{shape} loop {shortest:.4f} s, disturbed {lost:6.2%}, {tries} tries, {size / 1e3:.1f} kB"


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="cases to record (default: all)")
    parser.add_argument("--cases", type=Path, default=HERE / "cases.yaml")
    parser.add_argument("--out", type=Path, default=RECORDED)
    parser.add_argument("--build", type=Path, default=HERE / "build")
    parser.add_argument(
        "--launcher", default=os.environ.get("MPIRUN", LAUNCHER), help="default: $MPIRUN or %(default)s"
    )
    parser.add_argument("--tries", type=int, default=3, help="runs of a case; up to three times as many if disturbed")
    parser.add_argument("--limit", type=float, default=0.01, help="share of the loop that other load may take")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Record what the command line asks for."""
    options = arguments(words)
    launcher = tuple(shlex.split(options.launcher))
    settings = Settings(launcher, options.build.resolve(), options.out.resolve(), options.tries, options.limit)
    cases = [case for case in load_cases(options.cases) if not options.names or case.name in options.names]
    unknown = set(options.names) - {case.name for case in cases}
    if unknown:
        print(f"no such case: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    for tracer in sorted({case.tracer for case in cases}):
        build(settings.build, tracer)
    for case in cases:
        print(record(case, settings), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
