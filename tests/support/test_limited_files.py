from __future__ import annotations

import io

import pytest

from advisor.support.limited_files import read_stream


class Stream(io.BytesIO):
    """Counts the bytes that it is asked for at a time."""

    most = 0

    def read(self, size: int | None = -1) -> bytes:
        self.most = max(self.most, size or 0)
        return super().read(size)


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_a_whole_file_takes_no_more_room_than_it_needs(size: int) -> None:
    stream = Stream(bytes(size))
    assert read_stream(stream, 1 << 40) == bytes(size)
    assert stream.most <= 1 << 20


def test_what_is_larger_is_told_by_one_byte() -> None:
    assert len(read_stream(io.BytesIO(bytes(100)), 10)) == 11
    assert len(read_stream(io.BytesIO(bytes(10)), 10)) == 10
