"""XML from measurement systems, parsed as untrusted data: no entities, nothing external, limits on everything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from advisor.model.errors import InputError

DEPTH_LIMIT: Final = 1000
ATTRIBUTE_LIMIT: Final = 1000
TOKEN_LIMIT: Final = 1 << 20  # characters of one text or one tag

_PIECE: Final = 1 << 16
_OTHER_ENCODING: Final = re.compile(rb"""\s*<\?xml[^>]{0,200}encoding=["'](?!utf-?8["'])""", re.IGNORECASE)
#: Stands for a byte that XML can't hold while the parser works; from Unicode's last private plane.
_STRAY: Final = 0x10FE00
#: Bytes that are no UTF-8, and control characters, which tools write into names all the same.
_UNREADABLE: Final = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\udc80-\udcff]")
_REPLACED: Final = re.compile("[\U0010fe01-\U0010feff]")


class XmlHandler(Protocol):
    """What is told of a document, element by element; ``ValueError`` says what is wrong with it."""

    def start_element(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take the beginning of an element."""

    def end_element(self, name: str, text: str) -> None:
        """Take the end of an element, with its text if it holds no other elements."""


class _ElementTarget:
    """Hands elements on with their text, and watches depth and number of attributes."""

    def __init__(self, handler: XmlHandler, strays: bool) -> None:
        self._handler = handler
        self._strays = strays
        self._texts: list[list[str] | None] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._texts) >= DEPTH_LIMIT:
            raise ValueError(f"elements nested deeper than {DEPTH_LIMIT}")
        if len(attributes) > ATTRIBUTE_LIMIT:
            raise ValueError(f"an element with more than {ATTRIBUTE_LIMIT} attributes")
        if self._texts:
            self._texts[-1] = None
        self._texts.append([])
        known = {key: _restore_stray_bytes(value) for key, value in attributes.items()} if self._strays else attributes
        self._handler.start_element(name, known)

    def end(self, name: str) -> None:
        text = "".join(self._texts.pop() or ())
        self._handler.end_element(name, _restore_stray_bytes(text) if self._strays else text)

    def data(self, text: str) -> None:
        inner = self._texts[-1] if self._texts else None
        if inner is not None:
            inner.append(text)

    def close(self) -> None:
        if self._texts:
            raise ValueError("the document ends too early")


class _RestrictedParser(DefusedXMLParser):
    """Allows a document type that is declared inside the document, for elements and attributes only."""

    def __init__(self, target: _ElementTarget, document_type: bool) -> None:
        super().__init__(target=target, forbid_dtd=not document_type)
        if document_type:
            self.parser.StartDoctypeDeclHandler = self._refuse_external_type

    def _refuse_external_type(self, _name: str, system: str | None, public: str | None, _internal: int) -> None:
        if system or public:
            raise ValueError("the document refers to a document type outside of itself")


def parse_xml(
    content: bytes,
    handler: XmlHandler,
    path: Path,
    member: str | None = None,
    document_type: bool = False,
    longest: int = TOKEN_LIMIT,
) -> None:
    """Tell ``handler`` of the XML document ``content``; bytes that are no UTF-8 become surrogate
    escapes, control characters stay.

    ``member`` is the part of the file ``path`` that holds the document. ``document_type`` allows one that is declared
    in the document itself, ``longest`` is the most characters of a text or tag. Raises ``InputError`` with the line for
    everything that is no plain XML document, and for what ``handler`` raises as ``ValueError``.
    """
    content, strays = _replace_stray_bytes(content)
    parser = _RestrictedParser(_ElementTarget(handler, strays), document_type)
    try:
        # A piece of text without the character that begins or ends every tag.
        if re.search(rb"[^<>]{%d}" % longest, content):
            raise ValueError(f"a text or tag longer than {longest:,} characters")
        for start in range(0, len(content), _PIECE):
            parser.feed(content[start : start + _PIECE])
        parser.close()
    except ParseError as error:
        line, column = error.position
        raise InputError(
            path, f"no sound XML: {str(error).split(':')[0]}", _format_place(member, line, column)
        ) from None
    except DefusedXmlException as error:
        reason = f"XML with {type(error).__name__.removesuffix('Forbidden')} declarations or references is not read"
        raise InputError(path, reason, member) from None
    except (ValueError, LookupError) as error:
        where = _format_place(member, parser.parser.CurrentLineNumber, parser.parser.CurrentColumnNumber)
        raise InputError(path, str(error), where) from None


def _format_place(member: str | None, line: int, column: int) -> str:
    return f"{member + ':' if member else ''}{line}:{column + 1}"


def _replace_stray_bytes(content: bytes) -> tuple[bytes, bool]:
    """Return ``content`` as XML that can be parsed, and whether bytes that are no UTF-8 or no text were replaced."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or _OTHER_ENCODING.match(content):
        return content, False
    text = content.decode("utf-8", "surrogateescape")
    if not _UNREADABLE.search(text):
        return content, False
    return _UNREADABLE.sub(lambda stray: chr((ord(stray[0]) & 0xFF) + _STRAY), text).encode(), True


def _restore_stray_bytes(text: str) -> str:
    return _REPLACED.sub(
        lambda sign: chr(_decode_stray_byte(sign[0]) + (0xDC00 if _decode_stray_byte(sign[0]) > 0x7F else 0)), text
    )


def _decode_stray_byte(sign: str) -> int:
    return ord(sign) - _STRAY
