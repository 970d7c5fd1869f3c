"""XML as untrusted data: what is told of a document, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.formats import safe_xml
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Recorder:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, Mapping[str, str] | str]] = []

    def start_element(self, name: str, attributes: Mapping[str, str]) -> None:
        self.told.append(("start", name, dict(attributes)))

    def end_element(self, name: str, text: str) -> None:
        self.told.append(("end", name, text))


def parse(content: bytes, document_type: bool = False) -> Recorder:
    recorder = Recorder()
    safe_xml.parse_xml(content, recorder, Path("run.xml"), "part", document_type)
    return recorder


def test_elements_in_order_with_their_text() -> None:
    assert parse(b'<a x="1"> <b>one<!-- two --> &lt;three&gt;</b> tail</a>').told == [
        ("start", "a", {"x": "1"}),
        ("start", "b", {}),
        ("end", "b", "one <three>"),
        ("end", "a", ""),
    ]


@pytest.mark.parametrize("name", ["\udce9", "a\x07\x1b[0m", "größe \U0001f680", "x" * 100_000])
def test_every_byte_of_a_name_survives(name: str) -> None:
    content = f'<a n="{name}">{name}</a>'.encode("utf-8", "surrogateescape")
    assert parse(content).told == [("start", "a", {"n": name}), ("end", "a", name)]


def test_other_encodings() -> None:
    assert parse("<a>größe</a>".encode("utf-16")).told[-1] == ("end", "a", "größe")
    latin = '<?xml version="1.0" encoding="ISO-8859-1"?><a>größe</a>'.encode("latin-1")
    assert parse(latin).told[-1] == ("end", "a", "größe")
    assert parse('<?xml version="1.0" encoding="UTF-8"?><a>ü</a>'.encode()).told[-1] == ("end", "a", "ü")


ENTITY = b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>'
INTERNAL = b"<!DOCTYPE a [<!ELEMENT a (b)*>]><a/>"


@pytest.mark.parametrize(
    ("content", "document_type", "reason"),
    [
        (INTERNAL, False, "is not read"),
        (ENTITY, True, "Entities declarations"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', True, "outside of itself"),
        (b'<!DOCTYPE a PUBLIC "p" "http://example.org/a.dtd"><a/>', True, "outside of itself"),
        (b'<!DOCTYPE a [<!ENTITY % p SYSTEM "x"> %p;]><a/>', True, "is not read"),
        (b"<a><b></a>", False, "no sound XML: mismatched tag"),
        (b"", False, "no sound XML: no element found"),
        (b"<a/>\0\0\0\0", False, "no sound XML"),
        (b"<a>" * 1001, False, "nested deeper than 1000"),
        (b"<a " + b" ".join(b'n%d=""' % n for n in range(1001)) + b"/>", False, "more than 1000 attributes"),
        (b"<a>" + b"x" * (1 << 20) + b"</a>", False, "longer than 1,048,576"),
        (b'<?xml version="1.0" encoding="no-such"?><a/>', False, "XML|encoding"),
    ],
)
def test_what_is_refused(content: bytes, document_type: bool, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as refused:
        parse(content, document_type)
    assert str(refused.value).startswith("run.xml:part")


def test_a_document_type_of_its_own_is_read_where_it_is_allowed() -> None:
    assert [kind for kind, _, _ in parse(INTERNAL, document_type=True).told] == ["start", "end"]
