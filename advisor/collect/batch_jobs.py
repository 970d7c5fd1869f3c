"""Batch jobs of Slurm, PBS and Flux: which one this process is part of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Scheduler = Literal["flux", "slurm", "pbs"]

#: Variables with the number, the name and the directory of a job; Flux comes first, since it runs inside of jobs of
#: others as well. A job script of Flux knows its own job as the one that encloses it.
_VARIABLES: Final[Mapping[Scheduler, tuple[tuple[str, ...], str, tuple[str, ...]]]] = {
    "flux": (("FLUX_JOB_ID", "FLUX_ENCLOSING_ID"), "FLUX_JOB_NAME", ()),
    "slurm": (("SLURM_JOB_ID", "SLURM_JOBID"), "SLURM_JOB_NAME", ("SLURM_JOB_WORK_DIR", "SLURM_SUBMIT_DIR")),
    "pbs": (("PBS_JOBID",), "PBS_JOBNAME", ("PBS_O_WORKDIR",)),
}
#: What starts a parallel program under each scheduler.
_LAUNCHERS: Final[Mapping[Scheduler, str]] = {"flux": "flux run", "slurm": "srun", "pbs": "mpirun"}


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch job: its number as the scheduler prints it, its name, and where it was submitted, if that is known.

    Of a job that somebody names the ``scheduler`` is unknown.
    """

    scheduler: Scheduler | None
    number: str
    name: str = ""
    folder: Path | None = None


def find_batch_job(environment: Mapping[str, str] = os.environ) -> BatchJob | None:
    """Return the job that a process with this environment is part of; None outside of jobs.

    A task of an array is called as ``sacct`` calls it: ``4712_3``.
    """
    for scheduler, (numbers, name, folders) in _VARIABLES.items():
        number = next((environment[one] for one in numbers if environment.get(one)), None)
        if number is None:
            continue
        array, task = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
        if scheduler == "slurm" and array and task:
            number = f"{array}_{task}"
        folder = next((Path(environment[one]) for one in folders if environment.get(one)), None)
        return BatchJob(scheduler, number, environment.get(name, ""), folder)
    return None


def name_launcher(job: BatchJob | None) -> str:
    """Return what starts a parallel program in a job; ``srun`` where the scheduler is unknown."""
    return _LAUNCHERS[job.scheduler] if job is not None and job.scheduler else "srun"
