from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from strategies import build

from advisor.analysis import bounds, gaps
from advisor.analysis.gaps.gap_causes import LIMIT
from advisor.analysis.gaps.inner_waits import select_inner_waits, sum_by_region
from advisor.analysis.loads import summarize_loads
from advisor.model.records import CAUSE_CATEGORIES, Causes, Gap, Phase, Processor, Profile, Region

KINDS = ("late sender", "barrier", "message", "file", "start-up", "collective", "thread start")
REGIONS = (
    Region("main", "main.c", 3),
    Region("MPI_Recv"),
    Region("MPI_Barrier"),
    Region("MPI_Send"),
    Region("write"),
    Region("MPI_Init"),
)
Row = tuple[str, str, int, str, int, int, float]


def rows(*found: Row, partner: int = -1, target: int = -1, size_class: int = -1) -> Causes:
    """Causes from (category, kind, phase, call, caller, processor, seconds)."""
    number = {region.name: place for place, region in enumerate(REGIONS)}
    integers = [
        (CAUSE_CATEGORIES.index(category), KINDS.index(kind), phase, number[call], caller, processor)
        for category, kind, phase, call, caller, processor, _ in found
    ]
    columns = np.array(integers, dtype=np.int64).T
    same = np.ones(len(found), dtype=np.int64)
    return Causes(
        kinds=KINDS,
        targets=("out/[field].dat",),
        category=columns[0],
        kind=columns[1],
        phase=columns[2],
        call=columns[3],
        caller=columns[4],
        processor=columns[5],
        partner=partner * same,
        target=target * same,
        size_class=size_class * same,
        seconds=np.array([row[-1] for row in found]),
        count=same,
        bytes=same,
    )


def run(**more: object) -> Profile:
    """Rank 1 works 6 s and waits 1 s in a message, rank 0 works 2 s and waits 5 s; 1 s start-up."""
    arrays = {name: np.zeros((6, 2, 1)) for name in ("cpu_s", "transfer_s", "io_s", "wait_s", "sync_s")}
    arrays["cpu_s"][0] = [[2.0], [6.0]]
    arrays["wait_s"][1] = [[4.0], [1.0]]
    arrays["wait_s"][2] = [[1.0], [0.0]]
    arrays["sync_s"][2] = [[0.5], [0.5]]
    arrays["transfer_s"][3] = [[0.25], [0.75]]
    arrays["io_s"][4] = [[0.5], [0.0]]
    arrays["wall_s"] = sum(arrays.values())
    phase = Phase("step", "parallel", np.arange(6), arrays, start_s=np.ones(1), duration_s=np.full(1, 8.25))
    known = {"regions": REGIONS, "actual_s": 9.25, **more}
    return build([phase], **known)


def by_name(profile: Profile) -> dict[str, Gap]:
    return {gap.name: gap for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile))}


def test_waiting_behind_imbalance_takes_the_share_that_the_gap_has_of_the_phase() -> None:
    causes = rows(
        ("wait", "late sender", 0, "MPI_Recv", 0, 0, 4.0), ("wait", "barrier", 0, "MPI_Barrier", 0, 0, 1.0), partner=1
    )
    gap = by_name(run(causes=causes))["L"]
    assert gap.seconds == 2.0
    assert [(cause.name, cause.kind, cause.phase, cause.file, cause.line) for cause in gap.causes] == [
        ("MPI_Recv in main waits for rank 1", "late sender", "step", "main.c", 3),
        ("MPI_Barrier in main waits for rank 1", "barrier", "step", "main.c", 3),
    ]
    assert [cause.seconds for cause in gap.causes] == pytest.approx([1.6, 0.4])


def test_little_waiting_explains_little_of_a_large_gap() -> None:
    causes = rows(("wait", "late sender", 0, "MPI_Recv", -1, 0, 1.0), partner=1)
    (cause,) = by_name(run(causes=causes))["L"].causes
    assert cause.name == "MPI_Recv waits for rank 1"
    assert cause.seconds == pytest.approx(0.5)


def test_waiting_inside_a_phase_is_that_of_the_processor_that_decides_it() -> None:
    causes = rows(("wait", "late sender", 0, "MPI_Recv", 0, 0, 4.0), ("wait", "late sender", 0, "MPI_Recv", 0, 1, 1.0))
    gap = by_name(run(causes=causes))["W"]
    assert gap.seconds == 1.0
    assert [(cause.name, cause.seconds) for cause in gap.causes] == [("MPI_Recv in main waits", 1.0)]


def test_the_smallest_number_that_explains_waiting_explains_all_of_it() -> None:
    profile = run(causes=rows(("wait", "late sender", 0, "MPI_Recv", -1, 0, 5e-324)))
    found = sum_by_region(profile, summarize_loads(profile), np.ones(1, dtype=bool), np.full(1, -2.0))
    assert found.tolist() == [0.0, -2.0, 0.0, 0.0, 0.0, 0.0]


def test_communication_is_named_by_call_and_size_and_io_by_file() -> None:
    transfer = rows(
        ("transfer", "message", 0, "MPI_Send", 0, 0, 0.25),
        ("transfer", "message", 0, "MPI_Send", 0, 1, 0.75),
        size_class=13,
    )
    (cause,) = by_name(run(causes=transfer))["C'"].causes
    assert (cause.name, cause.seconds) == ("MPI_Send in main moves 4 KiB to 8 KiB", 0.5)
    (cause,) = by_name(run(causes=rows(("io", "file", 0, "write", 0, 0, 0.5), target=0)))["O"].causes
    assert (cause.name, cause.seconds) == ("write in main on out/[field].dat", 0.25)


