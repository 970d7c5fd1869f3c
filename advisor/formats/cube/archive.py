"""The tar archive that a CUBE file is: members are found by their headers and read in place, never extracted.

Python's ``tarfile`` is not used: it stops without a word at a header whose checksum is wrong, which version 4.8 of the
CUBE library is known to write, and follows links.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Self

from advisor.model.errors import InputError

if TYPE_CHECKING:
    from types import TracebackType

ANCHOR: Final = "anchor.xml"
BLOCK: Final = 512
FILE_LIMIT: Final = 8 << 30
MEMBER_LIMIT: Final = 100_000
_GLANCE: Final = 16  # members by which the format is told
_METRIC_FILE: Final = re.compile(r"\d{1,9}\.(index|data)")
_OCTAL: Final = re.compile(rb"\s*([0-7]{1,20})[\s\0]*")


@dataclass(frozen=True, slots=True)
class MemberHeader:
    """One member: its name, its place in the file, and whether its header is sound."""

    name: str
    start: int
    size: int
    regular: bool
    sound: bool

    @property
    def end(self) -> int:
        """Where the next header begins."""
        return self.start + -(-self.size // BLOCK) * BLOCK


@dataclass(slots=True)
class CubeArchive:
    """The members of an open archive by name; ``damaged_members`` lists those whose header has a wrong checksum."""

    path: Path
    stream: IO[bytes]
    members: dict[str, MemberHeader]
    damaged_members: tuple[str, ...]
    has_end_mark: bool

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _t: TracebackType | None
    ) -> None:
        self.stream.close()

    def read_member(self, name: str, limit: int) -> bytes:
        """Return the content of a member; raises ``InputError`` where it is missing, cut off, or above ``limit``."""
        member = self._find_member(name)
        if member.size > limit:
            raise InputError(self.path, f"is larger than {limit:,} bytes", name)
        return self.read_part(name, 0, member.size)

    def read_part(self, name: str, start: int, size: int) -> bytes:
        """Return up to ``size`` bytes of a member from ``start`` on; raises ``InputError`` as ``read_member``."""
        member = self._find_member(name)
        size = max(0, min(size, member.size - start))
        self.stream.seek(member.start + start)
        content = self.stream.read(size)
        if len(content) != size:
            raise InputError(self.path, f"ends after {start + len(content):,} of {member.size:,} bytes", name)
        return content

    def _find_member(self, name: str) -> MemberHeader:
        member = self.members.get(name)
        if member is None:
            missing = "the archive has no such member" if self.has_end_mark else "the archive ends before this member"
            raise InputError(self.path, missing, name)
        if not member.regular:
            raise InputError(self.path, "is not a regular file", name)
        return member


def open_archive(path: Path) -> CubeArchive:
    """Return the archive at ``path``; raises ``InputError`` for what is no tar archive, and for duplicate members."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(path, "is not a file")
    if path.stat().st_size > FILE_LIMIT:
        raise InputError(path, f"is larger than {FILE_LIMIT >> 30} GiB")
    stream = path.open("rb")
    try:
        return _read_members(path, stream)
    except BaseException:
        stream.close()
        raise


def _read_members(path: Path, stream: IO[bytes]) -> CubeArchive:
    members: dict[str, MemberHeader] = {}
    damaged = []
    complete = False
    try:
        for header in read_headers(stream):
            if header is None:
                complete = True
                break
            if header.name in members:
                raise ValueError(f"two members are called {header.name}")
            if len(members) >= MEMBER_LIMIT:
                raise ValueError(f"more than {MEMBER_LIMIT:,} members")
            members[header.name] = header
            damaged += [] if header.sound else [header.name]
    except ValueError as error:
        raise InputError(path, str(error)) from None
    if not members:
        raise InputError(path, "no CUBE archive: not one member", "byte 0")
    return CubeArchive(path, stream, members, tuple(damaged), complete)


def read_headers(stream: IO[bytes]) -> Iterator[MemberHeader | None]:
    """Yield the headers of a tar archive, and None where its end mark stands; raises ``ValueError`` at what is none."""
    position = 0
    while True:
        stream.seek(position)
        block = stream.read(BLOCK)
        if len(block) < BLOCK:
            return
        if not block.strip(b"\0"):
            yield None
            return
        header = _parse_header(block, position)
        yield header
        position = header.end


def _parse_header(block: bytes, position: int) -> MemberHeader:
    """Return what a header of 512 bytes says (POSIX.1-1988, "ustar")."""
    if block[257:262] != b"ustar":
        raise ValueError(f"no header of a tar member at byte {position}")
    checksum = _OCTAL.fullmatch(block[148:156])
    sound = checksum is not None and int(checksum[1], 8) in _compute_checksums(block[:148] + b" " * 8 + block[156:])
    name = block[:100].split(b"\0")[0].decode("utf-8", "surrogateescape")
    return MemberHeader(
        name, position + BLOCK, _parse_size(block[124:136], position), block[156:157] in (b"0", b"\0"), sound
    )


def _compute_checksums(block: bytes) -> Iterator[int]:
    """Yield the checksum of a header, and the one of writers that take bytes for signed numbers."""
    yield sum(block)
    yield sum(block) - 256 * sum(byte > 127 for byte in block)


def _parse_size(text: bytes, position: int) -> int:
    if text[:1] == b"\x80":
        return int.from_bytes(text[1:], "big")
    found = _OCTAL.fullmatch(text)
    if not found:
        raise ValueError(f"no size in the header of a tar member at byte {position}")
    return int(found[1], 8)


def is_cube_file(path: Path) -> bool:
    """Return whether one of the first members of a tar archive is one that only CUBE files have."""
    with path.open("rb") as stream:
        try:
            for number, header in enumerate(read_headers(stream)):
                if header is None or number == _GLANCE:
                    return False
                if header.name == ANCHOR or _METRIC_FILE.fullmatch(header.name):
                    return True
        except (ValueError, OSError, OverflowError):
            return False
    return False
