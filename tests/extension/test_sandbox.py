"""Whatever a task does to its process, the next one gets its result and this process stays as it was."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from patience import PATIENCE_S, has_ended, wait_until

from advisor.extension.sandbox import Limits, TaskFailed, Worker
from advisor.extension.sandbox.worker import _find_last_word
from advisor.support import file_access
from advisor.support.file_access import landlock_version

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parents[1]
LIMITS = Limits(memory_B=1 << 30, wall_s=PATIENCE_S, cpu_s=20)


def worker(limits: Limits = LIMITS, *places: Path) -> Worker:
    return Worker("sandbox_tasks", limits, {"PYTHONPATH": str(HERE)}, places)


@pytest.fixture
def serving() -> Iterator[Worker]:
    made = worker()
    yield made
    made.stop_child()


def failure(serving: Worker, **task: object) -> TaskFailed:
    with pytest.raises(TaskFailed) as caught:
        serving.run_task(task)
    assert serving.run_task({"do": "echo", "value": 1}) == 1, "the next task has its result"
    return caught.value


def test_a_child_serves_one_task_after_the_other(serving: Worker) -> None:
    assert serving.run_task({"do": "echo", "value": {"names": ["operator[]", "\udce9", "\x1b["]}}) == {
        "names": ["operator[]", "\udce9", "\x1b["]
    }
    assert serving.run_task({"do": "pid"}) == serving.run_task({"do": "pid"})


def test_what_is_refused_says_why_and_costs_no_child(serving: Worker) -> None:
    before = serving.run_task({"do": "pid"})
    failed = failure(serving, do="refuse")
    assert (failed.kind, failed.reason) == ("refused", "some.file:3:1: half a record")
    assert serving.run_task({"do": "pid"}) == before


@pytest.mark.parametrize(
    ("task", "kind", "reason"),
    [
        ({"do": "raise"}, "fault", "KeyError: 'no key'"),
        ({"do": "nonsense"}, "killed", "exit code 1 (TypeError"),
        ({"do": "exit"}, "killed", "the process ended without an answer (about to leave)"),
        ({"do": "exit", "code": 3}, "killed", "ended with exit code 3 (about to leave)"),
        ({"do": "crash"}, "killed", "was ended by SIGABRT"),
        ({"do": "crash", "signal": 40}, "killed", "was ended by signal 40"),
        ({"do": "eat"}, "fault", "ran out of memory"),
        ({"do": "flood"}, "killed", "bytes; at most"),
    ],
    ids=lambda value: value["do"] if isinstance(value, dict) else "",
)
def test_what_fails_loses_its_own_result(serving: Worker, task: dict[str, object], kind: str, reason: str) -> None:
    failed = failure(serving, **task)
    assert failed.kind == kind
    assert failed.at == (task["do"] if kind == "killed" else None)
    assert reason in failed.reason


def test_a_child_that_does_not_start_is_nobodys_doing(serving: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure(serving, do="crash").at == "crash"
    monkeypatch.setattr(serving, "_command", [sys.executable, "-c", "pass"])
    serving.stop_child()
    with pytest.raises(TaskFailed, match="did not start") as caught:
        serving.run_task({"do": "echo"})
    assert (caught.value.at, caught.value.asked) == (None, ())


def test_a_task_that_hangs_is_ended(tmp_path: Path) -> None:
    serving = worker(Limits(wall_s=1.0))
    try:
        with pytest.raises(TaskFailed, match="took more than 1 s"):
            serving.run_task({"do": "hang"})
        serving._limits = LIMITS
        assert serving.run_task({"do": "echo", "value": 1}) == 1
    finally:
        serving.stop_child()


def test_a_worker_that_was_closed_starts_no_child(serving: Worker) -> None:
    serving.run_task({"do": "pid"})
    serving.close()
    with pytest.raises(TaskFailed, match="was stopped") as caught:
        serving.run_task({"do": "pid"})
    assert caught.value.kind == "killed"
    assert serving._child is None


def test_a_task_that_computes_for_ever_is_ended_by_the_system() -> None:
    serving = worker(Limits(wall_s=PATIENCE_S, cpu_s=1))
    try:
        assert failure(serving, do="burn").reason.startswith("was ended by SIGXCPU")
    finally:
        serving.stop_child()


def test_what_a_task_prints_stays_out_of_the_answer(serving: Worker) -> None:
    assert serving.run_task({"do": "print"}) == "done"


def test_this_process_stays_as_it_was(serving: Worker) -> None:
    umask = os.umask(0o22)
    os.umask(umask)
    here, stdout = Path.cwd(), sys.stdout
    serving.run_task({"do": "forget"})
    assert (Path.cwd(), sys.stdout) == (here, stdout)
    assert os.umask(umask) == umask


def test_processes_that_a_task_started_end_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    for limit_s in (2.0, 20.0, PATIENCE_S):
        serving = worker(Limits(wall_s=limit_s), tmp_path)
        with pytest.raises(TaskFailed):
            serving.run_task({"do": "leave_a_child", "file": str(file)})
        serving.stop_child()
        if file.is_file() and file.read_text():  # else it was ended before it came so far
            break
    wait_until(partial(has_ended, int(file.read_text())))


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="the numbers of system calls are known for these alone"
)
def test_tasks_make_no_sockets(serving: Worker) -> None:
    assert serving.run_task({"do": "connect"}) == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of the calls are those of x86_64")
@pytest.mark.parametrize(
    "words",
    [[41 | 1 << 30, socket.AF_INET, socket.SOCK_STREAM, 0], [425, 1, 0], [101, 16, 1, 0, 0], [310, 1, 0, 0, 0, 0, 0]],
    ids=["socket of x32", "io_uring_setup", "ptrace", "process_vm_readv"],
)
def test_tasks_find_no_way_around_the_filter(serving: Worker, words: list[int]) -> None:
    assert serving.run_task({"do": "call", "words": words}) == "EACCES"


landlocked = pytest.mark.skipif(landlock_version() < 3, reason="this kernel has no Landlock that knows of truncation")


@landlocked
def test_tasks_change_files_at_their_places_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {name: tmp_path / name for name in ("home", "profiles", "allowed", "cache", "tmp")}
    for folder in places.values():
        folder.mkdir()
        (folder / "there").write_text("as it was")
    known = {"XDG_CACHE_HOME": str(places["cache"]), "TMPDIR": str(places["tmp"]), "PYTHONPATH": str(HERE)}
    places["gapwatch"] = places["cache"] / "gapwatch"
    serving = Worker("sandbox_tasks", LIMITS, known, [places["allowed"]])
    try:
        assert serving.run_task({"do": "change_files", "places": {name: str(one) for name, one in places.items()}}) == {
            "home": False, "profiles": False, "allowed": True, "cache": False, "tmp": False, "gapwatch": True,
        }  # fmt: skip
        assert serving.run_task({"do": "read", "file": str(places["home"] / "there")}) == "as it was"
        made = Path(str(serving.run_task({"do": "temporary"})))
        assert made.parent == places["tmp"] / f"gapwatch-{os.geteuid()}"
        assert made.parent.stat().st_mode & 0o777 == 0o700
    finally:
        serving.stop_child()


@pytest.mark.skipif(landlock_version() < 6, reason="this kernel has no Landlock that knows of signals")
def test_tasks_send_signals_to_nobody_else(serving: Worker) -> None:
    with pytest.raises(TaskFailed, match="Operation not permitted"):
        serving.run_task({"do": "signal"})


def test_where_the_system_has_no_landlock_tasks_run_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_access, "_call_system", lambda *_: -1)
    landlock_version.cache_clear()
    try:
        assert not file_access.confine_process()
    finally:
        landlock_version.cache_clear()


def test_a_child_is_replaced_after_its_number_of_tasks() -> None:
    serving = worker(Limits(tasks=2))
    try:
        assert len({serving.run_task({"do": "pid"}) for _ in range(6)}) == 3
    finally:
        serving.stop_child()


def test_a_child_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    script = (
        "import os, signal\n"
        "from advisor.extension.sandbox import Limits, Worker\n"
        "print(Worker('sandbox_tasks', Limits()).run_task({'do': 'pid'}), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(HERE)}, capture_output=True, check=False
    )
    assert made.returncode == -signal.SIGKILL
    wait_until(partial(has_ended, int(made.stdout)))


def test_a_module_that_is_not_there_is_a_fault_of_its_task() -> None:
    with pytest.raises(TaskFailed, match=r"did not start .*No module named 'nothing_here'"):
        Worker("nothing_here", LIMITS).run_task({})


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("about\nto leave\n", "to leave"),
        ("", ""),
        (
            "Traceback (most recent call last):\n  File 'a'\nKeyError: 1\n\nDuring handling of the above\n\n"
            "Traceback (most recent call last):\n  File 'b'\n    f()\nTypeError: no\nwhen serializing dict item\n",
            "TypeError: no",
        ),
    ],
    ids=["lines", "nothing", "notes"],
)
def test_the_exception_is_named_without_its_notes(printed: str, said: str) -> None:
    assert _find_last_word(printed) == said
