"""Inputs that are nearly right: a recording taken apart as its format is made, one part of it changed, put together.

Archives and compressed files are unpacked for that, JSON is changed as a tree, a database by its cells, text by its
lines and words, and what is left as bytes, in the sizes that numbers have.
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

#: Numbers at which arithmetic, conversions and sizes end.
NUMBERS: Final = (
    0, -1, 1, 255, 65536, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 10**18, 10**30, -(2**63),
    0.5, -0.0, 1e-300, 1e300, -1e300, 1e308,
)  # fmt: skip
_WORDS: Final = ("", "nan", "inf", "-inf", "1e999", "0x10", "\x00", "\x1b[31m", "é", "\u202e", "%s", "../..", "9" * 400)
_TREES: Final[tuple[Any, ...]] = (None, True, False, [], {}, "", [[[[]]]], {"": {}}, float("nan"), float("inf"))
_MOST_B: Final = 4 << 20
#: What says that a content that was changed before can't be taken apart any more.
_UNPACKING: Final = (
    ValueError, OSError, EOFError, LookupError, RecursionError, zlib.error, tarfile.TarError, zipfile.BadZipFile,
)  # fmt: skip


def mutate(content: bytes, chance: random.Random) -> bytes:
    """Return ``content`` with a change or a few, the smallest that ``chance`` makes of what the content is."""
    change = _choose_mutation(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        with suppress(*_UNPACKING):
            content = change(content, chance)
    return content[:_MOST_B]


def _choose_mutation(content: bytes) -> Callable[[bytes, random.Random], bytes]:
    if content.startswith(b"\x1f\x8b"):
        return _mutate_gzip
    if content.startswith(b"PK\x03\x04"):
        return _mutate_zip
    if content.startswith(b"SQLite format 3"):
        return _mutate_database
    if content[257:262] == b"ustar":
        return _mutate_tar
    if content.lstrip()[:1] in (b"{", b"["):
        with suppress(ValueError, RecursionError):
            json.loads(content)
            return _mutate_json
    if b"\0" not in content[:4096]:
        return _mutate_text
    return _mutate_bytes


def _mutate_gzip(content: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return _mutate_bytes(content, chance)
    return gzip.compress(mutate(gzip.decompress(content), chance), 1)


def _mutate_zip(content: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return _mutate_bytes(content, chance)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(one.filename, archive.read(one)) for one in archive.infolist()]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in _change_members(members, chance):
            archive.writestr(name, data)
    return packed.getvalue()


def _mutate_tar(content: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return _mutate_bytes(content, chance)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [(one.name, archive.extractfile(one).read()) for one in archive if one.isreg()]  # type: ignore[union-attr]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in _change_members(members, chance):
            head = tarfile.TarInfo(name)
            head.size = len(data)
            archive.addfile(head, io.BytesIO(data))
    return packed.getvalue()


def _change_members(members: list[tuple[str, bytes]], chance: random.Random) -> list[tuple[str, bytes]]:
    at = chance.randrange(len(members))
    act = chance.random()
    if act < 0.8:
        name, data = members[at]
        members[at] = name, mutate(data, chance)
    elif act < 0.9:
        del members[at]
    else:
        members.append((chance.choice(members)[0], members[at][1]))
    return members


def _mutate_database(content: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.2:
        return _mutate_bytes(content, chance)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "database"
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error, OverflowError):
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            table = chance.choice(tables)
            columns = [name for _, name, *_ in connection.execute(f'PRAGMA table_info("{table}")')]
            act, column = chance.random(), chance.choice(columns)
            few = f'rowid IN (SELECT rowid FROM "{table}" ORDER BY random() LIMIT {chance.choice((1, 3, 1000))})'
            if act < 0.7:
                value = chance.choice((*NUMBERS, *_WORDS, None, b"\0"))
                connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {few}', (value,))
            elif act < 0.9:
                connection.execute(f'DELETE FROM "{table}" WHERE {few}')
            elif act < 0.95:
                connection.execute(f'DROP TABLE "{table}"')
            else:
                connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
            connection.commit()
        return path.read_bytes()


def _mutate_json(content: bytes, chance: random.Random) -> bytes:
    tree = json.loads(content)
    places: list[tuple[Any, Any]] = []
    rest = [tree]
    while rest and len(places) < 100_000:
        node = rest.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        places += [(node, key) for key in keys]
        rest += [node[key] for key in keys]
    if not places:
        return _mutate_bytes(content, chance)
    holder, key = chance.choice(places)
    act, value = chance.random(), holder[key]
    if act < 0.35:
        holder[key] = chance.choice(NUMBERS)
    elif act < 0.45 and isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = value * chance.choice((-1, 2, 1000, 1e-6))
    elif act < 0.6:
        holder[key] = chance.choice((*_WORDS, *_TREES))
    elif act < 0.7:
        del holder[key]
    elif act < 0.8:
        other, place = chance.choice(places)
        holder[key] = json.loads(json.dumps(other[place]))
    elif act < 0.9 and isinstance(holder, list):
        holder[key:key] = [value] * chance.choice((1, 2, 100))
    elif isinstance(holder, dict):
        holder[chance.choice((*_WORDS, str(key) + "x"))] = holder.pop(key)
    else:
        chance.shuffle(holder)
    return json.dumps(tree).encode()


def _mutate_text(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    at, act = chance.randrange(len(lines)), chance.random()
    if act < 0.5:
        words = lines[at].split(b" ")
        word = chance.randrange(len(words))
        words[word] = _change_word(words[word], chance)
        lines[at] = b" ".join(words)
    elif act < 0.6:
        del lines[at : at + chance.choice((1, 1, 5, 50))]
    elif act < 0.7:
        lines[at:at] = [lines[at]] * chance.choice((1, 2, 500))
    elif act < 0.8:
        other = chance.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif act < 0.9:
        for separator in (b",", b"\t", b";", b":", b"|", b"="):
            parts = lines[at].split(separator)
            if len(parts) > 1:
                parts[chance.randrange(len(parts))] = _change_word(chance.choice(parts), chance)
                lines[at] = separator.join(parts)
                break
    else:
        return _mutate_bytes(content, chance)
    return b"\n".join(lines)


def _change_word(word: bytes, chance: random.Random) -> bytes:
    digits = [at for at, one in enumerate(word) if chr(one).isdigit()]
    if digits and chance.random() < 0.7:
        first = last = chance.choice(digits)
        while first - 1 in digits:
            first -= 1
        while last + 1 in digits:
            last += 1
        return word[:first] + str(chance.choice(NUMBERS)).encode() + word[last + 1 :]
    return chance.choice((b"", word * 2, word[: len(word) // 2], word[::-1], *(one.encode() for one in _WORDS)))


def _mutate_bytes(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    if not changed:
        return chance.randbytes(8)
    at, act = chance.randrange(len(changed)), chance.random()
    if act < 0.25:
        changed[at] ^= 1 << chance.randrange(8)
    elif act < 0.65:
        size = chance.choice((1, 2, 4, 8))
        number = int(chance.choice(NUMBERS)) if chance.random() < 0.7 else chance.randrange(1000)
        changed[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, chance.choice(("little", "big")))
    elif act < 0.75:
        del changed[at : at + chance.choice((1, 4, 64, 4096))]
    elif act < 0.85:
        changed[at:at] = changed[at : at + chance.choice((1, 4, 64, 4096))]
    elif act < 0.95:
        other = chance.randrange(len(changed))
        changed[at : at + 16] = changed[other : other + 16]
    else:
        del changed[at:]
    return bytes(changed)
