"""Judge gapwatch's advice on small programs in the styles that people write, each with its repaired version.

python examples/real/judge.py                      # all of them
python examples/real/judge.py heat_rows task_farm  # some of them
python examples/real/judge.py --prefix "chrt -r 1" --page   # before all other programs, into docs/validation.md

Each program is built, recorded once by ``gapwatch run``, and timed beside its repaired version, in turns.
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
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE: Final = Path(__file__).resolve().parent
PAGE: Final = HERE.parents[1] / "docs" / "validation.md"
MARKS: Final = ("<!-- real: begin -->", "<!-- real: end -->")
#: Compilers by suffix: of programs with and without MPI.
COMPILERS: Final = {".c": ("gcc", "mpicc"), ".cpp": ("g++", "mpicxx"), ".F90": ("gfortran", "mpifort")}
LANGUAGES: Final = {".c": "C", ".cpp": "C++", ".F90": "Fortran"}
FLAGS: Final = "-g -O3 -march=native"
#: What an empty advice is called in a manifest.
NOTHING: Final = "none"
#: A repair that wins less than this share of the run needs no item.
USEFUL: Final = 0.02


@dataclass(frozen=True, slots=True)
class Pair:
    """A program and its repaired version: how both are built and started, and which actions are right."""

    name: str
    source: Path
    fault: str
    engineer: str
    accepted: tuple[str, ...]
    ranks: tuple[int, int] = (0, 0)
    threads: tuple[int, int] = (1, 1)
    flags: tuple[str, str] = (FLAGS, FLAGS)
    launch: tuple[str, str] = ("", "")

    @property
    def style(self) -> str:
        """The language and the model of parallelism."""
        models = [name for name, used in (("MPI", self.ranks[0]), ("OpenMP", max(self.threads) > 1)) if used]
        return f"{LANGUAGES[self.source.suffix]}, {' and '.join(models) or 'serial'}"

    @property
    def is_serial(self) -> bool:
        """Whether one thread does everything, so that CPU time tells its time."""
        return not self.ranks[0] and max(self.threads) == 1


def load_pair(folder: Path) -> Pair:
    """Return the pair of a folder by its manifest."""
    stated = yaml.safe_load((folder / "manifest.yaml").read_text())
    source = next(path for path in folder.iterdir() if path.suffix in COMPILERS)

    def both(name: str, default: str | int) -> tuple[Any, Any]:
        first = stated.pop(name, default)
        return first, stated.pop(f"repaired_{name}", first)

    ranks, threads = both("ranks", 0), both("threads", 1)
    flags, launch = both("flags", FLAGS), both("launch", "")
    accepted = tuple(map(str, stated.pop("accepted")))
    return Pair(
        folder.name, source, accepted=accepted, ranks=ranks, threads=threads, flags=flags, launch=launch, **stated
    )


def load_pairs(names: Sequence[str] = ()) -> list[Pair]:
    """Return the pairs of these names, all if there are none."""
    folders = sorted(path.parent for path in HERE.glob("*/manifest.yaml"))
    return [load_pair(folder) for folder in folders if not names or folder.name in names]


def build_program(pair: Pair, folder: Path, *, repaired: bool) -> Path:
    """Return the file of a version of a program, built in ``folder``."""
    compiler = COMPILERS[pair.source.suffix][pair.ranks[0] > 0]
    threads = ["-fopenmp"] if max(pair.threads) > 1 else []
    define = ["-DREPAIRED"] if repaired else []
    target = folder / (f"{pair.name}-repaired" if repaired else pair.name)
    flags = pair.flags[repaired].split()
    subprocess.run([compiler, *flags, *threads, *define, str(pair.source), "-o", str(target), "-lm"], check=True)
    return target


def start_command(pair: Pair, program: Path, *, repaired: bool) -> list[str]:
    """Return how a version is started."""
    ranks = pair.ranks[repaired]
    launch = ["mpirun", "--oversubscribe", *pair.launch[repaired].split(), "-n", str(ranks)] if ranks else []
    return [*launch, str(program)]


def run_command(command: Sequence[str], pair: Pair, folder: Path, *, repaired: bool, cpu: bool = False) -> float:
    """Run a command in ``folder``; returns its seconds by the clock on the wall or on the processors."""
    variables = {**os.environ, "OMP_NUM_THREADS": str(pair.threads[repaired])}
    started, before = time.monotonic(), os.times()
    subprocess.run(command, cwd=folder, env=variables, check=True, capture_output=True)
    after = os.times()
    if cpu:
        return after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - started


@dataclass(frozen=True, slots=True)
class Item:
    """An item of advice: its action, its place, and the seconds that it promises, as an interval where it has one."""

    action: str
    place: str
    interval_s: tuple[float, float] | None

    @classmethod
    def from_document(cls, found: Mapping[str, Any]) -> Item:
        """Return an item of advice as JSON."""
        where, interval = found["region"] or {}, found["interval_s"]
        place = f"{where['file']}:{where['line']}" if where.get("file") else where.get("name") or ""
        return cls(found["action"], place, (interval[0], interval[1]) if interval else None)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was advised on a program, and what its repaired version wins, seconds."""

    pair: Pair
    wall_s: float
    won_s: float
    grade: str
    items: list[Item] = field(default_factory=list)

    @property
    def first(self) -> str:
        """The action of the first item."""
        return self.items[0].action if self.items else NOTHING

    @property
    def is_right(self) -> bool:
        """Whether the first item is one that an engineer would choose; silence where nothing is to be won."""
        return self.first in self.pair.accepted or (not self.items and self.won_s < USEFUL * self.wall_s)

    @property
    def holds(self) -> bool | None:
        """Whether the gain lies in the interval of the first item; None without one."""
        interval = self.items[0].interval_s if self.items else None
        return None if interval is None else interval[0] <= self.won_s <= interval[1]


