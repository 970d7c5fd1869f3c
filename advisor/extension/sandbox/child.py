"""The child's side: takes one task after the other from standard input and answers on a descriptor of its own.

Run as ``python -m advisor.extension.sandbox.child MODULE MEMORY CPU [PLACE…]``: ``MODULE`` has ``prepare()``, called
once, and ``handle(task, at)``, which returns the answer to a task and calls ``at`` with the name of what may end the
process next, and what it is asked for; with "" once it has answered. What tasks print goes to standard error. Tasks
make no sockets, and change no files but at the places and where gapwatch keeps caches, as far as the system can see to
that.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.sandbox import worker
from advisor.extension.sandbox.worker import UNHURRIED
from advisor.model.errors import AdvisorError
from advisor.support import containment, file_access

if TYPE_CHECKING:
    from types import ModuleType

#: What may be otherwise the next time: the data were not even seen.
PASSING: Final = frozenset(
    (
        errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH,
        errno.ENOTCONN, errno.EREMOTEIO, errno.EMFILE, errno.ENFILE, errno.EAGAIN,
    )
)  # fmt: skip


def main(name: str, memory_B: int, cpu_s: int, places: Sequence[Path] = ()) -> None:
    """Serve tasks until standard input ends."""
    tasks, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    containment.die_with_parent()
    module = import_module(name)
    module.prepare()
    containment.deny_network(local=False)
    file_access.confine_process(places)
    resource.setrlimit(resource.RLIMIT_AS, (memory_B, memory_B))
    worker.send_frame(answers, {"ready": os.getpid()})
    while True:
        try:
            task = worker.receive_frame(tasks)
        except worker.FrameError:
            return
        # let this process use that many more seconds of CPU time; past them the system ends it
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = int(usage.ru_utime + usage.ru_stime) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        worker.send_frame(answers, _answer_task(module, task, _Announcer(tasks, answers)))


class _Announcer:
    """Says whom a task asks for what, and puts this process in order again once that has answered."""

    def __init__(self, tasks: int, answers: int) -> None:
        self._tasks, self._answers = tasks, answers
        self._guard = ExitStack()

    def __call__(self, name: str, what: str = "") -> None:
        """Say that ``name`` is asked; nobody any more for ''."""
        self._guard.close()
        worker.send_frame(self._answers, {"at": name, "what": what})
        if name and what:
            self._guard.enter_context(containment.limit_plugin(hurried=what not in UNHURRIED))

    def ask_parent(self, question: worker.Document) -> worker.Document:
        """Return the answer of the parent to a question."""
        worker.send_frame(self._answers, {"question": question})
        return worker.receive_frame(self._tasks)


def _answer_task(module: ModuleType, task: worker.Document, at: Callable[..., None]) -> worker.Document:
    """Return what the task gives, or how it failed; only errors of ours are anything but faults."""
    try:
        return {"result": module.handle(task, at)}
    except AdvisorError as error:
        return {"unreachable" if _is_access_error(error) else "refused": str(error)}
    except OSError as error:
        if error.errno is None:  # that is no error of the system's
            return {"fault": f"{type(error).__name__}: {error}"}
        return {"unreachable": str(error)}
    except MemoryError:
        return {"fault": "ran out of memory"}
    except RecursionError:
        return {"fault": "recursed too deeply"}
    except Exception as error:
        return {"fault": f"{type(error).__name__}: {error}"}


def _is_access_error(error: BaseException | None) -> bool:
    """Return whether an error stems from a file that currently can't be opened or read."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in PASSING:
            return True
        error = error.__cause__
    return False


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [Path(place) for place in sys.argv[4:]])
