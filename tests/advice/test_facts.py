"""Facts: the vocabulary is complete and documented, and the values are those one finds by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from profile_strategies import profiles

from advisor.advice import facts
from advisor.advice.facts.event_rows import call_traits
from advisor.advice.facts.fact_records import Fact
from advisor.advice.facts.page import render_facts_page
from advisor.advice.facts.places import compute_durations, family_name, find_places
from advisor.advice.facts.sheet import FactSheet, find_programming_model, find_slowest_processors
from advisor.advice.facts.values import VALUES
from advisor.advice.facts.vocabulary import VOCABULARY, command_for, facts_by_name
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import build_case_sheet, load_cases
from advisor.advice.rules.names import current_names
from advisor.analysis import bounds, gaps
from advisor.analysis.loads import summarize_loads
from advisor.model import policy
from advisor.model.records import OTHER_PROGRAMS, Note, Phase, Processor, Profile, Region
from advisor.model.units import DIMENSIONS

ROOT = Path(__file__).resolve().parents[2]

#: The words that rule files may rely on.
WORDS = """
run.wall_s run.ranks run.threads run.processors run.cores run.oversubscription run.startup_s run.shutdown_s
run.busy_cores run.bound_threads run.iterations run.has_mpi run.has_openmp run.idle_threads_share run.queue_share
run.disturbance_share run.others_share
phase.imbalance phase.rank_imbalance phase.thread_imbalance phase.dynamic_ratio phase.slowest_rank_persistence
phase.slowest_differs phase.iterations phase.share phase.closed_by phase.is_serial phase.phases phase.heaviest_share
phase.work_s phase.alone_share phase.shareable_s wait.task_share code.interpreted_share omp.task_mean_s omp.tasks
wait.late_sender_share wait.late_receiver_share wait.collective_share wait.barrier_share wait.thread_share
wait.lock_share wait.notice_share wait.notices wait.hand_overs wait.hand_over_share wait.interpreter_share
wait.work_per_hand_over_s code.pickled_share code.keyed_share code.listed_share code.regrown_share
code.decoded_share code.rowwise_share wait.unmatched_share wait.share
comm.messages_per_iteration comm.mean_message_B comm.small_message_share comm.seconds_per_message
comm.point_to_point_share comm.collective_share comm.reductions_per_iteration comm.mean_collective_B
comm.collectives_per_iteration comm.alltoall_share comm.share comm.relay_share comm.gather_share
comm.gathers_per_iteration comm.kept_share comm.mean_gather_B
sync.barriers_per_iteration sync.share sync.work_between_s sync.empty_phases sync.thread_share
sync.fork_joins_per_iteration sync.threads_created sync.creation_share sync.work_per_thread_s
io.share io.operations_per_iteration io.mean_operation_B io.small_share io.unaligned_share io.shared_share
io.forced_share io.forced_B io.processors_share io.fsync_share io.metadata_share
io.metadata_calls
io.one_processor io.mpi_io io.data_share io.stdio_share io.small_seconds_share io.operations
io.unaligned_seconds_share
io.random_share io.reread_share io.switch_share io.independent_share io.collective_share io.private_share
io.one_server_share io.text_share io.text_s io.stream_s
io.files_per_processor io.slowest_excess_s io.imbalance io.bursts
cache.l1_miss_ratio cache.ll_miss_ratio memory.bandwidth_share processor.vectorized_share
processor.memory_share processor.dram_share processor.far_cache_share
processor.false_sharing_share os.share os.sleep_share
code.known_share code.unoptimized_share code.checked_share code.scalar_share code.overlap_share
code.order_share code.branch_share code.call_share code.stride_share code.page_share
code.division_share code.update_share code.math_share code.allocation_share code.copy_share code.lock_share
code.lock_cost_s code.text_share code.recurrence_share code.random_share
code.pointer_share code.scatter_share code.guess_share
code.quotient_share code.shape_share code.chain_share code.baseline_share code.transpose_share
code.search_share code.string_share code.objects_share code.copied_share code.rebuilt_share
code.hashed_share code.length_share code.garbage_share code.import_share code.deep_copy_share
code.pattern_share
device.devices device.on_host device.busy_share device.iterations device.kernels device.median_kernel_s
device.short_kernel_share device.elementwise_share device.matrix_share device.plain_matrix_share device.launch_calls
device.launch_s device.sync_calls device.sync_s device.sync_wait_share device.allocation_calls device.allocation_s
device.graph_launches device.copies device.pageable_share device.host_copy_share device.small_copy_share
device.communications device.communications_per_iteration device.exposed_share device.median_communication_s
device.imbalance device.one_busy_share
device.fusible_share device.small_grid_share device.low_occupancy_share device.spill_share device.compute_streams
device.concurrent_share device.graph_kernel_share device.loading_share device.recompilations device.launch_interval_s
device.prepare_share device.optimizer_launches device.passes_per_update device.value_reads
device.value_reads_per_iteration device.host_allocations device.round_trips_per_kernel device.migration_share
device.page_faults device.copy_rate_spread device.point_to_point_share device.communication_s_per_GiB
device.float_communication_share device.kernel_count_spread device.same_kernel_spread device.processes_per_device
device.bandwidth_bound_share device.latency_bound_share device.excess_sector_share device.divergent_share
device.upload_ratio device.lead_share device.element_share
"""


def sheet(profile: Profile, **more: object) -> FactSheet:
    found = bounds.compute_bounds(profile)
    return facts.collect_facts(profile, found, gaps.attribute_gaps(profile, found), **more)


def values(profile: Profile, site: int = 0) -> dict[str, object]:
    return dict(sheet(profile).sites[site].values)


def built(*rows: list[list[float]], **more: object) -> Profile:
    """A profile of one phase for each array of work (processors, iterations)."""
    phases = [
        strategies.phase(work, name=f"phase {n}", regions=[n], duration_s=np.array(work).max(axis=0))
        for n, work in enumerate(rows)
    ]
    return strategies.build(phases, **more)


def test_vocabulary_holds_the_words_of_the_rules() -> None:
    assert {fact.name for fact in VOCABULARY} == set(WORDS.split())
    assert len(VOCABULARY) == len(WORDS.split())


def test_every_fact_has_a_value_and_only_those() -> None:
    assert set(VALUES) == {fact.name for fact in VOCABULARY}


@pytest.mark.parametrize("fact", VOCABULARY, ids=lambda fact: fact.name)
def test_fact_explains_itself(fact: Fact) -> None:
    assert fact.scope == ("run" if fact.name.startswith(("run.", "device.")) else "phase")
    assert fact.needs
    assert len(fact.formula) > 8
    endings = {"_s": "s", "_B": "B", "_share": "share"}
    expected = next((unit for ending, unit in endings.items() if fact.name.endswith(ending)), fact.unit)
    assert fact.unit == expected


def test_page_is_what_the_code_says() -> None:
    page = (ROOT / "docs" / "facts.md").read_text()
    assert page == render_facts_page(), "run: python -m advisor.advice.facts > docs/facts.md"


def test_units_of_facts_are_dimensions() -> None:
    units = {fact.unit for fact in VOCABULARY}
    assert {"s": "time", "B": "size", "share": "share"}.items() <= {
        unit: name for unit, name in (("s", "time"), ("B", "size"), ("share", "share")) if name in DIMENSIONS
    }.items()
    assert units <= {"s", "B", "share", "ratio", "count", "name", "yes/no"}


def test_a_plugin_cannot_change_what_a_word_means() -> None:
    other = Fact("phase.imbalance", "s", "run", ("x",), "", "something else")
    assert facts_by_name([other])["phase.imbalance"].unit == "ratio"


def test_command_names_the_ranks() -> None:
    profile = built([[1.0], [1.0], [2.0]])
    assert "mpirun -n 3" in command_for(profile, facts_by_name()["cache.l1_miss_ratio"])
    assert "mpirun -n 3" in command_for(profile, facts_by_name()["wait.share"])
    alone = built([[1.0]])
    assert "mpirun" not in command_for(alone, facts_by_name()["cache.l1_miss_ratio"])
    assert all("{" not in command_for(profile, fact) for fact in VOCABULARY)


# ---- load


def test_loads_of_figure_4() -> None:
    profile = built([[10.0, 5.0], [5.0, 6.0]], [[10.0, 15.0], [15.0, 16.0]], actual_s=47.0)
    first, second = values(profile, 0), values(profile, 1)
    assert first["phase.imbalance"] == pytest.approx(15 / 13)
    assert first["phase.dynamic_ratio"] == pytest.approx(16 / 15)
    assert first["phase.slowest_rank_persistence"] == 0.5
    assert first["phase.slowest_differs"] is True
    assert first["phase.heaviest_share"] == pytest.approx(15 / 26)
    assert first["phase.work_s"] == 15
    assert first["sync.work_between_s"] == 8
    assert first["phase.share"] == pytest.approx(16 / 47)
    assert first["phase.phases"] == 2
    assert second["phase.slowest_differs"] is False
    assert second["phase.slowest_rank_persistence"] == 1
    assert second["phase.iterations"] == 2


def test_gaps_at_sites_add_up_to_the_gaps() -> None:
    profile = built([[10.0, 5.0], [5.0, 6.0]], [[10.0, 15.0], [15.0, 16.0]], actual_s=47.0)
    found = sheet(profile)
    for letter, seconds in (("L", 1.0), ("M'", 4.0), ("D", 1.0)):
        assert found.run.gap_span(letter).low == found.run.gap_span(letter).high == pytest.approx(seconds)
        assert sum(site.gap_span(letter).low for site in found.sites) == pytest.approx(seconds)


def test_threads_are_told_from_ranks() -> None:
    processors = tuple(Processor(rank, thread) for rank in range(2) for thread in range(2))
    regions = (Region("solve", threaded=True),)
    work = [[3.0], [1.0], [2.0], [2.0]]
    profile = built(work, processors=processors, regions=regions)
    found = values(profile)
    assert found["phase.rank_imbalance"] == pytest.approx(1.0)
    assert found["phase.thread_imbalance"] == pytest.approx(1.5)
    assert found["phase.imbalance"] == pytest.approx(1.5)
    assert found["run.threads"] == 2
    assert found["run.ranks"] == 2


def test_threads_that_were_not_observed_leave_their_balance_unknown() -> None:
    profile = built([[3.0], [1.0]], notes=(Note("unobserved threads", "2 threads without events"),))
    assert "phase.thread_imbalance" not in values(profile)
    assert "run.idle_threads_share" not in values(profile)
    assert values(profile)["phase.rank_imbalance"] == pytest.approx(1.5)


def test_slowest_rank_persistence_looks_at_ranks_where_there_are_several() -> None:
    processors = tuple(Processor(rank, thread) for rank in range(2) for thread in range(2))
    work = [[3.0, 1.0], [1.0, 3.0], [1.0, 1.0], [1.0, 1.0]]
    profile = built(work, processors=processors, regions=(Region("solve", threaded=True),))
    assert values(profile)["phase.slowest_rank_persistence"] == 1.0
    alone = built(
        work[:2],
        processors=tuple(Processor(0, thread) for thread in range(2)),
        regions=(Region("solve", threaded=True),),
    )
    assert values(alone)["phase.slowest_rank_persistence"] == 0.5


def test_work_that_is_not_known_leaves_load_unknown() -> None:
    phase = Phase("run", "whole", np.array([0]), {"wall_s": np.ones((1, 2, 1))})
    profile = strategies.build([phase], actual_s=1.0)
    found = sheet(profile)
    assert not {name for name in found.sites[0].values if name.startswith(("comm.", "wait.", "sync.", "io."))}
    assert "phase.imbalance" not in found.sites[0].values
    assert found.sites[0].values["phase.share"] == 1.0


def test_a_serial_phase_is_one() -> None:
    found = build_case_sheet("serial-part")
    assert [site.values["phase.is_serial"] for site in found.sites] == [True, False]
    assert "phase.slowest_differs" not in found.sites[0].values


# ---- events


def at(case: str, site: int = 0) -> dict[str, object]:
    return dict(build_case_sheet(case).sites[site].values)


def test_messages() -> None:
    found = at("small-messages")
    assert found["comm.messages_per_iteration"] == 400
    assert found["comm.mean_message_B"] == 512
    assert found["comm.small_message_share"] == 1
    assert found["comm.point_to_point_share"] == pytest.approx(0.12 / 0.122)
    assert found["comm.reductions_per_iteration"] == 1
    assert found["comm.seconds_per_message"] == pytest.approx(0.12 / 400)
    assert found["comm.share"] == pytest.approx(0.122 / 0.622)


def test_messages_of_exactly_four_kib_are_small() -> None:
    assert at("io-all")["comm.small_message_share"] == 0
    sized = load_cases()["small-messages"]
    phase = sized.phases[0]
    for size, share in ((4096.0, 1.0), (4097.0, 0.0)):
        event = replace(phase.events[0], bytes=size)
        case = replace(sized, phases=(replace(phase, events=(event,)),))
        assert values(profile_of(case))["comm.small_message_share"] == share


def profile_of(case: object) -> Profile:
    from advisor.advice.rules import case_profiles

    return case_profiles.build_profile(case)


def test_unknown_sizes_are_unknown() -> None:
    sized = load_cases()["small-messages"]
    phase = sized.phases[0]
    case = replace(sized, phases=(replace(phase, events=(replace(phase.events[0], bytes=None),)),))
    found = values(profile_of(case))
    assert "comm.mean_message_B" not in found
    assert "comm.small_message_share" not in found
    assert found["comm.messages_per_iteration"] == 400


def test_kinds_of_waiting() -> None:
    found = at("late-sender")
    assert found["wait.late_sender_share"] == pytest.approx(1.2 / (1.2 + 0.4 - 0.003 + 3 * 0.0), rel=0.01)
    assert found["wait.barrier_share"] == pytest.approx(1 - found["wait.late_sender_share"])
    assert at("group-collectives")["wait.collective_share"] == pytest.approx(0.75)
    assert at("omp-skew")["wait.thread_share"] == 1


def test_synchronizations_of_one_name_are_counted_together() -> None:
    found = at("many-barriers", 1)
    assert found["sync.barriers_per_iteration"] == 3
    assert found["sync.empty_phases"] is True
    assert at("many-forks")["sync.fork_joins_per_iteration"] == 20
    assert at("many-forks")["sync.thread_share"] == 1


def test_input_and_output() -> None:
    one, everybody = at("io-one"), at("fsync")
    assert one["io.one_processor"] is True
    assert one["io.processors_share"] == 0.25
    assert one["io.mean_operation_B"] == 4 * 2**20
    assert everybody["io.one_processor"] is False
    assert everybody["io.fsync_share"] == everybody["io.forced_share"] == pytest.approx(0.8)
    assert (one["io.forced_share"], one["io.forced_B"]) == (0, 0)
    assert everybody["io.forced_B"] > 0
    assert everybody["io.small_share"] in (0, 1)
    assert "io.unaligned_share" not in everybody, "a trace does not tell where an operation begins"
    assert everybody["io.operations_per_iteration"] == 4
    assert at("io-metadata")["io.metadata_share"] == pytest.approx(0.6)
    assert at("io-all")["io.mpi_io"] is False


def test_nothing_recorded_is_unknown_but_nothing_done_is_zero() -> None:
    assert at("clean")["io.share"] == 0
    assert at("clean")["io.fsync_share"] == 0
    assert "io.share" not in at("fig4")
    assert "io.fsync_share" not in at("fig4")


def test_reductions_that_fill_one_phase_are_counted_per_stretch_of_work() -> None:
    """A tracer that sees no functions finds one phase: an iteration with work, then nineteen without."""
    case = load_cases()["many-reductions"]
    phase = case.phases[0]
    rows = ((0.5,), *[(0.0,)] * 19)
    events = (replace(phase.events[0], count=1, seconds=(0.005,)),)
    smeared = replace(case, phases=(replace(phase, work_s=rows, iterations=200, events=events),))
    assert values(profile_of(smeared))["comm.reductions_per_iteration"] == pytest.approx(20, rel=0.1)
    even = replace(case, phases=(replace(phase, iterations=200, events=events),))
    assert values(profile_of(even))["comm.reductions_per_iteration"] == pytest.approx(1)


def test_operating_system() -> None:
    assert at("sleeping")["os.share"] == pytest.approx(0.2 / 1.2)
    assert "os.share" not in at("io-all")


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
        ("MPI_Neighbor_alltoall", {"all to all"}),
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


# ---- counts


def test_counts_of_the_processor() -> None:
    counts = {
        "misses.L1": np.array([[20.0, 20.0]]),
        "misses.L3": np.array([[4.0, 0.0]]),
        "compiled_ops.load": np.array([[60.0, 60.0]]),
        "compiled_ops.store": np.array([[40.0, 40.0]]),
        "vectorized_ops": np.array([[5.0, 5.0]]),
        "compiled_ops.fp_add": np.array([[10.0, 10.0]]),
        "compiled_ops.fp_mul": np.array([[10.0, 10.0]]),
        "contended_loads": np.array([[6.0, 6.0]]),
    }
    found = values(built([[1.0], [1.0]], regions=(Region("solve"),), counts=counts))
    assert found["cache.l1_miss_ratio"] == pytest.approx(0.2)
    assert found["cache.ll_miss_ratio"] == pytest.approx(0.02)
    assert found["processor.vectorized_share"] == pytest.approx(0.25)
    assert found["processor.false_sharing_share"] == pytest.approx(0.1)
    assert "memory.bandwidth_share" not in found


def test_bandwidth_needs_a_machine() -> None:
    from advisor.analysis import machines

    machine = next(
        m
        for name in machines.list_model_names()
        if name != "host" and (m := machines.load_machine(name)).memory is not None
    )
    assert machine.memory is not None
    peak = machine.memory.bandwidth or machine.memory.sustained
    assert peak is not None
    profile = built([[2.0], [1.0]], regions=(Region("solve"),), counts={"memory_bytes": np.array([[peak, 0.0]])})
    found = sheet(profile, machine=machine).sites[0].values
    assert found["memory.bandwidth_share"] == pytest.approx(0.5)


# ---- the run


def test_run_facts() -> None:
    found = build_case_sheet("idle-threads").run.values
    assert found["run.threads"] == 2
    assert found["run.processors"] == 4
    assert found["run.oversubscription"] == 1
    assert found["run.startup_s"] == 0.5
    assert found["run.shutdown_s"] == pytest.approx(0.1)
    assert found["run.iterations"] == 10
    assert found["run.has_mpi"] is found["run.has_openmp"] is True
    assert found["run.idle_threads_share"] == pytest.approx(2 * 5 / (4 * 15.6))
    assert "run.startup_s" not in build_case_sheet("fig4").run.values


@pytest.mark.parametrize(
    ("paradigms", "processors", "model"),
    [
        (("mpi",), 2, "mpi"),
        (("mpi", "openmp"), 2, "hybrid"),
        (("openmp",), 1, "openmp"),
        ((), 2, "mpi"),
        ((), 1, "serial"),
        (("cuda",), 1, None),
    ],
)
def test_model_of_a_program(paradigms: tuple[str, ...], processors: int, model: str | None) -> None:
    assert find_programming_model(built([[1.0]] * processors, paradigms=paradigms)) == model


def test_threads_alone_are_openmp() -> None:
    assert find_programming_model(built([[1.0], [1.0]], processors=(Processor(0), Processor(0, 1)))) == "openmp"


def test_slowest_processors_are_named_worst_first() -> None:
    found = sheet(built([[1.0], [1.5], [1.0], [1.6]]))
    assert find_slowest_processors(found, found.sites[0]) == (3, 1)
    even = sheet(built([[1.0], [1.001]]))
    assert find_slowest_processors(even, even.sites[0]) == ()


# ---- sites


def named_phases(durations: dict[str, float]) -> Profile:
    phases = [
        strategies.phase([[s], [s]], name=name, regions=[0], duration_s=np.array([s]), closed_by=name.split(" (")[0])
        for name, s in durations.items()
    ]
    return strategies.build(phases, actual_s=100.0)


def test_small_phases_of_a_name_are_one_site() -> None:
    profile = named_phases({"solve": 90.0, **{f"reduce ({n})": 0.5 for n in range(2, 12)}, "rare": 0.1})
    names_of_sites = [site.place.name for site in sheet(profile).sites if site.place]
    assert names_of_sites == ["solve", "reduce (10 phases)"]


def test_a_site_is_worth_a_look_from_one_per_cent_on() -> None:
    profile = named_phases({"solve": 90.0, "write": 100 * policy.PLACE_SHARE, "read": 99 * policy.PLACE_SHARE})
    assert [site.place.name for site in sheet(profile).sites if site.place] == ["solve", "write"]


def test_runs_of_microseconds_have_no_sites() -> None:
    profile = replace(named_phases({"solve": 0.0009}), actual_s=0.001)
    assert sheet(profile).sites == ()


def test_runs_in_simulated_time_have_sites_however_short() -> None:
    assert is_significant(1e-9, 1e-8, simulated=True)
    assert not is_significant(1e-9, 1e-8)


def test_phases_of_unknown_length_last_as_long_as_the_busiest_processor() -> None:
    """Two regions, two processors, three instances, and no work known: 6 ms and 12 ms."""
    phase = Phase("solve", "parallel", np.array([0, 1]), {"wall_s": np.full((2, 2, 3), 1e-6) * [[[1.0], [2.0]]]})
    bare = replace(built([[1.0], [1.0]]), phases=(phase,))
    loads: object = SimpleNamespace(phases=[SimpleNamespace(has_work=False)])
    assert compute_durations(bare, loads).tolist() == pytest.approx([12e-6])  # type: ignore[arg-type]


def test_family_name_drops_the_number_only() -> None:
    assert family_name("to MPI_Allreduce (12)") == "to MPI_Allreduce"
    assert family_name("region (a)") == "region (a)"
    assert family_name("region 12") == "region 12"


# ---- plugins


def test_facts_of_plugins() -> None:
    per_phase = Fact("site.doubled", "count", "phase", ("x",), "measure x", "twice the number", lambda _, p: 2.0 * p)
    of_run = Fact("site.name", "name", "run", ("x",), "measure x", "the program", lambda profile, _: profile.program)
    nothing = Fact("site.nothing", "s", "phase", ("x",), "measure {launch}x", "never", lambda *_: math.nan)
    profile = built([[1.0]], [[1.0]])
    found = sheet(profile, extra=(per_phase, of_run, nothing))
    assert [site.values["site.doubled"] for site in found.sites] == [0.0, 2.0]
    assert found.run.values["site.name"] == "synthetic"
    assert "site.nothing" not in found.sites[0].values
    assert found.run.find_fact("site.nothing")[2].command == "measure x"
    assert current_names().facts.keys() == facts_by_name().keys()


@pytest.mark.parametrize(
    ("unit", "compute", "words"),
    [
        ("s", lambda *_: 1 / 0, "the fact site.bad failed: ZeroDivisionError: division by zero"),
        ("s", lambda *_: "much", "the fact site.bad is a str, but its unit is s"),
        ("count", lambda *_: True, "the fact site.bad is a bool, but its unit is count"),
        ("yes/no", lambda *_: 1.0, "the fact site.bad is a float, but its unit is yes/no"),
        ("name", lambda *_: ["x"], "the fact site.bad is a list, but its unit is name"),
        ("s", None, "the fact site.bad has no function that computes it"),
    ],
)
def test_a_fact_that_fails_is_unknown_and_said(unit: str, compute: object, words: str) -> None:
    found = sheet(
        built([[1.0]], [[2.0]]), extra=[Fact("site.bad", unit, "phase", ("x",), "measure", "formula", compute)]
    )
    assert found.problems == (words,)
    assert all("site.bad" not in site.values for site in found.sites)
    assert found.sites[0].values["phase.imbalance"] == 1.0


# ---- whatever a profile holds

#: Facts that depend on who is named first of equals.
TIES = ("phase.slowest_rank_persistence", "phase.slowest_differs", "phase.thread_imbalance")
SHARES = [fact.name for fact in VOCABULARY if fact.unit == "share" and not fact.name.startswith(("memory", "cache"))]


@given(profiles())
def test_no_profile_is_too_strange(profile: Profile) -> None:
    found = sheet(profile)
    for site in (found.run, *found.sites):
        for value in site.values.values():
            assert isinstance(value, bool | str) or math.isfinite(value)
        for letter, span in site.spans.items():
            assert span.low <= span.high, letter


@given(strategies.runs())
def test_values_stay_in_their_limits(profile: Profile) -> None:
    for site in sheet(profile).sites:
        known = site.values
        assert all(-1e-9 <= float(known[name]) <= 1 + 1e-9 for name in SHARES if name in known)
        for name in ("phase.imbalance", "phase.rank_imbalance", "phase.thread_imbalance", "phase.dynamic_ratio"):
            assert float(known.get(name, 1.0)) >= 1 - 1e-9


@given(strategies.runs(threads=1), st.randoms(use_true_random=False))
def test_the_order_of_ranks_changes_nothing(profile: Profile, random: object) -> None:
    count = len(profile.processors)
    order = np.array(random.sample(range(count), count))
    phases = tuple(
        replace(phase, arrays={name: array[:, order] for name, array in phase.arrays.items()})
        for phase in profile.phases
    )
    places = np.argsort(order)
    causes = profile.causes and replace(profile.causes, processor=places[profile.causes.processor])
    outside = {name: array[order] for name, array in profile.outside.items()}
    moved = replace(profile, phases=phases, causes=causes, outside=outside)
    for mine, other in zip(sheet(profile).sites, sheet(moved).sites, strict=True):
        for name, value in mine.values.items():
            if name not in TIES:
                assert other.values[name] == (value if isinstance(value, bool | str) else pytest.approx(value))


@given(strategies.runs(), st.floats(0.5, 3.0))
def test_scaled_times_change_only_times(profile: Profile, factor: float) -> None:
    def scaled(phase: Phase) -> Phase:
        length = None if phase.duration_s is None else phase.duration_s * factor
        return replace(phase, arrays={n: a * factor for n, a in phase.arrays.items()}, duration_s=length)

    causes = profile.causes and replace(profile.causes, seconds=profile.causes.seconds * factor)
    outside = {name: array * factor for name, array in profile.outside.items()}
    other = replace(
        profile,
        phases=tuple(map(scaled, profile.phases)),
        causes=causes,
        outside=outside,
        actual_s=profile.actual_s * factor,
    )
    units = {fact.name: fact.unit for fact in VOCABULARY}
    for mine, theirs in zip(sheet(profile).sites, sheet(other).sites, strict=True):
        for name, value in mine.values.items():
            if isinstance(value, float) and name not in TIES:
                expected = value * factor if units[name] == "s" else value
                assert theirs.values[name] == pytest.approx(expected, rel=1e-6, abs=1e-9), name


def test_many_small_phases_of_different_names_are_one_place() -> None:
    phases = tuple(
        Phase(f"region {n}", "parallel", np.array([0]), {"work_s": np.array([[[0.004], [0.001 * (n % 4)]]])})
        for n in range(500)
    )
    profile = Profile(
        program="many", run="1", reader="test", actual_s=2.0, processors=(Processor(0), Processor(1)),
        regions=(Region("all"),), phases=phases, status={"work_s": "measured"},
    )  # fmt: skip
    found = find_places(profile, compute_durations(profile, summarize_loads(profile)))
    assert [(place.name, len(place.phases)) for place in found] == [("500 small phases", 500)]
    assert found[0].seconds == pytest.approx(2.0)


def test_collecting_and_broadcasting_belong_together_where_both_occur_as_often() -> None:
    case = load_cases()["slow-collective"]
    phase = case.phases[0]
    gather, once = (replace(phase.events[0], call=name) for name in ("MPI_Gather", "MPI_Bcast"))
    assert at("slow-collective")["comm.relay_share"] == 0
    for events, share in (
        ((gather, once), 0.2 / 0.7),
        ((gather, replace(once, count=20)), 0.0),
        ((gather,), 0.0),
    ):
        changed = replace(case, phases=(replace(phase, events=events),))
        assert values(profile_of(changed))["comm.relay_share"] == pytest.approx(share)


def test_what_is_gathered_and_not_broadcast_again_is_kept() -> None:
    case = load_cases()["gathered-search"]
    (phase,) = case.phases
    (gather,) = phase.events
    assert at("gathered-search")["comm.gather_share"] == 1.0
    for size, kept in ((8.0, 1.0), (gather.bytes, 0.0)):
        events = (gather, replace(gather, call="MPI_Bcast", bytes=size))
        found = values(profile_of(replace(case, phases=(replace(phase, events=events),))))
        assert found["comm.kept_share"] == pytest.approx(kept, abs=1e-4)


def test_waiting_for_a_notice_is_no_waiting_for_a_lock() -> None:
    case = load_cases()["thread-lock"]
    phase = case.phases[0]
    locked = at("thread-lock")
    assert locked["wait.lock_share"] == pytest.approx(0.5)
    noticed = replace(phase, events=(replace(phase.events[0], call="pthread_cond_wait"),))
    found = values(profile_of(replace(case, phases=(noticed,))))
    assert found["wait.lock_share"] == pytest.approx(0.0)
    assert found["wait.thread_share"] == locked["wait.thread_share"]


def test_places_matter_by_what_other_programs_left_of_the_run() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    longer = replace(profile, actual_s=1000 * profile.actual_s)
    seconds = compute_durations(profile, summarize_loads(profile))
    assert not find_places(longer, seconds)
    others = np.full(len(profile.processors), 999 * profile.actual_s)
    busy = replace(longer, outside={**profile.outside, OTHER_PROGRAMS: others})
    assert find_places(busy, seconds) == find_places(profile, seconds)
