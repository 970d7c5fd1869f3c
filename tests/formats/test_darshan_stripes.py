"""Files of Lustre: what is spent in large files that ranks share and that lie on one server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import darshan_logs
import pytest

from advisor.formats.darshan.profile import from_log

if TYPE_CHECKING:
    from advisor.model.records import Profile

MANY = 200 << 20


def build(stripes: dict[int, int], written: int = MANY) -> Profile:
    """Two ranks share file 1 for 4 s, and each writes a file of its own (2 and 3) for 1 s."""
    table = darshan_logs.table(
        "POSIX", ranks=[-1, 0, 1], ids=[1, 2, 3], WRITES=[8, 4, 4], BYTES_WRITTEN=[written, MANY, MANY],
        WRITE=[4.0, 1.0, 1.0], SLOWEST=[2.0, 1.0, 1.0], FASTEST=[2.0, 1.0, 1.0],
        SIZE_WRITE_10M_100M=[8, 4, 4], FASTEST_RANK=[0, 0, 1], SLOWEST_RANK=[1, 0, 1],
        FASTEST_RANK_BYTES=[written // 2, MANY, MANY], SLOWEST_RANK_BYTES=[written // 2, MANY, MANY],
    )  # fmt: skip
    return from_log(replace(darshan_logs.log({"POSIX": table}, 2), stripes=stripes), Path("x.darshan"))


def one_server_s(profile: Profile) -> float:
    return float(profile.counts["io_one_server_s"].sum())


def test_seconds_in_shared_files_on_one_server_are_told() -> None:
    assert one_server_s(build({1: 1, 2: 1, 3: 1})) == pytest.approx(4.0)


def test_files_on_several_servers_and_small_ones_do_not_count() -> None:
    assert one_server_s(build({1: 8, 2: 1, 3: 1})) == 0
    assert one_server_s(build({1: 1, 2: 1, 3: 1}, written=1 << 20)) == 0


def test_without_lustre_nothing_is_known() -> None:
    profile = build({})
    assert "io_one_server_s" not in profile.counts
