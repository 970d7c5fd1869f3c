"""Phases that write: by one rank or by all, in small pieces or large, forced to storage, in the background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.operations import Collective, Enter, Leave, StartTransfer, Transfer, Wait
from lab.patterns import Phase

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Phase):
    """Each rank has ``size_B`` to write in every ``every``-th iteration, in ``pieces``.

    ``writer`` is "all" (a file for each rank), "one" (the first rank gathers and writes everything) or "locked" (all
    write to one file, one after the other). ``synced`` is "never", "once" or "each" piece; with ``opens`` the file
    is opened and closed each time. In the ``background`` writing is waited for at the next output.
    """

    size_B: int = 1 << 16
    pieces: int = 1
    every: int = 1
    writer: str = "all"
    synced: str = "never"
    opens: bool = False
    background: bool = False

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the output of a rank."""
        if iteration % self.every:
            return
        yield Enter(self.name)
        if self.writer == "one":
            yield Collective("MPI_Gather", self.size_B, 0)
        if self.writer != "one" or rank == 0:
            yield from self._write(world, rank, iteration)
        yield Leave(self.name)

    def _write(self, world: World, rank: int, iteration: int) -> Program:
        whole = self.size_B * (world.ranks if self.writer == "one" else 1)
        file = f"out.{rank if self.writer == 'all' else 0}"
        if self.background:
            yield from self._write_behind(world, file, whole, 4000 + rank, iteration)
            return
        if self.opens:
            yield Transfer("open", file)
        for piece in range(self.pieces):
            yield Transfer("write", file, whole // self.pieces, self.writer == "locked")
            if self.synced == "each" or (self.synced == "once" and piece == self.pieces - 1):
                yield Transfer("fsync", file)
        if self.opens:
            yield Transfer("close", file)

    def _write_behind(self, world: World, file: str, whole: int, request: int, iteration: int) -> Program:
        """Write the same in the background, once the output before has been written."""
        syncs = {"each": self.pieces, "once": 1}.get(self.synced, 0)
        if iteration:
            yield Wait((request,), "aio_suspend")
            if self.opens:
                yield Transfer("close", file)
        if self.opens:
            yield Transfer("open", file)
        yield StartTransfer("aio_write", file, whole, request, self.pieces, syncs, self.writer == "locked")
        if iteration + self.every >= world.code.iterations:
            yield Wait((request,), "aio_suspend")
            if self.opens:
                yield Transfer("close", file)
