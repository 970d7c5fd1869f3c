"""JSON read strictly: every mistake is an ``InputError`` with line and column, or with the path inside the document.

``parse_json`` reads a text, ``JsonNode`` walks the result. What JSON's grammar lets pass and an author never means is
found on the walk, where the path is known: keys that stand twice, ``NaN`` and ``Infinity``, numbers beyond floating
point.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError
from advisor.support.documents.scalars import suggest_word
from advisor.support.limited_files import read_limited

_LONG_NUMBER = re.compile(r"\d{400}")
_SHOWN: Final = 80  # characters of somebody's text that a message repeats


class _Constant(str):
    """``NaN``, ``Infinity`` or ``-Infinity``: Python's parser takes them, JSON does not have them."""


class _Repeated(dict[str, object]):
    """An object in which a key stands twice."""

    key: str


def read_json(path: Path, limit: int) -> JsonNode:
    """Return the root of the JSON document at ``path``, of at most ``limit`` bytes."""
    return parse_json(path, read_limited(path, limit))


def parse_json(path: Path, data: bytes) -> JsonNode:
    """Return the root of a JSON text in UTF-8; raises ``InputError`` with line and column where it is none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(path, "is not UTF-8 text", f"byte {error.start}") from error
    try:
        return JsonNode(path, "", json.loads(text, object_pairs_hook=_build_object, parse_constant=_Constant))
    except json.JSONDecodeError as error:
        raise InputError(path, error.msg, f"{error.lineno}:{error.colno}") from error
    except RecursionError:
        raise InputError(path, "is nested too deeply") from None
    except ValueError as error:  # Python refuses to convert integers of thousands of digits
        raise InputError(path, "a number has too many digits", _find_long_number(text)) from error


def _build_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    repeated = _Repeated(found)
    for key, _ in pairs:
        if key in seen:
            repeated.key = key
        seen.add(key)
    return repeated


def _find_long_number(text: str) -> str | None:
    match = _LONG_NUMBER.search(text)
    if match is None:
        return None
    line_start = text.rfind("\n", 0, match.start()) + 1
    return f"{text.count(chr(10), 0, match.start()) + 1}:{match.start() - line_start + 1}"


@dataclass(frozen=True, slots=True)
class JsonNode:
    """One value of a document, and where it stands: ``place`` is a path such as ``phases[0].wall_s``."""

    file: Path
    place: str
    value: object

    def make_error(self, reason: str) -> InputError:
        """Return the error that says what is wrong here; for the caller to raise."""
        return InputError(self.file, reason, self.place or None)

    def _type_error(self, expected: str) -> InputError:
        return self.make_error(f"expected {expected}, found {_describe_value(self.value)}")

    def require_fields(self, known: Collection[str] | None = None, needed: Iterable[str] = ()) -> dict[str, JsonNode]:
        """Return the members of an object, ``needed`` among them; those that are ``null`` are left out.

        Keys that are not ``known`` are errors.
        """
        if not isinstance(self.value, dict):
            raise self._type_error("an object")
        if isinstance(self.value, _Repeated):
            raise self.make_error(f"the key {_describe_value(self.value.key)} occurs twice")
        for key in self.value:
            if known is not None and key not in known:
                raise self.make_error(f"unknown key {_describe_value(key)}{suggest_word(key, known)}")
        found = {
            JsonNode(self.file, "a key", key).require_text(): JsonNode(self.file, self._child_place(key), value)
            for key, value in self.value.items()
            if value is not None
        }
        for key in needed:
            if key not in found:
                raise self.make_error(f"{key!r} is missing")
        return found

    def require_members(self, *needed: str) -> dict[str, JsonNode]:
        """Return the members of an object, ``needed`` among them, whatever else it holds."""
        return self.require_fields(needed=needed)

    def _child_place(self, key: str) -> str:
        return f"{self.place}.{key[:_SHOWN]}".removeprefix(".")

    def require_items(self, limit: int | None = None) -> list[JsonNode]:
        """Return the members of an array, of at most ``limit``."""
        values = self.require_list()
        if limit is not None and len(values) > limit:
            raise self.make_error(f"more than {limit:,}")
        return [self.find_item(number) for number in range(len(values))]

    def require_list(self) -> list[object]:
        """Return the values of an array as they are: of a long one no more nodes are made than are looked at."""
        if not isinstance(self.value, list):
            raise self._type_error("an array")
        return self.value

    def find_item(self, number: int) -> JsonNode:
        """Return a member of an array by its number; raises ``InputError`` where it has no such member."""
        values = self.require_list()
        if not 0 <= number < len(values):
            raise self.make_error(f"there is no member {number}")
        return JsonNode(self.file, f"{self.place}[{number}]", values[number])

    def require_text(self, limit: int = 10_000) -> str:
        """Return a string of at most ``limit`` characters."""
        if not isinstance(self.value, str) or isinstance(self.value, _Constant):
            raise self._type_error("a string")
        if len(self.value) > limit:
            raise self.make_error(f"a string of {len(self.value):,} characters; at most {limit:,} are allowed")
        if not self.value.isascii() and any("\ud800" <= character <= "\udfff" for character in self.value):
            raise self.make_error("the string holds half of a surrogate pair, which is not a character")
        return self.value

    def require_choice(self, known: Collection[str]) -> str:
        """Return a string that is one of ``known``."""
        text = self.require_text()
        if text not in known:
            raise self.make_error(
                f"expected one of {', '.join(known)}, found {_describe_value(text)}{suggest_word(text, known)}"
            )
        return text

    def require_flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self._type_error("true or false")
        return self.value

    def require_number(self, least: float = -math.inf) -> float:
        """Return a finite number that is not below ``least``."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self._type_error("a number")
        number = _to_float(self.value)
        if not math.isfinite(number):
            raise self.make_error("the number is too large")
        if number < least:
            raise self.make_error(f"{number:g} is below {least:g}, which is impossible here")
        return number

    def require_whole(self, least: int = 0) -> int:
        """Return an integer that is not below ``least`` and fits into 63 bits."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self._type_error("an integer")
        if not least <= self.value < 2**63:
            raise self.make_error(f"expected an integer of at least {least}, found {_describe_value(self.value)}")
        return self.value


def optional_text(fields: Mapping[str, JsonNode], name: str) -> str | None:
    """Return the text of a member, None where it is missing."""
    return fields[name].require_text() if name in fields else None


def _to_float(number: float) -> float:
    """Return the number as floating point, infinite where it is too large for that."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _describe_value(value: object) -> str:
    if isinstance(value, _Constant):
        return f"{value} (write null for what was not measured)"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, str):
        return json.dumps(value[:_SHOWN])
    if isinstance(value, int) and abs(value) >= 2**63:
        return "an integer too large for 63 bits"
    return json.dumps(value)
