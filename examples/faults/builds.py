"""Twenty builds in which nothing changed, and forty with one fault: what does comparing builds say of each?

python examples/faults/builds.py --record DIR    # run all builds under EZTrace, keep a digest of each run
python examples/faults/builds.py                 # judge what was kept, print the table

Each build runs three times. A fault costs about 5 % of the run time. Nothing is chosen: every recording counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.model.records import Advice

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / "tests" / "profiles" / "builds" / "runs.json"
CLEAN, TRIALS, REPEATS, RANKS = 20, 5, 3, 4
SECTION = re.compile(r"(?<=<!-- builds: begin -->\n).*?(?=\n<!-- builds: end -->)", re.DOTALL)
#: Regions that hold less of a gap are not kept (seconds).
LEAST_S = 1e-4
#: Calls cost what they cost on a slow network and disk, so that more of them are a fault.
FLAGS = "--iters 100 --work sleep --exchange send --io-all 1 --message-cost 90 --barrier-cost 180 --write-cost 180"
LAUNCHER = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is switched on, the gap that it opens, and the regions in which that is right to be seen."""

    name: str
    flags: str
    gap: str
    regions: tuple[str, ...]


#: By the costs of the flags each takes 1.08 ms of an iteration, which takes 21 ms without it. What is late is work that
#: the phases are spared; a message costs its sender and its receiver, of two neighbours each.
FAULTS = (
    Fault("imbalance", "--imbalance 0.054", "L", ("compute_fluxes", "update_cells")),
    Fault("multiphase", "--multiphase 0.054", "M'", ("compute_fluxes", "update_cells")),
    Fault("dynamic", "--dynamic 0.054", "D", ("compute_fluxes", "update_cells")),
    Fault("serial", "--serial 0.9", "P", ("serial_part",)),
    Fault("late", "--late 1.08 --base 9.46", "W", ("update_edges", "exchange_halo", "MPI_Recv")),
    Fault("messages", "--messages 4", "C'", ("exchange_halo", "MPI_Send", "MPI_Recv")),
    Fault("io-all", "--io-all 7", "O", ("write_output", "write")),
    Fault("barriers", "--barriers 6", "S'", ("MPI_Barrier",)),
)


def plan() -> Iterator[tuple[str, str]]:
    """Yield every build and its flags, faulty ones between those without."""
    trials = [(f"{fault.name} {number}", fault.flags) for number in range(TRIALS) for fault in FAULTS]
    for number in range(CLEAN):
        yield f"clean {number}", ""
        yield from trials[2 * number : 2 * number + 2]


def record(folder: Path, launcher: str) -> None:
    """Run every build under EZTrace, three times: all of them once, then all of them again.

    What disturbs a machine often lasts longer than a run, so that runs one after the other would share it.
    """
    subprocess.run(["make", "-s", "-C", str(HERE), f"BUILD={folder / 'bin'}", "all", "module"], check=True)
    (folder / "runs").mkdir(exist_ok=True)
    for repeat in range(REPEATS):
        for build, flags in plan():
            place = folder / "runs" / f"{build.replace(' ', '-')}-{repeat}"
            if not place.exists():
                _run(folder, launcher, build, flags).rename(place)
        print(f"{repeat + 1} of {REPEATS} runs of each build", flush=True)


def _run(folder: Path, launcher: str, build: str, flags: str) -> Path:
    """Run a build; return the directory that holds its trace, and beside it the file that names the build."""
    place = folder / "now"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder / "bin", place)
    tracer = "eztrace -l . -t 'openmpi posixio stencil' -o . ./stencil"
    environment = os.environ | {
        "OMP_WAIT_POLICY": "passive", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }  # fmt: skip
    command = shlex.split(f"{launcher} -np {RANKS} {tracer} {FLAGS} {flags}")
    subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True, timeout=300)
    for path in place.iterdir():
        if path.name != "stencil_trace":
            path.unlink() if path.is_file() else shutil.rmtree(path)
    (place / "gapwatch.json").write_text(json.dumps({"build": build, "cores": RANKS}), encoding="utf-8")
    return place


def keep(folder: Path) -> None:
    """Read all recordings, and keep of each run its bounds and where its gaps are."""
    from advisor import pipeline
    from advisor.extension import host
    from advisor.output.advice_document import build_advice_document

    plugins = host.load_plugins()
    runs = []
    for build, _ in plan():
        for repeat in range(REPEATS):
            place = folder / "runs" / f"{build.replace(' ', '-')}-{repeat}"
            runs.append(_digest(build_advice_document(pipeline.advise([place], pipeline.Options(), plugins))))
    lines = ",\n".join(json.dumps(run) for run in runs)
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _digest(document: dict[str, Any]) -> dict[str, Any]:
    """Return the build, the bounds (s) and the gaps by region (s) of a run, to a microsecond."""
    return {
        "build": document["profile"]["build"],
        "bounds": {one["name"]: round(one["seconds"], 6) for one in document["bounds"] if one["seconds"] is not None},
        "gaps": {
            gap["name"]: [
                [one["name"], round(one["seconds"], 6)] for one in gap["regions"] if abs(one["seconds"]) >= LEAST_S
            ]
            for gap in document["gaps"]
        },
    }  # fmt: skip


