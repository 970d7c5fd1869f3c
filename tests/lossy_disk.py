"""A disk that forgets: what a process wrote is recorded, and any state that a power loss could leave is made of it.

A library that is loaded before libc records every write, truncation, sync, unlink and rename below a directory.
``LossyDisk`` takes that record up to a point: what was synced by then is there, as are any of the later writes, whole
or torn at a sector, in any order. Names change in order, as file systems with a journal change them, and at least up to
the last sync of a directory.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SHIM: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static void record(char kind, const char *path, const char *more, long long at, const void *data, unsigned size) {
    static int out = -1;
    const char *top = getenv("LOSSY_TOP");
    if (!top || strncmp(path, top, strlen(top))) return;
    int how = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
    if (out < 0) out = syscall(SYS_openat, AT_FDCWD, getenv("LOSSY_LOG"), how, 0600);
    unsigned head[4] = {kind, (unsigned)strlen(path), more ? (unsigned)strlen(more) : 0, size};
    syscall(SYS_write, out, head, sizeof head);
    syscall(SYS_write, out, &at, sizeof at);
    syscall(SYS_write, out, path, head[1]);
    if (head[2]) syscall(SYS_write, out, more, head[2]);
    if (size) syscall(SYS_write, out, data, size);
}
static const char *path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, 4000);
    path[size < 0 ? 0 : size] = 0;
    return path;
}
#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))
#define BOTH(call, note) pthread_mutex_lock(&guard); call; note; pthread_mutex_unlock(&guard)
ssize_t write(int fd, const void *data, size_t size) {
    char path[4096]; ssize_t done; off_t at = lseek(fd, 0, SEEK_CUR);
    BOTH(done = syscall(SYS_write, fd, data, size), if (done > 0) record('w', path_of(fd, path), 0, at, data, done));
    return done;
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    char path[4096]; ssize_t done;
    BOTH(done = syscall(SYS_pwrite64, fd, data, size, at),
         if (done > 0) record('w', path_of(fd, path), 0, at, data, done));
    return done;
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }
int ftruncate64(int fd, off64_t at) {
    char path[4096]; int done;
    BOTH(done = syscall(SYS_ftruncate, fd, at), if (!done) record('t', path_of(fd, path), 0, at, 0, 0));
    return done;
}
int ftruncate(int fd, off_t at) { return ftruncate64(fd, at); }
int fsync(int fd) {
    char path[4096]; int done;
    BOTH(done = syscall(SYS_fsync, fd), if (!done) record('s', path_of(fd, path), 0, 0, 0, 0));
    return done;
}
int fdatasync(int fd) { return fsync(fd); }
int unlink(const char *path) {
    int done;
    BOTH(done = syscall(SYS_unlinkat, AT_FDCWD, path, 0), if (!done) record('u', path, 0, 0, 0, 0));
    return done;
}
int rename(const char *path, const char *name) {
    int done;
    BOTH(done = syscall(SYS_renameat, AT_FDCWD, path, AT_FDCWD, name), if (!done) record('r', path, name, 0, 0, 0));
    return done;
}
"""
SECTOR: Final = 512
_HEAD: Final = struct.Struct("<4Iq")


@dataclass(frozen=True, slots=True)
class DiskStep:
    """One recorded call: a ``kind`` (w, t, s, u, r; or a for what was acknowledged), where, and what."""

    kind: str
    path: str
    more: str
    at: int
    data: bytes


@dataclass(slots=True)
class _Inode:
    """The content of a file that is safe, and what was written since."""

    safe: bytearray = field(default_factory=bytearray)
    later: list[DiskStep] = field(default_factory=list)


