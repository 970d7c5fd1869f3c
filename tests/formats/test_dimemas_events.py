"""The events of Dimemas traces: all that a replay needs, on a clock on which only computation takes time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from advisor.formats import dimemas
from advisor.formats.dimemas import events
from advisor.formats.dimemas.records import DimemasRecords, RecordKind
from advisor.formats.paraver.labels import Labels
from advisor.trace.events import Kind, Trace

HERE = Path(__file__).parents[1] / "profiles" / "dimemas"
CASES = sorted(path.name for path in HERE.iterdir() if path.is_dir())


def both(case: str) -> tuple[Trace, DimemasRecords]:
    path = HERE / case / "trace.dim"
    return dimemas.advisor_trace(path), dimemas.read_records(path)


@pytest.mark.parametrize("case", CASES)
def test_everything_that_communicates_is_an_event(case: str) -> None:
    trace, records = both(case)
    kinds = Counter(trace.kind.tolist())
    assert kinds[Kind.SEND] + kinds[Kind.ISEND] == (records.kind == RecordKind.SEND).sum()
    assert kinds[Kind.RECV] + kinds[Kind.IRECV_POST] + kinds[Kind.IRECV] == (records.kind == RecordKind.RECEIVE).sum()
    assert kinds[Kind.COLLECTIVE] == (records.kind == RecordKind.COLLECTIVE).sum()
    assert kinds[Kind.ENTER] == kinds[Kind.LEAVE]


@pytest.mark.parametrize("case", CASES)
def test_time_is_computation(case: str) -> None:
    trace, records = both(case)
    for at, (first, last) in enumerate(zip(trace.first[:-1], trace.first[1:], strict=True)):
        times = trace.time_s[first:last]
        mine = slice(int(records.first[at]), int(records.first[at + 1]))
        computed = records.amount[mine][records.kind[mine] == RecordKind.BURST].sum()
        assert (np.diff(times) >= 0).all()
        assert times[-1] == pytest.approx(computed / 1e9, rel=1e-12)


def test_each_receive_that_was_posted_is_waited_for() -> None:
    trace, _ = both("faultlab-late4")
    posted = trace.request[trace.kind == Kind.IRECV_POST]
    assert len(posted) == 80
    assert sorted(posted.tolist()) == sorted(trace.request[trace.kind == Kind.IRECV].tolist())
    assert len(set(posted.tolist())) == 80


def test_communicators_and_roots() -> None:
    trace, _ = both("faultlab-late4")
    assert trace.communicators == ((0, 1), (1,), (0,))
    joint = trace.kind == Kind.COLLECTIVE
    named = [trace.regions[region].name for region in trace.region[trace.kind == Kind.ENTER]]
    assert set(trace.partner[joint].tolist()) == {-1, 0}
    assert (trace.partner[joint] == 0).sum() == sum(name == "MPI_Gather" for name in named) > 0


def joint(partners: list[list[int]], code: int = 1) -> Trace:
    """A trace of one operation after the other of all ranks; a list of what each rank says of the root."""
    ranks, count = len(partners[0]), len(partners)
    filled = np.zeros(ranks * count, dtype=np.int64)
    said = np.array(partners, dtype=np.int32).T.ravel()
    small = filled.astype(np.int32)
    records = DimemasRecords(
        rank=np.arange(ranks), thread=np.zeros(ranks, dtype=np.int64), communicators={1: tuple(range(ranks))},
        first=np.arange(ranks + 1) * count, kind=np.full(ranks * count, RecordKind.COLLECTIVE, dtype=np.uint8),
        amount=filled, more=filled, partner=said, tag=small, reference=small + 1, code=small + code,
    )  # fmt: skip
    return events.build_event_trace(records, Labels({}, {}))


def roots(trace: Trace) -> list[int]:
    operations = trace.kind == Kind.COLLECTIVE
    return [int(root) for root in trace.partner[operations][: operations.sum() // trace.ranks]]


def test_the_root_is_who_says_so_or_whom_all_name() -> None:
    assert roots(joint([[0, 0, 1], [1, 0, 0], [2, 2, 2], [0, 0, 0], [0, 2, 2]])) == [2, 0, 2, 0, -1]
    assert roots(joint([[0, 0, 1]], code=11)) == [-1]
