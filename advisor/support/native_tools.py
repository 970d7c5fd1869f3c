"""The C compiler of the user, shared libraries made with it, and QEMU for single programs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from advisor.model.errors import UsageError
from advisor.support.child_process import run_child

_SHARED: Final = ("-std=gnu11", "-shared", "-fPIC", "-pthread")
_TIME_LIMIT_S: Final = 120.0


def find_compiler() -> str | None:
    """Return the C compiler: ``$CC``, or the first of cc, gcc and clang that is installed."""
    named = os.environ.get("CC", "").split()[:1]
    return next((found for name in named or ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def require_compiler() -> str:
    """Return the C compiler; raises ``UsageError`` where there is none."""
    found = find_compiler()
    if found is None:
        raise UsageError("no C compiler was found (cc, gcc, clang or $CC): apt-get install gcc")
    return found


def compile_library(package: str, source: str, cache: Path, options: Sequence[str]) -> Path:
    """Return the shared library compiled from ``source``, a C file in ``tracer/`` of a package; once per content.

    Raises ``UsageError`` where it is not in the cache and there is no compiler, or the compiler refuses it.
    """
    with resources.as_file(resources.files(package) / "tracer") as folder:
        content = b"".join(path.read_bytes() for path in sorted(folder.glob("*.[ch]")))
        digest = hashlib.sha256(content + repr((_SHARED, *options)).encode()).hexdigest()[:16]
        target = cache / f"{Path(source).stem}-{digest}.so"
        if target.exists():
            return target
        compiler = require_compiler()
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            made = Path(scratch) / target.name
            words = [compiler, *_SHARED, *options, "-o", str(made), str(folder / source), "-ldl"]
            done = run_child(words, _TIME_LIMIT_S)
            if done.status != 0:
                first = next(iter(done.error_text.splitlines()), done.failure or f"exit code {done.status}")
                raise UsageError(f"{compiler} could not build the tracer: {first}")
            made.replace(target)
    return target


def find_qemu(architecture: str = "x86_64") -> str:
    """Return QEMU for programs of an architecture; raises ``UsageError`` with the command that installs it."""
    found = shutil.which(f"qemu-{architecture}")
    if found is None:
        raise UsageError(f"qemu-{architecture} is not installed: apt-get install qemu-user (dnf install qemu-user)")
    return found


def find_plugin_version(qemu: str) -> int:
    """Return the version of the plugin interface that this QEMU speaks: 2 since 9.0, 3 since 9.1."""
    found = re.search(r"version (\d+)\.(\d+)", run_child([qemu, "--version"], 30.0).text)
    if found is None:
        raise UsageError(f"{qemu} --version says nothing that could be understood")
    version = (int(found[1]), int(found[2]))
    return 1 if version < (9, 0) else 2 if version == (9, 0) else 3
