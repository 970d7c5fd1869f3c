"""Profiles of TAU: what the call paths hold is what pprof, TAU's own reporter, prints of the same files."""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest

import gapwatch
from advisor.analysis import gaps, soundness
from advisor.analysis.bounds import compute_bounds
from advisor.formats import tau
from advisor.formats.tau import function_names, sheet, tree
from advisor.model.records import Profile
from advisor.support import contract
from advisor.trace.events import Role

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.trace.callpaths.records import CallPaths

from tau_profiles import (
    CALL_PATHS,
    IMBALANCE,
    MATRIX,
    RUNS,
    SAMPLES,
    chain_names,
    copy_run,
    metrics_of,
    note_names,
    processor_key,
    write_profile,
)

ROW = re.compile(r" *[\d.]+ +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) (.+)")
PLACE = re.compile(r"NODE (\d+);CONTEXT (\d+);THREAD (\d+):")
#: Name, exclusive and inclusive milliseconds, calls.
Reported = list[tuple[str, str, str, str]]


def reported(path: Path, metric: str = "") -> dict[int, Reported]:
    """What pprof prints of each node: exclusive and inclusive milliseconds and calls of each name."""
    text = (path / "expected.txt").read_text()
    if metric:
        text = text.split(f"=== MULTI__{metric}\n")[1].split("=== MULTI__")[0]
    found: dict[int, Reported] = defaultdict(list)
    node = -1
    for line in text.split("FUNCTION SUMMARY")[0].splitlines():
        place, row = PLACE.match(line), ROW.fullmatch(line)
        if "USER EVENTS" in line:
            node = -1
        if place:
            node = int(place[1])
        elif row and node >= 0:
            found[node].append((row[6].strip(), row[1], row[2], row[3]))
    return found


def printed(ms: float, text: str) -> bool:
    """Whether pprof prints ``ms`` as ``text``: from one millisecond on it cuts off what is behind the point."""
    text = text.replace(",", "")
    if "." in text:
        return f"{ms:.3g}" == f"{float(text):.3g}"
    return int(ms + 1e-9) == int(text)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_totals_of_functions_are_those_of_pprof(path: Path) -> None:
    paths = tau.read_call_paths(path)
    assert paths.visits is not None
    inside: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for n, chain in enumerate(chain_names(paths)):
        inside[chain[-1]].append(n)
    sampled = {n for n, node in enumerate(paths.nodes) if node.name.startswith(("z_solve", "UNRESOLVED"))}
    for metric in metrics_of(path):
        values = paths.cpu_s if metric == "CPU_TIME" else paths.wall_s
        assert values is not None
        for rank, rows in reported(path, metric).items():
            for text, exclusive, _, calls in rows:
                if " => " in text or text.startswith("["):
                    continue
                nodes = inside[processor_key(text)]
                below = [n for n in sampled if paths.nodes[n].parent in nodes]
                assert printed(1e3 * values[nodes + below, rank].sum(), exclusive), (metric, rank, text)
                assert paths.visits[nodes, rank].sum() == int(calls)


def test_call_paths_are_those_of_pprof() -> None:
    paths = tau.read_call_paths(CALL_PATHS)
    assert paths.wall_s is not None
    assert paths.visits is not None
    inclusive = paths.wall_s.copy()
    for n in reversed(range(len(paths.nodes))):
        if paths.nodes[n].parent >= 0:
            inclusive[paths.nodes[n].parent] += inclusive[n]
    nodes = nodes_of_paths(paths)
    for rank, rows in reported(CALL_PATHS).items():
        left = {whole for whole, n in nodes.items() if paths.visits[n, rank]}
        for text, exclusive, total, calls in rows:
            if " => " not in text:
                continue
            fitting = [
                whole
                for whole in left
                if whole.startswith(text)  # pprof cuts long names off
                and printed(1e3 * paths.wall_s[nodes[whole], rank], exclusive)
                and printed(1e3 * inclusive[nodes[whole], rank], total)
                and paths.visits[nodes[whole], rank] == int(calls)
            ]
            assert fitting, text
            left.remove(fitting[0])
        # Of names that are alike as far as pprof shows them it prints one.
        assert len(nodes) - len(left) > 10
    assert [node.name for node in paths.nodes if node.parent < 0] == [function_names.ROOT]


