"""Input on file descriptors is waited for, whatever their number."""

from __future__ import annotations

import fcntl
import os
import resource
from typing import TYPE_CHECKING

import pytest

from advisor.support.descriptors import has_input

if TYPE_CHECKING:
    from collections.abc import Iterator

#: More than ``select`` takes.
LARGE = 1500


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe, both with large numbers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < LARGE + 10:
        pytest.skip(f"at most {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, LARGE + 10), hard))
    small = os.pipe()
    large = tuple(fcntl.fcntl(one, fcntl.F_DUPFD, LARGE) for one in small)
    for one in small:
        os.close(one)
    yield large[0], large[1]
    for one in large:
        os.close(one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_input_is_seen_on_a_descriptor_that_select_does_not_take(ends: tuple[int, int]) -> None:
    reading, writing = ends
    assert not has_input(reading, 0.0)
    os.write(writing, b"x")
    assert has_input(reading, 60.0)


def test_a_wait_beyond_what_the_system_takes_is_cut(ends: tuple[int, int]) -> None:
    reading, writing = ends
    os.write(writing, b"x")
    assert has_input(reading, 1e12)


def test_the_end_of_a_file_is_input() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    try:
        assert has_input(reading, 60.0)
    finally:
        os.close(reading)
