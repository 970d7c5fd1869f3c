"""Write programs with known faults as traces, let gapwatch advise on them, and compare with what their repair wins.

python examples/device_lab/judge.py --seeds 1:121:2
python examples/device_lab/judge.py --seeds 0:600:2 --write    (the table in docs/validation.md)
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from advisor.extension import host
from advisor.pipeline import Options, advise
from device_lab.faults import REPAIRS, Case, make_case
from device_lab.machine import Event, run_program

_PLUGINS = host.load_plugins()


def write_traces(case: Case, folder: Path) -> int:
    """Write one trace for each rank; return the length of the run in nanoseconds."""
    ranks, length = run_program(case.program)
    for rank in ranks:
        document = {
            "schemaVersion": 1,
            "distributedInfo": {"rank": rank.number, "world_size": len(ranks)},
            "traceEvents": [_convert_event(event) for event in rank.events],
        }
        (folder / f"rank{rank.number}.json.gz").write_bytes(gzip.compress(json.dumps(document).encode(), 1))
    return length


def _convert_event(event: Event) -> dict[str, Any]:
    args: dict[str, Any] = {} if event.link < 0 else {"correlation": event.link}
    on_device = event.category in ("kernel", "gpu_memcpy")
    if on_device:
        args |= {"device": event.device, "stream": event.track}
    if event.group:
        args |= {"Process Group Name": event.group, "Collective name": "allreduce"}
    return {
        "ph": "X", "cat": event.category, "name": event.name, "pid": event.device if on_device else 1000,
        "tid": event.track, "ts": event.start / 1000, "dur": (event.end - event.start) / 1000, "args": args,
    }  # fmt: skip


def judge_case(case: Case) -> dict[str, Any]:
    """Return what gapwatch says first, whether that is right, and promised and true gain as shares of the run."""
    with tempfile.TemporaryDirectory() as folder:
        length = write_traces(case, Path(folder))
        files = sorted(Path(folder).iterdir())
        advice = advise([Path(folder) if len(files) > 1 else files[0]], Options(), _PLUGINS)
    first = advice.recommendations[0] if advice.recommendations else None
    wanted = REPAIRS[case.fault]
    right = first is not None and first.action in wanted if wanted else first is None
    promised = None if first is None or first.expected_s is None else first.expected_s
    inside = promised is not None and 0.99 * first.interval_s[0] <= case.gain / 1e9 <= 1.01 * first.interval_s[1]
    return {
        "seed": case.seed, "fault": case.fault, "first": first and first.action, "right": right,
        "length_s": length / 1e9, "true_s": case.gain / 1e9, "promised_s": promised, "inside": inside,
        "verdict": advice.verdict,
    }  # fmt: skip


#: What the table calls the faults.
_WORDS = {
    "none": "none", "launches": "launches slower than kernels", "waits": "a wait after every kernel",
    "turns": "two devices in turns", "pageable": "blocking copies from pageable memory",
    "exposed": "communication behind all computation", "straggler": "straggler", "loader": "slow loading of data",
    "allocations": "allocation in every step", "host": "work of the host", "all": "all",
}  # fmt: skip
_PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation.md"
_BEGIN, _END = "<!-- devices: begin -->\n", "<!-- devices: end -->\n"


def write_scores(rows: list[dict[str, Any]]) -> str:
    """Return the table of right first items, and of errors and intervals of their gains, for each fault and for all."""
    lines = ["| fault | first item right | median error of the gain | true gain in the interval |", "|---|--:|--:|--:|"]
    for fault in (*REPAIRS, "all"):
        mine = [row for row in rows if fault in (row["fault"], "all")]
        if not mine:
            continue
        timed = [row for row in mine if row["right"] and row["promised_s"] is not None and row["true_s"] > 0]
        errors = [abs(row["promised_s"] / row["true_s"] - 1) for row in timed]
        cells = (f"{median(errors):.1%}".replace("%", " %"), sum(row["inside"] for row in timed)) if timed else ("", "")
        lines.append(
            f"| {_WORDS[fault]} | {sum(row['right'] for row in mine)} of {len(mine)} | {cells[0]} | {cells[1]} |"
        )
    return "\n".join(lines) + "\n"


def write_table(rows: list[dict[str, Any]], seeds: range) -> None:
    """Put the table between its marks on the page of validation."""
    page = _PAGE.read_text(encoding="utf-8")
    before, rest = page.split(_BEGIN)
    after = rest.split(_END)[1]
    words = f"Seeds {seeds[0]} to {seeds[-1]} in steps of {seeds.step}:\n\n"
    _PAGE.write_text(before + _BEGIN + words + write_scores(rows) + _END + after, encoding="utf-8")


def main() -> None:
    """Judge the cases of some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="1:41:2", help="FROM:TO:STEP; odd seeds to develop on, even ones to report")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    parser.add_argument("--write", action="store_true", help="put the table into docs/validation.md")
    args = parser.parse_args()
    rows = []
    seeds = range(*map(int, args.seeds.split(":")))
    for seed in seeds:
        row = judge_case(make_case(seed))
        rows.append(row)
        if args.verbose or not row["right"]:
            print(json.dumps(row), flush=True)
    print(write_scores(rows), end="")
    if args.write:
        write_table(rows, seeds)


if __name__ == "__main__":
    main()
