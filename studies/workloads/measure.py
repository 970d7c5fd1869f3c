"""Observes and times public programs, built by ``build.sh``, for the library that comes along.

python studies/workloads/measure.py SOURCES FOLDER OUT.json    FOLDER holds a folder of programs for each build: O2, O3

OUT.json is the library; seconds.json, written beside this script, what each took, which holds for this machine only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "workloads"))

from measure import rounded  # noqa: E402  # the script of the kernels, beside which this one measures programs
from performance import MACHINES  # noqa: E402

from advisor_similarity.library import LibraryEntry, build_entry  # noqa: E402
from advisor_similarity.parallelism import observe_program  # noqa: E402
from advisor_similarity.parallelism_command import measure_cpu_seconds  # noqa: E402
from advisor_similarity.qemu_tracing import TracePlan  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SECONDS: Final = Path(__file__).with_name("seconds.json")
#: On which each is timed; valgrind takes longer to start than half of them to run.
TIMED_ON: Final = {name: runner for name, runner in MACHINES.items() if name != "valgrind"}
#: Arguments of each program; those of NPB have their size, class S, compiled in.
PROGRAMS: Final = {
    "npb-bt": "", "npb-cg": "", "npb-ep": "", "npb-ft": "", "npb-is": "", "npb-lu": "", "npb-mg": "", "npb-sp": "",
    "lulesh": "-s 12 -i 40", "xsbench": "-t 1 -m event -s small -g 300 -l 20000",
    "rsbench": "-t 1 -m event -s small -l 2000", "comd": "-x 6 -y 6 -z 6 -N 10 -n 5 -d {sources}/CoMD/pots",
    "hpccg": "24 24 24", "pennant": "{sources}/PENNANT/test/sedovsmall/sedovsmall.pnt",
}  # fmt: skip
#: Of longer programs only this share is scheduled, in windows of a million operations.
SAMPLED: Final = {"npb-ep": 0.1}
_WINDOW: Final = 1_000_000


def measure(name: str, command: Sequence[str], about: str, cache: Path) -> LibraryEntry:
    """Return one program: what it does, and its CPU seconds on the processor and under an emulator of it."""
    period = round(_WINDOW / SAMPLED[name]) if name in SAMPLED else 0
    plan = TracePlan(tuple(command), window=_WINDOW if period else 0, period=period, quiet=True)
    with tempfile.TemporaryDirectory() as scratch:
        observed = observe_program(plan, cache, Path(scratch), smoothability=not period)
    seconds = {machine: measure_cpu_seconds((*runner, *command), fails=True) for machine, runner in TIMED_ON.items()}
    entry = build_entry(observed.workload, f"{name} {about}", about, sampled=period > 0)
    return replace(entry, program=name, seconds=seconds)


def measure_all(sources: Path, folder: Path) -> Iterator[LibraryEntry]:
    """Yield every program of every build."""
    with tempfile.TemporaryDirectory() as cache:
        for built in sorted(one for one in folder.iterdir() if one.is_dir()):
            for name, arguments in PROGRAMS.items():
                program = built / name
                if not program.exists():
                    continue
                size = "class S" if name.startswith("npb-") else arguments.replace("{sources}/", "")
                command = (str(program), *arguments.format(sources=sources).split())
                print(name, built.name, file=sys.stderr, flush=True)
                yield measure(name, command, f"{size}, gcc -{built.name}", Path(cache))


def main() -> None:
    """Measure and write."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("sources", "folder", "out"):
        arguments.add_argument(name, type=Path)
    given = arguments.parse_args()
    found = list(measure_all(given.sources.resolve(), given.folder.resolve()))
    lines = [msgspec.json.encode(rounded(msgspec.to_builtins(replace(one, seconds={})))) for one in found]
    given.out.write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")
    rows = [msgspec.json.encode(one.name) + b": " + msgspec.json.encode(one.seconds) for one in found]
    SECONDS.write_bytes(b"{\n" + b",\n".join(rows) + b"\n}\n")


if __name__ == "__main__":
    main()
