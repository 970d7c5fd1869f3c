"""What schedulers print of a job on one node: OpenPBS 23.06 (``qstat -f``), flux-core 0.88 (``flux jobs --json``)."""

QSTAT = """Job Id: 123.pbs
    Job_Name = heat
    Job_Owner = user@login
    resources_used.cpupercent = 190
    resources_used.cput = 00:09:30
    resources_used.mem = 812340kb
    resources_used.ncpus = 2
    resources_used.walltime = 00:05:00
    job_state = R
    Resource_List.ncpus = 2
    Resource_List.nodect = 1
    stime = Sat Nov 28 22:25:14 2026
    Variable_List = PBS_O_HOME=/home/user,PBS_O_LANG=C.UTF-8,
\tPBS_O_WORKDIR=/home/user/he
\tat,PBS_O_HOST=login
"""
FLUX = {
    "name": "heat", "cwd": "/home/user/heat", "ntasks": 1, "ncores": 2, "nnodes": 1, "id": 33973862400,
    "t_submit": 1795904905.17, "t_run": 1795904905.2, "state": "INACTIVE", "result": "FAILED", "status": "FAILED",
    "returncode": 1, "runtime": 9.159, "duration": 0.0, "jobid": "\u0192tm9vfH", "exception": {"occurred": False},
}  # fmt: skip
