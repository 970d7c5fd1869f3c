"""The accounting record of a batch job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobAccount:
    """A job's seconds: elapsed, and CPU time summed over all ``cores``; what is unknown is None.

    ``memory`` is the peak memory of a task, ``job_memory`` that of the job (bytes), ``folder`` the directory of
    submission, ``others`` how many further jobs the account tells of.
    """

    job: str
    name: str
    elapsed_s: float
    cpu_s: float | None
    cores: int
    nodes: int | None = None
    tasks: int | None = None
    memory: float | None = None
    job_memory: float | None = None
    state: str = ""
    started: str | None = None
    folder: str | None = None
    others: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether it holds all CPU time: schedulers add that of a step when the step ends."""
        return not self.state.startswith(("RUNNING", "SUSPENDED"))
