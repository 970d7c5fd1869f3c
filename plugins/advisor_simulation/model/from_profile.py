"""From a run to a model: measured control flow, weights and communication, and holes where data are missing.

The phases become loops over the processors with one index each, a loop for each region that does much of a phase's
work; phases with the same number of iterations that follow each other are the body of one loop. Weights are tables by
iteration and processor, as long as there is room for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.model.documents import quote_text
from advisor_simulation.whatif.measured_run import PhaseRun, build_run

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, Phase, Profile

#: Numbers in all tables together; beyond that a phase gets its mean by processor.
MOST: Final = 20_000
#: Seconds below this share of a phase are not modelled.
LITTLE: Final = 1e-4
#: Tables of a phase beside work: transfer, I/O, synchronization, waiting.
TABLES: Final = 4
#: Loads may exceed the time of the run by this share of it.
EXCESS: Final = 0.01
#: Regions with less than this share of a phase's work are added to its largest one, and so are those beyond so many.
SMALL: Final = 0.02
REGIONS: Final = 8


@dataclass(frozen=True, slots=True)
class _PhaseStep:
    """One step of a phase: its table, and the lines of the step."""

    table: str
    values: FloatArray
    steps: tuple[str, ...]


def render_model(profile: Profile) -> str | None:
    """Return a model of ``profile`` as YAML; None where the work of its processors is not known."""
    run = build_run(profile)
    if run is None:
        return None
    shares = [
        _region_shares(phase, measured, profile) for phase, measured in zip(run.phases, profile.phases, strict=True)
    ]
    numbers = (phase.work.size * (TABLES + len(each)) for phase, each in zip(run.phases, shares, strict=True))
    whole = sum(numbers) <= MOST
    parts = [
        _build_steps(phase, measured, each, whole)
        for phase, measured, each in zip(run.phases, profile.phases, shares, strict=True)
    ]
    outside = {name: float(seconds.mean()) for name, seconds in profile.outside.items()}
    lines = [*_render_head(profile, run.processors, outside, run.outside)]
    lines += ["tables:"]
    lines += [f"  {part.table}: {{values: {_format_table(part.values)}}}" for each in parts for part in each]
    lines += ["domains:", "  processors: {size: P}", "control:", *_render_control(profile.phases, parts)]
    too_much = -sum(float(np.minimum(phase.inner, 0.0).sum()) for phase in run.phases)
    lines += ["holes:", *_render_missing_inputs(profile, whole, too_much)]
    return "\n".join(lines) + "\n"


def _render_head(profile: Profile, processors: int, outside: dict[str, float], rest: float) -> list[str]:
    start = max(outside.get("start-up", 0.0), 0.0)
    return [
        "aml: 1",
        f"name: {quote_text(profile.program)}",
        f"processors: {processors}  # those of the run that the model was made from",
        "unit: s",
        f"startup: {_format_number(start)}",
        f"shutdown: {_format_number(max(rest - start, 0.0))}",
        "costs: {barrier: 0}  # what synchronizing took stands in each phase below",
    ]


def _region_shares(phase: PhaseRun, measured: Phase, profile: Profile) -> dict[str, FloatArray]:
    """Return the share of each region that counts in the work of each processor (Q,), the largest first."""
    work = measured.arrays["wall_s"].sum(axis=2) if "wall_s" in measured.arrays else np.zeros((0, 0))
    for name in ("wait_s", "transfer_s", "sync_s", "io_s"):
        work = work - (measured.arrays[name].sum(axis=2) if name in measured.arrays and work.size else 0.0)
    work = np.maximum(work, 0.0)
    order = np.argsort(-work.sum(axis=1), kind="stable")[:REGIONS] if work.size else np.zeros(0, dtype=np.int64)
    kept = [int(row) for row in order if work[row].sum() > SMALL * work.sum()]
    if phase.serial or not kept:
        return {measured.name: np.ones(len(phase.work))}
    total = work.sum(axis=0)
    found = {
        profile.regions[measured.regions[row]].name: np.divide(
            work[row], total, out=np.zeros_like(total), where=total > 0
        )
        for row in kept
    }
    largest = next(iter(found))
    found[largest] = found[largest] + 1.0 - sum(found.values())
    return found


def _build_steps(phase: PhaseRun, measured: Phase, shares: dict[str, FloatArray], whole: bool) -> list[_PhaseStep]:
    """Return the steps of one phase, for what takes any time in it; waiting and synchronizing are those who decide
    it."""
    lasted = float(phase.durations().sum())
    main, turn = quote_text(measured.name), "t, " if whole else ""
    found = [
        _build_work_step(phase, name, phase.work * share[:, None], place, whole)
        for place, (name, share) in enumerate(shares.items())
    ]
    who = phase.load.argmax(axis=0)
    sync = phase.sync[who, np.arange(len(who))]
    columns = {"transfer": phase.transfer, "io": phase.io, "sync": sync, "wait": phase.inner}
    for kind, values in columns.items():
        spread = np.broadcast_to(np.maximum(values, 0.0), phase.work.shape)
        if float(spread.max(axis=0).sum()) > LITTLE * lasted:
            table = f"{kind}_{phase.number}"
            steps = (f"exchange: {main}", f"kind: {kind}", f'cost: "{table}[{turn}p]"')
            found.append(_PhaseStep(table, _shape_table(spread, whole), steps))
    return found


def _build_work_step(phase: PhaseRun, name: str, work: FloatArray, place: int, whole: bool) -> _PhaseStep:
    """Return the step of a region: what one processor or all of them do."""
    table = f"work_{phase.number}_{place}"
    if phase.serial:
        values = work.max(axis=0)
        entry = f"{table}[t]" if whole else f"{table}[0]"
        steps = (f"serial: {quote_text(name)}", f'weight: "{entry}"')
        return _PhaseStep(table, values if whole else values.mean(keepdims=True), steps)
    entry = f"{table}[t, i]" if whole else f"{table}[i]"
    each = (f"parallel: {quote_text(name)}", "over: processors", f'weight: "{entry}"', "end: none")
    return _PhaseStep(table, _shape_table(work, whole), each)


def _shape_table(values: FloatArray, whole: bool) -> FloatArray:
    """Return a table by iteration and processor, or the mean by processor."""
    return np.maximum(values.T if whole else values.mean(axis=1), 0.0)


def _render_control(phases: Sequence[Phase], parts: Sequence[Sequence[_PhaseStep]]) -> list[str]:
    lines = []
    numbered = list(enumerate(zip(phases, parts, strict=True), 1))
    for count, group in groupby(numbered, key=lambda one: one[1][0].iterations):
        members = list(group)
        lines += [f"  - loop: {count} times from phase {members[0][0]}", f"    times: {count}", "    do:"]
        for _, (phase, steps) in members:
            lines += ["      - {" + ", ".join(part.steps) + "}" for part in steps]
            lines.append("      - {barrier: " + quote_text(phase.closed_by or "end") + "}")
    return lines


def _render_missing_inputs(profile: Profile, whole: bool, too_much: float) -> list[str]:
    """Return what a model needs and this profile lacks; its loads exceed its time by ``too_much`` (seconds)."""
    holes = [
        ("references to data", "arrays, reads and writes: no caches, sharing or decomposition can be simulated", ""),
        ("domains", "what a processor's part consists of: schedules can't cut it finer than a processor", ""),
    ]
    if too_much > EXCESS * profile.actual_s:
        words = f"the times do not fit together: what processors did takes {too_much:.4g} s longer than the run"
        holes.append(("times", words, "record a trace"))
    if not profile.has_measure("transfer_s"):
        holes.append(("moving data", "the time of communication, which stands in the weights", "record an MPI trace"))
    if not profile.has_measure("io_s"):
        holes.append(("input and output", "their time, which stands in the weights", "record a trace with posixio"))
    if not profile.has_phases:
        holes.append(("synchronizations", "all of them: the run is one phase", "record a trace"))
    if not whole:
        holes.append(("iterations", "how weights change; too many to write down, so means stand here", ""))
    return [
        f"  - {{at: {quote_text(at)}, missing: {quote_text(missing)}"
        + (f", collect: {quote_text(how)}" if how else "")
        + "}"
        for at, missing, how in holes
    ]


def _format_table(values: FloatArray) -> str:
    if values.ndim == 1:
        return "[" + ", ".join(map(_format_number, values)) + "]"
    return "[" + ", ".join(_format_table(row) for row in values) + "]"


def _format_number(value: float) -> str:
    return f"{float(value):.9g}"