def nodes_of_paths(paths: CallPaths) -> dict[str, int]:
    """The node of each path in the files; TAU_CALLPATH_DEPTH=6, so what lies deeper has lost its beginning there."""
    found = sheet.FunctionNames()
    for rank in (0, 1):
        sheet.parse_functions(sheet.read_frame(CALL_PATHS / f"profile.{rank}.0.0"), found)
    known = chain_names(paths)
    nodes: dict[str, int] = {}
    for name in found.numbers:
        parts = function_names.split_path(name.decode())
        if len(parts) > 1:
            chain = tuple(map(processor_key, parts))
            fitting = [
                n for n, whole in enumerate(known) if whole == chain or (len(chain) == 6 and whole[-6:] == chain)
            ]
            assert len(fitting) == 1
            nodes[" => ".join(parts)] = fitting[0]
    assert len(nodes) > 60
    return nodes


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_real_profiles_hold_no_contradictions(path: Path) -> None:
    profile = tau.advisor_read(path)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert set(note_names(profile)) <= {"sampled functions"}
    assert {processor.host for processor in profile.processors} == {"vm"}
    assert profile.cores == 2
    assert profile.started is not None
    assert profile.started.startswith("2026-11-21T00:")
    assert profile.program in ("faultlab_tau", "lu.S.2", "bt.S.4")
    assert "/src" not in json.dumps([profile.program, profile.run, dict(profile.parameters)])


def test_the_injected_imbalance_shows() -> None:
    profile = tau.advisor_read(IMBALANCE)
    found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(profile, compute_bounds(profile))}
    true = json.loads((IMBALANCE / "truth.json").read_text())["bounds"]["from_measured_wall"]
    assert found["L"] == pytest.approx(true["IPCOL"] - true["IPCO"], abs=3e-3)
    regions = {region.name: (region.file, region.line) for region in profile.regions}
    assert regions["phase1"] == ("/src/faultlab/faultlab.c", 117)
    assert "MPI_Allreduce" in regions
    assert not profile.has_phases


def test_sizes_of_messages_come_from_user_events() -> None:
    paths = tau.read_call_paths(MATRIX)
    assert paths.bytes is not None
    sent = [n for n, node in enumerate(paths.nodes) if node.name == "MPI_Send"]
    reduced = [n for n, node in enumerate(paths.nodes) if node.name == "MPI_Allreduce"]
    assert paths.bytes[sent, 0].sum() == pytest.approx(564 * 1464.68085106383)
    assert paths.bytes[reduced, 0].sum() == pytest.approx(240)
    profile = tau.advisor_read(MATRIX)
    assert profile.counts["bytes"].sum(axis=0)[0] == pytest.approx(564 * 1464.68085106383)
    assert profile.counts["messages"].sum(axis=0).tolist() == [564, 567]
    assert profile.counts["collectives"].sum() == 38  # TAU's own barriers in front of them are none


def test_sizes_of_messages_that_were_not_recorded_are_unknown() -> None:
    profile = tau.advisor_read(IMBALANCE)
    assert "bytes" not in profile.counts
    assert profile.causes is not None
    assert set(profile.causes.size_class.tolist()) == {-1}


def test_samples_divide_the_time_of_their_timer() -> None:
    paths = tau.read_call_paths(SAMPLES)
    assert paths.wall_s is not None
    assert paths.status == "estimated"
    solve = next(n for n, node in enumerate(paths.nodes) if node.name == "z_solve_cell_")
    assert paths.nodes[solve].file == "/src/npb/NPB3.3-MPI/BT/z_solve.f"
    main = paths.nodes[solve].parent
    assert paths.nodes[main].name == "main"
    rank = int(np.argmax(paths.wall_s[solve]))
    # A sample stands for 30 ms, more than the timer around it took: then it is all of that.
    assert paths.wall_s[main, rank] == 0
    assert 0.005 < paths.wall_s[solve, rank] < 0.03
    assert "UNRESOLVED" not in {node.name.split()[0] for node in paths.nodes}, "samples inside MPI calls are MPI"