def test_synchronization_is_named_by_its_call() -> None:
    causes = rows(("sync", "barrier", 0, "MPI_Barrier", 0, 0, 0.5), ("sync", "barrier", 0, "MPI_Barrier", 0, 1, 0.5))
    assert [(cause.name, cause.seconds) for cause in by_name(run(causes=causes))["S'"].causes] == [
        ("MPI_Barrier in main", 0.5)
    ]


def test_start_up_is_named_by_its_calls_and_what_they_leave() -> None:
    causes = rows(
        ("outside", "start-up", -1, "MPI_Init", 0, 0, 0.75), ("outside", "start-up", -1, "MPI_Init", 0, 1, 0.75)
    )
    gap = by_name(run(causes=causes))["X"]
    assert gap.seconds == 1.0
    assert [(cause.name, cause.seconds) for cause in gap.causes] == [
        ("MPI_Init in main", 0.75),
        ("start-up, no call recorded", 0.25),
    ]


def test_the_others_wait_for_a_serial_phase() -> None:
    profile = run(causes=rows(("wait", "barrier", 0, "MPI_Barrier", 0, 0, 4.0), partner=1))
    serial = replace(profile, phases=(replace(profile.phases[0], kind="serial"),))
    gap = by_name(serial)["P"]
    assert gap.seconds == 2.0
    assert [(cause.name, cause.seconds) for cause in gap.causes] == [("MPI_Barrier in main waits for rank 1", 2.0)]
    assert by_name(profile)["P"].causes == ()


def test_what_a_master_moves_holds_all_its_threads() -> None:
    causes = rows(("transfer", "collective", 0, "MPI_Send", 0, 0, 0.25))
    profile = run(causes=causes, processors=(Processor(0), Processor(0, 1)))
    gap = by_name(profile)["C'"]
    assert sum(cause.seconds for cause in gap.causes) == pytest.approx(0.25)


def test_a_row_of_no_processor_counts_as_an_average() -> None:
    causes = rows(("transfer", "collective", 0, "MPI_Send", 0, -1, 0.5))
    assert [cause.seconds for cause in by_name(run(causes=causes))["C'"].causes] == [0.25]


def test_only_the_largest_causes_are_listed() -> None:
    many = [("wait", "late sender", 0, "MPI_Recv", 0, 0, 0.01 + number / 1e4) for number in range(LIMIT + 20)]
    causes = replace(rows(*many), partner=np.arange(LIMIT + 20) % 2, size_class=np.arange(LIMIT + 20))
    assert len(by_name(run(causes=causes))["L"].causes) == 2
    apart = replace(causes, phase=np.zeros(LIMIT + 20, dtype=np.int64), category=np.zeros(LIMIT + 20, dtype=np.int64))
    assert len(by_name(run(causes=apart))["C'"].causes) == LIMIT


def phase_of(regions: list[int], closed_by: str | None) -> Phase:
    work = {"cpu_s": np.ones((len(regions), 2, 1)), "wait_s": np.zeros((len(regions), 2, 1))}
    return Phase("step", "parallel", np.array(regions), work, closed_by)


@pytest.mark.parametrize(
    ("row", "inner"),
    [
        (("wait", "late sender", 0, "MPI_Recv", 0, 0, 1.0), True),
        (("wait", "barrier", 0, "MPI_Barrier", 0, 0, 1.0), False),
        (("wait", "collective", 0, "MPI_Send", 0, 0, 1.0), True),
        (("wait", "barrier", 1, "MPI_Barrier", 0, 0, 1.0), False),
        (("wait", "late sender", 1, "MPI_Recv", 0, 0, 1.0), True),
        (("wait", "barrier", 2, "MPI_Recv", 0, 0, 1.0), True),
        (("wait", "late sender", 2, "MPI_Recv", 0, 0, 0.0), False),
        (("wait", "start-up", -1, "MPI_Init", 0, 0, 1.0), False),
        (("transfer", "message", 0, "MPI_Send", 0, 0, 1.0), False),
    ],
)
def test_waiting_is_inside_a_phase_unless_in_the_call_that_closes_it(row: Row, inner: bool) -> None:
    everything = [0, 1, 2, 3, 4, 5]
    phases = [phase_of(everything, "MPI_Barrier"), phase_of(everything, None), phase_of(everything, "MPI_Waitall")]
    profile = build(phases, regions=REGIONS, causes=rows(row))
    assert select_inner_waits(profile, summarize_loads(profile), np.zeros(3)).tolist() == [inner]


@pytest.mark.parametrize(
    ("program", "phase", "caller", "shown"),
    [
        ("synthetic", 0, 0, [2.0, 0.0, 0.0, 0.0]),  # the function that calls
        ("main", 0, 0, [0.0, 2.0, 0.0, 0.0]),  # the program itself says nothing
        ("synthetic", 0, -1, [0.0, 2.0, 0.0, 0.0]),
        ("synthetic", 1, 0, [0.0, 0.0, 0.0, 2.0]),  # main is not in this phase
    ],
)
def test_waiting_inside_a_phase_stands_at_the_caller_if_the_phase_has_it(
    program: str, phase: int, caller: int, shown: list[float]
) -> None:
    causes = rows(("wait", "late sender", phase, "MPI_Recv", caller, 0, 1.0))
    phases = [phase_of([0, 1, 5], None), phase_of([1], None)]
    profile = build(phases, program=program, regions=REGIONS, causes=causes)
    found = sum_by_region(profile, summarize_loads(profile), np.array([True]), np.array([2.0, 2.0]))
    assert found.tolist() == shown
