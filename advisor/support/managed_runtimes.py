"""Languages with a runtime of their own, recognized by the names in perf's stacks."""

from __future__ import annotations

import re
from typing import Final

#: Languages in which nobody writes OpenMP.
WITHOUT_OPENMP: Final = frozenset(("go", "java", "javascript", "julia", "python", "rust"))
#: The library or program that is the runtime, by the name of its file.
_RUNTIMES: Final = (
    ("java", re.compile(r"libjvm\.(so|dylib)")),
    ("javascript", re.compile(r"(node|nodejs|libnode\.so[.\d]*|libv8\w*\.so[.\d]*)")),
    ("python", re.compile(r"(libpython\d[.\d]*\w*\.so[.\d]*|python\d?(\.\d+)?)")),
    ("julia", re.compile(r"libjulia[-\w]*\.so[.\d]*")),
)
#: Functions that only programs in the language have.
_FUNCTIONS: Final = (
    ("go", re.compile(r"runtime\.(goexit|mstart|mcall|main|schedule|gcBgMarkWorker)\S*")),
    ("rust", re.compile(r"std::rt::lang_start.*|.*::h[0-9a-f]{16}")),
    ("java", re.compile(r"(Interpreter$|L[\w/$]+;::.+|call_stub)")),
    ("javascript", re.compile(r"(LazyCompile|JS|Function|Script|RegExp|Eval):[~*^+]?.*")),
    ("python", re.compile(r"_PyEval_EvalFrameDefault.*|py::.+")),
)
#: What a thread of the runtime may call besides it.
_SYSTEM: Final = re.compile(r"(libc|libpthread|libm|libstdc\+\+|ld-linux|ld-musl|linux-vdso|\[)[-.\w\]\[]*")


def find_language(symbol: str | None, file: str | None) -> str | None:
    """Return the language that a function ``symbol`` in ``file`` indicates, None if it indicates none."""
    base = (file or "").rsplit("/", 1)[-1]
    of_file = next((language for language, pattern in _RUNTIMES if pattern.fullmatch(base)), None)
    return of_file or next((language for language, pattern in _FUNCTIONS if pattern.fullmatch(symbol or "")), None)


def is_of_runtime(file: str | None) -> bool:
    """Return whether a function in ``file`` is one of a runtime or of the system below it, not the program's own."""
    base = (file or "").rsplit("/", 1)[-1]
    return _SYSTEM.fullmatch(base) is not None or any(pattern.fullmatch(base) for _, pattern in _RUNTIMES)
