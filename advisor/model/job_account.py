"""What the scheduler of a cluster accounts of a batch job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobAccount:
    """A job's seconds: elapsed, and CPU time on all ``cores`` together; ``tasks`` is None where it is not told.

    ``memory`` is the most that a task of the job had in memory, bytes, and ``folder`` the directory in which it was
    submitted; None where they are not told.
    """

    job: str
    name: str
    elapsed_s: float
    cpu_s: float
    cores: int
    nodes: int | None = None
    tasks: int | None = None
    memory: float | None = None
    state: str = ""
    started: str | None = None
    folder: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all CPU time is in it: schedulers add that of a step when the step has ended."""
        return not self.state.startswith(("RUNNING", "SUSPENDED"))
