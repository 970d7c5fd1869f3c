"""Damaged CUBE files: refused, or read with a note; what stands there twice shows what changed."""

from __future__ import annotations

import random
from pathlib import Path

import damage
import pytest
from cube_archives import Cube, Metric, members_of, trimmed, write_tar

from advisor.formats import cube

SOURCE = Path(__file__).parents[1] / "profiles" / "cube" / "faultlab-late4" / "profile.cubex"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of Score-P without what says nothing about the run."""
    return trimmed(SOURCE, tmp_path_factory.mktemp("small") / "profile.cubex")


def test_a_file_cut_off_anywhere(small: Path, tmp_path: Path) -> None:
    damage.every_prefix(small, tmp_path, cube.advisor_read)


def test_bits_turned_over(small: Path, tmp_path: Path) -> None:
    tried = damage.TRIED
    silent = damage.bit_flips(small, tmp_path, cube.advisor_read)
    assert silent < 0.07 * tried, "more than names, files, lines and hosts"


def test_bits_turned_over_in_packed_data(tmp_path: Path) -> None:
    rows = {n: [1.0 + n, 2.0 + n] for n in range(5)}
    made = Cube([Metric("visits", rows, values="UINT64"), Metric("time", rows)], packed=True)
    path = made.write(tmp_path / "packed.cubex")
    members = members_of(path)
    whole = cube.advisor_read(path)
    chance = random.Random(3)
    for _ in range(200):
        content = bytearray(members["1.data"])
        bit = chance.randrange(8 * 11, 8 * len(content))
        content[bit // 8] ^= 1 << bit % 8
        write_tar(path, [*(members | {"1.data": bytes(content)}).items()])
        found = damage._read(cube.advisor_read, path)
        assert found is None or damage.same(found, whole) or damage._says_more(found, whole), f"bit {bit}"


def test_another_time_is_noticed(small: Path, tmp_path: Path) -> None:
    """Times stand there three times: in all, with the calls inside, and by the shortest and the longest call."""
    whole = cube.advisor_read(small)
    members = members_of(small)
    chance = random.Random(4)
    silent = 0
    for _ in range(200):
        content = bytearray(members["1.data"])
        value = chance.randrange(10, len(content) - 8, 8)
        content[value + 6] ^= 1 << chance.randrange(8)
        write_tar(tmp_path / "damaged", [*(members | {"1.data": bytes(content)}).items()])
        found = damage._read(cube.advisor_read, tmp_path / "damaged")
        silent += found is not None and not damage.same(found, whole) and not damage._says_more(found, whole)
    assert silent < 80, "what lies between the shortest and the longest call is possible"