def test_samples_of_several_lines_and_unwound_callers(tmp_path: Path) -> None:
    timer, context = ".TAU application", ".TAU application => [CONTEXT] .TAU application"
    folder = tmp_path / "run"
    write_profile(
        folder, 0,
        f'"{timer}" 1 0 100 100 0 GROUP="TAU_UTILITY" ',
        f'"{context} => [UNWIND] main [{{a.c}} {{7}}] => [SAMPLE] f [{{a.c}} {{12}}]" 3 0 30 30 0 GROUP="TAU_SAMPLE" ',
        f'"{context} => [UNWIND] main [{{a.c}} {{8}}] => [SAMPLE] f [{{a.c}} {{13}}]" 1 0 10 10 0 GROUP="TAU_SAMPLE" ',
        f'"{context} => [INTERMEDIATE] g [{{a.c}}] => [SAMPLE] g [{{a.c}} {{20}}]" 2 0 20 20 0 GROUP="TAU_SAMPLE" ',
        '"[SAMPLE] f [{a.c} {12}]" 3 0 30 30 0 GROUP="TAU_SAMPLE" ',
    )  # fmt: skip
    paths = tau.read_call_paths(folder)
    assert paths.wall_s is not None
    seconds = {node.name: 1e6 * paths.wall_s[n, 0] for n, node in enumerate(paths.nodes)}
    assert seconds == pytest.approx({timer: 40, "main": 0, "f": 40, "g": 20})
    assert note_names(paths) == {"sampled functions": 0.05}


def test_names_that_compilers_make(tmp_path: Path) -> None:
    odd = [
        'std::map<int, "x">::operator[](int const&) [clone .cold]',
        "größe<a> [with T = int]",
        "f" * 5000,
        "void A<B<C> >::solve(double *, int) [[unlikely]] const",
        "\udcffbroken\udcfe",
    ]
    lines = [f'"{name}" 1 0 5 5 0 GROUP="TAU_USER" ' for name in odd]
    root = f'".TAU application" 1 {len(odd)} 0 {5 * len(odd)} 0 GROUP="TAU_UTILITY" '
    placed = '"int main(int, char **) C [{/a b/main.c} {12,1}-{20,1}]" 1 0 0 0 0 GROUP="TAU_USER" '
    root = root.replace(f" {len(odd)} ", f" {len(odd) + 1} ", 1)
    paths = tau.read_call_paths(write_profile(tmp_path / "run", 0, root, *lines, placed))
    assert [node.name for node in paths.nodes] == [function_names.ROOT, *odd, "int main(int, char **)"]
    assert (paths.nodes[-1].file, paths.nodes[-1].line) == ("/a b/main.c", 12)
    assert not paths.notes


@pytest.mark.parametrize(
    ("text", "groups", "name", "role"),
    [
        ("MPI_Send()", "MPI", "MPI_Send", Role.SEND),
        ("MPI_File_write_at_all()", "MPI|TAU_IO", "MPI_File_write_at_all", Role.IO),
        ("MPI Collective Sync", "MPI", "MPI Collective Sync", Role.ALL_TO_ALL),
        ("write()", "TAU_IO|TAU_USER", "write", Role.IO),
        ("write_ [{write.f} {5,0}]", "TAU_DEFAULT", "write_", Role.USER),
        ("OpenMP_Parallel_Region main.omp_fn.0 [{a.c} {9, 0}]", "TAU_OPENMP",
         "OpenMP_Parallel_Region main.omp_fn.0", Role.OMP_PARALLEL),
        ("OpenMP_Sync_Region_Barrier_Implicit x [{a.c} {9,0}]", "TAU_OPENMP",
         "OpenMP_Sync_Region_Barrier_Implicit x", Role.OMP_BARRIER),
        ("OpenMP_Work_Loop x", "TAU_OPENMP", "OpenMP_Work_Loop x", Role.OMP_WORK),
        ("OpenMP_Thread_Type_ompt_thread_worker", "TAU_OPENMP", "OpenMP_Thread_Type_ompt_thread_worker", Role.ROOT),
        ("parallel (parallel fork/join) [OpenMP location: file:a.c <7, 12>]", "OpenMP",
         "parallel (parallel fork/join)", Role.OMP_PARALLEL),
        ("for (barrier enter/exit) [OpenMP location: file:a.c <7, 12>]", "OpenMP",
         "for (barrier enter/exit)", Role.OMP_BARRIER),
        ("spin [THROTTLED]", "TAU_DISABLE", "spin", Role.USER),
    ],
)  # fmt: skip
def test_names_tell_what_functions_do(text: str, groups: str, name: str, role: Role) -> None:
    node = function_names.build_node(text, groups.split("|"), -1)
    assert (node.name, node.role) == (name, role)


def test_a_single_file_is_its_rank(tmp_path: Path) -> None:
    path = CALL_PATHS / "profile.1.0.0"
    assert tau.advisor_sniff(path) == 1
    profile = tau.advisor_read(path)
    assert [processor.rank for processor in profile.processors] == [1]
    assert profile.ranks_expected == 2
    assert tau.advisor_read(IMBALANCE / "MULTI__TIME").status["wall_s"] == "measured"


