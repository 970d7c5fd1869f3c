"""One program whose truth is known, and what is advised on it as evidence arrives, in every order.

    python study.py            the first item of the advice for every set of evidence, today and at the target

The program exists in numbers only: eight ranks, four kernels in a loop, a halo and a reduction. Of its 8.6 s, 2.0 s
are lost because flux and update push each other's data out of the cache, 1.3 s because limiter steps over numbers,
0.6 s are the halo, which takes as long on any number of ranks, and 0.2 s the reduction, which grows with the ranks: on
24 ranks it takes as long as the halo, on 96 more than all else together. Each piece of evidence is a file as its tool
writes it. An order in which evidence arrives is a path through sets of evidence, so advice that is right for all sets
is right in every order.
"""

from __future__ import annotations

import json
import os
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from advisor.model.records import Advice

RANKS: Final = 8
PASSES: Final = 50
MACHINE: Final = "epyc-9654"
#: Ranks of the other runs of the scaling study, and those that the program is meant for.
OTHER_RANKS: Final = (2, 4, 16, 24)
TARGET: Final = "P=192"
#: Seconds of each kernel on 8 ranks: by itself, and what it loses beside the others.
KERNELS: Final = {"flux": (1.4, 1.0), "update": (1.0, 1.0), "limiter": (2.2, 0.0), "source": (1.2, 0.0)}
#: Of a kernel's own seconds, those of its compiled schedule.
SCHEDULED: Final = {"flux": 1.2, "update": 0.8, "limiter": 0.9, "source": 1.1}
CLOCK_HZ: Final = 3.7e9
#: Loads in a cycle, and numbers in an instruction: the load units are busy, so that the compiler has nothing to win.
LOADS, WIDTH = 1.9, 4
HALO_S, REDUCTION_S = 0.6, 0.2
NOISE: Final = 0.01


def run_seconds(ranks: int) -> dict[str, float]:
    """Return the seconds of each region of a rank: kernels share the points, the halo does not shrink any more."""
    kernels = {name: (own + lost) * RANKS / ranks for name, (own, lost) in KERNELS.items()}
    return kernels | {"MPI_Sendrecv": HALO_S, "MPI_Allreduce": REDUCTION_S * ranks / RANKS}


def write_run(folder: Path, ranks: int = RANKS) -> None:
    """Write the times of a run, as a trace gives them."""
    random = np.random.default_rng(ranks)
    seconds = run_seconds(ranks)
    shape = (len(seconds), ranks, PASSES)
    wall = np.array([*seconds.values()])[:, None, None] / PASSES * np.exp(NOISE * random.standard_normal(shape))
    moves = np.array([name.startswith("MPI_") for name in seconds])[:, None, None]
    busy = wall.sum(axis=0)
    lasts = busy.max(axis=0)
    wait = np.zeros(shape)
    wait[-1] = lasts - busy
    starts = np.concatenate([[0.0], np.cumsum(lasts)[:-1]])
    document = {
        "schema": "gapwatch/profile/1", "program": "study", "run": f"P={ranks}", "actual_s": float(lasts.sum()),
        "language": "c", "paradigms": ["mpi"], "cores": ranks, "parameters": {"N": 1e6, "P": ranks},
        "processors": [{"rank": rank} for rank in range(ranks)],
        "regions": [{"name": name, "file": "study.c", "line": 10 * at} for at, name in enumerate(seconds, 1)],
        "phases": [{
            "name": "step", "closed_by": "MPI_Allreduce", "regions": [*range(len(seconds))],
            "start_s": starts.tolist(), "duration_s": lasts.tolist(),
            "wall_s": (wall + wait).tolist(), "wait_s": wait.tolist(), "sync_s": np.zeros(shape).tolist(),
            "cpu_s": np.where(moves, 0.0, wall).tolist(), "transfer_s": np.where(moves, wall, 0.0).tolist(),
        }],
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(document))


def write_coupling(folder: Path) -> None:
    """Write the results of an experiment with the kernels: every chain, seven rounds."""
    random = np.random.default_rng(7)
    names = [*KERNELS]
    runs: list[dict[str, Any]] = []
    for turn in range(7):
        for length in range(1, len(names) + 1):
            for start in range(len(names) if length < len(names) else 1):
                chain = [names[(start + step) % len(names)] for step in range(length)]
                lost = sum(KERNELS[name][1] for name in chain) if {"flux", "update"} <= {*chain} else 0.0
                seconds = (sum(KERNELS[name][0] for name in chain) + lost) * np.exp(NOISE * random.standard_normal())
                runs.append(_record_run("chain", chain, turn, seconds))
        whole = sum(run_seconds(RANKS).values()) * np.exp(NOISE * random.standard_normal())
        runs.append(_record_run("application", names, turn, whole))
    size = 600_000.0
    document = {
        "schema": "gapwatch/coupling/1", "program": "study", "kernels": names, "runs": runs,
        "cases": [{
            "parameters": {"N": 1e6}, "processors": RANKS, "loop_count": PASSES, "passes": PASSES,
            "arrays": {"u": size, "flux": size / 3, "v": size / 2, "w": 4 * size},
        }],
        "uses": {"flux": ["flux", "u"], "update": ["u", "v"], "limiter": ["w"], "source": ["w"]},
        "caches": {"L1": {"bytes": 32768}, "L2": {"bytes": 1048576}, "L3": {"bytes": 33554432, "shared_by": 8}},
    }  # fmt: skip
    (folder / "study.coupling.json").write_text(json.dumps(document))


