"""Measure what switching a fault off wins, and compare with what the simulation says the remedy would win.

python examples/faults/gains.py --measure [CASES]   # run the program with and without each fault, write gains.json
python examples/faults/gains.py                     # predict from the recorded traces, write the table of the page
python examples/faults/gains.py --unseen            # record and measure the cases of unseen.yaml, write unseen.json

Where a fault is work in the wrong place (a serial part, late work), its remedy leaves the work and moves it: the
program then runs without the fault, and every rank has its part of that work in the two phases.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MEASURED = HERE / "gains.json"
UNSEEN = HERE / "unseen.json"
RECORDED = ROOT / "tests" / "profiles" / "faults"
PAGE = ROOT / "docs" / "validation.md"
LAUNCHER = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
#: What a fault's flag becomes when its remedy has been carried out.
OFF = {
    "imbalance": "0", "multiphase": "0", "dynamic": "0", "omp-imbalance": "0", "omp-serial": "0", "serial": "0",
    "late": "0", "straggler": "0", "pipeline": "0", "messages": "1", "reductions": "1", "barriers": "0",
    "fork-joins": "1", "io-all": "1", "fsync": "0", "io-one": "1",
}  # fmt: skip
#: The flag of a fault where it has another name.
FLAG = {"fsync": "fsyncs"}
#: Faults that are work of one rank: its remedy shares it by all. The others leave as much work on each rank.
OF_ONE = ("serial", "straggler")
OF_ALL = ("late", "pipeline")
#: Faults that go with another one, because its remedy makes every phase even.
COVERED = {"multiphase": ("imbalance",), "dynamic": ("imbalance", "multiphase")}
#: The action that is the remedy of each fault, and the region at which it is tried where that is not the whole run.
REMEDY = {
    "imbalance": "A-28", "multiphase": "A-35", "dynamic": "A-38", "omp-imbalance": "A-29", "omp-serial": "G-3",
    "serial": "G-1", "late": "G-4", "straggler": "A-28", "pipeline": "G-4", "messages": "A-16", "reductions": "G-8",
    "barriers": "G-13", "fork-joins": "G-16", "io-all": "G-18", "fsync": "G-19", "io-one": "G-18",
}  # fmt: skip
AT = {"straggler": "update_edges"}


@dataclass(frozen=True, slots=True)
class Pair:
    """A recorded case, the fault that is removed, and the flags with and without it."""

    case: str
    fault: str
    ranks: int
    threads: int
    flags: tuple[str, ...]
    without: tuple[str, ...]

    @property
    def name(self) -> str:
        """The case, and the fault where it has two."""
        return f"{self.case} - {self.fault}"


def pairs(cases: str = "cases.yaml") -> Iterator[Pair]:
    """Yield every recorded case with each of its faults that a trace can show."""
    for row in yaml.safe_load((HERE / cases).read_text(encoding="utf-8")):
        for fault in row["faults"]:
            if fault in OFF and "oversubscribed" not in row["faults"] and not row["name"].startswith("repeat"):
                flags = tuple(shlex.split(row["flags"]))
                ranks, threads = row["ranks"], row.get("threads", 1)
                yield Pair(row["name"], fault, ranks, threads, flags, remedied(flags, fault, ranks, threads))


def remedied(flags: tuple[str, ...], fault: str, ranks: int, threads: int) -> tuple[str, ...]:
    """Return the flags of the program after the remedy."""
    options = dict(zip(flags[::2], flags[1::2], strict=True))
    flag = f"--{FLAG.get(fault, fault)}"
    amount = float(options[flag])
    base = float(options.get("--base", "10"))
    if fault in OF_ONE:
        options["--base"] = f"{base + amount / 2 / ranks / threads:.6g}"
    elif fault in OF_ALL:
        options["--base"] = f"{base + amount / 2:.6g}"
    options[flag] = OFF[fault]
    options |= {f"--{other}": OFF[other] for other in COVERED.get(fault, ()) if f"--{other}" in options}
    return tuple(word for pair in options.items() for word in pair)


def wall_s(flags: tuple[str, ...], ranks: int, threads: int, program: Path, tries: int) -> float:
    """Return the shortest wall time of the loop over ``tries`` runs, seconds."""
    launcher = shlex.split(os.environ.get("MPIRUN", LAUNCHER))
    words = [*launcher, "-np", str(ranks), str(program), *flags, "--threads", str(threads)]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_WAIT_POLICY": "passive"}
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(tries):
            subprocess.run(
                words, cwd=scratch, env=os.environ | allowed, check=True, timeout=120, stdout=subprocess.DEVNULL
            )
            truth: dict[str, Any] = json.loads((Path(scratch) / "truth.json").read_text(encoding="utf-8"))
            found.append(float(truth["loop_wall_s"]))
    return min(found)


def measure(program: Path, tries: int, names: list[str]) -> None:
    """Write seconds with and without each fault to ``gains.json``; of the named cases only, if there are any."""
    known = {(row["case"], row["fault"]): row for row in measured()} if names else {}
    seconds: dict[tuple[str, ...], float] = {}
    for pair in pairs():
        if names and pair.case not in names:
            continue
        walls = []
        for flags in (pair.flags, pair.without):
            key = (*flags, str(pair.ranks), str(pair.threads))
            if key not in seconds:
                seconds[key] = wall_s(flags, pair.ranks, pair.threads, program, tries)
            walls.append(seconds[key])
        row = {"case": pair.case, "fault": pair.fault, "with_s": walls[0], "without_s": walls[1]}
        known[pair.case, pair.fault] = row
        print(f"{pair.name:45} {walls[0]:.4f} {walls[1]:.4f}", flush=True)
    lines = ",\n".join(json.dumps(row) for row in known.values())
    MEASURED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def measured() -> list[dict[str, Any]]:
    """Return what was measured."""
    rows: list[dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return rows


@dataclass(frozen=True, slots=True)
class Judged:
    """One case: what the remedy was expected to win (with its 80 % interval), and what it really won; seconds."""

    case: str
    fault: str
    action: str
    expected_s: float
    low_s: float
    high_s: float
    really_s: float

    @property
    def error(self) -> float:
        """The difference as a share of what was really won."""
        return abs(self.expected_s - self.really_s) / abs(self.really_s)

    @property
    def held(self) -> bool:
        """Whether the interval holds what was really won."""
        return self.low_s <= self.really_s <= self.high_s

    @property
    def row(self) -> str:
        """One line of the table."""
        interval = f"{self.low_s * 1e3:.1f} to {self.high_s * 1e3:.1f}"
        numbers = f"{self.expected_s * 1e3:.1f} | {interval} | {self.really_s * 1e3:.1f} | {self.error:.1%}"
        return f"| {self.case} | {self.fault} | {self.action} | {numbers} | {'yes' if self.held else 'no'} |"


def judged(rows: list[dict[str, Any]] | None = None, recorded: Path = RECORDED) -> list[Judged]:
    """Return every case, predicted from its recording and measured."""
    from advisor.advice import rules
    from advisor.extension import host
    from advisor_simulation.whatif.gains import try_change
    from advisor_simulation.whatif.measured_run import build_run
    from advisor_simulation.whatif.run_report import find_working_phases
    from advisor_simulation.whatif.trial import build_trial

    plugins = host.load_plugins()
    change = {action.id: action.change for action in rules.load_default((), examples=False).actions}
    found = []
    for row in measured() if rows is None else rows:
        trace = plugins.find_profiles(recorded / row["case"])[0]
        profile = plugins.read_profile(trace)
        run = build_run(profile)
        trial = build_trial(run, plugins.read_trace(trace)) if run else None
        action, place = REMEDY[row["fault"]], AT.get(row["fault"])
        made = (
            try_change(trial, change[action], find_working_phases(profile, place) if place else set())
            if trial
            else None
        )
        if made is None:
            raise SystemExit(f"{row['case']}: {action} can't be simulated")
        really = row["with_s"] - row["without_s"]
        found.append(Judged(row["case"], row["fault"], action, made.expected_s, made.low_s, made.high_s, really))
    return found


def unseen(program: Path, tries: int) -> None:
    """Record the cases of unseen.yaml, measure them with and without each fault, and write what was predicted."""
    import record

    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        record.main(["--cases", str(HERE / "unseen.yaml"), "--out", scratch, "--limit", "0.05"])
        for pair in pairs("unseen.yaml"):
            walls = [wall_s(flags, pair.ranks, pair.threads, program, tries) for flags in (pair.flags, pair.without)]
            rows.append({"case": pair.case, "fault": pair.fault, "with_s": walls[0], "without_s": walls[1]})
        lines = ",\n".join(json.dumps(asdict(one)) for one in judged(rows, Path(scratch)))
    UNSEEN.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def predicted() -> list[Judged]:
    """Return the cases of unseen.yaml as they were predicted and measured."""
    return [Judged(**row) for row in json.loads(UNSEEN.read_text(encoding="utf-8"))]


def correlation(cases: list[Judged]) -> float:
    """Return Spearman's rank correlation of expected and real gains."""
    ranks = [_ranks([one.expected_s for one in cases]), _ranks([one.really_s for one in cases])]
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(values: list[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the rank of each value; equal ones share their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places])