def test_counters_are_counts(tmp_path: Path) -> None:
    line = '"{}" {} {} {} {} 0 GROUP="TAU_USER" '
    for metric, factor in (("TIME", 1), ("PAPI_L1_DCM", 3), ("PAPI_FP_OPS", 1000)):
        lines = (
            line.format(".TAU application", 1, 2, factor, 11 * factor),
            line.format("f", 2, 0, 10 * factor, 10 * factor),
        )
        write_profile(tmp_path / f"MULTI__{metric}", 0, *lines, metric=metric)
    profile = tau.advisor_read(tmp_path)
    assert profile.counts["misses.L1"][:, 0].tolist() == [3, 30]
    assert profile.counts["PAPI_FP_OPS"][:, 0].tolist() == [1000, 10000]
    assert profile.actual_s == pytest.approx(11e-6)
    assert not profile.has_measure("cpu_s")
    shutil.rmtree(tmp_path / "MULTI__TIME")
    profile = tau.advisor_read(tmp_path)
    assert not profile.has_run_time
    assert "no wall time" in note_names(profile)


def test_cpu_time_of_the_whole_process_is_none_of_a_thread(tmp_path: Path) -> None:
    for metric, taken in (("TIME", 1e6), ("CPU_TIME", 1.9e6)):
        lines = (f'".TAU application" 1 0 {taken:.0f} {taken:.0f} 0 GROUP="TAU_UTILITY" ',)
        write_profile(tmp_path / f"MULTI__{metric}", 0, *lines, metric=metric)
    profile = tau.advisor_read(tmp_path)
    assert not profile.has_measure("cpu_s")
    assert "CPU times of several threads" in note_names(profile)


def test_threads_of_a_rank(tmp_path: Path) -> None:
    lines = ('".TAU application" 1 1 4 10 0 GROUP="TAU_UTILITY" ', '"f" 1 0 6 6 0 GROUP="TAU_USER" ')
    write_profile(tmp_path, 0, *lines)
    (tmp_path / "profile.0.0.0").rename(tmp_path / "profile.0.0.1")
    write_profile(tmp_path, 0, *lines)
    profile = tau.advisor_read(tmp_path)
    assert [(processor.rank, processor.thread) for processor in profile.processors] == [(0, 0), (0, 1)]
    assert profile.outside["idle"] == pytest.approx([0, 4e-6])


def test_bytes_of_files_go_to_the_calls_that_write_them(tmp_path: Path) -> None:
    lines = (
        '".TAU application" 1 3 4 10 0 GROUP="TAU_UTILITY" ',
        '"write()" 2 0 4 4 0 GROUP="TAU_IO" ',
        '"read()" 1 0 2 2 0 GROUP="TAU_IO" ',
    )
    events = (
        '"Bytes Written" 2 100 50 75 12500',
        '"Bytes Written <file="a "b" c">" 2 100 50 75 12500',
        '"Bytes Read" 1 7 7 7 49',
    )
    paths = tau.read_call_paths(write_profile(tmp_path, 0, *lines, events=events))
    assert paths.bytes is not None
    assert paths.bytes[:, 0].tolist() == [0, 150, 7]
    profile = tau.advisor_read(tmp_path)
    assert profile.counts["io_bytes"].sum() == 157
    assert profile.counts["io_operations"].sum() == 3


def test_what_no_path_explains_stays_with_the_function(tmp_path: Path) -> None:
    lines = (
        '".TAU application" 1 1 1 31 0 GROUP="TAU_UTILITY" ',
        '"f" 1 2 10 30 0 GROUP="TAU_USER" ',
        '".TAU application => f" 1 2 10 30 0 GROUP="TAU_CALLPATH|TAU_USER" ',
        '"g" 2 0 20 20 0 GROUP="TAU_USER" ',
        '".TAU application => f => g" 1 0 15 15 0 GROUP="TAU_CALLPATH|TAU_USER" ',
    )
    paths = tau.read_call_paths(write_profile(tmp_path, 0, *lines))
    assert paths.wall_s is not None
    seconds = {chain: 1e6 * paths.wall_s[n, 0] for n, chain in enumerate(chain_names(paths))}
    root, f, g = ((name, None) for name in (function_names.ROOT, "f", "g"))
    assert {chain: value for chain, value in seconds.items() if value} == pytest.approx(
        {(root,): 1, (root, f): 10, (root, f, g): 15, (g,): 5}
    )


