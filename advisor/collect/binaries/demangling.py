"""Readable names of functions: C++ by its runtime library or ``c++filt``, as new names of Rust; others by hand.

Old names of Rust are names of C++ that hold characters by number, and end with a hash.
"""

from __future__ import annotations

import ctypes
import re
import shutil
from contextlib import suppress
from functools import cache, lru_cache
from typing import Final

from advisor.support.child_process import run_child
from advisor.support.template_names import mask_template_arguments, shorten_name

_LIBRARIES: Final = ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib")
_LIMIT_S: Final = 10.0
#: ``__grid_MOD_sweep`` of gfortran, ``grid_mp_sweep_`` of Intel, ``_QMgridPsweep`` of flang.
_FORTRAN: Final = re.compile(r"__(\w+?)_MOD_(\w+)|(\w+?)_mp_(\w+)_|_QM([a-z0-9_]+)P([a-z0-9_]+)")
#: What a compiler adds to the name of a copy that it specialized, such as ``.constprop.0``; ``.cold`` is kept.
_CLONE: Final = re.compile(r"(\.(?:constprop|isra|part|lto_priv|localalias|llvm)(?:\.\d+)?)+$")
_RUST_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")
_RUST_CHARACTER: Final = re.compile(r"\$(SP|BP|RF|LT|GT|LP|RP|C|u[0-9a-f]{1,4})\$")
_RUST_CHARACTERS: Final = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
#: Tells crates of one name apart.
_RUST_CRATE: Final = re.compile(r"\[[0-9a-f]{8,16}\]")
#: Parameters, and what tools write behind a name.
_ARGUMENTS: Final = re.compile(r"\(.*$|\[.*$|\s*\[\{.*$|@.*$|'\d+$")
#: The last operator of C++ in a name, whose brackets are no arguments; those of conversions are types.
_OPERATOR: Final = re.compile(
    r"\boperator(?!\w)\s*(?:\(\)|\[\]|(?:new|delete)\b(?:\[\])?|<=>|->\*?|<<=?|>>=?|&&|\|\||\+\+|--|[-+*/%^&|!=<>~,]=?"
    r"|[\w:*& ]+)(?!.*\boperator(?!\w))"
)


@lru_cache(maxsize=1 << 16)
def demangle(name: str) -> str:
    """Return the name as it stands in the source; a name that nobody can read stays as it is."""
    plain = _CLONE.sub("", name)
    if plain.startswith("_R"):
        return _RUST_CRATE.sub("", _ask_filter(plain) or plain)
    if plain.startswith(("_Z", "__Z")):
        return _spell_rust(_demangle_cxx(plain) or plain)
    if found := _FORTRAN.fullmatch(plain):
        module, procedure = (part for part in found.groups() if part is not None)
        return f"{module}::{procedure}"
    return plain


def _spell_rust(name: str) -> str:
    """Return an old name of Rust as it stands in the source; any other as it is."""
    if not _RUST_HASH.search(name):
        return name

    def write_character(found: re.Match[str]) -> str:
        code = found[1]
        return _RUST_CHARACTERS[code] if code in _RUST_CHARACTERS else chr(int(code[1:], 16))

    plain = _RUST_CHARACTER.sub(write_character, _RUST_HASH.sub("", name).replace("..", "::"))
    return plain.replace("::_<", "::<").removeprefix("_") if "<" in plain else plain


def _demangle_cxx(name: str) -> str | None:
    function = _load_demangler()
    if function is None:
        return _ask_filter(name)
    status = ctypes.c_int(-1)
    address = function(name.encode(), None, None, ctypes.byref(status))
    if not address:
        return None
    text = ctypes.string_at(address).decode("utf-8", "replace")
    _load_free()(ctypes.c_void_p(address))
    return text if status.value == 0 else None


@cache
def _load_demangler() -> ctypes._NamedFuncPointer | None:
    for library in _LIBRARIES:
        with suppress(OSError, AttributeError):
            function = ctypes.CDLL(library).__cxa_demangle
            function.restype = ctypes.c_void_p
            function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
            return function
    return None


@cache
def _load_free() -> ctypes._NamedFuncPointer:
    function = ctypes.CDLL(None).free
    function.restype, function.argtypes = None, [ctypes.c_void_p]
    return function


def _ask_filter(name: str) -> str | None:
    program = shutil.which("c++filt") or shutil.which("llvm-cxxfilt")
    if program is None:
        return None
    return run_child([program, name], _LIMIT_S).text.strip() or None


def strip_parameters(name: str) -> str:
    """Return the name of a function without its type, arguments and marks of compilers, to compare it loosely."""
    masked = mask_template_arguments(name)
    operator = _OPERATOR.search(masked)
    end = operator.start() if operator is not None else len(_ARGUMENTS.sub("", masked))
    begin = masked.rfind(" ", 0, end) + 1
    return shorten_name(name[begin:end] + (operator[0].rstrip() if operator is not None else ""))