def table(cases: list[Judged]) -> str:
    """Return the Markdown table with its summary."""
    held = sum(one.held for one in cases)
    summary = (
        f"{len(cases)} cases: median error {statistics.median(one.error for one in cases):.1%}, rank correlation "
        f"{correlation(cases):.3f}, interval holds in {held} ({held / len(cases):.0%})."
    )
    head = "| case | fault removed | remedy | expected, ms | 80 % interval, ms | measured gain, ms | error | holds |"
    return "\n".join([summary, "", head, "|---|---|---|---|---|---|---|---|", *(one.row for one in cases)])


def write(text: str, name: str = "gains") -> None:
    """Put the table into the page on validation, between its marks."""
    page = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"
    before, _, rest = page.partition(begin)
    PAGE.write_text(before + begin + text + end + rest.partition(end)[2], encoding="utf-8")


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="cases to measure (default: all)")
    parser.add_argument("--measure", action="store_true", help="run the program instead of comparing")
    parser.add_argument("--unseen", action="store_true", help="record, predict and measure the cases of unseen.yaml")
    parser.add_argument("--program", type=Path, default=HERE / "build" / "stencil")
    parser.add_argument("--tries", type=int, default=4)
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Do what the command line asks for."""
    options = arguments(words)
    if options.measure:
        measure(options.program.resolve(), options.tries, options.names)
        return 0
    if options.unseen:
        unseen(options.program.resolve(), options.tries)
    for name, cases in (("gains", judged()), ("unseen gains", predicted())):
        text = table(cases)
        print(text.partition("\n")[0])
        write(text, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