def record_program(code: str, top: Path, log: Path, arguments: Sequence[object] = (), **more: str) -> list[DiskStep]:
    """Run Python ``code`` and return what it did below ``top``, and what it acknowledged by ``acknowledge(text)``."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc here: apt-get install gcc")
    library = log.with_suffix(".so")
    made = ["-shared", "-fPIC", "-O1", "-w", "-x", "c", "-o", library, "-", "-ldl", "-lpthread"]
    subprocess.run([compiler, *made], input=SHIM.encode(), check=True)
    names = {"LD_PRELOAD": str(library), "LOSSY_TOP": str(top), "LOSSY_LOG": str(log)}
    command = [sys.executable, "-c", ACKNOWLEDGE + code, *map(str, arguments)]
    subprocess.run(command, env={**os.environ, **names, **more}, check=True)
    return parse_record(log.read_bytes())


#: What a recorded program calls after it was told that something is stored.
ACKNOWLEDGE: Final = """
import os, struct
def acknowledge(text):
    out = os.open(os.environ["LOSSY_LOG"], os.O_WRONLY | os.O_APPEND)
    os.write(out, struct.pack("<4Iq", ord("a"), 0, len(text), 0, 0) + text.encode())
    os.close(out)
"""


def parse_record(log: bytes) -> list[DiskStep]:
    """Return the steps of a record."""
    steps, at = [], 0
    while at < len(log):
        kind, path, more, size, offset = _HEAD.unpack_from(log, at)
        at += _HEAD.size
        parts = []
        for length in (path, more, size):
            parts.append(log[at : at + length])
            at += length
        steps.append(DiskStep(chr(kind), os.fsdecode(parts[0]), os.fsdecode(parts[1]), offset, parts[2]))
    return steps


class LossyDisk:
    """Takes recorded steps one after the other and says what a power loss could leave; files are told by their names.

    Shared memory of SQLite (``-shm``) is left out: it is made anew by whoever comes first.
    """

    def __init__(self) -> None:
        self._names: dict[str, _Inode] = {}
        self._safe_names: dict[str, _Inode] = {}
        self._renames: list[dict[str, _Inode]] = []
        self.acknowledged: list[str] = []

    def apply_step(self, step: DiskStep) -> None:
        """Take one step."""
        if step.kind == "a":
            self.acknowledged.append(step.more)
            return
        if step.path.endswith(("-shm", " (deleted)")):
            return
        if step.kind == "s":
            self._sync(step.path)
        elif step.kind in "wt":
            if step.path not in self._names:
                self._names = {**self._names, step.path: _Inode()}
                self._renames.append(self._names)
            self._names[step.path].later.append(step)
        elif step.path in self._names:
            self._names = dict(self._names)
            moved = self._names.pop(step.path)
            if step.kind == "r":
                self._names[step.more] = moved
            self._renames.append(self._names)

    def _sync(self, path: str) -> None:
        """Make a file safe, with the name that it was made under, as ext4 and XFS do; or the names of a directory."""
        if path in self._names:
            inode = self._names[path]
            for step in inode.later:
                _write(inode.safe, step, step.data)
            inode.later.clear()
            if path not in self._safe_names:
                self._safe_names = {**self._safe_names, path: inode}
        else:
            self._safe_names = self._names
            self._renames.clear()

    def leave_image(self, chance: random.Random) -> dict[str, bytes]:
        """Return the files that a power loss leaves now, by name."""
        names = chance.choice([self._safe_names, *self._renames])
        return {path: bytes(_lose_writes(inode, chance)) for path, inode in names.items()}


def _lose_writes(inode: _Inode, chance: random.Random) -> bytearray:
    """Return the content of a file after some of what was not synced was lost: all, none, any, and torn."""
    content = bytearray(inode.safe)
    share = chance.choice((0.0, 1.0, chance.random()))
    for step in inode.later:
        if chance.random() >= share:
            continue
        torn = share < 1.0 and chance.random() < 0.1 and len(step.data) > SECTOR
        size = chance.randrange(0, len(step.data), SECTOR) if torn else len(step.data)
        _write(content, step, step.data[:size])
    return content


def _write(content: bytearray, step: DiskStep, data: bytes) -> None:
    if step.kind == "t":
        del content[step.at :]
        content.extend(bytes(step.at - len(content)))
        return
    content.extend(bytes(max(step.at + len(data) - len(content), 0)))
    content[step.at : step.at + len(data)] = data


def restore_image(image: Mapping[str, bytes], top: Path, to: Path) -> None:
    """Write the files of an image, which were below ``top``, to a new directory."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for path, content in image.items():
        place = to / os.path.relpath(path, top)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
