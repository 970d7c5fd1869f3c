"""Tasks for children of the sandbox: well behaved ones and every kind of the other."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def prepare() -> None:
    """Nothing to load."""


def handle(task: dict[str, Any], at: Callable[[str], None]) -> object:
    """Do what the task names, after saying so."""
    at(task["do"])
    act: Callable[[dict[str, Any]], object] = globals()["do_" + task["do"]]
    return act(task)


def do_echo(task: dict[str, Any]) -> object:
    return task["value"]


def do_pid(task: dict[str, Any]) -> int:
    return os.getpid()


def do_refuse(task: dict[str, Any]) -> None:
    raise InputError("some.file", "half a record", "3:1")


def do_raise(task: dict[str, Any]) -> None:
    raise KeyError("no key")


def do_exit(task: dict[str, Any]) -> None:
    print("about to leave", flush=True)
    os._exit(task.get("code", 0))


def do_crash(task: dict[str, Any]) -> None:
    os.kill(os.getpid(), task.get("signal", signal.SIGABRT))


def do_hang(task: dict[str, Any]) -> None:
    while True:
        time.sleep(3600)


def do_burn(task: dict[str, Any]) -> None:
    while True:
        pass


def do_eat(task: dict[str, Any]) -> None:
    hoard = []
    while True:
        hoard.append(bytearray(1 << 24))


def do_print(task: dict[str, Any]) -> str:
    for _ in range(20_000):
        print("x" * 1000)
    os.write(1, b"raw")
    return "done"


def do_connect(task: dict[str, Any]) -> list[str]:
    """Say which kinds of sockets can be made."""
    made = []
    for name in ("AF_UNIX", "AF_INET", "AF_INET6", "AF_PACKET"):
        with suppress(OSError):
            socket.socket(getattr(socket, name), socket.SOCK_DGRAM).close()
            made.append(name)
    return made


def do_forget(task: dict[str, Any]) -> object:
    os.chdir("/")
    os.umask(0o777)
    sys.stdout = None  # type: ignore[assignment]
    return "gone"


def do_leave_a_child(task: dict[str, Any]) -> int:
    """Start a process that outlives the task, then hang."""
    sleeper = subprocess.Popen(["sleep", "3600"])
    with open(task["file"], "w", encoding="ascii") as file:
        file.write(str(sleeper.pid))
    do_hang(task)
    return 0


def do_flood(task: dict[str, Any]) -> str:
    return "x" * (65 << 20)


def do_nonsense(task: dict[str, Any]) -> object:
    return object()


def do_change_files(task: dict[str, Any]) -> dict[str, bool]:
    """Try to write, cut, remove, move, link and make files in directories; say for each whether anything could be."""
    changed = {}
    for name, place in task["places"].items():
        folder, done = Path(place), []
        for act in (
            lambda folder: (folder / "new").write_text("x"),
            lambda folder: os.truncate(folder / "there", 0),
            lambda folder: (folder / "sub").mkdir(),
            lambda folder: (folder / "link").symlink_to("there"),
            lambda folder: (folder / "there").rename(folder / "moved"),
            lambda folder: (folder / "there").unlink(),
        ):
            with suppress(OSError):
                act(folder)
                done.append(act)
        changed[name] = bool(done)
    return changed


def do_read(task: dict[str, Any]) -> str:
    return Path(task["file"]).read_text(encoding="utf-8")


def do_temporary(task: dict[str, Any]) -> str:
    """Leave a temporary file."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        return file.name


def do_signal(task: dict[str, Any]) -> str:
    os.kill(os.getppid(), 0)
    return "reached"


def do_call(task: dict[str, Any]) -> str:
    """Call the system by number, and say what it answers."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall(*task["words"])
    return errno.errorcode.get(ctypes.get_errno(), "")
