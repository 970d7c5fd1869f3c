"""Events per second of the replay: one point, many points, finding the order, matching messages, links and buses.

An event is an operation of a rank: a computation, a send, a receive, or its part in a collective operation. Times are
those of warm loops; ``test_start`` holds what reading compiled loops from numba's cache, or making them, takes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.trace.events import Kind
from advisor_simulation.replay import contended_replay, conversion, engine, operation_matching, rebuilding, sweeps

sys.path.insert(0, str(Path(__file__).parent))
from halo_exchange import NETWORK, PER_STEP, halo

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

    from advisor.trace.events import Trace
    from advisor_simulation.replay.program import Program

MILLION = 1_000_000
HELD = replace(NETWORK, links_in=1, links_out=1)
#: Ranks, steps, and seconds measured for LogGOPSim and Dimemas on another day on these two cores.
OTHERS = [(64, 200, 0.12, 0.24), (256, 100, 0.32, 1.01), (1024, 50, 0.91, 9.54)]


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    small = halo(64, 200)
    engine.replay_times(engine.prepare_program(small, NETWORK), [NETWORK] * 4)
    engine.replay_steps(engine.prepare_program(small, NETWORK), NETWORK)
    contended_replay.replay_contended(small, HELD)
    conversion.convert_trace(recorded(small))


def of_events(count: int, ranks: int) -> Program:
    return halo(ranks, max(count // ranks // PER_STEP, 1))


def recorded(program: Program) -> Trace:
    plan = engine.prepare_program(program, NETWORK)
    return rebuilding.rebuild_trace(program, engine.operation_ends(plan, engine.replay_steps(plan, NETWORK), program))


def rate(benchmark: BenchmarkFixture, events: int, does: Callable[[], object], rounds: int = 5) -> None:
    """Note millions of events per second, of the best round and of the median one, and the most memory so far."""
    benchmark.pedantic(does, rounds=rounds, warmup_rounds=1)
    stats = benchmark.stats.stats
    benchmark.extra_info["million events/s"] = round(events / stats.min / 1e6, 1)
    benchmark.extra_info["median"] = round(events / stats.median / 1e6, 1)
    benchmark.extra_info["peak MB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


@pytest.mark.benchmark(group="one point")
@pytest.mark.parametrize("ranks", [64, 1024, 4096])
def test_one_point(benchmark: BenchmarkFixture, ranks: int) -> None:
    program = of_events(10 * MILLION, ranks)
    plan = engine.prepare_program(program, NETWORK)
    rate(benchmark, len(program.op), lambda: engine.replay_steps(plan, NETWORK, keep=False))


@pytest.mark.benchmark(group="one point, the end of every operation kept")
@pytest.mark.parametrize("ranks", [64, 1024, 4096])
def test_one_point_kept(benchmark: BenchmarkFixture, ranks: int) -> None:
    program = of_events(10 * MILLION, ranks)
    plan = engine.prepare_program(program, NETWORK)
    rate(benchmark, len(program.op), lambda: engine.replay_steps(plan, NETWORK), rounds=3)


@pytest.mark.benchmark(group="order, once for all points")
@pytest.mark.parametrize("ranks", [64, 1024, 4096])
def test_order(benchmark: BenchmarkFixture, ranks: int) -> None:
    program = of_events(10 * MILLION, ranks)
    rate(benchmark, len(program.op), lambda: engine.prepare_program(program, NETWORK), rounds=3)


@pytest.mark.benchmark(group="1000 points")
@pytest.mark.parametrize("ranks", [64, 1024, 4096])
def test_sweep(benchmark: BenchmarkFixture, ranks: int) -> None:
    program = of_events(MILLION, ranks)
    points = sweeps.make_random_points(NETWORK, sweeps.Ranges(), 1000, 1)
    plan = engine.prepare_program(program, NETWORK)
    rate(benchmark, 1000 * len(program.op), lambda: engine.replay_times(plan, points), rounds=3)


@pytest.mark.benchmark(group="matching")
@pytest.mark.parametrize("ranks", [64, 1024, 4096])
def test_matching(benchmark: BenchmarkFixture, ranks: int) -> None:
    trace = recorded(of_events(MILLION, ranks))
    rank = np.repeat(np.arange(ranks), np.diff(trace.first))
    sends, receives = np.flatnonzero(trace.kind == Kind.SEND), np.flatnonzero(trace.kind == Kind.RECV)

    def match() -> None:
        ends = np.r_[sends, receives]
        source = np.r_[rank[sends], trace.partner[receives]]
        target = np.r_[trace.partner[sends], rank[receives]]
        channel = operation_matching.number_channels(
            source, target, operation_matching.number_labels(trace.comm[ends], trace.tag[ends])
        )
        assert len(operation_matching.match_ends(channel[: len(sends)], channel[len(sends) :])[0]) == len(sends)

    rate(benchmark, len(sends) + len(receives), match)


@pytest.mark.benchmark(group="from the events of a trace to a program")
@pytest.mark.parametrize("ranks", [64, 1024])
def test_conversion(benchmark: BenchmarkFixture, ranks: int) -> None:
    trace = recorded(of_events(MILLION, ranks))
    rate(benchmark, len(trace.time_s), lambda: conversion.convert_trace(trace), rounds=3)


@pytest.mark.benchmark(group="links and buses")
@pytest.mark.parametrize("ranks", [64, 1024, 4096])
@pytest.mark.parametrize("limits", [{"links_in": 1, "links_out": 1}, {"buses": 4}], ids=["links", "buses"])
def test_links_and_buses(benchmark: BenchmarkFixture, ranks: int, limits: dict[str, int]) -> None:
    program = of_events(MILLION, ranks)
    network = replace(NETWORK, **limits)
    rate(benchmark, len(program.op), lambda: contended_replay.replay_contended(program, network), rounds=3)


@pytest.mark.benchmark(group="whole replays of an application")
@pytest.mark.parametrize(("ranks", "steps", "loggopsim_s", "dimemas_s"), OTHERS)
@pytest.mark.parametrize("held", [False, True], ids=["no limits", "one link"])
def test_applications(
    benchmark: BenchmarkFixture, ranks: int, steps: int, loggopsim_s: float, dimemas_s: float, held: bool
) -> None:
    program = halo(ranks, steps)

    def free() -> float:
        return engine.replay_steps(engine.prepare_program(program, NETWORK), NETWORK, keep=False).time_s

    def with_links() -> float:
        return contended_replay.replay_contended(program, HELD).time_s

    rate(benchmark, len(program.op), with_links if held else free)
    benchmark.extra_info["LogGOPSim s"], benchmark.extra_info["Dimemas s"] = loggopsim_s, dimemas_s


@pytest.mark.benchmark(group="start")
@pytest.mark.parametrize("compiled", ["made", "from the cache"])
def test_start(benchmark: BenchmarkFixture, compiled: str, tmp_path: Path) -> None:
    """A process of its own: imports, compiled loops, and a replay of 128,000 events."""
    source = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from halo_exchange import NETWORK, halo\n"
        "from advisor_simulation.replay import engine\n"
        "program = halo(64, 200)\n"
        "engine.replay_steps(engine.prepare_program(program, NETWORK), NETWORK, keep=False)\n"
    )
    number = iter(range(100))

    def start() -> None:
        folder = tmp_path / (str(next(number)) if compiled == "made" else "kept")
        subprocess.run([sys.executable, "-c", source], check=True, env={"NUMBA_CACHE_DIR": str(folder)}, timeout=120)

    benchmark.pedantic(start, rounds=3, warmup_rounds=1)
