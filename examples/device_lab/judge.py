"""Write programs with known faults as traces, let gapwatch advise on them, and compare with what their repair wins.

python examples/device_lab/judge.py --seeds 1:121:2
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


def print_scores(rows: list[dict[str, Any]]) -> None:
    """Print the share of right first items, and errors of gains, for each fault and for all."""
    for fault in (*REPAIRS, "all"):
        mine = [row for row in rows if fault in (row["fault"], "all")]
        if not mine:
            continue
        timed = [row for row in mine if row["right"] and row["promised_s"] is not None and row["true_s"] > 0]
        errors = [abs(row["promised_s"] / row["true_s"] - 1) for row in timed]
        words = (
            f"median error {median(errors):.1%}, in the interval {sum(row['inside'] for row in timed)}" if timed else ""
        )
        print(f"{fault:12} {sum(row['right'] for row in mine):3} of {len(mine):3} right  {words}")


def main() -> None:
    """Judge the cases of some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="1:41:2", help="FROM:TO:STEP; odd seeds to develop on, even ones to report")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    args = parser.parse_args()
    rows = []
    for seed in range(*map(int, args.seeds.split(":"))):
        row = judge_case(make_case(seed))
        rows.append(row)
        if args.verbose or not row["right"]:
            print(json.dumps(row), flush=True)
    print_scores(rows)


if __name__ == "__main__":
    main()
