from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from patience import wait_until

from advisor.collect import procfs, sampler
from advisor.collect.records import BlockedCall

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PID = os.getpid()


@pytest.fixture
def reading() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for input, once it does."""
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    wait_until(lambda: procfs.read_stat(child.pid).state == "S" and procfs.read_program_name(child.pid, "") == "cat")
    yield child
    child.communicate(b"")


def test_the_times_of_this_process() -> None:
    stat, times = procfs.read_stat(PID), os.times()
    assert stat.user_s <= times.user + 0.02
    assert stat.parent == os.getppid()
    assert stat.threads == len(procfs.list_threads(PID))
    assert stat.state == "R"


def test_names_with_spaces_and_parentheses(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to(sys.executable)
    child = subprocess.Popen([program, "-c", "input()"], stdin=subprocess.PIPE)
    wait_until(lambda: procfs.read_program_name(child.pid, "?") == "a) R 1 (b")
    assert procfs.read_stat(child.pid).name == "a) R 1 (b"
    assert procfs.read_stat(child.pid).parent == PID
    child.communicate(b"\n")


def test_scripts_are_called_by_their_own_names(tmp_path: Path) -> None:
    script = tmp_path / "sölve it.py"
    script.write_text("input()")
    child = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE)
    wait_until(lambda: procfs.read_program_name(child.pid, "?") == "sölve it.py")
    child.communicate(b"\n")


def test_what_ended_is_gone() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(procfs.ProcessGone):
        procfs.read_stat(child.pid)
    with pytest.raises(procfs.ProcessGone):
        procfs.list_threads(child.pid)
    assert procfs.list_children(child.pid, child.pid) == []


def test_children_by_the_kernel_and_by_psutil(reading: subprocess.Popen[bytes]) -> None:
    if procfs.kernel_lists_children():
        tids = procfs.list_threads(PID)
        assert reading.pid in [pid for tid in tids for pid in procfs.list_children(PID, tid)]
    assert reading.pid in sampler._find_descendants(PID)


def test_what_a_process_is_blocked_in(reading: subprocess.Popen[bytes]) -> None:
    if not procfs.can_see_calls():
        pytest.skip("this kernel does not tell in which call a process is blocked (/proc/PID/syscall)")
    found = procfs.read_system_call(reading.pid, reading.pid)
    assert found is not None
    assert sampler.call_names().get(found[0]) == "read"
    assert str(procfs.resolve_descriptor(reading.pid, found[1])).startswith("pipe:")


def test_what_this_process_reads_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100_000)
    before = procfs.read_io_counters(PID)
    file.read_bytes()
    after = procfs.read_io_counters(PID)
    assert before is not None
    assert after is not None
    assert after.read_B - before.read_B >= 100_000
    assert after.reads > before.reads


def test_of_an_environment_only_numbers_of_ranks_are_read() -> None:
    content = b"SECRET_PMI_RANK=7\0PMI_RANK=3\0OMPI_COMM_WORLD_RANK=abc\0OMPI_COMM_WORLD_SIZE=12\0TOKEN=4\0"
    assert procfs._select_numbers(content, {*procfs.RANK_KEYS, *procfs.SIZE_KEYS}) == {
        "PMI_RANK": 3, "OMPI_COMM_WORLD_SIZE": 12,
    }  # fmt: skip
    assert procfs._select_numbers(b"PMI_RANK=" + b"9" * 40, procfs.RANK_KEYS) == {}


def test_a_rank_of_our_own_says_nothing_about_others() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={**os.environ, "PMI_RANK": "5", "PMI_SIZE": "8"})
    wait_until(lambda: procfs.read_rank(child.pid, {}) == (5, 8))
    assert procfs.read_rank(child.pid, {"PMI_RANK": "0"}) == (None, 8)
    child.communicate(b"")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_that_readers_know(machine: str) -> None:
    from advisor.advice.facts.event_rows import call_traits
    from advisor.trace.io_calls import DATA, FORCING, METADATA

    known = set(sampler.call_names(machine).values())
    for names, trait in (("read pread write pwrite", DATA), ("fsync fdatasync", FORCING), ("open unlink", METADATA)):
        assert all(name in known and trait in call_traits(name) for name in names.split())
    assert sampler.call_names("unknown machine") == {}
    assert len(sampler.call_names(machine)) == sum(map(len, sampler._TABLES[machine].values()))


@pytest.mark.parametrize(
    ("call", "path", "expected"),
    [
        ("fsync", "/data/x", BlockedCall("file", "fsync", "/data/x")),
        ("open", None, BlockedCall("file", "open", None)),
        ("read", "pipe:[7]", BlockedCall("input", "read", "pipe")),
        ("read", "socket:[7]", BlockedCall("input", "read", "socket")),
        ("write", "pipe:[7]", BlockedCall("file", "write", "pipe")),
        ("write", "socket:[7]", BlockedCall("other", "write", "socket")),
        ("write", "/dev/pts/4", BlockedCall("file", "write", "terminal")),
    ],
)
def test_what_a_call_waits_for(call: str, path: str | None, expected: BlockedCall) -> None:
    assert sampler._classify_call(call, path) == expected


def test_threads_are_seen_with_their_times() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            sum(range(1000))

    worker = threading.Thread(target=work)
    worker.start()
    looking = sampler.ProcessSampler(PID, time.monotonic(), 0.05)
    looking.take_sample()
    wait_until(lambda: (procfs.read_cpu_times(PID, worker.native_id or 0) or (1.0,))[0] > 0.05)
    looking.take_sample()
    stop.set()
    worker.join()
    wait_until(lambda: worker.native_id not in procfs.list_threads(PID))
    looking.take_sample()
    (process,) = [one for one in looking.processes if one.pid == PID]
    seen = process.threads[worker.native_id or 0]
    assert seen.samples == 2
    assert seen.cpu_s > 0.04
    assert seen.end_s is not None
    assert process.main_thread.end_s is None
