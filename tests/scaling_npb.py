"""Recorded times of NPB programs (``profiles/scaling/npb.csv``) as studies, and how well points left out are told."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor_scaling import collect, study
from advisor_scaling.study import MeasuredSeries

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_scaling.study import ScalingStudy

FILE = Path(__file__).parent / "profiles" / "scaling" / "npb.csv"


def studies() -> list[ScalingStudy]:
    """Return one study for each program, over N and P, of the program's own time of its main loop."""
    found = defaultdict(list)
    with FILE.open() as file:
        for row in csv.DictReader(file):
            parameters = {"N": float(row["N"]), "P": float(row["P"])}
            found[row["program"]].append((parameters, {MeasuredSeries("run", "run"): float(row["main_loop_s"])}))
    return [collect.build_study(program, rows, (), 0.0) for program, rows in found.items()]


def left_out(each: ScalingStudy) -> FloatArray:
    """Return (predicted - measured) / measured of each point, predicted by a model of the others."""
    return study.relative_errors(study.fit_study(each), study.leave_one_out(each).value)[0]


def table() -> str:
    """Return the rows of the table in docs/validation.md."""
    rows = [
        "| program | points | runs | median error | worst | within 20 % | runs in their 80 % interval |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in studies():
        said = study.leave_one_out(each)
        off = study.relative_errors(study.fit_study(each), said.value)[0]
        values = each.values[0]
        inside = (values >= said.low[0][:, None]) & (values <= said.high[0][:, None])
        hit = inside[~np.isnan(values)].mean()
        worst = off[np.abs(off).argmax()]
        rows.append(
            f"| {each.program} | {len(off)} | {each.run_count} | {np.median(np.abs(off)):.0%} | {worst:+.0%} | "
            f"{(np.abs(off) <= 0.2).mean():.0%} | {hit:.0%} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
