"""A YAML file as a tree of nodes, with the limits that make foreign files safe."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import IO

from advisor.support.documents.nodes import Mark, Parsed, UnreadableError, to_printable

LARGEST = 1_000_000  # bytes of a document
#: Compiled when a file is read, as that takes longer than all else here.
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


def read_yaml(path: Path, shorten: Callable[[bytes], bytes] | None = None) -> Parsed:
    """The document's only node, and what is wrong with it as YAML; without a node the problems say why.

    ``shorten`` may leave out what nobody will ask for, but no line.
    """
    from advisor.support.documents import composing  # loads the parser of YAML, which most commands do without

    start = Mark(to_printable(str(path), 1000), 1, 1)
    try:
        with path.open("rb") as stream:
            text = _read_text(stream, start, shorten)
        return composing.compose_document(text, start.file)
    except OSError as error:
        return None, [start.make_problem(f"cannot be read: {error.strerror or type(error).__name__}")]
    except UnreadableError as error:
        return None, [error.problem]


def _read_text(stream: IO[bytes], start: Mark, shorten: Callable[[bytes], bytes] | None) -> str:
    raw = stream.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise UnreadableError(start.make_problem(f"larger than the {LARGEST} bytes a document may have"))
    try:
        text = (shorten(raw) if shorten else raw).decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8")
        raise UnreadableError(
            _mark_after(good, start.file).make_problem("not UTF-8 text; save the file as UTF-8")
        ) from None
    if bad := re.search(_UNPRINTABLE, text):
        place = _mark_after(text[: bad.start()], start.file)
        raise UnreadableError(place.make_problem(f"the character U+{ord(bad[0]):04X} cannot stand in a YAML file"))
    return text


def _mark_after(text: str, file: str) -> Mark:
    return Mark(file, text.count("\n") + 1, len(text) - text.rfind("\n"))
