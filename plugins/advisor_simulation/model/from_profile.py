"""From a run to a model: measured control flow, weights and communication, and holes where data are missing.

The phases become loops over the processors with one index each; those with the same number of iterations that follow
each other are the body of one loop. Weights are tables by iteration and processor, as long as there is room for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.whatif.runs import of_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model import FloatArray, Phase, Profile
    from advisor_simulation.whatif.runs import PhaseRun

#: Numbers in all tables together; beyond that a phase gets its mean by processor.
MOST: Final = 20_000
#: Seconds below this share of a phase are not modelled.
LITTLE: Final = 1e-4
#: Tables of a phase: work, transfer, I/O, synchronization, waiting.
TABLES: Final = 5


@dataclass(frozen=True, slots=True)
class _Part:
    """One step of a phase: its table, and the lines of the step."""

    table: str
    values: FloatArray
    steps: tuple[str, ...]


def model_text(profile: Profile) -> str | None:
    """Return a model of ``profile`` as YAML; None where the work of its processors is not known."""
    run = of_profile(profile)
    if run is None:
        return None
    room = MOST // max(sum(phase.work.size for phase in run.phases) * TABLES, 1)
    whole = room >= 1
    parts = [_parts(phase, measured, whole) for phase, measured in zip(run.phases, profile.phases, strict=True)]
    outside = {name: float(seconds.mean()) for name, seconds in profile.outside.items()}
    lines = [*_head(profile, run.processors, outside, run.outside)]
    lines += ["tables:"]
    lines += [f"  {part.table}: {{values: {_table(part.values)}}}" for each in parts for part in each]
    lines += ["domains:", "  processors: {size: P}", "control:", *_control(profile.phases, parts)]
    lines += ["holes:", *_holes(profile, whole)]
    return "\n".join(lines) + "\n"


def _head(profile: Profile, processors: int, outside: dict[str, float], rest: float) -> list[str]:
    start = max(outside.get("start-up", 0.0), 0.0)
    return [
        f"# Made from a run of {processors} processors; simulate it with --processors {processors}.",
        "aml: 1",
        f"name: {_quoted(profile.program)}",
        "unit: s",
        f"startup: {_number(start)}",
        f"shutdown: {_number(max(rest - start, 0.0))}",
        "costs: {barrier: 0}  # what synchronizing took stands in each phase below",
    ]


def _parts(phase: PhaseRun, measured: Phase, whole: bool) -> list[_Part]:
    """Return the steps of one phase, for what takes any time in it; waiting and synchronizing are those who decide
    it."""
    lasted = float(phase.durations().sum())
    main, turn = _quoted(measured.name), "t, " if whole else ""
    found = [_work(phase, main, whole)]
    who = phase.load.argmax(axis=0)
    sync = phase.sync[who, np.arange(len(who))]
    columns = {"transfer": phase.transfer, "io": phase.io, "sync": sync, "wait": phase.inner}
    for kind, values in columns.items():
        spread = np.broadcast_to(np.maximum(values, 0.0), phase.work.shape)
        if float(spread.max(axis=0).sum()) > LITTLE * lasted:
            table = f"{kind}_{phase.number}"
            steps = (f"exchange: {main}", f"kind: {kind}", f'cost: "{table}[{turn}p]"')
            found.append(_Part(table, _kept(spread, whole), steps))
    return found


def _work(phase: PhaseRun, main: str, whole: bool) -> _Part:
    table = f"work_{phase.number}"
    if phase.serial:
        values = phase.work.max(axis=0)
        entry = f"{table}[t]" if whole else f"{table}[0]"
        steps = (f"serial: {main}", f'weight: "{entry}"')
        return _Part(table, values if whole else values.mean(keepdims=True), steps)
    entry = f"{table}[t, i]" if whole else f"{table}[i]"
    each = (f"parallel: {main}", "over: processors", f'weight: "{entry}"', "end: none")
    return _Part(table, _kept(phase.work, whole), each)


def _kept(values: FloatArray, whole: bool) -> FloatArray:
    """Return a table by iteration and processor, or the mean by processor."""
    return np.maximum(values.T if whole else values.mean(axis=1), 0.0)


def _control(phases: Sequence[Phase], parts: Sequence[Sequence[_Part]]) -> list[str]:
    lines = []
    numbered = list(enumerate(zip(phases, parts, strict=True), 1))
    for count, group in groupby(numbered, key=lambda one: one[1][0].iterations):
        members = list(group)
        lines += [f"  - loop: {count} times from phase {members[0][0]}", f"    times: {count}", "    do:"]
        for _, (phase, steps) in members:
            lines += ["      - {" + ", ".join(part.steps) + "}" for part in steps]
            lines.append("      - {barrier: " + _quoted(phase.closed_by or "end") + "}")
    return lines


def _holes(profile: Profile, whole: bool) -> list[str]:
    """Return what a model needs that this profile does not tell."""
    holes = [
        ("references to data", "arrays, reads and writes: no caches, sharing or decomposition can be simulated", ""),
        ("domains", "what a processor's part consists of: schedules can't cut it finer than a processor", ""),
    ]
    if not profile.has("transfer_s"):
        holes.append(("moving data", "the time of communication, which stands in the weights", "record an MPI trace"))
    if not profile.has("io_s"):
        holes.append(("input and output", "their time, which stands in the weights", "record a trace with posixio"))
    if not profile.has_phases:
        holes.append(("synchronizations", "all of them: the run is one phase", "record a trace"))
    if not whole:
        holes.append(("iterations", "how weights change; too many to write down, so means stand here", ""))
    return [
        f"  - {{at: {_quoted(at)}, missing: {_quoted(missing)}" + (f", collect: {_quoted(how)}" if how else "") + "}"
        for at, missing, how in holes
    ]


def _table(values: FloatArray) -> str:
    if values.ndim == 1:
        return "[" + ", ".join(map(_number, values)) + "]"
    return "[" + ", ".join(_table(row) for row in values) + "]"


def _number(value: float) -> str:
    return f"{float(value):.9g}"


def _quoted(text: str) -> str:
    """Return text as a quoted YAML scalar: names come from a profile and may hold anything."""
    plain = "".join(sign if sign.isprintable() and sign.isascii() else "?" for sign in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"')[:200] + '"'
