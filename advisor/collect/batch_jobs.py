"""Batch jobs of Slurm, PBS and Flux: which one this process is part of, and what its scheduler prints about one."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from advisor.model.errors import AdvisorError
from advisor.model.job_account import JobAccount
from advisor.support.child_process import run_child

if TYPE_CHECKING:
    from collections.abc import Mapping

Scheduler = Literal["flux", "slurm", "pbs"]

#: Variables with the number, the name and the directory of a job; Flux comes first, since it runs inside of jobs of
#: others as well. A job script of Flux knows its own job as the one that encloses it.
_VARIABLES: Final[Mapping[Scheduler, tuple[tuple[str, ...], str, tuple[str, ...]]]] = {
    "flux": (("FLUX_JOB_ID", "FLUX_ENCLOSING_ID"), "FLUX_JOB_NAME", ()),
    "slurm": (("SLURM_JOB_ID", "SLURM_JOBID"), "SLURM_JOB_NAME", ("SLURM_JOB_WORK_DIR", "SLURM_SUBMIT_DIR")),
    "pbs": (("PBS_JOBID",), "PBS_JOBNAME", ("PBS_O_WORKDIR",)),
}
#: What ``sacct`` is asked for; the reader of accounts takes the same table from a file.
SACCT_COLUMNS: Final = "JobID,JobName,Start,State,Elapsed,TotalCPU,NCPUS,NNodes,NTasks,MaxRSS,WorkDir"
_ASKED: Final[Mapping[Scheduler, tuple[str, ...]]] = {
    "slurm": ("sacct", "-P", f"--format={SACCT_COLUMNS}", "-j"),
    "pbs": ("qstat", "-f"),
}
#: A scheduler under load takes its time; a job does not wait for it longer (seconds).
_PATIENCE_S: Final = 30.0
_LIMIT: Final = 1 << 20
_PBS_LINE: Final = re.compile(r"^    ([\w.]+) = (.*)$", re.MULTILINE)
_PBS_FOLDER: Final = re.compile(r"\bPBS_O_WORKDIR=([^,\n]+)")
_PBS_STATES: Final = {"R": "RUNNING", "E": "COMPLETING", "F": "COMPLETED", "C": "COMPLETED"}
_TIME: Final = re.compile(r"(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2})$")


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch job: its number as the scheduler prints it, its name, and where it was submitted, if that is known."""

    scheduler: Scheduler
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


def find_scheduler(environment: Mapping[str, str] = os.environ) -> Scheduler:
    """Return the scheduler of this machine: the one of the job at hand, else the one whose command is here."""
    from shutil import which

    job = find_batch_job(environment)
    if job is not None:
        return job.scheduler
    return "slurm" if which("sacct") or not which("qstat") else "pbs"


def print_account(job: BatchJob) -> str:
    """Return what the scheduler prints about a job; raises ``AdvisorError`` with the reason where it prints nothing."""
    asked = _ASKED.get(job.scheduler)
    if asked is None:
        raise AdvisorError("Flux keeps no CPU times of jobs")
    if not re.fullmatch(r"[\w.@\[\]+-]+", job.number) or job.number.startswith("-"):
        raise AdvisorError(f"{job.number!r} is not a job number")
    made = run_child([*asked, job.number], _PATIENCE_S)
    if made.status != 0 or len(made.output) > _LIMIT:
        said = (made.failure or made.error_text.strip().split("\n")[0] or f"status {made.status}").strip()
        raise AdvisorError(said if said.startswith(asked[0]) else f"{asked[0]}: {said}")
    return made.text


def parse_qstat(text: str) -> JobAccount:
    """Return the account of one job as ``qstat -f`` prints it (OpenPBS, PBS Professional, TORQUE).

    Raises ``AdvisorError`` where elapsed time, CPU time or the number of cores is missing, as just after the start.
    """
    unfolded = re.sub(r"\n\t", "", text)
    found = dict(_PBS_LINE.findall(unfolded))
    number = re.search(r"^Job Id: (\S+)", unfolded, re.MULTILINE)
    cores = _count_cores(found)
    missing = [name for name in ("resources_used.walltime", "resources_used.cput") if name not in found]
    if number is None or missing or cores is None:
        raise AdvisorError(f"qstat tells no {missing[0] if missing else 'number of cores'} of the job yet")
    nodes, folder = found.get("Resource_List.nodect", ""), _PBS_FOLDER.search(unfolded)
    state = found.get("job_state", "")
    return JobAccount(
        job=number[1],
        name=found.get("Job_Name", ""),
        elapsed_s=_parse_time(found["resources_used.walltime"]),
        cpu_s=_parse_time(found["resources_used.cput"]),
        cores=cores,
        nodes=int(nodes) if nodes.isdigit() else None,
        state=_PBS_STATES.get(state) or state,
        folder=folder[1] if folder else None,
    )


def _count_cores(found: Mapping[str, str]) -> int | None:
    """Return the cores of a PBS job: as used, as requested, or nodes times processors of a node (``2:ppn=16``)."""
    for name in ("resources_used.ncpus", "Resource_List.ncpus"):
        if found.get(name, "").isdigit():
            return int(found[name])
    asked = re.match(r"(\d+):ppn=(\d+)", found.get("Resource_List.nodes", ""))
    return int(asked[1]) * int(asked[2]) if asked else None


def _parse_time(text: str) -> float:
    """Return the seconds of ``hours:minutes:seconds``; raises ``AdvisorError``."""
    found = _TIME.match(text.strip())
    if found is None:
        raise AdvisorError(f"qstat: {text[:40]!r} is not a time")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(3600 * hours + 60 * minutes + seconds)