def builds(path: Path = KEPT) -> dict[str, list[Advice]]:
    """Return the runs of each build, as far as comparing them looks at them."""
    from advisor.model.recommendations import Total
    from advisor.model.records import Advice, Bound, Gap, Grade, Profile, Share

    found: dict[str, list[Advice]] = {}
    for number, run in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        bounds = tuple(Bound(name, seconds, "measured") for name, seconds in run["bounds"].items())
        gaps = tuple(
            Gap(name, tuple(name.split("+")), "", "", 0.0, 0.0, "measured", None, tuple(Share(*one) for one in regions))
            for name, regions in run["gaps"].items()
        )
        profile = Profile(
            program="stencil", run=str(number), reader="otf2", build=run["build"], actual_s=run["bounds"]["actual"],
            processors=(), regions=(), phases=(), status={},
        )  # fmt: skip
        advice = Advice(
            profile, Grade("A", 1.0, ()), bounds, gaps, (), (), (), Total(0.0), (), (), "nothing significant"
        )  # fmt: skip
        found.setdefault(run["build"], []).append(advice)
    return found


def alarms(found: dict[str, list[Advice]]) -> list[str]:
    """Return what was called a change in builds without one, each compared with the build before."""
    from advisor.analysis.comparison import compare_builds

    groups = [found[f"clean {number}"] for number in range(CLEAN)]
    said = []
    for number in range(1, CLEAN):
        compared = compare_builds(groups[number - 1], groups[number], groups[: number - 1])
        moved = (compared.actual, *compared.changes)
        said += [f"clean {number}: {one.name} {one.delta_s:+.4f} s" for one in moved if one.beyond_noise]
    return said


def named(found: dict[str, list[Advice]]) -> dict[str, tuple[str | None, str | None, bool]]:
    """Return gap and region that are named for each build with a fault, and whether they are right."""
    from advisor.analysis.comparison import compare_builds

    groups = [found[f"clean {number}"] for number in range(CLEAN)]
    said: dict[str, tuple[str | None, str | None, bool]] = {}
    for fault in FAULTS:
        for number in range(TRIALS):
            build = f"{fault.name} {number}"
            worst = compare_builds(groups[-1], found[build], groups[:-1]).largest_increase
            place = worst.places[0][0] if worst and worst.places else None
            gap = worst.name if worst else None
            said[build] = gap, place, gap == fault.gap and place in fault.regions
    return said


def table(found: dict[str, list[Advice]]) -> str:
    """Return what is said of all builds, as Markdown."""
    said = named(found)
    rows = ["| fault | gap | named correctly | otherwise |", "|---|---|---|---|"]
    for fault in FAULTS:
        mine = [said[f"{fault.name} {number}"] for number in range(TRIALS)]
        others = ", ".join(f"{gap} in {place}" if gap else "nothing" for gap, place, right in mine if not right)
        rows.append(
            f"| {fault.name} | {fault.gap} | {sum(right for *_, right in mine)} of {TRIALS} | {others or '-'} |"
        )
    false = alarms(found)
    alarmed = f"{len(false)}: {'; '.join(false)}" if false else "none"
    rows += [
        f"| all together |  | {sum(right for *_, right in said.values())} of {len(said)} |  |", "",
        f"Alarms over {CLEAN} unchanged builds: {alarmed}. {_disturbed(found)}",
    ]  # fmt: skip
    return "\n".join(rows)


def _disturbed(found: dict[str, list[Advice]]) -> str:
    """Return how many runs took a tenth longer than the fastest of their build, and how much the worst."""
    longer = [
        run.profile.actual_s / min(one.profile.actual_s for one in runs) for runs in found.values() for run in runs
    ]
    many, worst = sum(times > 1.1 for times in longer), max(longer)
    return f"{many} of {len(longer)} runs took over 10 % longer than the fastest of their build, one {worst:.1f} times."


def main() -> int:
    """Record or judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", metavar="DIR", type=Path, help="where the recordings go (some 200 MB)")
    parser.add_argument(
        "--launcher", default=os.environ.get("MPIRUN", LAUNCHER), help="default: $MPIRUN or %(default)s"
    )
    options = parser.parse_args()
    if options.record:
        record(options.record.resolve(), options.launcher)
        keep(options.record.resolve())
    print(table(builds()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
