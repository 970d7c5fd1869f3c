"""Computes an explanation again from the raw profile alone: python recompute_explain.py PROFILE EXPLANATION."""

import json
import sys
from functools import reduce
from operator import add, eq, ge, getitem, lt, mul, sub, truediv
from pathlib import Path
from typing import Any

import numpy as np

run, told = (json.loads(Path(file).read_text(encoding="utf-8")) for file in sys.argv[1:3])
ranks = np.array([one["rank"] for one in run["processors"]])
threads = np.array([one.get("thread", 0) for one in run["processors"]])
first = np.array([min(np.flatnonzero(ranks == rank), key=threads.__getitem__) for rank in ranks])
AXES = {"processors": 0, "iterations": 1}
FOLD = {"+": add, "-": sub, "*": mul, "/": truediv, "<": lt, ">=": ge, "==": eq, "least": min, "most": max}
OVER = {"sum": np.sum, "mean": np.mean, "max": np.max, "median": np.median, "argmax": np.argmax, "count": len}
OVER |= {"round": round, "ranks": lambda load: np.array([load[ranks == rank].mean() for rank in np.unique(ranks)])}
OVER |= {"at": lambda load, who: np.take_along_axis(load, np.asarray(who)[None], axis=0)[0]}


def spent(name: str, phase: Any, charged: bool) -> Any:
    seconds = np.array(phase[name], dtype=float)
    if seconds.ndim == 1:
        return seconds
    alone = [not run["regions"][region].get("threaded") for region in phase["regions"]]
    others = (first != np.arange(len(first)))[:, None]
    return seconds.sum(axis=0) + charged * others * seconds[alone].sum(axis=0)[first]


def value(formula: Any, inputs: Any, phase: Any = None) -> Any:
    if not isinstance(formula, list):
        return spent(formula, phase, True) if isinstance(formula, str) else formula
    name, *rest = formula
    if name == "profile":
        return reduce(getitem, rest, run)
    if name == "input":
        return inputs[rest[0]]["value"]
    if name == "own":
        return spent(rest[0], phase, False)
    if name == "phases":
        return sum(value(rest[1], inputs, run["phases"][number]) for number in rest[0])
    axis = {"axis": AXES[rest.pop()]} if rest[-1] in (*AXES,) else {}
    parts = [value(part, inputs, phase) for part in rest]
    return OVER[name](*parts, **axis) if name in OVER else reduce(FOLD[name], parts)


for number in told["numbers"]:
    for one in (number, *number["inputs"]):
        again = None if one["expression"] is None else float(value(one["expression"], number["inputs"]))
        right = again is None or abs(again - one["value"]) <= 1e-9 * max(1.0, abs(one["value"]))
        print("?" if again is None else "=" if right else "WRONG", number["kind"], one["name"], one["value"], again)
