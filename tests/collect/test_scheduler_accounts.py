"""Jobs of schedulers: known from the environment, and what PBS and Flux account of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scheduler_output import FLUX, QSTAT

from advisor.collect.batch_jobs import BatchJob, find_batch_job
from advisor.collect.scheduler_accounts import parse_flux_jobs, parse_qstat
from advisor.model.errors import AdvisorError


def test_jobs_are_told_from_the_environment() -> None:
    here = Path("/home/user/heat")
    slurm = {"SLURM_JOB_ID": "9", "SLURM_JOB_NAME": "heat", "SLURM_SUBMIT_DIR": str(here)}
    assert find_batch_job(slurm) == BatchJob("slurm", "9", "heat", here)
    array = slurm | {"SLURM_ARRAY_JOB_ID": "8", "SLURM_ARRAY_TASK_ID": "2"}
    assert find_batch_job(array) == BatchJob("slurm", "8_2", "heat", here)
    pbs = {"PBS_JOBID": "123.pbs", "PBS_JOBNAME": "heat", "PBS_O_WORKDIR": str(here)}
    assert find_batch_job(pbs) == BatchJob("pbs", "123.pbs", "heat", here)
    assert find_batch_job(slurm | {"FLUX_ENCLOSING_ID": "f2F8U"}) == BatchJob("flux", "f2F8U")
    assert find_batch_job({}) is None


def test_what_pbs_prints_is_an_account() -> None:
    account = parse_qstat(QSTAT)
    assert (account.job, account.name, account.cores, account.nodes) == ("123.pbs", "heat", 2, 1)
    assert (account.elapsed_s, account.cpu_s, account.folder) == (300.0, 570.0, "/home/user/heat")
    assert not account.is_complete
    torque = QSTAT.replace("    resources_used.ncpus = 2\n", "").replace(
        "Resource_List.ncpus = 2", "Resource_List.nodes = 2:ppn=16"
    )
    assert parse_qstat(torque).cores == 32
    with pytest.raises(AdvisorError, match=r"resources_used\.cput"):
        parse_qstat(QSTAT.replace("resources_used.cput ", "resources_used.other "))


def test_a_job_of_pbs_that_ended_tells_how_and_when_it_began() -> None:
    ended = QSTAT.replace("job_state = R", "job_state = F") + "    Exit_status = 3\n"
    account = parse_qstat(ended)
    assert (account.state, account.started) == ("FAILED with status 3", "2026-11-28T22:25:14")
    assert (account.memory, account.job_memory) == (None, 812340 * 1024.0)
    assert parse_qstat(ended.replace("= 3", "= 0")).state == "COMPLETED"
    torque = QSTAT.replace("stime = Sat Nov 28", "start_time = Sat Nov  8").replace("812340kb", "?")
    assert (parse_qstat(torque).started, parse_qstat(torque).job_memory) == ("2026-11-08T22:25:14", None)
    assert parse_qstat(QSTAT.replace("Sat Nov 28", "one day")).started is None
    unseen = parse_qstat(QSTAT.replace("00:09:30", "00:00:00").replace("812340kb", "0kb"))
    assert (unseen.cpu_s, unseen.job_memory) == (None, None), "no job computes without CPU time and memory"


def test_what_flux_prints_is_an_account_without_cpu_time() -> None:
    for text in (json.dumps(FLUX), json.dumps({"jobs": [FLUX]})):
        account = parse_flux_jobs(text)
        assert (account.job, account.name, account.cores, account.nodes) == ("\u0192tm9vfH", "heat", 2, 1)
        assert (account.elapsed_s, account.cpu_s, account.folder) == (9.159, None, "/home/user/heat")
        assert (account.state, account.started) == ("FAILED with status 1", "2026-11-28T22:28:25.200000+00:00")
    assert not parse_flux_jobs(json.dumps({**FLUX, "status": "RUN", "returncode": None})).is_complete


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "prints what"),
        ('{"jobs": []}', "prints what"),
        ('{"ncores": 2}', "no 'nnodes' of the job yet"),
        ("{" * 99999, "prints what"),
    ],
)
def test_what_flux_does_not_tell_is_said(text: str, said: str) -> None:
    with pytest.raises(AdvisorError, match=said):
        parse_flux_jobs(text)
