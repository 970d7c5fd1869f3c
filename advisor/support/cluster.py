"""Work done by the workers of a Dask cluster, on files in a directory that all of them see.

A worker's results are taken for this process's own, so it has to run the same code on the same numpy: whoever differs
is refused before anything is sent.
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeVar

from advisor.model.errors import AdvisorError, ClusterError, UsageError
from advisor.support.extras import install_line

#: How long a scheduler may take to answer (seconds), and how long all workers may be gone before they are given up.
ANSWER_S: Final = 10.0
ABSENCE_S: Final = 30.0
#: So often it is looked whether there are workers still (seconds).
LOOK_S: Final = 1.0
#: Tasks that wait or are being done, for each thread of the workers: more only fill memory with results.
AHEAD: Final = 4
#: Packages that have a say in the results.
PACKAGES: Final = ("numpy", "numba")
_SEEN: Final = "seen-by-workers"

Result = TypeVar("Result")


class _Current:
    """The cluster that this process works with, if any."""

    cluster: Cluster | None = None


def find_cluster() -> Cluster | None:
    """Return the cluster that this process works with, None where it works alone."""
    return _Current.cluster


@contextmanager
def use_cluster(address: str, shared: Path) -> Iterator[Cluster]:
    """Let the workers of the scheduler at ``address`` take part in what is done meanwhile.

    Files for them lie in a directory below ``shared`` that is removed in the end. Raises ``UsageError`` where nobody
    answers or the directory cannot be made, and ``ClusterError`` where workers cannot do what this process does.
    """
    with connect_scheduler(address) as client, _make_folder(shared) as folder:
        cluster = Cluster(client, address, folder)
        cluster.check_workers()
        _Current.cluster = cluster
        try:
            yield cluster
        finally:
            _Current.cluster = None


def connect_scheduler(address: str) -> Any:  # noqa: ANN401 (a client of Dask, which need not be installed)
    """Return a client of the Dask scheduler at ``address``; raises ``UsageError`` where none answers."""
    if find_spec("distributed") is None:
        raise UsageError(f"--cluster needs dask.distributed: {install_line('cluster')}")
    distributed: Any = import_module("distributed")
    try:
        return distributed.Client(address, timeout=f"{ANSWER_S:g}s")
    except (OSError, ValueError) as error:
        raise UsageError(f"--cluster {address}: no scheduler answers there ({error})") from None


class Cluster:
    """The workers of a scheduler, and a ``folder`` that all of them see."""

    def __init__(self, client: Any, address: str, folder: Path) -> None:  # noqa: ANN401
        self.folder = folder
        self._client, self._address = client, address
        self._absent_since: float | None = None
        self._code = describe_code()

    def count_threads(self) -> int:
        """Return how many tasks the workers do at a time."""
        return sum(self._client.nthreads().values())

    def check_workers(self) -> None:
        """Raise ``ClusterError`` where there are no workers, or one runs other code or does not see the folder."""
        try:
            self._client.wait_for_workers(1, timeout=ANSWER_S)
        except TimeoutError:
            reason = "the scheduler has no workers; start some (dask worker)"
            raise ClusterError(f"--cluster {self._address}: {reason}") from None
        code = self._ask_workers(describe_code)
        other = {worker: _compare_code(self._code, theirs) for worker, theirs in code.items() if theirs != self._code}
        self._refuse_workers(other, "the same versions are needed everywhere")
        (self.folder / _SEEN).write_text(secrets.token_hex(), encoding="ascii")
        advice = f"{self.folder.parent} is no directory that all workers see; name one by --shared"
        self.check_file(self.folder / _SEEN, advice)

    def check_file(self, path: Path, advice: str) -> None:
        """Raise ``ClusterError``, which ends in ``advice``, where a worker does not see a file as this process does."""
        mine, seen = digest_file(str(path)), self._ask_workers(digest_file, str(path))
        blind = {
            worker: theirs if isinstance(theirs, Exception) else f"another file lies at {path}"
            for worker, theirs in seen.items()
            if theirs != mine
        }
        self._refuse_workers(blind, advice)

    def send_to_all(self, thing: object) -> Any:  # noqa: ANN401 (a future)
        """Give all workers something that many tasks need; tasks are passed what is returned."""
        return self._client.scatter(thing, broadcast=True, hash=False)

    def map_tasks(self, work: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """Yield what ``work`` makes of each task, which are its arguments, in their order."""
        room = AHEAD * max(self.count_threads(), 1)
        waiting: deque[Any] = deque()
        try:
            for task in tasks:
                waiting.append(self._client.submit(do_task, self._code, work, *task, pure=False))
                if len(waiting) >= room:
                    yield self._take_result(waiting.popleft())
            while waiting:
                yield self._take_result(waiting.popleft())
        finally:
            with suppress(Exception):  # where the scheduler is gone, so are the tasks
                self._client.cancel(list(waiting))

    def _take_result(self, future: Any) -> Any:  # noqa: ANN401
        distributed: Any = import_module("distributed")
        while True:
            try:
                return future.result(timeout=LOOK_S)
            except TimeoutError:
                if future.status == "error":  # raised by the task itself
                    raise
                self._watch_workers()
            except distributed.KilledWorker as error:
                lost = error.allowed_failures + 1
                reason = f"a part is given up: the workers that had it were lost, {lost} in all (too little memory?)"
                raise ClusterError(f"--cluster {self._address}: {reason}") from error
            except CancelledError as error:
                reason = "what the workers held is lost: no worker that had it is left, or the scheduler ended"
                raise ClusterError(f"--cluster {self._address}: {reason}") from error
            except OSError as error:
                raise ClusterError(f"--cluster {self._address}: a worker failed at a file: {error}") from error

    def _watch_workers(self) -> None:
        """Raise ``ClusterError`` where no worker has been there for ``ABSENCE_S``, or the scheduler is gone."""
        try:
            threads = self.count_threads()
        except (OSError, TimeoutError) as error:
            raise ClusterError(f"--cluster {self._address}: the scheduler no longer answers ({error})") from error
        now = monotonic()
        self._absent_since = None if threads else self._absent_since or now
        if self._absent_since is not None and now - self._absent_since > ABSENCE_S:
            raise ClusterError(f"--cluster {self._address}: all workers are lost, and none came for {ABSENCE_S:g} s")

    def _ask_workers(self, question: Callable[..., object], *words: object) -> dict[str, object]:
        """Return the answer of each worker, or the error that it raised."""
        answers: dict[str, object] = self._client.run(question, *words, on_error="return")
        return answers

    def _refuse_workers(self, reasons: Mapping[str, object], advice: str) -> None:
        if reasons:
            worker, reason = min(reasons.items())
            many = f" ({len(reasons)} workers in all)" if len(reasons) > 1 else ""
            raise ClusterError(f"--cluster {self._address}: worker {worker}{many}: {reason}; {advice}")


def do_task(code: Mapping[str, str], work: Callable[..., Result], *task: Any) -> Result:  # noqa: ANN401
    """Do a task on a worker, which may have come after the others were checked."""
    if describe_code() != code:
        raise ClusterError(f"--cluster: a worker that came later has {_compare_code(code, describe_code())}")
    return work(*task)


@cache
def describe_code() -> dict[str, str]:
    """Return what has a say in the results: gapwatch by a digest of its code, Python, processor type, packages."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for room in ("trace", "support", "model"):
        for file in sorted((root / room).rglob("*.py")):
            digest.update(file.read_bytes())
    code = {"gapwatch": digest.hexdigest()[:12], "Python": platform.python_version(), "machine": platform.machine()}
    return code | {package: _find_version(package) for package in PACKAGES}


def digest_file(path: str) -> str:
    """Return a digest of a small file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _compare_code(mine: Mapping[str, str], theirs: object) -> str:
    """Return how a worker differs from this process."""
    if isinstance(theirs, AdvisorError | ImportError) or not isinstance(theirs, dict):
        return f"cannot load gapwatch ({theirs})"
    return ", ".join(
        f"{name} {theirs.get(name)} and not {mine[name]}" for name in mine if theirs.get(name) != mine[name]
    )


@contextmanager
def _make_folder(shared: Path) -> Iterator[Path]:
    try:
        folder = Path(tempfile.mkdtemp(prefix=".gapwatch-", dir=os.path.abspath(shared)))
    except OSError as error:
        raise UsageError(f"--shared {shared}: {error.strerror}; name a directory that all workers see") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