def test_folders_of_metrics_go_before_files_beside_them(tmp_path: Path) -> None:
    run = copy_run(IMBALANCE, tmp_path)
    write_profile(run, 0, '".TAU application" 1 0 4 4 0 GROUP="TAU_UTILITY" ')
    profile = tau.advisor_read(run)
    assert profile.ranks == 2
    assert note_names(profile) == {"profiles of another run": 0.05}


def test_more_functions_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from advisor.formats.tau import table

    count = 1500
    lines = [f'".TAU application" 1 {count} 0 {sum(range(count))} 0 GROUP="TAU_UTILITY" ']
    lines += [f'"f{n}" 1 0 {n} {n} 0 GROUP="TAU_USER" ' for n in range(count)]
    lines += [f'".TAU application => f{n}" 1 0 {n} {n} 0 GROUP="TAU_CALLPATH|TAU_USER" ' for n in range(count)]
    monkeypatch.setattr(table, "NAME_LIMIT", 1000)
    paths = tau.read_call_paths(write_profile(tmp_path, 0, *lines))
    assert paths.wall_s is not None
    assert len(paths.nodes) == 1000
    assert paths.nodes[-1].name == "other functions"
    assert 1e6 * paths.wall_s.sum() == pytest.approx(sum(range(count)))
    assert note_names(paths) == {"functions folded": 0.1}


def test_a_sample_whose_context_is_only_part_of_a_name_belongs_to_no_timer() -> None:
    names = [f"main => not {function_names.CONTEXT} main => {function_names.SAMPLE} solve"]
    assert len(tree.build_tree(names, [()]).sampled) == 0


def test_a_start_up_that_is_the_run_is_worth_a_word(tmp_path: Path) -> None:
    """Without phases X lies in one gap with waiting; how long the ranks were in MPI_Init is known all the same."""
    for rank in range(4):
        write_profile(
            tmp_path, rank, '".TAU application" 1 4 40000 25085123 0 GROUP="TAU_DEFAULT" ',
            '"MPI_Init()  " 1 0 24859928 24859928 0 GROUP="MPI" ', '"MPI_Barrier()  " 9 0 54556 54556 0 GROUP="MPI" ',
            '"MPI_Finalize()  " 1 0 130639 130639 0 GROUP="MPI" ',
        )  # fmt: skip
    run = gapwatch.load(tmp_path)
    assert len(next(gap for gap in run.gaps if "X" in gap.members).members) > 1
    [item] = [item for item in run.recommendations if item.action == "G-27"]
    assert item.region is None, "MPI_Barrier is in the same gap, and no place for it"
    assert item.ceiling_s == pytest.approx(25.0, rel=0.01)


def test_threads_that_wait_in_the_runtime_of_openmp_do_not_compute(tmp_path: Path) -> None:
    """Samples divide what no timer explains: on threads without work that is waiting for work."""
    root = ".TAU application"

    def sampled(name: str, us: int) -> tuple[str, str]:
        sample = f"[SAMPLE] {name} [{{}} {{0}}]"
        return (
            f'"{sample}  " 9 0 {us} {us} 0 GROUP="TAU_SAMPLE|TAU_OPENMP" ',
            f'"{root}  => [CONTEXT] {root}  => {sample}  " 9 0 {us} {us} 0 GROUP="TAU_SAMPLE|TAU_OPENMP" ',
        )

    whole = f'"{root}  " 1 0 4000000 4000000 0 GROUP="TAU_USER" '
    context = f'"[CONTEXT] {root}  " 9 0 4000000 4000000 0 GROUP="TAU_SAMPLE_CONTEXT" '
    waiting = (*sampled("__kmp_fork_barrier(int, int)", 2_500_000), *sampled("__GI___sched_yield", 500_000))
    first = write_profile(tmp_path, 0, whole, context, *sampled("smooth", 4_000_000))
    first.rename(tmp_path / "first")
    write_profile(tmp_path, 0, whole, context, *sampled("smooth", 1_000_000), *waiting).rename(
        tmp_path / "profile.0.0.1"
    )
    (tmp_path / "first").rename(first)
    profile = tau.advisor_read(tmp_path)
    assert len(profile.processors) == 2
    gaps = {gap.name: gap.seconds for gap in gapwatch.load(tmp_path).gaps}
    assert gaps["L"] == pytest.approx(1.5, rel=0.05), "4 s on one thread, 1 s on the other"
