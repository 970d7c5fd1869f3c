"""What schedulers account of a batch job: asks ``sacct``, ``qstat -f`` or ``flux jobs``, and reads what they print.

PBS: OpenPBS reference guide, "Job Attributes"; TORQUE's ``qstat -f`` has the same lines. Flux: flux-jobs(1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from shutil import which
from time import strptime
from typing import TYPE_CHECKING, Final

from advisor.model.errors import AdvisorError
from advisor.model.job_account import JobAccount
from advisor.support.child_process import ChildResult, run_child

if TYPE_CHECKING:
    from advisor.collect.batch_jobs import BatchJob, Scheduler

#: What ``sacct`` is asked for; the reader of accounts takes the same table from a file.
SACCT_COLUMNS: Final = "JobID,JobName,Start,State,Elapsed,TotalCPU,NCPUS,NNodes,NTasks,MaxRSS,WorkDir"
#: What each scheduler is asked, until it answers: PBS keeps jobs that ended for ``-x`` (which TORQUE takes for XML, but
#: it shows such jobs without); the job around an instance of Flux is known to its parent.
_ASKED: Final[Mapping[Scheduler, tuple[tuple[str, ...], ...]]] = {
    "slurm": (("sacct", "-P", f"--format={SACCT_COLUMNS}", "-j"),),
    "pbs": (("qstat", "-f"), ("qstat", "-x", "-f")),
    "flux": (("flux", "--parent", "jobs", "--json"), ("flux", "jobs", "--json")),
}
#: A scheduler under load takes its time; a job does not wait for it longer (seconds).
_PATIENCE_S: Final = 30.0
_LIMIT: Final = 1 << 20
_PBS_LINE: Final = re.compile(r"^    ([\w.]+) = (.*)$", re.MULTILINE)
_PBS_FOLDER: Final = re.compile(r"\bPBS_O_WORKDIR=([^,\n]+)")
_PBS_STATES: Final = {"R": "RUNNING", "E": "COMPLETING", "F": "COMPLETED", "C": "COMPLETED"}
_PBS_MEMORY: Final = re.compile(r"(\d{1,15})([kmgt]?)b$")
_POWERS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_CLOCK: Final = "%a %b %d %H:%M:%S %Y"
_TIME: Final = re.compile(r"(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2})$")


def print_account(job: BatchJob) -> str:
    """Return what a scheduler prints about a job; raises ``AdvisorError`` with the reason where none prints anything.

    A job of an unknown scheduler is looked for with all whose commands are here.
    """
    if not re.fullmatch(r"[\w.@\[\]+-]+", job.number) or job.number.startswith("-"):
        raise AdvisorError(f"{job.number!r} is not a job number")
    asked = [job.scheduler] if job.scheduler else [name for name in _ASKED if which(_ASKED[name][0][0])]
    if not asked:
        raise AdvisorError("no scheduler is here: neither sacct, qstat nor flux is on the PATH")
    reasons: list[str] = []
    for scheduler in asked:
        for words in _ASKED[scheduler]:
            made = run_child([*words, job.number], _PATIENCE_S)
            if made.status == 0 and made.output.strip() and len(made.output) <= _LIMIT:
                return made.text
            said = (made.failure or made.error_text.strip().split("\n")[0] or _name_lack(made, job)).strip()
            reasons.append(said if said.startswith(words[0]) else f"{words[0]}: {said}")
    raise AdvisorError(reasons[-1] if len(asked) == 1 else "; ".join(reasons))


def _name_lack(made: ChildResult, job: BatchJob) -> str:
    if made.status:
        return f"status {made.status}"
    return f"prints more than {_LIMIT >> 20} MiB" if made.output.strip() else f"prints nothing of job {job.number}"


def parse_account(text: str) -> JobAccount | None:
    """Return the account that ``qstat -f`` or ``flux jobs --json`` printed, None for other text.

    Raises ``AdvisorError`` for what does not tell enough.
    """
    if text.startswith("Job Id:"):
        return parse_qstat(text)
    return parse_flux_jobs(text) if text.startswith("{") else None


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
    return JobAccount(
        job=number[1],
        name=found.get("Job_Name", ""),
        elapsed_s=_parse_time(found["resources_used.walltime"]),
        cpu_s=_parse_time(found["resources_used.cput"]) or None,  # PBS looks now and then, and may not have yet
        cores=cores,
        nodes=int(nodes) if nodes.isdigit() else None,
        job_memory=_parse_memory(found.get("resources_used.mem", "")),
        state=_name_state(found),
        started=next(_list_starts(found), None),
        folder=folder[1] if folder else None,
    )


def _name_state(found: Mapping[str, str]) -> str:
    status = found.get("Exit_status", found.get("exit_status", "0"))
    state = found.get("job_state", "")
    if state in {"F", "C"} and status != "0":
        return f"FAILED with status {status}"
    return _PBS_STATES.get(state) or state


def _list_starts(found: Mapping[str, str]) -> Iterator[str]:
    """Yield when the job began, in local time as PBS prints it (``Sat Nov 28 22:25:14 2026``); TORQUE's name second."""
    for name in ("stime", "start_time"):
        try:
            yield datetime(*strptime(found.get(name, ""), _CLOCK)[:6]).isoformat()
        except ValueError:
            continue


def _count_cores(found: Mapping[str, str]) -> int | None:
    """Return the cores of a PBS job: as used, as requested, or nodes times processors of a node (``2:ppn=16``)."""
    for name in ("resources_used.ncpus", "Resource_List.ncpus"):
        if found.get(name, "").isdigit():
            return int(found[name])
    asked = re.match(r"(\d+):ppn=(\d+)", found.get("Resource_List.nodes", ""))
    return int(asked[1]) * int(asked[2]) if asked else None


def _parse_memory(text: str) -> float | None:
    found = _PBS_MEMORY.match(text)
    return float(int(found[1]) << _POWERS[found[2]]) or None if found else None


def _parse_time(text: str) -> float:
    """Return the seconds of ``hours:minutes:seconds``; raises ``AdvisorError``."""
    found = _TIME.match(text.strip())
    if found is None:
        raise AdvisorError(f"qstat: {text[:40]!r} is not a time")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(3600 * hours + 60 * minutes + seconds)


def parse_flux_jobs(text: str) -> JobAccount:
    """Return the account of one job as ``flux jobs --json ID`` prints it; Flux keeps no CPU times.

    Raises ``AdvisorError`` where the job did not begin, or where this is something else.
    """
    try:
        found = json.loads(text)
        found = found["jobs"][0] if "jobs" in found else found
        cores, nodes, began_s = int(found["ncores"]), int(found["nnodes"]), float(found["t_run"])
        state = "RUNNING" if found["status"] == "RUN" else str(found["status"])
        if found.get("returncode"):
            state += f" with status {found['returncode']}"
        return JobAccount(
            job=str(found["jobid"]),
            name=str(found["name"]),
            elapsed_s=float(found["runtime"]),
            cpu_s=None,
            cores=cores,
            nodes=nodes,
            state=state,
            started=datetime.fromtimestamp(began_s, UTC).isoformat(),
            folder=str(found["cwd"]) if found.get("cwd") else None,
        )
    except KeyError as error:
        raise AdvisorError(f"flux jobs tells no {error} of the job yet") from error
    except (ValueError, TypeError, IndexError, OverflowError, OSError, RecursionError) as error:
        raise AdvisorError("flux jobs prints what can't be read") from error
