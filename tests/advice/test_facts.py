"""Facts: the vocabulary is complete and documented, and the values are those one finds by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import strategies
from fact_sheets import build_run, collect_sheet, site_values
from hypothesis import given
from hypothesis import strategies as st
from profile_strategies import profiles

from advisor.advice.facts.fact_records import Fact
from advisor.advice.facts.page import render_facts_page
from advisor.advice.facts.sheet import find_programming_model, find_slowest_processors
from advisor.advice.facts.values import VALUES
from advisor.advice.facts.vocabulary import VOCABULARY, command_for, facts_by_name
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import build_case_sheet, load_cases
from advisor.advice.rules.names import current_names
from advisor.model.records import Note, Phase, Processor, Profile, Region
from advisor.model.units import DIMENSIONS
from advisor.trace.counts import TASK_RECORDING

ROOT = Path(__file__).resolve().parents[2]
#: The words that rule files may rely on.
WORDS = """
run.wall_s run.ranks run.threads run.processors run.cores run.oversubscription run.startup_s run.shutdown_s
run.busy_cores run.bound_threads run.iterations run.has_mpi run.has_openmp run.idle_threads_share run.queue_share
run.disturbance_share run.others_share run.contention
phase.imbalance phase.rank_imbalance phase.thread_imbalance phase.dynamic_ratio phase.slowest_rank_persistence
phase.first_rank_ratio
phase.untold_imbalance run.undivided_parts run.used_share run.device_overlap_s run.device_overlap_share
phase.slowest_differs phase.iterations phase.share phase.closed_by phase.is_serial phase.phases
phase.work_s phase.alone_share phase.shareable_s phase.divisible_s wait.task_share
code.interpreted_share omp.task_mean_s omp.confined_s
wait.late_sender_share wait.late_receiver_share wait.collective_share wait.barrier_share wait.thread_share
wait.late_root_share wait.answer_share wait.spin_share
wait.lock_share wait.notices wait.hand_overs wait.hand_over_share wait.interpreter_share
wait.turns_s wait.work_per_hand_over_s code.pickled_share code.keyed_share code.listed_share code.regrown_share
code.decoded_share code.rowwise_share wait.unmatched_share wait.share
comm.messages_per_iteration comm.mean_message_B comm.small_message_share
comm.point_to_point_share comm.collective_share comm.reductions_per_iteration comm.mean_collective_B
comm.collectives_per_iteration comm.alltoall_share comm.share comm.relay_share comm.gather_share
comm.gathers_per_iteration comm.kept_share comm.mean_gather_B comm.whole_share io.untold_share os.untold_share
comm.repeated_share sync.fence_share code.filter_share code.packing_share code.subnormal_share
comm.one_sided_share comm.one_sided_per_iteration
comm.mean_one_sided_B comm.poll_share comm.polls_per_message
comm.setup_share comm.setups_per_iteration comm.answers comm.work_per_answer_s
sync.barriers_per_iteration sync.share sync.work_between_s sync.empty_phases sync.thread_share
sync.fork_joins_per_iteration sync.threads_created sync.creation_share sync.work_per_thread_s
io.share io.operations_per_iteration io.mean_operation_B io.shared_share
io.forced_share io.forced_B io.processors_share io.fsync_share io.metadata_share
io.metadata_calls
io.one_processor io.data_share io.stdio_share io.small_seconds_share io.operations
io.unaligned_seconds_share
io.random_share io.reread_share io.switch_share io.independent_share io.collective_share io.private_share
io.one_server_share io.text_share io.text_s io.stream_s
io.files_per_processor io.slowest_excess_s io.imbalance io.bursts
cache.l1_miss_ratio cache.ll_miss_ratio memory.bandwidth_share processor.vectorized_share
processor.dram_share processor.far_cache_share
processor.false_sharing_share os.share os.sleep_share
code.older_share code.known_share code.unoptimized_share code.checked_share code.scalar_share code.overlap_share
code.order_share code.branch_share code.call_share code.stride_share code.page_share
code.division_share code.update_share code.math_share code.inlinable_share code.allocation_share code.copy_share
code.lock_share code.lock_cost_s code.text_share code.recurrence_share code.random_share code.sort_share
code.pointer_share code.scatter_share code.guess_share
code.quotient_share code.shape_share code.chain_share code.baseline_share code.transpose_share
code.streamed_share code.search_share code.string_share code.objects_share code.copied_share code.rebuilt_share
code.hashed_share code.ordered_share code.constructed_share code.selection_share code.thrown_share
code.synced_share code.buffered_share code.recomputed_share code.collected_share code.jitted_share code.stepwise_share
code.length_share code.garbage_share code.import_share code.deep_copy_share
code.pattern_share
device.devices device.on_host device.busy_share device.iterations device.kernels device.median_kernel_s
device.short_kernel_share device.elementwise_share device.matrix_share device.plain_matrix_share device.launch_calls
device.launch_s device.sync_calls device.sync_s device.sync_wait_share device.allocation_calls device.allocation_s
device.graph_launches device.copies device.pageable_share device.host_copy_share device.small_copy_share
device.communications device.communications_per_iteration device.exposed_share device.median_communication_s
device.imbalance device.one_busy_share
device.fusible_share device.small_grid_share device.low_occupancy_share device.spill_share device.longest_kernel_share
device.compute_streams
device.concurrent_share device.graph_kernel_share device.loading_share device.recompilations device.launch_interval_s
device.prepare_share device.optimizer_launches device.passes_per_update device.value_reads
device.value_reads_per_iteration device.host_allocations device.round_trips_per_kernel device.migration_share
device.page_faults device.copy_rate_spread device.point_to_point_share device.communication_s_per_GiB
device.float_communication_share device.kernel_count_spread device.same_kernel_spread device.processes_per_device
device.bandwidth_bound_share device.latency_bound_share device.excess_sector_share device.divergent_share
device.upload_ratio device.lead_share device.lead_s device.setup_share device.setup_s device.element_share
"""


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
    unused = page.partition("No rule in `rules/` uses ")[2].partition(": they are")[0]
    assert {"`run.wall_s`", "`device.kernels`"} <= set(unused.replace(",", "").split())
    assert not {"`phase.imbalance`", "`code.math_share`", "`phase.share`"} & set(unused.replace(",", "").split())


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
    profile = build_run([[1.0], [1.0], [2.0]])
    assert "mpirun -n 3" in command_for(profile, facts_by_name()["cache.l1_miss_ratio"])
    assert "mpirun -n 3" in command_for(profile, facts_by_name()["wait.share"])
    alone = build_run([[1.0]])
    assert "mpirun" not in command_for(alone, facts_by_name()["cache.l1_miss_ratio"])
    assert all("{" not in command_for(profile, fact) for fact in VOCABULARY)


def test_command_records_devices_as_they_were_recorded() -> None:
    fact = facts_by_name()["device.launch_calls"]
    profile = build_run([[1.0], [1.0]])
    for reader, word in (("nsys", "mpirun -n 2 nsys profile"), ("rocprof", "rocprofv3"), ("chrome_trace", "torch.")):
        assert word in command_for(replace(profile, reader=reader), fact)
        assert "ncu" in command_for(replace(profile, reader=reader), facts_by_name()["device.divergent_share"])


# ---- load


def test_loads_of_figure_4() -> None:
    profile = build_run([[10.0, 5.0], [5.0, 6.0]], [[10.0, 15.0], [15.0, 16.0]], actual_s=47.0)
    first, second = site_values(profile, 0), site_values(profile, 1)
    assert first["phase.imbalance"] == pytest.approx(15 / 13)
    assert first["phase.dynamic_ratio"] == pytest.approx(16 / 15)
    assert first["phase.slowest_rank_persistence"] == 0.5
    assert first["phase.slowest_differs"] is True
    assert first["phase.work_s"] == 15
    assert first["sync.work_between_s"] == 8
    assert first["phase.share"] == pytest.approx(16 / 47)
    assert first["phase.phases"] == 2
    assert second["phase.slowest_differs"] is False
    assert second["phase.slowest_rank_persistence"] == 1
    assert second["phase.iterations"] == 2


def test_gaps_at_sites_add_up_to_the_gaps() -> None:
    profile = build_run([[10.0, 5.0], [5.0, 6.0]], [[10.0, 15.0], [15.0, 16.0]], actual_s=47.0)
    found = collect_sheet(profile)
    for letter, seconds in (("L", 1.0), ("M'", 4.0), ("D", 1.0)):
        assert found.run.gap_span(letter).low == found.run.gap_span(letter).high == pytest.approx(seconds)
        assert sum(site.gap_span(letter).low for site in found.sites) == pytest.approx(seconds)


def test_threads_are_told_from_ranks() -> None:
    processors = tuple(Processor(rank, thread) for rank in range(2) for thread in range(2))
    regions = (Region("solve", threaded=True),)
    work = [[3.0], [1.0], [2.0], [2.0]]
    profile = build_run(work, processors=processors, regions=regions)
    found = site_values(profile)
    assert found["phase.rank_imbalance"] == pytest.approx(1.0)
    assert found["phase.thread_imbalance"] == pytest.approx(1.5)
    assert found["phase.imbalance"] == pytest.approx(1.5)
    assert found["run.threads"] == 2
    assert found["run.ranks"] == 2


def test_threads_that_were_not_observed_leave_their_balance_unknown() -> None:
    profile = build_run([[3.0], [1.0]], notes=(Note("unobserved threads", "2 threads without events"),))
    assert "phase.thread_imbalance" not in site_values(profile)
    assert "run.idle_threads_share" not in site_values(profile)
    assert site_values(profile)["phase.rank_imbalance"] == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("work", "ratio"),
    [([0.1, 4.0, 4.0, 4.0], 0.025), ([0.1, 4.0, 0.1, 4.0, 0.1], 1.0), ([0.0, 0.0, 0.0, 0.0, 4.0], 1.0)],
)
def test_a_first_rank_is_set_apart_where_few_others_have_as_little_work(work: list[float], ratio: float) -> None:
    profile = build_run([[each] for each in work])
    assert site_values(profile)["phase.first_rank_ratio"] == pytest.approx(ratio)


def test_slowest_rank_persistence_looks_at_ranks_where_there_are_several() -> None:
    processors = tuple(Processor(rank, thread) for rank in range(2) for thread in range(2))
    work = [[3.0, 1.0], [1.0, 3.0], [1.0, 1.0], [1.0, 1.0]]
    profile = build_run(work, processors=processors, regions=(Region("solve", threaded=True),))
    assert site_values(profile)["phase.slowest_rank_persistence"] == 1.0
    alone = build_run(
        work[:2],
        processors=tuple(Processor(0, thread) for thread in range(2)),
        regions=(Region("solve", threaded=True),),
    )
    assert site_values(alone)["phase.slowest_rank_persistence"] == 0.5


def test_work_that_is_not_known_leaves_load_unknown() -> None:
    phase = Phase("run", "whole", np.array([0]), {"wall_s": np.ones((1, 2, 1))})
    profile = strategies.build([phase], actual_s=1.0)
    found = collect_sheet(profile)
    assert not {name for name in found.sites[0].values if name.startswith(("comm.", "wait.", "sync.", "io."))}
    assert "phase.imbalance" not in found.sites[0].values
    assert found.sites[0].values["phase.share"] == 1.0


def test_a_serial_phase_is_one() -> None:
    found = build_case_sheet("serial-part")
    assert [site.values["phase.is_serial"] for site in found.sites] == [True, False]
    assert "phase.slowest_differs" not in found.sites[0].values


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
    found = site_values(build_run([[1.0], [1.0]], regions=(Region("solve"),), counts=counts))
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
    profile = build_run([[2.0], [1.0]], regions=(Region("solve"),), counts={"memory_bytes": np.array([[peak, 0.0]])})
    found = collect_sheet(profile, machine=machine).sites[0].values
    assert found["memory.bandwidth_share"] == pytest.approx(0.5)


def test_what_recording_took_is_no_cost_of_tasks() -> None:
    profile = build_profile(load_cases()["small-tasks"])
    waited_s = profile.sum_by_region("wait_s").sum()
    share = collect_sheet(profile).sites[0].values["wait.task_share"]
    recorded = np.zeros((len(profile.regions), len(profile.processors)))
    recorded[0, 0] = waited_s / 4
    found = collect_sheet(replace(profile, counts={**profile.counts, TASK_RECORDING: recorded})).sites[0].values
    assert found["wait.task_share"] == pytest.approx(share - 0.25)


# ---- the run


def test_run_facts() -> None:
    found = build_case_sheet("idle-threads").run.values
    assert found["run.threads"] == 2
    assert found["run.processors"] == 4
    assert found["run.oversubscription"] == found["run.contention"] == 1
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
    assert find_programming_model(build_run([[1.0]] * processors, paradigms=paradigms)) == model


def test_threads_alone_are_openmp() -> None:
    assert find_programming_model(build_run([[1.0], [1.0]], processors=(Processor(0), Processor(0, 1)))) == "openmp"


def test_slowest_processors_are_named_worst_first() -> None:
    found = collect_sheet(build_run([[1.0], [1.5], [1.0], [1.6]]))
    assert find_slowest_processors(found, found.sites[0]) == (3, 1)
    even = collect_sheet(build_run([[1.0], [1.001]]))
    assert find_slowest_processors(even, even.sites[0]) == ()


# ---- plugins


def test_facts_of_plugins() -> None:
    per_phase = Fact("site.doubled", "count", "phase", ("x",), "measure x", "twice the number", lambda _, p: 2.0 * p)
    of_run = Fact("site.name", "name", "run", ("x",), "measure x", "the program", lambda profile, _: profile.program)
    nothing = Fact("site.nothing", "s", "phase", ("x",), "measure {launch}x", "never", lambda *_: math.nan)
    profile = build_run([[1.0]], [[1.0]])
    found = collect_sheet(profile, extra=(per_phase, of_run, nothing))
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
    found = collect_sheet(
        build_run([[1.0]], [[2.0]]), extra=[Fact("site.bad", unit, "phase", ("x",), "measure", "formula", compute)]
    )
    assert found.problems == (words,)
    assert all("site.bad" not in site.values for site in found.sites)
    assert found.sites[0].values["phase.imbalance"] == 1.0


# ---- whatever a profile holds

#: Facts that depend on who is named first of equals.
TIES = (
    "phase.slowest_rank_persistence", "phase.slowest_differs", "phase.thread_imbalance", "run.iterations",
    "phase.first_rank_ratio",
)  # fmt: skip
SHARES = [fact.name for fact in VOCABULARY if fact.unit == "share" and not fact.name.startswith(("memory", "cache"))]


@given(profiles())
def test_no_profile_is_too_strange(profile: Profile) -> None:
    found = collect_sheet(profile)
    for site in (found.run, *found.sites):
        for value in site.values.values():
            assert isinstance(value, bool | str) or math.isfinite(value)
        for letter, span in site.spans.items():
            assert span.low <= span.high, letter


@given(strategies.runs())
def test_values_stay_in_their_limits(profile: Profile) -> None:
    for site in collect_sheet(profile).sites:
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
    for mine, other in zip(collect_sheet(profile).sites, collect_sheet(moved).sites, strict=True):
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
    for mine, theirs in zip(collect_sheet(profile).sites, collect_sheet(other).sites, strict=True):
        for name, value in mine.values.items():
            if isinstance(value, float) and name not in TIES:
                expected = value * factor if units[name] == "s" else value
                assert theirs.values[name] == pytest.approx(expected, rel=1e-6, abs=1e-9), name
