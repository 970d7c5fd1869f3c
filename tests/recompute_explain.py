"""Recomputes the numbers of an explanation from the raw profile; knows the formulas, and nothing of gapwatch.

python recompute_explain.py PROFILE EXPLANATION prints the numbers that differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

IMBALANCE = ("L", "M'", "D")


def recomputed(profile: dict[str, Any]) -> dict[str, Any]:
    """Bounds, gaps and efficiencies by their names; B + D of each phase and its part of L, M' and D."""
    phases = profile["phases"]
    wall, wait, sync, transfer, cpu = (
        [np.array(phase[name], dtype=float).sum(axis=0) for phase in phases]
        for name in ("wall_s", "wait_s", "sync_s", "transfer_s", "cpu_s")
    )
    work = [a - b - c for a, b, c in zip(wall, wait, sync, strict=True)]
    serial = [phase["kind"] == "serial" for phase in phases]

    def each(arrays: list[Any]) -> list[float]:
        """Seconds by phase: of a serial one the largest of each iteration, of a parallel one the mean."""
        largest = zip(arrays, serial, strict=True)
        return [(a.max(axis=0) if alone else a.mean(axis=0)).sum() for a, alone in largest]

    levels = [[c.mean(axis=0).sum() for c in cpu], each(cpu)]
    levels += [each([c + t for c, t in zip(cpu, transfer, strict=True)]), each(work)]
    mean = sum(levels[3])
    busy = sum(w.sum(axis=1) for w, s in zip(work, serial, strict=True) if not s)
    deciders = [w.argmax(axis=0) for w in work]
    synchronizing = sum(s[d, range(len(d))].sum() for s, d in zip(sync, deciders, strict=True))
    bounds = {
        **dict(zip(("I", "IP", "IPC", "IPCO"), map(sum, levels), strict=True)),
        "IPCOL": mean - busy.mean() + busy.max(),
        "IPCOLM": sum((w.max(axis=0).sum() if s else w.sum(axis=1).max()) for w, s in zip(work, serial, strict=True)),
        "IPCOLMD": sum(w.max(axis=0).sum() for w in work),
        "IPCOLMDSW": sum(sum(phase["duration_s"]) for phase in phases),
        "actual": profile["actual_s"],
    }
    bounds["IPCOLMDS"] = bounds["IPCOLMD"] + synchronizing
    order = ["I", "IP", "IPC", "IPCO", "IPCOL", "IPCOLM", "IPCOLMD", "IPCOLMDS", "IPCOLMDSW", "actual"]
    letters = ["P", "C'", "O", "L", "M'", "D", "S'", "W", "X"]
    gaps = {one: bounds[b] - bounds[a] for one, a, b in zip(letters, order[:-1], order[1:], strict=True)}
    steady = [0.0 if s else w.sum(axis=1).max() - w.sum(axis=1).mean() for w, s in zip(work, serial, strict=True)]
    dynamic = [0.0 if s else w.max(axis=0).sum() - w.sum(axis=1).max() for w, s in zip(work, serial, strict=True)]
    busiest = sum(c.sum(axis=1) for c in cpu)
    return {
        "bounds": bounds,
        "gaps": gaps,
        "uneven": {phase["name"]: b + d for phase, b, d in zip(phases, steady, dynamic, strict=True)},
        "parts": {
            phase["name"]: {
                "L": gaps["L"] * steady[p] / sum(steady),
                "M'": gaps["M'"] * steady[p] / sum(steady),
                "D": dynamic[p],
                **{name: levels[n + 1][p] - levels[n][p] for n, name in enumerate(("P", "C'", "O"))},
            }
            for p, phase in enumerate(phases)
        },
        "efficiencies": {
            "load_balance": busiest.mean() / busiest.max(),
            "communication": busiest.max() / bounds["IPCOLMDSW"],
            "parallel": busiest.mean() / bounds["IPCOLMDSW"],
        },
    }


def expected(number: dict[str, Any], raw: dict[str, Any]) -> float | None:
    """The value that a number must have; None where the raw profile alone does not tell it."""
    given = {one["name"]: one["value"] for one in number["inputs"]}
    match number["kind"]:
        case "bound" | "gap":
            return raw[f"{number['kind']}s"].get(number["name"])
        case "efficiency":
            return raw["efficiencies"].get(number["name"])
        case "quality":
            return 1 - sum(given.values())
        case "evidence" if number["name"] in ("L", "M'", "D", "P", "C'", "O") and number["about"].count(" ") == 2:
            phase = number["about"].split(" ", 2)[2]
            return raw["parts"][phase][number["name"]] / raw["bounds"]["actual"]
        case "ceiling":
            places = [name.removeprefix("phase ") for name in given if name.startswith("phase ")]
            gaps = [name.removeprefix("gap ") for name in given if name.startswith("gap ")]
            uneven = min(
                sum(raw["uneven"][place] for place in places), sum(raw["gaps"][n] for n in gaps if n in IMBALANCE)
            )
            parts = [name.partition(" in phase ")[::2] for name in given if " in phase " in name]
            return uneven + sum(min(raw["parts"][place][name], raw["gaps"][name]) for name, place in parts)
        case "confidence":
            return round(given["status"] * given["grade"] * given["clearness"], 3)
        case "order":
            return float(np.prod(list(given.values())))
    return None


def differing(profile: dict[str, Any], explanation: dict[str, Any]) -> tuple[int, list[str]]:
    """How many numbers were recomputed, and those that differ by more than 1e-9 of the run time."""
    raw, count, wrong = recomputed(profile), 0, []
    for number in explanation["numbers"]:
        value = expected(number, raw) if number["value"] is not None else None
        if value is not None:
            count += 1
            if abs(value - number["value"]) > 1e-9 * max(1.0, profile["actual_s"]):
                wrong.append(f"{number['kind']} {number['about']} {number['name']}: {number['value']} is {value}")
    return count, wrong


if __name__ == "__main__":
    print(*differing(*(json.loads(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:3])), sep="\n")