def _record_run(kind: str, chain: Sequence[str], turn: int, seconds: float) -> dict[str, Any]:
    return {
        "case": 0, "kind": kind, "chain": ",".join(chain), "round": turn, "passes": PASSES,
        "values": {"seconds": float(seconds)}, "started": f"2026-01-01T00:00:{turn:02}",
    }  # fmt: skip


def write_counts(folder: Path) -> None:
    """Write the operations of the source, as ``gapwatch count`` does."""
    counts = {
        name: {
            "source_ops.fp_add": [WIDTH * 0.4 * cycles],
            "source_ops.fp_mul": [WIDTH * 0.4 * cycles],
            "source_ops.load": [WIDTH * LOADS * cycles],
            "source_ops.store": [WIDTH * 0.2 * cycles],
        }
        for name, cycles in _list_cycles()
    }
    _write_operations(folder / "study.source.operations.json", "gapwatch count", counts)


def write_incore(folder: Path) -> None:
    """Write instructions, schedules and accesses with a stride, as ``gapwatch incore`` does."""
    counts = {
        name: {
            "compiled_ops.fp_add": [0.4 * cycles], "compiled_ops.fp_mul": [0.4 * cycles],
            "compiled_ops.load": [LOADS * cycles], "compiled_ops.store": [0.2 * cycles], "scheduled_cycles": [cycles],
            "strided_loads": [LOADS * cycles if name == "limiter" else 0.0],
        }
        for name, cycles in _list_cycles()
    }  # fmt: skip
    _write_operations(folder / "study.operations.json", "gapwatch incore", counts)


def _list_cycles() -> Iterator[tuple[str, float]]:
    yield from ((name, seconds * CLOCK_HZ) for name, seconds in SCHEDULED.items())


def _write_operations(path: Path, tool: str, counts: dict[str, dict[str, list[float]]]) -> None:
    regions = [{"name": name, "file": "study.c", "counts": each} for name, each in counts.items()]
    document = {
        "schema": "gapwatch/operations/1", "program": "study", "counted_by": tool, "ranks": RANKS, "regions": regions,
    }  # fmt: skip
    path.write_text(json.dumps(document))


def write_scaling(folder: Path) -> None:
    """Write runs on fewer and on more ranks."""
    for ranks in OTHER_RANKS:
        (folder / f"P{ranks}").mkdir()
        write_run(folder / f"P{ranks}", ranks)


def write_library(folder: Path) -> None:
    """Write a team's library: a program like this one, in which tuning the loops one by one won little."""
    from advisor_similarity.features import advice_features

    with TemporaryDirectory() as scratch:
        (Path(scratch) / "run").mkdir()
        write_run(Path(scratch) / "run")
        features = advice_features(_advise_on_runs([Path(scratch) / "run"]))
    entry = {
        "name": "cousin", "program": "cousin", "about": "8 ranks", "profile": features,
        "tried": [{"actions": ["A-21"], "won": 0.02, "of_ceiling": 0.05}],
    }  # fmt: skip
    (folder / "team").mkdir()
    (folder / "team" / "library.json").write_text(json.dumps([entry]))


#: Evidence beside the run's own times, by the name of what brings it.
EVIDENCE: Final[dict[str, Callable[[Path], None]]] = {
    "coupling": write_coupling, "counts": write_counts, "in-core": write_incore, "scaling": write_scaling,
    "library": write_library,
}  # fmt: skip


def list_sets() -> list[tuple[str, ...]]:
    """Return all sets of evidence, the small ones first."""
    return [chosen for size in range(len(EVIDENCE) + 1) for chosen in combinations(EVIDENCE, size)]


def advise_on(chosen: Sequence[str], folder: Path, target: str | None = None) -> Advice:
    """Return the advice on the run with a set of evidence; ``folder`` becomes the current directory.

    The scaling study is a directory for each number of ranks, and later than the run. A library lies where the
    environment variable ``GAPWATCH_WORKLOADS`` says.
    """
    run = folder / "run"
    run.mkdir(parents=True)
    write_run(run)
    for name in chosen:
        EVIDENCE[name](run if name in ("counts", "in-core") else folder)
    os.chdir(folder)
    os.environ["GAPWATCH_WORKLOADS"] = str(folder / "team") if "library" in chosen else ""
    others = [folder / f"P{ranks}" for ranks in OTHER_RANKS] if "scaling" in chosen else []
    return _advise_on_runs([run, *others], target)


def _advise_on_runs(runs: Sequence[Path], target: str | None = None) -> Advice:
    from advisor import pipeline
    from advisor.extension import host

    options = pipeline.Options(machine=MACHINE, run=f"P={RANKS}", target=target)
    return pipeline.advise(runs, options, host.load_plugins())


def describe_first(advice: Advice, target: str | None = None) -> str:
    """Return the first item: action, place, and what it wins, at a target if there is one; else the verdict."""
    first = next(iter(advice.recommendations), None)
    if first is None:
        return advice.verdict
    if target and first.target is not None:
        return f"{first.action} {first.region or 'the whole run'}, at most {first.target.seconds:.2f} s there"
    seconds = f"at most {first.ceiling_s:.2f} s" if first.expected_s is None else f"expected {first.expected_s:.2f} s"
    return f"{first.action} {first.region or 'the whole run'}, {seconds}"


def main() -> None:
    """Print the first item for every set of evidence, and at the target for those that tell of it."""
    for target in (None, TARGET):
        for chosen in list_sets():
            if target and "scaling" not in chosen:
                continue
            with TemporaryDirectory() as folder:
                first = describe_first(advise_on(chosen, Path(folder), target), target)
            print(f"{' + '.join(['trace', *chosen]):56} {first}", flush=True)
        print()


if __name__ == "__main__":
    main()
