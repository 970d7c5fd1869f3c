"""What the functions that Recorder traces do with files, and where their arguments say so (``recorder-posix.c``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.io_events import METADATA, READ, SYNC, WRITE

if TYPE_CHECKING:
    from advisor.formats.recorder.files import Signature

_STREAMS: Final = frozenset({
    "fopen", "fopen64", "fdopen", "fclose", "fread", "fwrite", "fprintf", "vfprintf", "fseek", "fseeko", "ftell",
    "ftello", "fflush", "tmpfile",
})  # fmt: skip
_SYNCS: Final = frozenset({"fsync", "fdatasync", "MPI_File_sync"})
_OPENS: Final = frozenset({"open", "open64", "creat", "creat64", "fopen", "fopen64", "fdopen"})
_SEEKS: Final = frozenset({"lseek", "lseek64", "fseek", "fseeko"})
#: Calls that take a file, but not as their first argument.
_SECOND: Final = frozenset({"__xstat", "__xstat64", "__lxstat", "__lxstat64", "__fxstat", "__fxstat64"})
#: What is traced and touches no file of the file system.
_NOTHING: Final = frozenset({"getcwd", "umask", "pipe", "fileno", "dup", "dup2"})
_TYPE_SIZES: Final = {
    "MPI_BYTE": 1, "MPI_CHAR": 1, "MPI_SIGNED_CHAR": 1, "MPI_UNSIGNED_CHAR": 1, "MPI_SHORT": 2, "MPI_UNSIGNED_SHORT": 2,
    "MPI_INT": 4, "MPI_UNSIGNED": 4, "MPI_FLOAT": 4, "MPI_LONG": 8, "MPI_UNSIGNED_LONG": 8, "MPI_DOUBLE": 8,
    "MPI_LONG_LONG_INT": 8, "MPI_UNSIGNED_LONG_LONG": 8, "MPI_INTEGER": 4, "MPI_REAL": 4, "MPI_DOUBLE_PRECISION": 8,
    "MPI_INTEGER4": 4, "MPI_INTEGER8": 8, "MPI_REAL4": 4, "MPI_REAL8": 8, "MPI_INT32_T": 4, "MPI_INT64_T": 8,
}  # fmt: skip
_APPEND: Final = 0o2000
_SEEK_SET: Final = 0
_SEEK_CUR: Final = 1
_MOST: Final = 1 << 53


class Access(NamedTuple):
    """What a call does: the kind of call, the file, and bytes and offset as far as its arguments tell (-1: not).

    ``position`` is what becomes of the place in the file: ``keep``, ``advance`` by the bytes, ``open`` (0), ``lost``,
    ``set`` to the offset or ``move`` by it.
    """

    call: str
    file: str | None
    size: int = -1
    offset: int = -1
    position: str = "keep"


def describe_call(name: str, signature: Signature) -> Access | None:
    """Return what a call of ``name`` does with a file, None for what does nothing with one."""
    arguments = signature.arguments
    if name.startswith("MPI_File"):
        return _describe_mpi(name, arguments)
    if name.startswith(("MPI", "H5")) or name in _NOTHING:
        return None
    layer = "STDIO" if name in _STREAMS else "POSIX"
    plain = name.removesuffix("64")
    if plain in ("read", "write"):
        return Access(f"{layer} {plain}", _text(arguments, 0), _number(arguments, 2), position="advance")
    if plain in ("pread", "pwrite"):
        what = READ if plain == "pread" else WRITE
        return Access(f"{layer} {what}", _text(arguments, 0), _number(arguments, 2), _number(arguments, 3))
    if plain in ("readv", "writev"):
        what = READ if plain == "readv" else WRITE
        return Access(f"{layer} {what}", _text(arguments, 0), _number(arguments, 1), position="advance")
    if plain in ("fread", "fwrite"):
        size, items = _number(arguments, 1), _number(arguments, 2)
        moved = size * items if min(size, items) >= 0 and size * items < _MOST else -1
        return Access(f"{layer} {READ if plain == 'fread' else WRITE}", _text(arguments, 3), moved, position="advance")
    if plain in ("fprintf", "vfprintf"):
        return Access(f"{layer} {WRITE}", _text(arguments, 0), _number(arguments, 1), position="advance")
    return _describe_metadata(name, layer, arguments)


def _describe_metadata(name: str, layer: str, arguments: tuple[str, ...]) -> Access:
    """Return what a call does that moves no bytes."""
    file = _text(arguments, 1 if name in _SECOND else 0)
    if name in _SYNCS:
        return Access(f"{layer} {SYNC}", file)
    if name in _OPENS:
        mode = _text(arguments, 1) or ""
        appends = "a" in mode if layer == "STDIO" else bool(_number(arguments, 1) & _APPEND) and "creat" not in name
        return Access(f"{layer} {METADATA}", file, position="lost" if appends else "open")
    if name in _SEEKS:
        whence = _number(arguments, 2)
        position = "set" if whence == _SEEK_SET else "move" if whence == _SEEK_CUR else "lost"
        return Access(f"{layer} {METADATA}", file, offset=_parse_signed(arguments, 1), position=position)
    return Access(f"{layer} {METADATA}", file)


def _describe_mpi(name: str, arguments: tuple[str, ...]) -> Access:
    """Return what a call of MPI-IO does; bytes only where the size of the type is known by its name.

    The file is that of a handle, which ``MPI_File_open`` names in its last argument.
    """
    if name in _SYNCS:
        return Access(f"MPI-IO {SYNC}", _text(arguments, 0))
    what = READ if "read" in name else WRITE if "write" in name else None
    if what is None:
        return Access(f"MPI-IO {METADATA}", _text(arguments, 1 if name == "MPI_File_open" else 0))
    how = "collective " if "_all" in name or "_ordered" in name else "independent "
    at = "_at" in name
    count, kind = _number(arguments, 3 if at else 2), _text(arguments, 4 if at else 3) or ""
    size = _TYPE_SIZES.get(kind, -1)
    moved = count * size if count >= 0 and size > 0 else -1
    return Access(f"MPI-IO {how}{what}", _text(arguments, 0), moved)


def _text(arguments: tuple[str, ...], place: int) -> str | None:
    return arguments[place] if place < len(arguments) else None


def _parse_signed(arguments: tuple[str, ...], place: int) -> int:
    text = _text(arguments, place) or ""
    return int(text) if text.removeprefix("-").isdecimal() and len(text) <= 17 else -1


def _number(arguments: tuple[str, ...], place: int) -> int:
    """Return an argument as a number of bytes, -1 for what is none."""
    return max(_parse_signed(arguments, place), -1)
