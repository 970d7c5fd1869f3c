"""Profiles of TAU: what the call paths hold is what pprof, TAU's own reporter, prints of the same files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis import gaps, soundness
from advisor.analysis.bounds import compute_bounds
from advisor.formats import tau
from advisor.formats.tau import checks, function_names, layout, sheet, tree
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract
from advisor.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.trace.callpaths.records import CallPaths

PROFILES = Path(__file__).parents[1] / "profiles"
RUNS = sorted(path for path in (PROFILES / "tau").iterdir() if path.is_dir() and path.name != "trace")
IMBALANCE = PROFILES / "tau" / "faultlab-imbalance30"
CALL_PATHS = PROFILES / "tau" / "npb-lu.S.2-callpath"
SAMPLES = PROFILES / "tau" / "npb-bt.S.4-tau_exec-ebs"
MATRIX = PROFILES / "tau" / "npb-lu.S.2"
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


def chains(paths: CallPaths) -> list[tuple[tuple[str, str | None], ...]]:
    """The path of names and files of each node."""
    found: list[tuple[tuple[str, str | None], ...]] = []
    for node in paths.nodes:
        above = found[node.parent] if node.parent >= 0 else ()
        found.append((*above, (node.name, node.file)))
    return found


def key(part: str) -> tuple[str, str | None]:
    node = function_names.build_node(part, ("MPI",) if part.startswith("MPI_") else (), -1)
    return node.name, node.file


def notes(found: Profile | CallPaths) -> dict[str, float]:
    return {note.name: note.penalty for note in found.notes}


def copied(path: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(path, tmp_path / path.name))


def edited(path: Path, change: Callable[[str], str]) -> None:
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))


def written(folder: Path, rank: int, *lines: str, events: tuple[str, ...] = (), metric: str = "TIME") -> Path:
    """A profile with these functions and user events, and the metadata that TAU writes."""
    folder.mkdir(exist_ok=True)
    head = [f"{len(lines)} templated_functions_MULTI_{metric}", "# Name Calls Subrs Excl Incl ProfileCalls # "]
    tail = ["0 aggregates", f"{len(events)} userevents", "# eventname numevents max min mean sumsqr", *events, ""]
    target = folder / f"profile.{rank}.0.0"
    target.write_bytes("\n".join([*head, *lines, *tail]).encode("utf-8", "surrogateescape"))
    return target


def metrics_of(path: Path) -> list[str]:
    return sorted(child.name.removeprefix("MULTI__") for child in path.glob("MULTI__*")) or [""]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_totals_of_functions_are_those_of_pprof(path: Path) -> None:
    paths = tau.read_call_paths(path)
    assert paths.visits is not None
    inside: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for n, chain in enumerate(chains(paths)):
        inside[chain[-1]].append(n)
    sampled = {n for n, node in enumerate(paths.nodes) if node.name.startswith(("z_solve", "UNRESOLVED"))}
    for metric in metrics_of(path):
        values = paths.cpu_s if metric == "CPU_TIME" else paths.wall_s
        assert values is not None
        for rank, rows in reported(path, metric).items():
            for text, exclusive, _, calls in rows:
                if " => " in text or text.startswith("["):
                    continue
                nodes = inside[key(text)]
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
    known = chains(paths)
    nodes: dict[str, int] = {}
    for name in found.numbers:
        parts = function_names.split_path(name.decode())
        if len(parts) > 1:
            chain = tuple(map(key, parts))
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
    assert set(notes(profile)) <= {"sampled functions"}
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
    written(
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
    assert notes(paths) == {"sampled functions": 0.05}


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
    paths = tau.read_call_paths(written(tmp_path / "run", 0, root, *lines, placed))
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


def test_missing_and_damaged_ranks_are_counted(tmp_path: Path) -> None:
    run = copied(SAMPLES, tmp_path)
    (run / "profile.1.0.0").unlink()
    profile = tau.advisor_read(run)
    assert (profile.ranks, profile.ranks_expected) == (3, 4)
    (run / "profile.3.0.0").write_text("")
    profile = tau.advisor_read(run)
    assert (profile.ranks, profile.ranks_expected) == (2, 4)
    note = next(note for note in profile.notes if note.name == "damaged profiles")
    assert "profile.3.0.0:line 1: does not begin as a profile" in note.text


def test_a_metric_that_a_rank_lacks_leaves_the_rank_out(tmp_path: Path) -> None:
    run = copied(IMBALANCE, tmp_path)
    (run / "MULTI__CPU_TIME" / "profile.0.0.0").unlink()
    profile = tau.advisor_read(run)
    assert [processor.rank for processor in profile.processors] == [1]
    assert profile.ranks_expected == 2
    assert notes(profile)["damaged profiles"] > 0.3


def test_counters_are_counts(tmp_path: Path) -> None:
    line = '"{}" {} {} {} {} 0 GROUP="TAU_USER" '
    for metric, factor in (("TIME", 1), ("PAPI_L1_DCM", 3), ("PAPI_FP_OPS", 1000)):
        lines = (
            line.format(".TAU application", 1, 2, factor, 11 * factor),
            line.format("f", 2, 0, 10 * factor, 10 * factor),
        )
        written(tmp_path / f"MULTI__{metric}", 0, *lines, metric=metric)
    profile = tau.advisor_read(tmp_path)
    assert profile.counts["misses.L1"][:, 0].tolist() == [3, 30]
    assert profile.counts["PAPI_FP_OPS"][:, 0].tolist() == [1000, 10000]
    assert profile.actual_s == pytest.approx(11e-6)
    assert not profile.has_measure("cpu_s")
    shutil.rmtree(tmp_path / "MULTI__TIME")
    profile = tau.advisor_read(tmp_path)
    assert not profile.has_run_time
    assert "no wall time" in notes(profile)


def test_cpu_time_of_the_whole_process_is_none_of_a_thread(tmp_path: Path) -> None:
    for metric, taken in (("TIME", 1e6), ("CPU_TIME", 1.9e6)):
        lines = (f'".TAU application" 1 0 {taken:.0f} {taken:.0f} 0 GROUP="TAU_UTILITY" ',)
        written(tmp_path / f"MULTI__{metric}", 0, *lines, metric=metric)
    profile = tau.advisor_read(tmp_path)
    assert not profile.has_measure("cpu_s")
    assert "CPU times of several threads" in notes(profile)


def test_threads_of_a_rank(tmp_path: Path) -> None:
    lines = ('".TAU application" 1 1 4 10 0 GROUP="TAU_UTILITY" ', '"f" 1 0 6 6 0 GROUP="TAU_USER" ')
    written(tmp_path, 0, *lines)
    (tmp_path / "profile.0.0.0").rename(tmp_path / "profile.0.0.1")
    written(tmp_path, 0, *lines)
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
    paths = tau.read_call_paths(written(tmp_path, 0, *lines, events=events))
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
    paths = tau.read_call_paths(written(tmp_path, 0, *lines))
    assert paths.wall_s is not None
    seconds = {chain: 1e6 * paths.wall_s[n, 0] for n, chain in enumerate(chains(paths))}
    root, f, g = ((name, None) for name in (function_names.ROOT, "f", "g"))
    assert {chain: value for chain, value in seconds.items() if value} == pytest.approx(
        {(root,): 1, (root, f): 10, (root, f, g): 15, (g,): 5}
    )


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" 1 1 11014 441007 0 ", " 1 1 nan 441007 0 ", "profile.0.0.0:line 3: an impossible number"),
        (" 1 1 11014 441007 0 ", " 1 1 -inf 441007 0 ", "line 3: an impossible number"),
        (" 1 1 11014 441007 0 ", " 1 1 1e30 441007 0 ", "line 3: an impossible number"),
        (" 1 1 11014 441007 0 ", " -1 1 11014 441007 0 ", "line 3: a number below zero"),
        (" 1 1 11014 441007 0 ", " 1 1 -11014 441007 0 ", "line 3: a number below zero"),
        (" 1 1 11014 441007 0 ", " 1 1 1_1014 441007 0 ", "line 3: expected a function and five numbers"),
        (" 1 1 11014 441007 0 ", " 1 1 11014 441007 ", "line 3: expected a function and five numbers"),
        ("115 templated", "114 templated", "line 1: 114 functions were announced, 115 are there"),
        ("115 templated", "999999999 templated", "line 1: 999999999 functions do not fit"),
        ("2 userevents", "3 userevents", "line 119: 3 user events were announced, 2 are there"),
        ("Message size for broadcast\" 9", "Message size for broadcast\" x", "line 121: expected a user event"),
        ("0 aggregates", "1 aggregates", "ends before the last of 115 functions"),
        ("# Name Calls Subrs", "# Name Calls Subs", "does not begin as a profile of TAU"),
    ],
)  # fmt: skip
def test_damage_is_refused_with_its_place(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = tmp_path / "profile.0.0.0"
    shutil.copy(CALL_PATHS / "profile.0.0.0", path)
    edited(path, lambda text: text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        tau.read_call_paths(path)
    assert reason in str(caught.value)


def test_contradictions_are_noticed(tmp_path: Path) -> None:
    run = copied(IMBALANCE, tmp_path)
    edited(run / "MULTI__TIME" / "profile.0.0.0", lambda text: text.replace(" 261029 261029 ", " 261028 261029 "))
    assert notes(tau.advisor_read(run))["contradictions in the profile"] == 0.3
    shutil.rmtree(run)
    run = copied(IMBALANCE, tmp_path)
    edited(run / "MULTI__TIME" / "profile.0.0.0", lambda text: text.replace('"phase1 [', '"phase3 ['))
    assert "contradictions in the profile" in notes(tau.advisor_read(run))


def test_times_a_little_below_zero_are_nothing(tmp_path: Path) -> None:
    lines = ('".TAU application" 1 1 100000 100000 0 GROUP="TAU_UTILITY" ', '"f" 1 0 -3 0 0 GROUP="TAU_USER" ')
    profile = tau.advisor_read(written(tmp_path, 0, *lines))
    assert notes(profile) == {"times below zero": 0.02}
    assert profile.actual_s == pytest.approx(0.1)


def test_profiles_without_metadata_or_groups(tmp_path: Path) -> None:
    path = written(tmp_path, 0, '"main()" 1 1 4 10 0', '"f" 1 0 6 6 0')
    edited(path, lambda text: text.replace("_MULTI_TIME", "").replace("ProfileCalls # ", "ProfileCalls"))
    profile = tau.advisor_read(path)
    assert (profile.program, profile.run, profile.started, profile.cores) == ("", "profile.0.0.0", None, None)
    assert profile.actual_s == pytest.approx(1e-5)


def test_hostile_metadata_are_not_followed(tmp_path: Path) -> None:
    path = written(tmp_path, 0, '".TAU application" 1 0 4 4 0 GROUP="TAU_UTILITY" ')
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><metadata>&a;</metadata>'
    edited(path, lambda text: text.replace("ProfileCalls # ", f"ProfileCalls # {bomb}"))
    assert tau.advisor_read(path).program == ""
    edited(path, lambda text: text.replace("&a;</metadata>", "<attribute></metadata>"))
    assert notes(tau.advisor_read(path)) == {"metadata not read": 0.02}


def test_recursion_beyond_the_recorded_depth_ends(tmp_path: Path) -> None:
    path = " => ".join
    lines = [
        '".TAU application" 1 1 0 60 0 GROUP="TAU_UTILITY" ',
        '"a" 30 30 30 60 0 GROUP="TAU_USER" ',
        '"b" 30 29 30 60 0 GROUP="TAU_USER" ',
        *(
            f'"{path(parts)}" 10 10 10 30 0 GROUP="TAU_CALLPATH" '
            for parts in ("abab", "baba", "bab", "aba", "ab", "ba")
        ),
    ]
    paths = tau.read_call_paths(written(tmp_path, 0, *lines))
    assert paths.wall_s is not None
    assert paths.wall_s.sum() == pytest.approx(6e-5)


def test_traces_are_named_with_what_to_run() -> None:
    trace = PROFILES / "tau" / "trace"
    for path in (trace, *trace.iterdir()):
        assert tau.advisor_sniff(path) == 1
        with pytest.raises(InputError, match="tau2otf2"):
            tau.advisor_read(path)


def test_nothing_else_is_claimed(tmp_path: Path) -> None:
    for other in PROFILES.iterdir():
        for path in (other, *other.rglob("*")) if other.name != "tau" else ():
            assert tau.advisor_sniff(path) is None, path
    for run in RUNS:
        for path in run.rglob("*"):
            claimed = path.name.startswith(("profile.", "MULTI__"))
            assert (tau.advisor_sniff(path) == 1) is claimed, path
    (tmp_path / "profile.0.0.0").write_bytes(bytes(range(256)))
    assert tau.advisor_sniff(tmp_path) is None
    with pytest.raises(InputError, match="no profile of TAU here"):
        tau.read_call_paths(tmp_path)


def test_folders_of_metrics_go_before_files_beside_them(tmp_path: Path) -> None:
    run = copied(IMBALANCE, tmp_path)
    written(run, 0, '".TAU application" 1 0 4 4 0 GROUP="TAU_UTILITY" ')
    profile = tau.advisor_read(run)
    assert profile.ranks == 2
    assert notes(profile) == {"profiles of another run": 0.05}


def test_more_functions_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from advisor.formats.tau import table

    count = 1500
    lines = [f'".TAU application" 1 {count} 0 {sum(range(count))} 0 GROUP="TAU_UTILITY" ']
    lines += [f'"f{n}" 1 0 {n} {n} 0 GROUP="TAU_USER" ' for n in range(count)]
    lines += [f'".TAU application => f{n}" 1 0 {n} {n} 0 GROUP="TAU_CALLPATH|TAU_USER" ' for n in range(count)]
    monkeypatch.setattr(table, "NAME_LIMIT", 1000)
    paths = tau.read_call_paths(written(tmp_path, 0, *lines))
    assert paths.wall_s is not None
    assert len(paths.nodes) == 1000
    assert paths.nodes[-1].name == "other functions"
    assert 1e6 * paths.wall_s.sum() == pytest.approx(sum(range(count)))
    assert notes(paths) == {"functions folded": 0.1}


def test_compiled_and_plain_reading_agree_on_real_profiles() -> None:
    pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    for run in RUNS:
        plain, compiled = (tau.read_call_paths(run, way) for way in (False, True))
        assert plain.nodes == compiled.nodes
        for name in ("wall_s", "cpu_s", "visits", "bytes"):
            one, other = getattr(plain, name), getattr(compiled, name)
            assert (one is None and other is None) or np.array_equal(one, other), name


NUMBERS = st.one_of(
    st.integers(0, 10**17).map(str),
    st.floats(0, 1e17, allow_nan=False).map(lambda value: f"{value:.16G}"),
    st.floats(0, 1e17, allow_nan=False).map(lambda value: f"{value:.6g}"),
    st.sampled_from(
        ["0.1", "1e22", "1E-22", "9007199254740993", "5.", ".5", "+1", "1e", "1.2.3", "nan", "-0", "", "1e+5"]
    ),
)


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["f", "g", 'a "b" c', "longer name"]), st.lists(NUMBERS, min_size=5, max_size=5)),
        min_size=1,
        max_size=6,
    )
)
def test_compiled_and_plain_reading_agree_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, list[str]]]
) -> None:
    compiled = pytest.importorskip(
        "advisor.formats.tau.compiled_parser", reason="needs numba: pip install 'gapwatch[fast]'"
    )
    lines = [f'"{name}" {" ".join(numbers)} GROUP="TAU_USER" ' for name, numbers in rows]
    path = written(tmp_path_factory.mktemp("run"), 0, *lines)
    part = sheet.read_frame(path)
    one, other = sheet.FunctionNames(), sheet.FunctionNames()
    parser = compiled.FunctionParser(other)
    results: list[object] = []
    for parse in (
        lambda: sheet.parse_functions(part, one),
        lambda: parser.parse_functions(part),
        lambda: parser.parse_functions(part),
    ):
        try:
            ids, values = parse()
            results.append((ids.tolist(), values.tobytes()))
        except InputError as error:
            results.append(str(error))
    assert results[0] == results[1] == results[2]


def test_names_in_another_order_are_looked_up(tmp_path: Path) -> None:
    compiled = pytest.importorskip(
        "advisor.formats.tau.compiled_parser", reason="needs numba: pip install 'gapwatch[fast]'"
    )
    lines = [f'"function {n}" {n} 0 {n}.25 {n}.25 0 GROUP="TAU_USER" ' for n in range(5000)]
    found = sheet.FunctionNames()
    parser = compiled.FunctionParser(found)
    for rank, order in enumerate((lines, lines[::-1], lines[::3])):
        part = sheet.read_frame(written(tmp_path, rank, *order))
        ids, values = parser.parse_functions(part)
        assert ids.tolist() == values[:, 0].tolist()
        assert (values[:, 2] == values[:, 0] + 0.25).all()
    assert len(found.numbers) == 5000


def test_small_profiles_do_not_load_the_compiler() -> None:
    code = "import sys, pathlib, advisor.formats.tau as tau; tau.advisor_read(pathlib.Path(sys.argv[1]))"
    code += "; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, str(IMBALANCE)], check=False).returncode == 0


def test_sniffing_imports_nothing_heavy() -> None:
    code = "import sys, advisor.formats.tau; sys.exit(bool({'numpy', 'defusedxml', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert layout.detect_layout(IMBALANCE) == "profile"


def test_numbers_whose_squares_are_beyond_all_numbers_are_a_contradiction_and_no_error() -> None:
    assert not checks._is_possible(sheet.UserEvent(b"bytes", 2.0, 1e200, 1.0, 2.0, 1.0))


def test_a_sample_whose_context_is_only_part_of_a_name_belongs_to_no_timer() -> None:
    names = [f"main => not {function_names.CONTEXT} main => {function_names.SAMPLE} solve"]
    assert len(tree.build_tree(names, [()]).sampled) == 0
