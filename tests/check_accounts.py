"""Recompute a trace's accounts from the listing of otf2-print, by a plain stack per location.

Usage: python tests/check_accounts.py TRACE…   (prints one line per trace; exit status 1 when anything disagrees)

Shares nothing with ``advisor.trace`` but the reader that is being checked: the listing is text from another program.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.formats.otf2 import read_trace
from advisor.trace.events import Role
from advisor.trace.profile import from_trace
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.model.records import Profile

MOVE = re.compile(r'^(ENTER|LEAVE)\s+(\d+)\s+(\d+)\s+Region: "(.*)" <\d+>$')
OTHER = re.compile(r"^[A-Z_]+\s+(\d+)\s+(\d+)\s")
TICKS = re.compile(r"Ticks per Seconds: (\d+)")
BEYOND = {Role.INIT, Role.FINALIZE, Role.TOOL}


def listing(anchor: Path, *options: str) -> list[str]:
    """Return the lines of ``otf2-print``."""
    run = subprocess.run(
        ["otf2-print", *options, str(anchor)], capture_output=True, text=True, check=True, errors="surrogateescape"
    )
    return run.stdout.splitlines()


def calls_by_name(anchor: Path) -> tuple[dict[str, float], list[float]]:
    """Return seconds in each outermost MPI or I/O call over all locations, and the length of each location."""
    ticks = next(int(m.group(1)) for line in listing(anchor, "-G") if (m := TICKS.search(line)))
    stacks: dict[int, list[tuple[str, int]]] = defaultdict(list)
    total: dict[str, int] = defaultdict(int)
    seen: dict[int, list[int]] = {}
    for line in listing(anchor):
        move = MOVE.match(line)
        other = move or OTHER.match(line)
        if not other:
            continue
        location, time = int(other.group(2 if move else 1)), int(other.group(3 if move else 2))
        seen.setdefault(location, [time, time])[1] = time
        if move and move.group(1) == "ENTER":
            stacks[location].append((move.group(4), time))
        elif move and stacks[location]:
            name, begin = stacks[location].pop()
            if _claims(name) and not any(_claims(above) for above, _ in stacks[location]):
                total[classify_region(name)[0]] += time - begin
    return {name: value / ticks for name, value in total.items()}, [(b - a) / ticks for a, b in seen.values()]


def _claims(name: str) -> bool:
    role = classify_region(name)[1]
    return role not in (Role.ROOT, Role.USER, Role.LOCAL, Role.OMP_PARALLEL, Role.OMP_WORK)


def disagreements(anchor: Path) -> list[str]:
    """Return what of the profile's accounts does not follow from the listing."""
    trace = read_trace(anchor)
    profile = from_trace(trace)
    found = []
    inside = sum(phase.arrays["wall_s"].sum(axis=(0, 2)) for phase in profile.phases)
    gap = np.abs(inside + sum(profile.outside.values()) - profile.actual_s).max()
    if gap > 1e-9:
        found.append(f"categories and time outside miss the run time by {gap:.3g} s")
    expected, _ = calls_by_name(anchor)
    booked: dict[str, float] = defaultdict(float)
    for phase in profile.phases:
        for row, seconds in zip(phase.regions, phase.arrays["wall_s"].sum(axis=(1, 2)), strict=True):
            booked[profile.regions[row].name] += float(seconds)
    for call, kind, seconds in _outside(profile):
        booked[call] += seconds if kind == "start-up" else 0.0
    for name, seconds in expected.items():
        if classify_region(name)[1] not in BEYOND and abs(booked[name] - seconds) > 1e-6 + 1e-6 * seconds:
            found.append(f"{name}: {booked[name]:.9f} s booked, {seconds:.9f} s in the listing")
    return found


def _outside(profile: Profile) -> list[tuple[str, str, float]]:
    """Return call, part and seconds of what lies in calls before and after the phases."""
    causes = profile.causes
    assert causes is not None
    rows = np.flatnonzero(causes.phase < 0)
    names = [profile.regions[number].name for number in causes.call[rows]]
    kinds = [causes.kinds[number] for number in causes.kind[rows]]
    return list(zip(names, kinds, causes.seconds[rows].tolist(), strict=True))


if __name__ == "__main__":
    status = 0
    for argument in sys.argv[1:]:
        problems = disagreements(Path(argument))
        status |= bool(problems)
        print(argument, "agrees" if not problems else "; ".join(problems))
    sys.exit(status)
