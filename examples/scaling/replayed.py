"""Fit small N and P, predict many ranks, and compare with a replay of what the programs do there.

    python replayed.py [--latency 5e-6] [--bandwidth 1e9] [--operation 1e-9]

The messages and collective operations of each program are written down as its source has them, computation takes
``--operation`` seconds for each operation; the replay of the simulation plugin says what that takes on a network.
Models see N up to 256 on up to eight ranks; the table shows (predicted - replayed) / replayed on 16 to 64.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from predict import table_of

from advisor.trace.events import Role
from advisor_scaling import collect, forecasts, study
from advisor_scaling.linear import application, setup
from advisor_scaling.study import MeasuredSeries
from advisor_simulation.replay import engine
from advisor_simulation.replay.collectives import TODAY
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Collectives, Op, Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor_scaling.study import ScalingStudy

HERE = Path(__file__).resolve().parent
STEPS = 40
SMALL = [(n, p) for n in (64, 96, 128, 192, 256) for p in (1, 2, 4, 8)]
LARGE = [(n, p) for n in (256, 512) for p in (16, 32, 64)]


@dataclass
class Script:
    """What each rank does, as it is written down: (operation, value, message or collective)."""

    ranks: list[list[tuple[Op, float, int]]]
    messages: list[tuple[int, int]] = field(default_factory=list)
    joint: list[tuple[Role, int, float, str]] = field(default_factory=list)

    def compute(self, rank: int, seconds: float) -> None:
        """Let a rank compute."""
        self.ranks[rank].append((Op.BURST, seconds, -1))

    def exchange(self, pairs: list[tuple[int, int]], size: float) -> None:
        """Send a message for each (source, target) without blocking; receive all of them, then wait for the sends."""
        numbers = range(len(self.messages), len(self.messages) + len(pairs))
        self.messages += pairs
        for number, (source, _) in zip(numbers, pairs, strict=True):
            self.ranks[source].append((Op.ISEND, size, number))
        for number, (_, target) in zip(numbers, pairs, strict=True):
            self.ranks[target].append((Op.RECV, 0.0, number))
        for number, (source, _) in zip(numbers, pairs, strict=True):
            self.ranks[source].append((Op.SENT, 0.0, number))

    def together(self, name: str, role: Role, root: int, size: float) -> None:
        """Let all ranks take part in a collective operation."""
        for rank in self.ranks:
            rank.append((Op.JOIN, 0.0, len(self.joint)))
        self.joint.append((role, root, size, name))

    def program(self) -> Program:
        """Return it ready for a replay."""
        ops = [op for rank in self.ranks for op in rank]
        nothing = np.full(len(ops), -1, dtype=np.int32)
        kind, value, link = (np.array(column) for column in zip(*ops, strict=True))
        ends = np.array(self.messages, dtype=np.int32).reshape(-1, 2)
        role, root, size, name = zip(*self.joint, strict=True) if self.joint else ((),) * 4
        joint = Collectives(
            np.zeros(len(role), dtype=np.int64), np.array(role, dtype=np.int64), np.array(root, dtype=np.int64),
            np.array(size, dtype=float), tuple(name),
        )  # fmt: skip
        return Program(
            np.cumsum([0, *map(len, self.ranks)]), kind.astype(np.uint8), value.astype(float), link.astype(np.int32),
            nothing, nothing, ends[:, 0], ends[:, 1], joint, (tuple(range(len(self.ranks))),), (),
        )  # fmt: skip


def gauss(n: int, p: int, operation: float) -> Script:
    """Each pivot row is broadcast by its owner; everybody eliminates it from the rows below that are theirs."""
    script = Script([[] for _ in range(p)])
    for k in range(n):
        script.together("bcast", Role.ONE_TO_ALL, k % p, 8.0 * (n - k))
        for rank in range(p):
            rows = len(range(k + 1 + (rank - k - 1) % p, n, p))
            script.compute(rank, 2 * rows * (n - k) * operation)
    return script


def matmul(n: int, p: int, operation: float) -> Script:
    """Blocks of one matrix go round; each rank multiplies with the block at hand."""
    script = Script([[] for _ in range(p)])
    for step in range(p):
        for rank in range(p):
            script.compute(rank, 2 * n * (n // p) ** 2 * operation)
        if step + 1 < p:
            script.exchange([(rank, (rank - 1) % p) for rank in range(p)], 8.0 * n * (n // p))
    return script


def ocean(n: int, p: int, operation: float) -> Script:
    """Bands of a grid: both edges are exchanged in each step, and the largest speed is reduced."""
    script = Script([[] for _ in range(p)])
    up, down = [(rank, rank - 1) for rank in range(1, p)], [(rank, rank + 1) for rank in range(p - 1)]
    for _ in range(STEPS):
        for pairs in (up, down):
            script.exchange(pairs, 8.0 * n)
        for rank in range(p):
            script.compute(rank, 12 * n * (n // p + (rank < n % p)) * operation)
        script.together("allreduce", Role.ALL_TO_ALL, -1, 8.0)
    return script


PROGRAMS: dict[str, Callable[[int, int, float], Script]] = {"gauss": gauss, "matmul": matmul, "ocean": ocean}


def seconds(name: str, n: int, p: int, network: Network, operation: float) -> float:
    """Return what the program takes on the network."""
    script = PROGRAMS[name](n, p, operation).program()
    return engine.replay_steps(engine.prepare_program(script, network), network, keep=False).time_s


def fitted(name: str, network: Network, operation: float) -> ScalingStudy:
    """Return the study of the small runs."""
    run = MeasuredSeries("run", "run")
    rows = [({"N": n, "P": p}, {run: seconds(name, n, p, network, operation)}) for n, p in SMALL]
    return collect.build_study(name, rows, (), 0.0)


def errors(name: str, network: Network, operation: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the large points, the seconds replayed there, and the errors of the normal form and of T = X beta."""
    small, large = fitted(name, network, operation), np.array(LARGE, dtype=float)
    actual = np.array([seconds(name, n, p, network, operation) for n, p in LARGE])
    normal = forecasts.compute_forecast(study.fit_study(small), large).value[0]
    stated = application.read_application(HERE / f"{name}.yaml")
    counts = {column: formula.replace("min(P, 2)", "P") for column, formula in stated.counts.items()}
    (linear,) = setup.build_models(
        replace(stated, counts=counts, arrays=()), small, setup.select_measured_times(small), ()
    )
    return large, actual, normal / actual - 1, linear(large) / actual - 1


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=5e-6, help="seconds")
    parser.add_argument("--bandwidth", type=float, default=1e9, help="bytes a second")
    parser.add_argument("--operation", type=float, default=1e-9, help="seconds of one operation")
    given = parser.parse_args()
    network = Network(given.latency, given.bandwidth, collectives=TODAY)
    print(table_of({name: errors(name, network, given.operation) for name in PROGRAMS}, "replayed"))


if __name__ == "__main__":
    main()