def judge_pair(pair: Pair, folder: Path, rounds: int, prefix: Sequence[str]) -> Judgement:
    """Return the judgement of a pair, built and run in ``folder``."""
    programs = [build_program(pair, folder, repaired=repaired) for repaired in (False, True)]
    commands = [[*prefix, *start_command(pair, program, repaired=bool(at))] for at, program in enumerate(programs)]
    recording = folder / "recording"
    gapwatch = [str(Path(sys.executable).with_name("gapwatch")), "run", "--profile", str(recording), "--format", "json"]
    run_command([*gapwatch, "-o", "advice.json", "--", *commands[0]], pair, folder, repaired=False)
    taken = [
        [
            run_command(command, pair, folder, repaired=bool(at), cpu=pair.is_serial)
            for at, command in enumerate(commands)
        ]
        for _ in range(rounds)
    ]
    faulty, repaired = (statistics.median(row[at] for row in taken) for at in (0, 1))
    advice = json.loads((folder / "advice.json").read_text())
    items = [Item.from_document(each) for each in advice["recommendations"]]
    return Judgement(pair, faulty, faulty - repaired, advice["profile"]["grade"], items)


def report_judgements(found: Sequence[Judgement]) -> str:
    """Return the summary and the table as Markdown."""
    right = [one.is_right for one in found]
    held = [one.holds for one in found if one.is_right and one.holds is not None]
    lines = [
        f"First item right: {sum(right)} of {len(right)}; the gain of the repaired version lies in the interval of "
        f"{sum(held)} of the {len(held)} right first items that have one.",
        "",
        "| program | style | fault | run | won | first item, its place | expected | grade | verdict |",
        "|---|---|---|--:|--:|---|--:|---|---|",
    ]
    for one in found:
        first = one.items[0] if one.items else Item(NOTHING, "", None)
        interval = first.interval_s
        promise = f"{interval[0]:.2f} to {interval[1]:.2f} s" if interval else "-"
        verdict = "wrong" if not one.is_right else {True: "right", False: "right, outside", None: "right"}[one.holds]
        lines.append(
            f"| {one.pair.name} | {one.pair.style} | {one.pair.fault} | {one.wall_s:.2f} s | {one.won_s:.2f} s | "
            f"{first.action} {first.place} | {promise} | {one.grade} | {verdict} |"
        )
    return "\n".join(lines)


def write_page(text: str) -> None:
    """Write the table between its marks in docs/validation.md."""
    before, rest = PAGE.read_text().split(MARKS[0])
    PAGE.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


def main() -> None:
    """Judge and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each version (default: 3)")
    parser.add_argument("--prefix", type=shlex.split, default=[], help="what each program is started by")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep programs and recordings here")
    parser.add_argument("--page", action="store_true", help="write the table into docs/validation.md")
    args = parser.parse_args()
    found = []
    for pair in load_pairs(args.names):
        with tempfile.TemporaryDirectory() as temporary:
            folder = (args.keep or Path(temporary)) / pair.name
            folder.mkdir(parents=True, exist_ok=True)
            found.append(judge_pair(pair, folder, args.rounds, args.prefix))
        one = found[-1]
        print(f"{pair.name}: {'right' if one.is_right else 'wrong'}, won {one.won_s:.2f} s", *one.items, flush=True)
    text = report_judgements(found)
    if args.page:
        write_page(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
