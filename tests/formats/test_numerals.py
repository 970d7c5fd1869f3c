"""Numbers between colons: both ways of taking a block apart give what Python's own ``int`` gives."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.formats import number_lines
from advisor.model.errors import InputError

NUMBER = st.integers(-(2**63) + 1, 2**63 - 1)
LINES = st.lists(st.lists(NUMBER, min_size=1, max_size=6), min_size=1, max_size=20)
NOWHERE = Path("trace")


def taken(text: bytes, compiled: bool) -> number_lines.NumberLines:
    (found,) = number_lines.read_number_lines(io.BytesIO(text), NOWHERE, 1, compiled)
    return found


def ways() -> list[bool]:
    return [False, True]


@pytest.mark.parametrize("compiled", ways(), ids=["numpy", "numba"])
@given(lines=LINES)
def test_every_number_is_read(compiled: bool, lines: list[list[int]]) -> None:
    if compiled:
        pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    text = "".join(":".join(map(str, line)) + "\n" for line in lines)
    found = taken(text.encode(), compiled)
    assert found.values.tolist() == [value for line in lines for value in line]
    assert np.diff(found.first).tolist() == [len(line) for line in lines]
    assert found.width.tolist() == [len(str(abs(value))) for line in lines for value in line]


@given(st.binary(max_size=60))
def test_both_ways_agree_on_what_is_wrong(text: bytes) -> None:
    pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    octets = np.frombuffer(text + b"\n", dtype=np.uint8)
    plain, compiled = number_lines.split_numbers(octets), number_lines._build_compiled_splitter()(octets)
    assert (plain[3] >= 0) == (compiled[3] >= 0)
    if plain[3] < 0:
        assert all(np.array_equal(one, other) for one, other in zip(plain[:3], compiled[:3], strict=True))


def test_a_comment_is_a_line_of_its_own() -> None:
    assert taken(b"1:2\n# made by: a tool\n3\n", False).values.tolist() == [1, 2, 0, 3]


def test_lines_are_counted_over_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_lines, "BLOCK", 7)
    text = b"".join(b"%d:1\n" % number for number in range(100))
    found = list(number_lines.read_number_lines(io.BytesIO(text), NOWHERE, 5, False))
    assert len(found) > 10
    assert np.concatenate([each.values for each in found])[::2].tolist() == list(range(100))
    assert found[-1].line + len(found[-1].first) - 1 == 105
    with pytest.raises(InputError) as refused:
        list(number_lines.read_number_lines(io.BytesIO(text + b"x\n"), NOWHERE, 5, False))
    assert refused.value.place == "line 105"


@pytest.mark.parametrize("text", [b"1:2", b"1:2\n3", b"1\n" + b"2" * 40])
def test_a_line_without_an_end_is_refused(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_lines, "LONGEST_LINE", 20)
    with pytest.raises(InputError):
        list(number_lines.read_number_lines(io.BytesIO(text), NOWHERE, 1, False))


def test_no_more_is_read_than_there_is_room_for() -> None:
    stream = number_lines.BoundedStream(io.BytesIO(b"0123456789"), 6)
    assert (stream.read(4), stream.read(4), stream.read(4)) == (b"0123", b"45", b"")
