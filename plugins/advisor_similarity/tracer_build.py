"""Compiles the C sources of this package when they are first needed, and keeps what came out."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import UsageError
from advisor.support.child_process import run_child

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_FLAGS: Final = ("-O3", "-std=gnu11", "-shared", "-fPIC", "-Wall", "-Wextra", "-pthread")
_TIME_LIMIT_S: Final = 120


def find_compiler() -> str | None:
    """Return the C compiler: ``$CC``, or the first of cc, gcc and clang that is installed."""
    named = os.environ.get("CC")
    return next(
        (found for name in ([named] if named else ["cc", "gcc", "clang"]) if (found := shutil.which(name))), None
    )


def compile_library(source: str, cache: Path, definitions: tuple[str, ...] = ()) -> Path:
    """Return the shared library made of ``source``, a C file of this package; compiled once for each content.

    Raises ``UsageError`` where it is not in the cache and there is no compiler, or the compiler refuses it.
    """
    folder = resources.files("advisor_similarity") / "tracer"
    target = cache / f"{source.removesuffix('.c')}-{_hash_sources(folder, definitions)}.so"
    if target.exists():
        return target
    cc = find_compiler()
    if cc is None:
        raise UsageError("no C compiler found to build the tracer with: apt-get install gcc")
    with resources.as_file(folder) as sources:
        _run_compiler(cc, sources / source, target, definitions)
    return target


def _hash_sources(folder: Traversable, definitions: tuple[str, ...]) -> str:
    digest = hashlib.sha256(" ".join((*_FLAGS, *definitions)).encode())
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith((".c", ".h")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _run_compiler(cc: str, source: Path, target: Path, definitions: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        out = Path(scratch) / target.name
        command = [cc, *_FLAGS, *(f"-D{definition}" for definition in definitions), "-o", str(out), str(source)]
        done = run_child(command, _TIME_LIMIT_S)
        if done.status != 0:
            first = next(iter(done.error_text.splitlines()), done.failure or f"exit code {done.status}")
            raise UsageError(f"{cc} could not build the tracer: {first}")
        out.replace(target)
