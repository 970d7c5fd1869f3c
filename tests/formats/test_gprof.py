"""Reports of gprof: seconds and calls as they stand there, for each process."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from advisor.formats import gprof
from advisor.formats.gprof import call_path_builder
from advisor.model.errors import InputError
from advisor.model.records import Processor
from advisor.trace.events import Role

PROFILES = Path(__file__).parents[1] / "profiles"
RECORDED = PROFILES / "gprof"
CYCLES = RECORDED / "cycles" / "gprof.txt"
FAULTLAB = RECORDED / "faultlab-imbalance30" / "gprof.txt"
BT = RECORDED / "npb-ser-bt.W" / "gprof.txt"


def printed(file: Path) -> list[dict[str, tuple[float, int]]]:
    """Self seconds and calls of each function in each flat profile, read off the columns."""
    found: list[dict[str, tuple[float, int]]] = []
    inside = False
    for line in file.read_text().splitlines():
        if line.startswith(" time   seconds"):
            found.append({})
            inside = True
        elif not line.strip():
            inside = False
        elif inside:
            found[-1][line[54:]] = float(line[16:26]), int(line[26:35].strip() or "0")
    return found


def test_numbers_of_many_functions_have_no_room_for_their_bracket(tmp_path: Path) -> None:
    text = re.sub(r"\[(\d)\]", r"[1000\1]", FAULTLAB.read_text())
    (tmp_path / "gprof.txt").write_text(re.sub(r"(?m)^(\[1000\d)\]", r"\1", text))
    assert [node.name for node in gprof.read_call_paths(tmp_path / "gprof.txt").nodes] == [
        node.name for node in gprof.read_call_paths(FAULTLAB).nodes
    ]


def test_old_versions_put_a_tab_behind_a_cycle(tmp_path: Path) -> None:
    text = CYCLES.read_text()
    assert "as a whole> [" in text
    (tmp_path / "gprof.txt").write_text(text.replace("as a whole> [", "as a whole>\t["))
    paths, same = gprof.read_call_paths(tmp_path / "gprof.txt"), gprof.read_call_paths(CYCLES)
    assert paths.nodes == same.nodes
    assert paths.notes == same.notes


@pytest.mark.parametrize(
    "file", [CYCLES, CYCLES.with_name("explained.txt"), FAULTLAB, BT, RECORDED / "parts" / "flat.txt"]
)
def test_seconds_and_calls_are_those_of_the_flat_profile(file: Path) -> None:
    paths = gprof.read_call_paths(file)
    assert paths.cpu_s is not None
    assert paths.visits is not None
    names = [node.name for node in paths.nodes]
    expected = printed(file)
    assert len(expected) == len(paths.processors)
    assert set(names) == {name for each in expected for name in each}
    for column, each in enumerate(expected):
        for row, name in enumerate(names):
            assert (paths.cpu_s[row, column], paths.visits[row, column]) == each.get(name, (0, 0))


@pytest.mark.parametrize("file", [CYCLES, CYCLES.with_name("explained.txt"), FAULTLAB, BT])
def test_sound_reports_give_no_doubts_but_the_number_of_samples(file: Path) -> None:
    assert {note.name for note in gprof.read_call_paths(file).notes} == {"CPU time only", "sampled"}


def test_the_call_graph_alone_tells_the_same(tmp_path: Path) -> None:
    graph = gprof.read_call_paths(RECORDED / "parts" / "graph.txt")
    flat = gprof.read_call_paths(RECORDED / "parts" / "flat.txt")
    assert flat.cpu_s is not None
    assert flat.visits is not None
    assert graph.cpu_s is not None
    assert graph.visits is not None
    ours = {node.name: (graph.cpu_s[n, 0], graph.visits[n, 0]) for n, node in enumerate(graph.nodes)}
    assert ours.pop("main") == (0, 0)
    assert ours == {node.name: (flat.cpu_s[n, 0], flat.visits[n, 0]) for n, node in enumerate(flat.nodes)}


def test_lines_become_places() -> None:
    paths = gprof.read_call_paths(RECORDED / "lines" / "gprof.txt")
    assert [(node.name, node.file, node.line) for node in paths.nodes] == [("f", "l.c", n) for n in (6, 4, 3, 2)]
    assert {note.name for note in paths.notes} == {"CPU time only", "sampled"}


def test_there_is_no_wall_time_and_no_verdict() -> None:
    profile = gprof.advisor_read(FAULTLAB)
    assert math.isnan(profile.actual_s)
    assert profile.program == ""
    assert set(profile.phases[0].arrays) == {"cpu_s"}
    assert profile.status["cpu_s"] == "estimated"
    assert profile.phases[0].arrays["cpu_s"].sum(axis=(0, 2)).tolist() == pytest.approx([0.36, 0.19])
    assert profile.counts["calls"].sum() == 256


def test_few_samples_are_a_doubt() -> None:
    few, many = (
        next(note for note in gprof.read_call_paths(file).notes if note.name == "sampled") for file in (FAULTLAB, BT)
    )
    assert few.penalty > 0
    assert "19 in a process, known to ± 23 %" in few.text
    assert many.penalty == 0


def test_headings_in_a_file_tell_the_ranks(tmp_path: Path) -> None:
    assert gprof.read_call_paths(FAULTLAB).processors == (Processor(0), Processor(1))
    text = FAULTLAB.read_text()
    (tmp_path / "x.txt").write_text(text.replace("gmon.rank0", "gmon.rank6").replace("gmon.rank1", "gmon.rank4"))
    assert gprof.read_call_paths(tmp_path / "x.txt").processors == (Processor(6), Processor(4))
    (tmp_path / "x.txt").write_text(text.replace("gmon.rank0", "one").replace("gmon.rank1", "two"))
    assert gprof.read_call_paths(tmp_path / "x.txt").processors == (Processor(0), Processor(1))


def test_files_of_a_directory_are_the_processes_of_a_run(tmp_path: Path) -> None:
    halves = FAULTLAB.read_text().split("=== gmon.rank1.19296\n")
    for name, text in zip(("out.10.txt", "out.9.txt"), halves, strict=True):
        (tmp_path / name).write_text(text)
    assert gprof.advisor_sniff(tmp_path) == 1.0
    paths = gprof.read_call_paths(tmp_path)
    assert paths.cpu_s is not None
    assert paths.cpu_s.sum(axis=0).tolist() == pytest.approx([0.19, 0.36])
    assert paths.processors == (Processor(0), Processor(1))


def test_reports_whose_names_say_nothing_of_ranks_are_runs_of_their_own(tmp_path: Path) -> None:
    for name in ("bt.txt", "lu.txt"):
        (tmp_path / name).write_bytes(BT.read_bytes())
    assert gprof.advisor_sniff(tmp_path) is None
    with pytest.raises(InputError, match="several runs"):
        gprof.read_call_paths(tmp_path)


def test_only_its_own_reports_are_claimed() -> None:
    claimed = {path for path in PROFILES.rglob("*") if gprof.advisor_sniff(path) is not None}
    assert {path for path in claimed if path.is_file()} == set(RECORDED.rglob("*.txt"))
    assert {path.name for path in claimed if path.is_dir()} == {"faultlab-imbalance30", "npb-ser-bt.W", "lines"}


@pytest.mark.parametrize(
    "content", [b"", b"Flat profile:\n", b"\x00gmon", b"Call graph\n", b"index % time    self  children\n"]
)
def test_anything_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    assert gprof.advisor_sniff(tmp_path / "x") is None
    assert gprof.advisor_sniff(tmp_path) is None


@pytest.mark.parametrize(
    "name",
    [
        "std::map<int, std::vector<Foo<double> > >::operator[](unsigned long const&) const",
        "T f(T) [with T = int; U = double]",
        "foo<int> [clone .cold]",
        "operator<(A const&, B const&)",
        "größe_λ",
        "caf\udce9",
        "n" * 5000,
        "write",
    ],
)
def test_names_survive(tmp_path: Path, name: str) -> None:
    text = CYCLES.read_text().replace("M<double>::operator[](int)", name)
    (tmp_path / "x.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
    paths = gprof.read_call_paths(tmp_path / "x.txt")
    assert {node.name: node.role for node in paths.nodes}[name] == Role.USER
    assert {note.name for note in paths.notes} == {"CPU time only", "sampled"}


def test_what_profiling_and_mpi_cost_is_not_the_programs_work(tmp_path: Path) -> None:
    text = re.sub(r"\bwrite_", "mcount", CYCLES.read_text()).replace("fact(int)", "PMPI_Wait")
    (tmp_path / "x.txt").write_text(text)
    roles = {node.name: node.role for node in gprof.read_call_paths(tmp_path / "x.txt").nodes}
    assert roles["mcount"] == Role.TOOL
    assert roles["MPI_Wait"] == Role.WAIT


def test_too_many_functions_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_path_builder, "_REGIONS", 4)
    paths = gprof.read_call_paths(BT)
    assert paths.cpu_s is not None
    assert [node.name for node in paths.nodes] == ["binvcrhs_", "x_solve_", "y_solve_", "other functions"]
    assert paths.cpu_s.sum() == pytest.approx(1.21)
    assert paths.notes[-1].name == "too many functions"


def test_what_cannot_be_opened_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert gprof.advisor_sniff(tmp_path / "loop") is None
    assert gprof.advisor_sniff(tmp_path) is None
    assert gprof.advisor_sniff(tmp_path / "nothing") is None
