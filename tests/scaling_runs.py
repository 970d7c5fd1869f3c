"""Runs of a program whose gaps grow in known ways, and services that hand them out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.analysis import machines
from advisor.model.errors import PluginError
from advisor.model.records import Phase, Processor, Profile, Region
from advisor.output.html import charts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from advisor.analysis.machines import Machine
    from advisor.model.reports import Picture

REGIONS = (Region("solve", "solve.c", 10), Region("assemble", "solve.c", 90), Region("MPI_Allreduce"))


def run(n: int, ranks: int, repeat: int = 0, noise: float = 0.01, program: str = "solver") -> Profile:
    """A run that computes ``2e-9 n^3 / ranks`` seconds, a fifth more on rank 0, and reduces ``1e-3 log2 ranks``."""
    draw = np.random.default_rng([n, ranks, repeat])
    work = np.full(ranks, 2e-9 * n**3 / ranks)
    work[0] *= 1.2 if ranks > 1 else 1.0
    transfer = np.full(ranks, 1e-3 * np.log2(ranks))
    wait = work.max() - work
    off = 1.0 + noise * draw.uniform(-1, 1)
    wall = np.stack([0.9 * work, 0.1 * work, transfer + wait]) * off
    nothing = np.zeros((1, ranks))
    arrays = {
        "wall_s": wall,
        "cpu_s": np.concatenate([wall[:2], nothing]),
        "transfer_s": np.concatenate([nothing, nothing, transfer[None] * off]),
        "wait_s": np.concatenate([nothing, nothing, wait[None] * off]),
        "sync_s": np.zeros((3, ranks)),
        "io_s": np.zeros((3, ranks)),
    }
    total = float(wall.sum(axis=0).max())
    phase = Phase(
        "step", "parallel", np.arange(3), {name: array[:, :, None] for name, array in arrays.items()},
        "MPI_Allreduce", np.zeros(1), np.array([total]),
    )  # fmt: skip
    return Profile(
        program=program,
        run=f"{n}-{ranks}-{repeat}",
        reader="test",
        actual_s=total,
        processors=tuple(Processor(rank) for rank in range(ranks)),
        regions=REGIONS,
        phases=(phase,),
        status=dict.fromkeys(arrays, "measured"),
        cores=ranks,
        parameters={"N": float(n), "input": "cube.dat"},
        counts={"messages": np.tile(np.log2(ranks), (3, ranks)) * [[0], [0], [1]]},
    )


def runs(sizes: tuple[int, ...] = (128, 256, 512), ranks: tuple[int, ...] = (1, 2, 4, 8, 16)) -> list[Profile]:
    return [run(n, p, repeat) for n in sizes for p in ranks for repeat in range(2)]


class Serving:
    """The services of an application that finds ``profiles`` at every path, and what other plugins offer."""

    def __init__(self, profiles: list[Profile], offers: Mapping[str, Callable[..., object]] | None = None) -> None:
        self.profiles = profiles
        self.offers = dict(offers or {})

    def read_all(self, path: Path) -> tuple[Profile, ...]:
        return tuple(self.profiles)

    def read(self, path: Path) -> Profile:
        return self.profiles[-1]

    def load_machine(self, name: str | None) -> Machine:
        return machines.load_machine(name) if name else machines.load_host_machine()

    @contextmanager
    def show_progress(self, words: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        yield lambda done: None

    def write_picture(self, picture: Picture, path: Path) -> None:
        charts.write_picture(picture, path)

    def find_service(self, name: str) -> Callable[..., object]:
        if name not in self.offers:
            raise PluginError(f"no plugin offers {name}")
        return self.offers[name]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        raise AttributeError(name)
