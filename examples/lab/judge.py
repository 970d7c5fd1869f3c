"""Judge gapwatch's advice on programs of the laboratory: what each item would win is known exactly.

python examples/lab/judge.py --seeds 1:600:2 --jobs 2     # odd seeds to develop on
python examples/lab/judge.py --seeds 0:800:2 --page       # even seeds to report, into docs/validation.md
python examples/lab/judge.py --seeds 17 --keep DIR        # one program, its trace kept
python examples/lab/judge.py --halos                      # imbalanced stencils with a halo exchange
python examples/lab/judge.py --cases FILE... --page       # the tables of cases that --json kept
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
import traceback
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from advisor import pipeline
from advisor.extension import host
from lab.archive import write_archive
from lab.scores import Case, Item, report
from lab.shapes import SHAPES, build, halos
from lab.truth import Gain, gain_of, gains, meanings, places
from lab.world import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Advice
    from lab.world import Code, Run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation.md"
MARKS = ("<!-- {}: begin -->", "<!-- {}: end -->")


def judge(code: Code, keep: Path | None = None) -> Case:
    """Return the judgement of the advice on a program; what fails is a case with an error."""
    begin = time.perf_counter()
    case = Case(code.seed, code.shape, code.ranks, code.threads, code.faults)
    try:
        recorded = run(code, record=True)
        best = gains(code, recorded.wall_s)
        advice = _advise(code, recorded, keep)
        items = _items(code, recorded.wall_s, advice)
        case = replace(case, wall_s=recorded.wall_s, best=best[:5], items=items, grade=advice.grade.letter)
    except Exception:  # one program must not stop the others
        case = replace(case, error=traceback.format_exc())
    return replace(case, spent_s=time.perf_counter() - begin)


def _items(code: Code, wall_s: float, advice: Advice) -> list[Item]:
    """Return the items of the advice with what they win; those that mean one change in the same phases are one."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Recommendation]] = {}
    for each in advice.recommendations:
        meant = tuple(meanings().get(each.action, (each.action,)))
        groups.setdefault((meant, places(code, each.region, each.more_regions)), []).append(each)
    items = []
    for members in groups.values():
        first = members[0]
        expected = [each.expected_s for each in members if each.expected_s is not None]
        ranges = [each.interval_s for each in members if each.interval_s is not None]
        whole = len(expected) == len(ranges) == len(members)
        items.append(
            Item(
                first.action, first.region or first.phase or "",
                gain_of(code, wall_s, first.action, first.region, first.more_regions),
                sum(expected) if whole else None,
                (sum(low for low, _ in ranges), sum(high for _, high in ranges)) if whole else None,
                sum(each.ceiling_s for each in members), len(members),
            )
        )  # fmt: skip
    return items


def _advise(code: Code, recorded: Run, keep: Path | None) -> Advice:
    """Return the advice on the trace of a run."""
    with tempfile.TemporaryDirectory() as folder:
        path = (keep or Path(folder)) / f"{code.shape}-{code.seed}"
        hosts = code.machine.ranks_per_host
        trace = write_archive(
            path, recorded.log, ranks=code.ranks, threads=code.threads, ranks_per_host=hosts, sources=code.sources()
        )
        return pipeline.advise([trace], pipeline.Options(), _plugins())


_HOSTS: list[host.PluginHost] = []


def _plugins() -> host.PluginHost:
    """Return the plugins, loaded once for each process."""
    if not _HOSTS:
        _HOSTS.append(host.load_plugins())
    return _HOSTS[0]


def _judge(job: tuple[Code, Path | None]) -> Case:
    return judge(*job)


def judge_all(codes: Iterable[Code], jobs: int, keep: Path | None = None) -> Iterator[Case]:
    """Yield the judgement of each program as it comes."""
    work = ((code, keep) for code in codes)
    if jobs == 1:
        yield from map(_judge, work)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(_judge, work)


def seeds_of(text: str) -> range:
    """Return the seeds of ``7`` or ``1:2000:2``."""
    numbers = [int(part) for part in text.split(":")]
    return range(numbers[0], numbers[0] + 1) if len(numbers) == 1 else range(*numbers)


def load_cases(file: Path) -> list[Case]:
    """Return the cases that ``--json`` wrote."""
    found = []
    for line in file.read_text().splitlines():
        kept = json.loads(line)
        best = [Gain(**gain) for gain in kept.pop("best")]
        items = [Item(**item) for item in kept.pop("items")]
        found.append(Case(**kept, best=best, items=items))
    return found


def main() -> int:
    """Judge and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seeds", type=seeds_of, metavar="A:B:STEP")
    which.add_argument("--cases", type=Path, nargs="+", metavar="FILE", help="cases that --json kept, nothing is run")
    which.add_argument("--halos", action="store_true", help="imbalanced stencils with a halo exchange, nothing else")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shape", choices=SHAPES, help="give all programs this shape")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the traces here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every case, one a line")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/validation.md")
    args = parser.parse_args()
    codes = halos() if args.halos else (build(seed, args.shape) for seed in args.seeds or ())
    cases = [case for file in args.cases or () for case in load_cases(file)]
    with args.json.open("w") if args.json else nullcontext() as out:
        for case in judge_all(codes, args.jobs, args.keep):
            cases.append(case)
            if out:
                print(json.dumps(asdict(case)), file=out, flush=True)
    text = report(sorted(cases, key=lambda case: case.seed))
    if not args.page:
        print(text)
        return 0
    begin, end = (mark.format("lab-halos" if args.halos else "lab") for mark in MARKS)
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
