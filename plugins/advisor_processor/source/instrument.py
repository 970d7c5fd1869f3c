"""A copy of the source with counters in it, and what makes them count."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from advisor.model.errors import UsageError
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from pathlib import Path

    from tree_sitter import Node

    from advisor_processor.source.records import Source

LANGUAGES: Final = {
    ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".c++": "cpp", ".hpp": "cpp", ".C": "cpp",
    ".f90": "fortran", ".f95": "fortran", ".f03": "fortran", ".f08": "fortran", ".F90": "fortran",
}  # fmt: skip


def detect_language(path: Path) -> str:
    """Return the language of a file by its name; raises ``UsageError`` for others."""
    if path.suffix not in LANGUAGES:
        raise UsageError(f"{path}: only C, C++ and free-form Fortran are counted ({', '.join(sorted(LANGUAGES))})")
    return LANGUAGES[path.suffix]


def parse_source(code: bytes, language: str) -> Node:
    """Return the syntax tree of a file; raises ``UsageError`` where the grammars are not installed."""
    from importlib import import_module

    try:
        tree_sitter = import_module("tree_sitter")
        grammar = import_module(f"tree_sitter_{language}")
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: {install_line('processor')}") from error
    root: Node = tree_sitter.Parser(tree_sitter.Language(grammar.language())).parse(code).root_node
    return root


def instrument_source(code: bytes, source: Source, number: int) -> bytes:
    """Return the text of file ``number`` with its counters; in C and C++ line numbers stay what they are."""
    parts: list[bytes] = []
    last = 0
    for insertion in sorted(source.insertions, key=lambda one: (one.offset, one.order)):
        parts += [code[last : insertion.offset], insertion.text.replace("@FILE@", str(number)).encode()]
        last = insertion.offset
    text = b"".join([*parts, code[last:]])
    if source.language == "fortran":
        return text + _load_runtime("counters.f90", source, number)
    return _load_runtime("counters.h", source, number) + f'#line 1 "{source.file}"\n'.encode() + text


def _load_runtime(name: str, source: Source, number: int) -> bytes:
    """Return the source of the counters of a file."""
    values = sum(len(loop.symbols) for loop in source.loops)
    text = (files("advisor_processor.source") / name).read_text(encoding="utf-8").replace("@FILE@", str(number))
    text = text.replace("@COUNTERS@", str(max(len(source.blocks), 1))).replace("@VALUES@", str(max(values, 1)))
    return text.encode()
