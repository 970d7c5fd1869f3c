"""Lets a Python program run a chosen chain of its kernels in a loop for ``gapwatch couple`` (docs/plugins/coupling.md).

    with Coupling(passes=200) as chain:
        for _ in chain:
            if chain.runs("assemble"):
                assemble()
            if chain.runs("solve"):
                solve()

``GAPWATCH_CHAIN`` names the kernels to run, with commas; ``GAPWATCH_PASSES`` how often. Without them the program is
what it was. Of an MPI program rank 0 prints, so put a barrier before the ``with`` and at its end.
"""

from __future__ import annotations

import os
from time import perf_counter, process_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")


class Coupling:
    """The loop over the kernels: iterate over it for the passes, ask it which kernels run."""

    def __init__(self, passes: int) -> None:
        asked, chain = os.environ.get("GAPWATCH_PASSES"), os.environ.get("GAPWATCH_CHAIN")
        self._measured = asked is not None or chain is not None
        self._chain = None if chain is None else frozenset(chain.split(","))
        self.passes = passes if asked is None else int(asked)
        self._start = (0.0, 0.0)

    def runs(self, kernel: str) -> bool:
        """Whether the kernel is to run: it is in the chain, or no chain was asked for."""
        return self._chain is None or kernel in self._chain

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.passes))

    def __enter__(self) -> Coupling:
        self._start = (perf_counter(), process_time())
        return self

    def __exit__(self, *failure: object) -> None:
        """Print what the loop took, if a chain or passes were asked for."""
        seconds, cpu = perf_counter() - self._start[0], process_time() - self._start[1]
        rank = next((os.environ[name] for name in _RANKS if name in os.environ), "0")
        if self._measured and rank == "0":
            print(f"coupling: loop {seconds:.9f} s, cpu {cpu:.9f} s", flush=True)
