"""The laboratory's programs, faults and remedies, and how the advice on them is judged."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from lab import judge
from lab.archive import write_archive
from lab.costs import Network, Storage
from lab.engine import Machine
from lab.exchanges import Exchange
from lab.faults import FAULTS
from lab.groups import Ensemble
from lab.loads import Load
from lab.patterns import Phase
from lab.remedies import REMEDIES, RUN_REMEDIES, apply
from lab.scores import Case, Item, report
from lab.shapes import SHAPES, build
from lab.truth import Gain, gain_of, gains, meanings, places
from lab.world import Code, Noise, run, work_of

from advisor.formats import otf2
from advisor.trace.events import Kind

#: What cures each fault, and the shape that shows it.
CURES = {
    "imbalance": ("stencil_2d_sendrecv", "balance"),
    "wandering_load": ("stencil_2d_nonblocking", "schedule_on_demand"),
    "growing_load": ("particles_with_output", "schedule_on_demand"),
    "late_sender": ("stencil_1d_nonblocking", "send_early"),
    "early_wait": ("stencil_2d_free", "overlap"),
    "small_messages": ("stencil_1d_sendrecv", "group_messages"),
    "sends_in_a_chain": ("stencil_1d_blocking", "receive_early"),
    "coarse_pipeline": ("wavefront_1d", "cut_finer"),
    "needless_barriers": ("packages", "drop_barriers"),
    "many_reductions": ("packages", "fuse_reductions"),
    "blocking_reduction": ("stencil_2d_nonblocking", "use_nonblocking_collectives"),
    "large_transpose": ("spectral", "overlap_alltoall"),
    "serial_part": ("serial_setup_each_step", "parallelize"),
    "idle_master": ("master_static", "balance"),
    "busy_master": ("master_on_demand", "parallelize"),
    "static_loop": ("threads_only", "schedule_loops"),
    "serial_threads": ("threads_only", "thread_everything"),
    "many_forks": ("threads_only", "merge_parallel_regions"),
    "thread_lock": ("threads_only", "use_private_copies"),
    "one_writer": ("output_each_step", "write_in_parallel"),
    "small_writes": ("output_each_step", "write_large_blocks"),
    "frequent_fsync": ("output_each_step", "force_less_often"),
    "opened_each_time": ("output_each_step", "open_fewer_files"),
    "locked_file": ("output_each_step", "write_collectively"),
    "slow_core": ("embarrassing", "balance"),
    "oversubscription": ("stencil_1d_sendrecv", "start_fewer_ranks"),
    "uneven_groups": ("coupled_codes", "balance"),
    "uneven_members": ("ensemble", "balance"),
    "needless_fences": ("one_sided_fences", "schedule_on_demand"),
    "rare_repartition": ("adaptive_mesh", "schedule_on_demand"),
    "waited_output": ("io_servers", "write_in_background"),
    "late_results": ("task_graph", "send_early"),
    "blocks_after_work": ("all_pairs", "overlap"),
    "skewed_buckets": ("sample_sort", "balance"),
    "uneven_levels": ("refined_levels", "balance"),
}


def small(shape: str) -> Code:
    """Return a program of a shape without faults and noise: 8 ranks, 10 iterations of 10 ms."""
    made = SHAPES[shape]
    phases = tuple(replace(each, work_s=each.work_s * 0.01) for each in made.phases)
    ranks, threads = (8 if made.most_ranks > 1 else 1), (4 if made.threads else 1)
    machine = Machine(Network(overhead_s=2e-6), Storage(servers=8))
    return Code(1, shape, ranks, 10, phases, threads, machine=machine, noise=Noise(), start_s=0.0)


def faulty(fault: str, shape: str) -> tuple[Code, str]:
    """Return a program with a fault, and the phase that has it."""
    code = small(shape)
    generator = np.random.default_rng(1)
    for phase in code.phases:
        made = FAULTS[fault](code, phase, 0.45, generator)
        if made is not None:
            return made, phase.name
    raise AssertionError(f"no phase of {shape} can have {fault}")


def test_there_are_many_shapes_and_each_fault_has_a_cure() -> None:
    assert len(SHAPES) >= 30
    assert set(CURES) == set(FAULTS)


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - {"oversubscription", "uneven_members"}))
def test_a_fault_costs_time_and_its_cure_wins_some_back(fault: str) -> None:
    shape, remedy = CURES[fault]
    code, phase = faulty(fault, shape)
    wall = run(code).wall_s
    cured = apply(code, remedy, (phase,))
    assert cured is not None
    assert wall - run(cured).wall_s > 0.01 * wall


def test_groups_of_an_ensemble_that_are_done_early_take_other_members() -> None:
    costs = Load("linear", 0.8)
    phase = Ensemble(name="run_member", work_s=0.01, width=2, members=3, costs=costs, close="MPI_Allreduce")
    code = Code(1, "ensemble", 8, 5, (phase,), start_s=0.0)
    shared = apply(code, "balance")
    assert shared is not None
    assert run(code).wall_s - run(shared).wall_s > 0.1 * run(code).wall_s


def test_more_ranks_than_cores_take_turns() -> None:
    code, _ = faulty("oversubscription", "stencil_1d_sendrecv")
    assert run(code).wall_s > 1.9 * run(small("stencil_1d_sendrecv")).wall_s
    fewer = apply(code, "start_fewer_ranks")
    assert fewer is not None
    assert fewer.ranks == 4
    assert run(fewer).wall_s == pytest.approx(run(code).wall_s, rel=0.1)


@pytest.mark.parametrize("shape", SHAPES)
def test_remedies_of_strength_zero_change_nothing(shape: str) -> None:
    code = small(shape)
    for remedy in ("balance", "schedule_on_demand", "schedule_loops", "repartition", "send_early", "receive_early"):
        changed = apply(code, remedy)
        uneven = ("master", "clustering", "adaptive", "io_servers")  # idle masters and servers, a mesh that moves
        assert changed is None or shape.startswith(uneven)


@pytest.mark.parametrize("shape", SHAPES)
def test_remedies_conserve_work(shape: str) -> None:
    code = small(shape)
    generator = np.random.default_rng(2)
    for phase in code.phases:
        made = FAULTS["imbalance"](code, phase, 0.3, generator)
        for remedy in ("balance", "schedule_on_demand", "repartition") if made else ():
            changed = apply(made or code, remedy, (phase.name,))
            if changed is None:
                assert remedy == "repartition", "threads can't be decomposed again"
                continue
            for one, other in zip(code.phases, changed.phases, strict=True):
                assert work_of(changed, other).sum() == pytest.approx(work_of(code, one).sum())


def test_a_program_belongs_to_its_seed() -> None:
    for seed in (3, 4, 50):
        assert build(seed) == build(seed)
        assert run(build(seed)).wall_s == run(build(seed)).wall_s
    assert build(3) != build(5)


def test_every_program_of_many_seeds_is_one_of_a_shape_with_at_most_three_faults() -> None:
    made = [build(seed) for seed in range(200)]
    assert {code.shape for code in made} <= set(SHAPES)
    assert max(len(code.faults) for code in made) <= 3
    assert min(code.ranks for code in made if code.threads == 1) == 2
    assert max(code.ranks for code in made) > 100


def test_imbalance_at_a_halo_is_won_back_by_balance_and_not_by_sending_early() -> None:
    for style in ("nonblocking", "sendrecv", "blocking"):
        phase = Exchange(name="sweep", work_s=0.01, load=Load("heavy", 0.45, 1), style=style)
        code = Code(1, "stencil", 8, 20, (phase,), start_s=0.0)
        wall = run(code).wall_s
        assert gain_of(code, wall, "A-28", "sweep") / wall == pytest.approx(0.45 / 1.45, rel=0.02)
        assert gain_of(code, wall, "G-4", "sweep") == 0.0


def test_the_regions_of_an_item_lead_to_phases() -> None:
    code = small("hydrodynamics")
    assert places(code, "update_state") == ("update_state",)
    assert places(code, "MPI_Waitall") == ()
    team = small("threads_two_loops")
    assert places(team, "!$omp implicit barrier @threads_two_loops.c:500") == ("reduce_rows",)


def test_actions_and_remedies_exist() -> None:
    root = Path(__file__).parents[2]
    files = [*(root / "rules").glob("*.yaml"), *(root / "plugins").rglob("rules.yaml")]
    actions = {found for file in files for found in re.findall(r"^- id: (\S+)", file.read_text(), re.MULTILINE)}
    assert set(meanings()) <= actions
    named = {remedy for remedies in meanings().values() for remedy in remedies}
    assert named == set(REMEDIES) | set(RUN_REMEDIES)


def test_the_readme_lists_all_faults_and_remedies() -> None:
    text = (Path(__file__).parents[2] / "examples" / "lab" / "README.md").read_text()
    table = text.split("## Faults and remedies")[1].split("\n\n")[1]
    named = set(re.findall(r"`(\w+)`", table))
    assert named == set(FAULTS) | set(REMEDIES) | set(RUN_REMEDIES)
    assert f"{len(SHAPES)} shapes" in text


def test_the_archive_tells_what_was_simulated(tmp_path: Path) -> None:
    code, _ = faulty("late_sender", "stencil_1d_nonblocking")
    made = run(code, record=True)
    path = write_archive(tmp_path / "t", made.log, ranks=8, threads=1, ranks_per_host=None, sources=code.sources())
    trace = otf2.read_trace(path)
    assert trace.time_s.max() == pytest.approx(made.wall_s, abs=2e-9)
    assert len(trace.time_s) == sum(
        kind not in ("collective_begin", "icollective") for log in made.log for _, kind, _ in log
    )
    assert np.count_nonzero(trace.kind == Kind.ISEND) == np.count_nonzero(trace.kind == Kind.IRECV) == 10 * 14
    region = next(each for each in trace.regions if each.name == "update_cells")
    assert (region.file, region.line) == ("stencil_1d_nonblocking.c", 40)


def test_threads_files_and_collectives_are_read_back(tmp_path: Path) -> None:
    for shape, count in (("hybrid_solver", 32), ("output_each_step", 8)):
        code = small(shape)
        made = run(code, record=True)
        path = write_archive(
            tmp_path / shape, made.log, ranks=code.ranks, threads=code.threads, ranks_per_host=4,
            sources=code.sources(),
        )  # fmt: skip
        trace = otf2.read_trace(path)
        assert len(trace.locations) == count
        assert len({location.host for location in trace.locations}) == 2
        assert not trace.notes


def test_a_judgement_compares_each_item_with_the_changed_program() -> None:
    case = judge.judge(build(13, "embarrassing"))
    assert not case.error
    assert case.best
    assert [gain.seconds for gain in case.best] == sorted((gain.seconds for gain in case.best), reverse=True)
    code = build(13, "embarrassing")
    wall = run(code).wall_s
    assert case.wall_s == wall
    assert case.best[0] == gains(code, wall)[0]


def test_programs_run_in_several_processes_as_in_one() -> None:
    codes = [build(seed, "embarrassing") for seed in (3, 5, 7)]
    one, two = (list(judge.judge_all(codes, jobs)) for jobs in (1, 2))
    known = {case.seed: [item.gain_s for item in case.items] for case in one}
    assert {case.seed: [item.gain_s for item in case.items] for case in two} == known


def case_of(seed: int, best: float, *items: Item, wall_s: float = 1.0) -> Case:
    return Case(seed, "s", 4, 1, ("f",), wall_s, [Gain("balance", "p", best)], list(items), "A")


def item(action: str, gain: float, expected: float | None = None) -> Item:
    interval = None if expected is None else (0.9 * expected, 1.1 * expected)
    return Item(action, "p", gain, expected, interval, 0.2)


def test_what_is_right() -> None:
    assert case_of(1, 0.1, item("A-28", 0.095)).right()
    assert not case_of(1, 0.1, item("A-28", 0.085)).right()
    assert not case_of(1, 0.1, item("G-4", 0.0), item("A-28", 0.1)).right()
    assert case_of(1, 0.1, item("G-4", 0.0), item("A-28", 0.1)).right(3)
    assert not case_of(1, 0.1).right()
    assert case_of(1, 0.015).right()
    assert case_of(1, 0.005).right()
    assert not case_of(1, 0.005, item("A-28", 0.005)).right()


def test_the_report_counts() -> None:
    cases = [
        case_of(1, 0.1, item("A-28", 0.1, 0.1), item("G-4", 0.0, 0.05)),
        case_of(2, 0.3, item("G-4", 0.0, 0.2), item("A-28", 0.3, 0.15)),
        case_of(3, 0.001, item("G-4", 0.0)),
        case_of(4, 0.0),
        Case(5, "s", 2, 1, (), error="trouble"),
    ]
    text = report(cases)
    assert "| programs | 4, of them 2 that no remedy makes 1 % faster; 1 failed |" in text
    assert "| first item right | 1 of 2 (50 %) |" in text
    assert "| right item among the first three | 2 of 2 (100 %) |" in text
    assert "| advice on clean runs | 1 of 2 (50 %) |" in text
    assert "| items that win less than 1 % | 3 of 5 (60 %) |" in text
    assert "| error of the expected gain, median | 25 % |" in text
    assert "| 80 % intervals that hold | 1 of 4 (25 %) |" in text
    assert "| gain above the ceiling | 1 of 2 (50 %) |" in text
    assert "| f | 4 | 2 | 3 | 3 | G-4 2 |" in text
    assert "| shape |" not in report(cases[:1]), "a table of what is all right tells nothing"


def test_seeds_are_ranges() -> None:
    assert list(judge.seeds_of("7")) == [7]
    assert list(judge.seeds_of("1:9:4")) == [1, 5]


def test_a_wandering_load_keeps_its_mean(tmp_path: Path) -> None:
    phase = Phase(name="p", work_s=0.01, load=Load("wandering", 0.5, 1))
    work = work_of(Code(1, "p", 6, 12, (phase,)), phase)
    assert work.mean(axis=0) == pytest.approx(0.01)
    assert work.max(axis=0) == pytest.approx(0.015)


def test_who_writes_for_others_computes_beside_it_and_writes_once() -> None:
    code = small("io_servers")
    shared, gathered = apply(code, "balance"), apply(code, "write_large_blocks")
    assert shared is not None
    assert run(shared).wall_s < 0.95 * run(code).wall_s
    assert gathered is not None
    log = run(gathered, record=True).log
    assert sum(what == "enter" and "write" in details for one in log for _, what, details in one) == code.iterations
    served = replace(code.phases[0], work_s=1e-5)
    assert apply(code.changed(served.name, served), "balance") is None
