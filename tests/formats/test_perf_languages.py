"""perf of programs on a runtime of their own: which language they are in, and which threads are not the program's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from advisor.formats import perf
from advisor.support.managed_runtimes import find_language, is_of_runtime

if TYPE_CHECKING:
    from pathlib import Path

_MAP = "/tmp/perf-100.map"
_JVM = "/usr/lib/jvm/java-17/lib/server/libjvm.so"


def write_samples(path: Path, stacks: dict[int, tuple[tuple[str, str], ...]]) -> Path:
    """Write 40 samples of each thread, with its stack of functions and files."""
    lines = []
    for number in range(40):
        for thread, stack in stacks.items():
            lines.append(f"app 100/{thread} {10 + number / 100:.6f}: 10000000 cpu-clock:")
            lines += [f"\t7f2a10 {function} ({file})" for function, file in stack] + [""]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_collectors_and_compilers_of_java_are_no_processors(tmp_path: Path) -> None:
    own = (("Lcom/acme/Solver;::step", _MAP), ("JavaCalls::call_helper", _JVM))
    collector = (("G1ParScanThreadState::trim_queue", _JVM), ("start_thread", "/lib/libc.so.6"))
    profile = perf.advisor_read(write_samples(tmp_path / "java.txt", {101: own, 102: own, 103: collector}))
    assert (profile.language, len(profile.processors)) == ("java", 2)
    assert "helper threads" in {note.name for note in profile.notes}


def test_threads_in_the_interpreter_of_python_are_the_program(tmp_path: Path) -> None:
    interpreter = (("_PyEval_EvalFrameDefault", "/usr/bin/python3.11"), ("start_thread", "/lib/libc.so.6"))
    numeric = (("dgemm", "/lib/libopenblas.so.0"), *interpreter)
    profile = perf.advisor_read(write_samples(tmp_path / "python.txt", {101: numeric, 102: interpreter}))
    assert (profile.language, len(profile.processors)) == ("python", 2)


def test_a_program_of_which_only_the_runtime_is_seen_keeps_its_threads(tmp_path: Path) -> None:
    profile = perf.advisor_read(write_samples(tmp_path / "node.txt", {101: (("v8::Invoke", "/usr/bin/node"),)}))
    assert (profile.language, len(profile.processors)) == ("javascript", 1)


def test_a_compiled_program_is_in_no_such_language(tmp_path: Path) -> None:
    profile = perf.advisor_read(write_samples(tmp_path / "c.txt", {101: (("work", "/home/me/app"),)}))
    assert profile.language is None


@pytest.mark.parametrize(
    ("function", "file", "language"),
    [
        ("Lorg/acme/Main;::run", _MAP, "java"), ("LazyCompile:~step /app/index.js", _MAP, "javascript"),
        ("runtime.goexit.abi0", "/usr/bin/server", "go"), ("py::solve:/home/me/a.py", _MAP, "python"),
        ("_PyEval_EvalFrameDefault", "/usr/bin/python3.11", "python"), ("x", "/lib/libpython3.11.so.1.0", "python"),
        ("core::iter::fold::h0123456789abcdef", "/home/me/app", "rust"),
        ("jl_apply", "/lib/libjulia-internal.so.1.9", "julia"),
        ("main", "/home/me/node_solver", None), ("Loop::step", "/home/me/app", None),
    ],
)  # fmt: skip
def test_what_tells_a_language(function: str, file: str, language: str | None) -> None:
    assert find_language(function, file) == language


@pytest.mark.parametrize(("file", "expected"), [(_JVM, True), ("/lib/libc.so.6", True), (_MAP, False), (None, False)])
def test_what_is_of_a_runtime(file: str | None, expected: bool) -> None:
    assert is_of_runtime(file) is expected
