"""A suite of benchmarks as call paths: each benchmark a region, all called equally often.

Suites are compared build by build. How often a tool called a benchmark depends on how fast it was, so the seconds here
are those of one and the same number of calls of each: 1, 1000, a million … as many as make the suite last long enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import InputError
from advisor.model.records import Note, Processor
from advisor.model.units import format_share
from advisor.trace.callpaths.records import CallPathNode, CallPaths

if TYPE_CHECKING:
    from advisor.formats.benchmarks.benchmark_records import MeasuredSuite

#: A suite lasts so long at the least: what is shorter counts as noise.
_LEAST_S: Final = 0.1
_STEP: Final = 1000
_MOST_STEPS: Final = 5
#: Repetitions that differ by more say little of a change of build.
_NOISY: Final = 0.05
#: A benchmark that runs for a smaller share of its time waits, or shares its core.
_RUNNING: Final = 0.9


def build_call_paths(suite: MeasuredSuite, path: Path) -> CallPaths:
    """Return the benchmarks of ``suite`` as regions; raises ``InputError`` for ``path`` where none took any time."""
    once = np.array([benchmark.wall_s for benchmark in suite.benchmarks])
    if not once.sum() > 0:
        raise InputError(path, "no benchmark took any time")
    calls = next((_STEP**n for n in range(_MOST_STEPS) if once.sum() * _STEP**n >= _LEAST_S), _STEP**_MOST_STEPS)
    return CallPaths(
        program=suite.program,
        run=path.name,
        reader="benchmarks",
        processors=(Processor(0, 0, suite.host),),
        nodes=tuple(CallPathNode(benchmark.name) for benchmark in suite.benchmarks),
        wall_s=once[:, None] * calls,
        actual_s=float(once.sum()) * calls,
        status="estimated",
        started=suite.started,
        cores=suite.cores,
        parameters={"calls of each benchmark": float(calls)},
        notes=tuple(_describe_suite(suite, calls)),
    )


def _describe_suite(suite: MeasuredSuite, calls: int) -> Iterator[Note]:
    """Yield what the seconds are of, and what weakens them."""
    yield Note(
        "suite of benchmarks", f"seconds of {calls:,} calls of each benchmark, from the {suite.middle} of {suite.tool}"
    )
    noisy = [(b.spread, b.name) for b in suite.benchmarks if b.spread is not None and _NOISY < b.spread < math.inf]
    if noisy:
        spread, name = max(noisy)
        text = f"benchmarks that vary by more than {format_share(_NOISY)}: {len(noisy)} of {len(suite.benchmarks)}; "
        yield Note("noisy benchmarks", f"{text}most {name[:80]}, by {format_share(spread)}", 0.1, "repeat more often")
    nothing = [benchmark.name for benchmark in suite.benchmarks if not benchmark.wall_s > 0]
    if nothing:
        text = f"benchmarks with a time of zero: {len(nothing)} of {len(suite.benchmarks)}, such as {nothing[0][:80]}"
        yield Note("benchmarks without time", text, 0.1, "make a call longer, or see that it is not optimized away")
    waited = [(b.cpu_s / b.wall_s, b.name) for b in suite.benchmarks if b.cpu_s is not None and b.wall_s > 0]
    if waited and min(waited)[0] < _RUNNING:
        share, name = min(waited)
        text = f"{name[:80]} had a core for {format_share(share)} of its time: it waits, or others used the machine"
        yield Note("benchmarks without a core", text, 0.2, "measure on an idle machine")
    if suite.failed:
        names = ", ".join(suite.failed[:3])
        yield Note("benchmarks failed", f"left out because they failed ({len(suite.failed)}): {names[:200]}", 0.1)
    if suite.unstated:
        text = f"left out, their time is not stated as a number ({len(suite.unstated)}): "
        names = ", ".join(suite.unstated[:3])
        yield Note("benchmarks without a number", text + names[:200], 0.1, "choose a smaller unit of time")
