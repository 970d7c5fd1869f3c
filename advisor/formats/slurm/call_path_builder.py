"""A job's account as call paths: the CPU time of the whole job, shared equally by its cores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.quality import HIDDEN
from advisor.model.errors import InputError
from advisor.model.records import RANKS_ADDED_UP, Note, Processor
from advisor.model.units import format_bytes, format_share
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.model.job_account import JobAccount

_MOST_CORES: Final = 1 << 20
#: CPU times are rounded, and hardware threads count twice.
_SLACK: Final = 1.02
#: Cores that run for a smaller share of the job do next to nothing.
_UNUSED: Final = 0.5
_RUN: Final = "gapwatch run -- srun ./PROGRAM"


def build_call_paths(account: JobAccount, path: Path) -> CallPaths:
    """Return the CPU time of the job on its cores; raises ``InputError`` for what cannot be."""
    if not 0 < account.cores <= _MOST_CORES or account.elapsed_s <= 0:
        raise InputError(path, f"{account.cores:,} cores for {account.elapsed_s:g} s: the job did not run")
    cpu_s = account.cpu_s
    if cpu_s is None:
        raise InputError(path, "tells no CPU time of the job")
    if cpu_s > _SLACK * account.cores * account.elapsed_s + account.cores:
        raise InputError(path, f"{cpu_s:g} s of CPU time do not fit into {account.cores} cores")
    tasks = account.tasks if account.tasks and account.cores % account.tasks == 0 else account.cores
    each = account.cores // tasks
    shared = min(cpu_s / account.cores, account.elapsed_s)
    return CallPaths(
        program=account.name,
        run=f"job {account.job}",
        reader="slurm",
        processors=tuple(Processor(rank, thread) for rank in range(tasks) for thread in range(each)),
        nodes=(CallPathNode(account.name or "the job", Role.USER),),
        cpu_s=np.full((1, account.cores), shared),
        actual_s=account.elapsed_s,
        status="estimated",
        started=account.started,
        cores=account.cores,
        job=account.job,
        parameters={} if account.memory is None else {"memory_bytes": account.memory},
        notes=tuple(_describe_account(account, cpu_s)),
    )


def _describe_account(account: JobAccount, cpu_s: float) -> Iterator[Note]:
    """Yield what an account says of its job, and what it leaves open."""
    share = cpu_s / (account.cores * account.elapsed_s)
    used = f"the job used {cpu_s / account.elapsed_s:.3g} of its {account.cores} cores ({format_share(share)})"
    how = _RUN
    if account.cores > 1 and share < _UNUSED:
        how = f"start the program on all cores (srun, OMP_NUM_THREADS) or ask for fewer; what it waits for: {_RUN}"
    memory = "" if account.memory is None else f", at most {format_bytes(account.memory)} in memory of a task"
    which = "" if not account.others else f"; of {account.others + 1} jobs it is the one whose cores were idle longest"
    yield Note("job account", f"{used}{memory}{which}")
    if account.cores > 1:
        yield Note(RANKS_ADDED_UP, f"{used}; how its CPU time is spread over them cannot be told", 0.25, how)
    if share >= _UNUSED:  # who polls is on a core all the time
        text = "processes of MPI poll while they wait, which is CPU time: computation is at most what is shown"
        yield Note(HIDDEN, text, 0.1, _RUN)
    if account.state and not account.state.startswith(("COMPLETED", "RUNNING")):
        yield Note("failed", f"the job ended as {account.state[:40]}", 0.1)
