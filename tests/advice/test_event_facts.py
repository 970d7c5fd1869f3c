"""Facts about messages, collectives, waiting, and input and output: those one finds by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import strategies
from fact_sheets import build_case, case_values, site_values

from advisor.advice.facts.event_rows import call_traits
from advisor.advice.rules.cases import load_cases
from advisor.formats import timing_tables
from advisor.model.records import Phase, Processor, Profile, Region
from advisor.trace.regions import BLOCKED_NAME

TABLES = Path(__file__).parents[1] / "profiles" / "timing_tables"


def test_messages() -> None:
    found = case_values("small-messages")
    assert found["comm.messages_per_iteration"] == 400
    assert found["comm.mean_message_B"] == 512
    assert found["comm.small_message_share"] == 1
    assert found["comm.point_to_point_share"] == pytest.approx(0.12 / 0.122)
    assert found["comm.reductions_per_iteration"] == 1
    assert found["comm.share"] == pytest.approx(0.122 / 0.622)


def test_messages_of_exactly_four_kib_are_small() -> None:
    assert case_values("io-all")["comm.small_message_share"] == 0
    sized = load_cases()["small-messages"]
    phase = sized.phases[0]
    for size, share in ((4096.0, 1.0), (4097.0, 0.0)):
        event = replace(phase.events[0], bytes=size)
        case = replace(sized, phases=(replace(phase, events=(event,)),))
        assert site_values(build_case(case))["comm.small_message_share"] == share


def test_unknown_sizes_are_unknown() -> None:
    sized = load_cases()["small-messages"]
    phase = sized.phases[0]
    case = replace(sized, phases=(replace(phase, events=(replace(phase.events[0], bytes=None),)),))
    found = site_values(build_case(case))
    assert "comm.mean_message_B" not in found
    assert "comm.small_message_share" not in found
    assert found["comm.messages_per_iteration"] == 400


def test_kinds_of_waiting() -> None:
    found = case_values("late-sender")
    assert found["wait.late_sender_share"] == pytest.approx(1.2 / (1.2 + 0.4 - 0.003 + 3 * 0.0), rel=0.01)
    assert found["wait.barrier_share"] == pytest.approx(1 - found["wait.late_sender_share"])
    assert case_values("group-collectives")["wait.collective_share"] == pytest.approx(0.75)
    assert case_values("omp-skew")["wait.thread_share"] == 1


def test_synchronizations_of_one_name_are_counted_together() -> None:
    found = case_values("many-barriers", 1)
    assert found["sync.barriers_per_iteration"] == 3
    assert found["sync.empty_phases"] is True
    assert case_values("many-forks")["sync.fork_joins_per_iteration"] == 20
    assert case_values("many-forks")["sync.thread_share"] == 1


def test_input_and_output() -> None:
    one, everybody = case_values("io-one"), case_values("fsync")
    assert one["io.one_processor"] is True
    assert one["io.processors_share"] == 0.25
    assert one["io.mean_operation_B"] == 4 * 2**20
    assert everybody["io.one_processor"] is False
    assert everybody["io.fsync_share"] == everybody["io.forced_share"] == pytest.approx(0.8)
    assert (one["io.forced_share"], one["io.forced_B"]) == (0, 0)
    assert everybody["io.forced_B"] > 0
    assert "io.unaligned_seconds_share" not in everybody, "a trace does not tell where an operation begins"
    assert everybody["io.operations_per_iteration"] == 4
    assert case_values("io-metadata")["io.metadata_share"] == pytest.approx(0.6)


def test_nothing_recorded_is_unknown_but_nothing_done_is_zero() -> None:
    assert case_values("clean")["io.share"] == 0
    assert case_values("clean")["io.fsync_share"] == 0
    assert "io.share" not in case_values("fig4")
    assert "io.fsync_share" not in case_values("fig4")


def test_reductions_that_fill_one_phase_are_counted_per_stretch_of_work() -> None:
    """A tracer that sees no functions finds one phase: an iteration with work, then nineteen without."""
    case = load_cases()["many-reductions"]
    phase = case.phases[0]
    rows = ((0.5,), *[(0.0,)] * 19)
    events = (replace(phase.events[0], count=1, seconds=(0.005,)),)
    smeared = replace(case, phases=(replace(phase, work_s=rows, iterations=200, events=events),))
    assert site_values(build_case(smeared))["comm.reductions_per_iteration"] == pytest.approx(20, rel=0.1)
    even = replace(case, phases=(replace(phase, iterations=200, events=events),))
    assert site_values(build_case(even))["comm.reductions_per_iteration"] == pytest.approx(1)


def test_operating_system() -> None:
    assert case_values("sleeping")["os.share"] == pytest.approx(0.2 / 1.2)
    assert "os.share" not in case_values("io-all")


def test_what_the_system_does_unasked_is_no_wait_that_could_end() -> None:
    """Pages of a mapped file are fetched without a call: nothing sleeps or polls there."""
    case = load_cases()["sleeping"]
    profile = build_case(case)
    rest = profile.regions[1:]
    paging = replace(profile, regions=(replace(profile.regions[0], name=BLOCKED_NAME), *rest))
    assert site_values(paging)["os.share"] < site_values(profile)["os.share"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MPI_Isend", {"sends"}),
        ("mpi_isend_", {"sends"}),
        ("MPI_Sendrecv", {"sends"}),
        ("MPI_Irecv", set()),
        ("MPI_Allreduce", {"reductions"}),
        ("MPI_Reduce_scatter", {"reductions"}),
        ("MPI_Iallreduce", {"reductions"}),
        ("MPI_Reduce", {"reductions", "collects"}),
        ("MPI_Gatherv", {"collects", "gathers"}),
        ("MPI_Comm_dup", {"sets up"}),
        ("MPI_Neighbor_alltoall", {"sends"}),
        ("MPI_Bcast", {"broadcasts"}),
        ("MPI_Scatter", set()),
        ("pthread_cond_wait", {"notices", "hands over", "waits at a queue"}),
        ("pthread_mutex_lock", {"hands over"}),
        ("MPI_Alltoallv", {"all to all"}),
        ("MPI_Barrier", {"explicit barriers"}),
        ("!$omp barrier @solve.c:12", {"explicit barriers"}),
        ("!$omp implicit barrier @solve.c:12", set()),
        ("fsync", {"forcing to storage"}),
        ("open64", {"metadata"}),
        ("pwrite", {"data", "writes"}),
        ("MPI_File_write_all", {"data", "writes", "MPI-IO", "collective MPI-IO"}),
        ("POSIX read", {"data"}),
        ("POSIX write and sync", {"data", "writes", "data, forced to storage or not"}),
        ("POSIX sync, timed as writing", {"forcing to storage"}),
        ("POSIX sync", {"forcing to storage"}),
        ("POSIX metadata", {"metadata"}),
        ("STDIO write", {"data", "writes", "streams"}),
        ("MPI-IO collective write", {"data", "writes", "MPI-IO", "collective MPI-IO"}),
        ("MPI-IO metadata", {"metadata", "MPI-IO"}),
        ("POSIX writer", set()),
        ("MPI_File_open", {"metadata", "MPI-IO"}),
        ("MPI_File_sync", {"forcing to storage", "MPI-IO"}),
        ("lseek", set()),
        ("reduce_my_grid", set()),
    ],
)
def test_what_calls_do(name: str, expected: set[str]) -> None:
    assert call_traits(name) == expected


def test_collecting_and_broadcasting_belong_together_where_both_occur_as_often() -> None:
    case = load_cases()["slow-collective"]
    phase = case.phases[0]
    gather, once = (replace(phase.events[0], call=name) for name in ("MPI_Gather", "MPI_Bcast"))
    assert case_values("slow-collective")["comm.relay_share"] == 0
    for events, share in (((gather, once), 0.2 / 0.7), ((gather, replace(once, count=20)), 0.0), ((gather,), 0.0)):
        changed = replace(case, phases=(replace(phase, events=events),))
        assert site_values(build_case(changed))["comm.relay_share"] == pytest.approx(share)


def test_what_is_gathered_and_not_broadcast_again_is_kept() -> None:
    case = load_cases()["gathered-search"]
    (phase,) = case.phases
    (gather,) = phase.events
    assert case_values("gathered-search")["comm.gather_share"] == 1.0
    for size, kept in ((8.0, 1.0), (gather.bytes, 0.0)):
        events = (gather, replace(gather, call="MPI_Bcast", bytes=size))
        found = site_values(build_case(replace(case, phases=(replace(phase, events=events),))))
        assert found["comm.kept_share"] == pytest.approx(kept, abs=1e-4)


def test_waiting_for_a_notice_is_no_waiting_for_a_lock() -> None:
    case = load_cases()["thread-lock"]
    phase = case.phases[0]
    locked = case_values("thread-lock")
    assert locked["wait.lock_share"] == pytest.approx(0.5)
    noticed = replace(phase, events=(replace(phase.events[0], call="pthread_cond_wait"),))
    found = site_values(build_case(replace(case, phases=(noticed,))))
    assert found["wait.lock_share"] == pytest.approx(0.0)
    assert found["wait.thread_share"] == locked["wait.thread_share"]


def test_waiting_in_loops_is_a_share_of_all_waiting() -> None:
    waited = {"wait_s": np.array([[[3.0], [0.0]]]), "sync_s": np.array([[[0.5], [0.5]]])}
    profile = strategies.build([strategies.phase([[2.0], [5.0]], arrays=waited)])
    assert "wait.spin_share" not in site_values(profile)
    spun = np.zeros((9, 2))
    spun[0] = (1.0, 0.0)
    assert site_values(replace(profile, counts={"wait.spin_s": spun}))["wait.spin_share"] == 0.25


@pytest.mark.parametrize(
    ("table", "fact", "share"),
    [
        ("tiny-profiler.txt", "comm.whole_share", 0.2),
        ("openfoam.log", "os.untold_share", 0.1),
        ("rsl.error.0000", "io.untold_share", 0.05),
    ],
)
def test_sums_over_the_run_tell_how_much_and_not_what_for(table: str, fact: str, share: float) -> None:
    """What rules of last resort ask for; where calls or phases were recorded, others tell more."""
    found = site_values(timing_tables.advisor_read(TABLES / table))
    assert isinstance(found[fact], float)
    assert found[fact] > share
    assert case_values("io-all")[fact] == 0
    assert case_values("large-run")[fact] == 0


def test_a_call_that_waits_is_known_and_does_not_count_as_untold() -> None:
    """Off the core are 2 s of a region that computes 8 s, and 5 s of one that only waits."""
    wall_s, cpu_s = np.array([[[10.0]], [[5.0]]]), np.array([[[8.0]], [[0.0]]])
    arrays = {"wall_s": wall_s, "cpu_s": cpu_s, "os_s": wall_s - cpu_s} | {
        name: np.zeros((2, 1, 1)) for name in ("wait_s", "transfer_s", "sync_s", "io_s")
    }
    profile = Profile(
        program="p", run="r", reader="test", actual_s=15.0, processors=(Processor(0),),
        regions=(Region("solve"), Region("poll")), phases=(Phase("the whole run", "whole", np.arange(2), arrays),),
        status=dict.fromkeys(arrays, "measured"),
    )  # fmt: skip
    assert site_values(profile)["os.untold_share"] == pytest.approx(2 / 15)
    named = replace(profile, regions=(Region("solve"), Region("not on a core")))
    assert site_values(named)["os.untold_share"] == pytest.approx(7 / 15)
