"""Outputs of callgrind: what the profile holds is what callgrind_annotate prints, to every digit."""

from __future__ import annotations

import math
from pathlib import Path

import annotated
import numpy as np
import pytest

from advisor.analysis import soundness
from advisor.analysis.bounds import compute_bounds
from advisor.analysis.machines import load_machine
from advisor.formats import cachegrind, callgrind
from advisor.formats.valgrind.files import read_dump
from advisor.model.errors import InputError
from advisor.model.records import Processor, Profile
from advisor.support import contract
from advisor.trace.events import Role

FOLDER = Path(__file__).parents[1] / "profiles" / "callgrind"
SMALL = FOLDER / "small"
IS = FOLDER / "npb-is.S" / "callgrind.out.6938"
RANK0 = SMALL / "callgrind.out.rank0"


def output(*lines: str, pid: int = 7, cmd: str = "./app", events: str = "Ir", more: tuple[str, ...] = ()) -> str:
    head = ["# callgrind format", "version: 1", "creator: callgrind-3.19.0", f"pid: {pid}", f"cmd: {cmd}"]
    return "\n".join([*head, *more, "positions: line", f"events: {events}", *lines]) + "\n"


def written(
    path: Path, *lines: str, pid: int = 7, cmd: str = "./app", events: str = "Ir", more: tuple[str, ...] = ()
) -> Path:
    path.write_text(output(*lines, pid=pid, cmd=cmd, events=events, more=more))
    return path


def notes(profile: Profile) -> dict[str, float]:
    return {note.name: note.penalty for note in profile.notes}


def text_of(profile: Profile, name: str) -> str:
    return next(note.text for note in profile.notes if note.name == name)


def row(profile: Profile, count: str, region: str) -> list[float]:
    names = [one.name for one in profile.regions]
    found: list[float] = profile.counts[count][names.index(region)].tolist()
    return found


@pytest.mark.parametrize("rank", [0, 1])
def test_functions_are_those_of_the_report(rank: int) -> None:
    dump = read_dump(SMALL / f"callgrind.out.rank{rank}", numbered=True)
    listed = {name: row for name, row in annotated.functions(SMALL / f"expected.rank{rank}.txt").items() if any(row)}
    assert {name: row for name, row in annotated.counted(dump, "/src/").items() if any(row)} == listed
    assert len(listed) == 5


def test_functions_of_a_benchmark_are_those_of_the_report() -> None:
    listed = annotated.functions(FOLDER / "npb-is.S" / "expected.txt")
    mine = annotated.counted(read_dump(IS, numbered=True))
    assert len(listed) == 4
    assert {name: mine[name] for name in listed} == listed


def test_lines_are_those_of_the_source() -> None:
    """Lines 5 (operator[]) and 11 (the inner loop), as callgrind_annotate prints them beside the source."""
    dump = read_dump(RANK0, numbered=True)
    by_line = dict(zip(dump.lines.line.tolist(), dump.lines.counts[:, 0].tolist(), strict=True))
    assert by_line[5] == 524_288
    assert by_line[11] == 1_179_849


def test_the_profile_of_two_ranks() -> None:
    assert callgrind.advisor_sniff(SMALL) == 1.0
    profile = callgrind.advisor_read(SMALL)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert profile.program == "small"
    assert profile.processors == (Processor(0), Processor(1))
    assert math.isnan(profile.actual_s)
    assert profile.ranks_expected == 2
    assert "order of ranks" not in notes(profile)
    assert row(profile, "compiled_ops.load", "Grid<double>::operator[](int)") == [262_144, 131_072]
    assert row(profile, "calls", "Grid<double>::operator[](int)") == [131_072, 65_536]
    assert profile.counts["compiled_ops.store"].sum(axis=0).tolist() == [131_625, 66_089]
    assert profile.counts["misses.L1"].sum(axis=0).tolist()[0] == 73_730 + 4
    assert profile.counts["misses.LL"].sum(axis=0).tolist()[0] == 8_192
    assert "small.cpp:11 (100.0 %)" in text_of(profile, "hot lines")


def test_a_function_that_calls_itself_is_one_region() -> None:
    profile = callgrind.advisor_read(RANK0)
    assert row(profile, "instructions", "fibonacci(int)") == [2_545 + 18]
    assert not any("'2" in region.name for region in profile.regions)
    region = next(region for region in profile.regions if region.name == "fibonacci(int)")
    assert (region.file, region.line) == ("/src/small.cpp", 7)


def test_bounds_that_counts_allow() -> None:
    profile = callgrind.advisor_read(SMALL)
    machine = load_machine("xeon-8480")
    bounds = {bound.name: bound for bound in compute_bounds(profile, machine)}
    assert bounds["MAC"].seconds is not None
    assert bounds["MAC"].status == "modelled"
    assert bounds["M"].seconds is None
    assert bounds["actual"].seconds is None


def test_events_without_caches() -> None:
    dump = read_dump(IS, numbered=True)
    profile = callgrind.advisor_read(IS)
    assert dump.events[:3] == ("Ir", "Dr", "Dw")
    assert "compiled_ops.branch" not in profile.counts, "branches were not simulated"
    assert profile.counts["instructions"].sum() + profile.counts["library.instructions"].sum() == 31_498_395


def test_counts_of_calls_are_no_counts_of_the_caller(tmp_path: Path) -> None:
    path = written(tmp_path / "out", "fn=(1) main", "1 5", "cfn=(2) work", "calls=3 9", "2 1000", "+1 4", "",
                   "fn=(2)", "9 1000", "totals: 1009")  # fmt: skip
    profile = callgrind.advisor_read(path)
    assert row(profile, "instructions", "main") == [9]
    assert row(profile, "instructions", "work") == [1000]
    assert row(profile, "calls", "work") == [3]


def test_inlined_code_belongs_to_the_function_it_is_inlined_in(tmp_path: Path) -> None:
    path = written(tmp_path / "out", "fl=(1) a.c", "fn=(1) main", "12 5", "fi=(2) b.h", "900 7", "fe=(1)", "-888 1",
                   "fn=(2) next", "* 1", "totals: 14")  # fmt: skip
    dump = read_dump(path, numbered=True)
    assert annotated.counted(dump) == {"a.c:main": [6], "b.h:main": [7], "a.c:next": [1]}
    profile = callgrind.advisor_read(path)
    assert [(region.name, region.file, region.line) for region in profile.regions] == [
        ("main", "a.c", 12),
        ("next", "a.c", 12),
    ]


def test_names_without_numbers_and_positions_by_instruction(tmp_path: Path) -> None:
    text = output("ob=/bin/app", "fl=a.c", "fn=f(int)", "0x10 3 1", "+4 +1 2", "cfn=(below main)", "calls=2 0x20 9",
                  "* * 50", "fn=(below main)", "0x20 * 50", "totals: 53")  # fmt: skip
    path = tmp_path / "out"
    path.write_text(text.replace("positions: line", "positions: instr line"))
    profile = callgrind.advisor_read(path)
    assert row(profile, "instructions", "f(int)") == [3]
    assert row(profile, "calls", "(below main)") == [2]
    assert [region.line for region in profile.regions] == [3, 4]


def test_parts_of_a_process_are_added_up(tmp_path: Path) -> None:
    written(tmp_path / "callgrind.out.7.1", "fn=(1) main", "1 5", "totals: 5", more=("part: 1",))
    written(tmp_path / "callgrind.out.7", "fn=(1) main", "1 6", "totals: 6", more=("part: 2",))
    both = output("fn=(1) main", "1 5", "totals: 5", "", "part: 2", "positions: line", "events: Ir", "fn=(1)", "1 6",
                  "totals: 6")  # fmt: skip
    profile = callgrind.advisor_read(tmp_path)
    assert profile.processors == (Processor(0),)
    assert row(profile, "instructions", "main") == [11]
    single = tmp_path / "sub" / "combined"
    single.parent.mkdir()
    single.write_text(both)
    assert row(callgrind.advisor_read(single), "instructions", "main") == [11]


def test_threads_of_a_process(tmp_path: Path) -> None:
    for thread, count in ((1, 1000), (2, 3), (3, 900)):
        written(tmp_path / f"callgrind.out.7-0{thread}", "fn=(1) main", f"1 {count}", f"totals: {count}",
                more=("part: 1", f"thread: {thread}"))  # fmt: skip
    profile = callgrind.advisor_read(tmp_path)
    assert profile.processors == (Processor(0, 0), Processor(0, 1))
    assert profile.counts["instructions"].sum(axis=0).tolist() == [1000, 900]
    assert "1 thread that" in text_of(profile, "helper threads")


@pytest.mark.parametrize(
    ("names", "ranks", "guessed"),
    [
        (("callgrind.out.0", "callgrind.out.2"), (0, 2), False),
        (("callgrind.out.71", "callgrind.out.70"), (0, 1), True),
        (("r.rank3.out", "r.rank1.out"), (1, 3), False),
    ],
)
def test_ranks(tmp_path: Path, names: tuple[str, str], ranks: tuple[int, int], guessed: bool) -> None:
    for name, pid, count in zip(names, (71, 70), (5, 6), strict=True):
        written(tmp_path / name, "fn=(1) main", f"1 {count}", f"totals: {count}", pid=pid)
    profile = callgrind.advisor_read(tmp_path)
    assert tuple(processor.rank for processor in profile.processors) == ranks
    assert ("order of ranks" in notes(profile)) == guessed
    assert profile.ranks_expected == (None if guessed else max(ranks) + 1)
    first_pid = 70 if guessed or "rank" in names[0] else 71
    assert row(profile, "instructions", "main")[0] == (6 if first_pid == 70 else 5)


def test_other_programs_are_left_out(tmp_path: Path) -> None:
    written(tmp_path / "callgrind.out.7", "fn=(1) main", "1 500", "totals: 500")
    written(tmp_path / "callgrind.out.6", "fn=(1) main", "1 5", "totals: 5", pid=6, cmd="/bin/sh -c x")
    profile = callgrind.advisor_read(tmp_path)
    assert profile.program == "app"
    assert len(profile.processors) == 1
    assert "sh (1)" in text_of(profile, "programs left out")


def test_code_of_mpi_and_of_the_linker_is_counted_by_itself(tmp_path: Path) -> None:
    path = written(
        tmp_path / "out", "ob=(1) /bin/app", "fl=(1) a.c", "fn=(1) main", "1 100", "cob=(2) /lib/libmpi.so.40.30.4",
        "cfi=(2) ???", "cfn=(2) PMPI_Barrier", "calls=4 0", "1 50", "ob=(2)", "fl=(2)", "fn=(2)", "0 30",
        "fn=(3) 0x0000000000001234", "0 15", "ob=(3) /lib64/ld-linux-x86-64.so.2", "fn=(4) do_lookup_x", "0 5",
        "totals: 150",
    )  # fmt: skip
    paths = callgrind.read_call_paths(path)
    assert [(node.name, node.role) for node in paths.nodes] == [
        ("main", Role.USER),
        ("MPI_Barrier", Role.BARRIER),
        ("0x0000000000001234 in libmpi.so.40.30.4", Role.COMM_OTHER),
        ("do_lookup_x", Role.USER),
    ]
    assert paths.counts["instructions"].ravel().tolist() == [100, 0, 0, 0]
    assert paths.counts["library.instructions"].ravel().tolist() == [0, 30, 15, 5]
    assert paths.visits is not None
    assert paths.visits.ravel().tolist() == [0, 4, 0, 0]


def test_calls_of_mpi_through_its_wrappers_count_once(tmp_path: Path) -> None:
    path = written(tmp_path / "out", "fn=(1) main", "1 9", "cfn=(2) mpi_send_", "calls=4 0", "1 50", "fn=(2)", "0 3",
                   "cfn=(3) PMPI_Send", "calls=4 0", "0 47", "fn=(3)", "0 47", "totals: 59")  # fmt: skip
    assert callgrind.advisor_read(path).counts["messages"].sum() == 4


@pytest.mark.parametrize(
    "name", ["x" * 5000, "größe", "f() [clone .cold]", "g(T) [with T = int]", "a::operator[](int)"]
)
def test_names_survive(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "out", f"fn=(1) {name}", "1 5", "totals: 5")
    assert [region.name for region in callgrind.advisor_read(path).regions] == [name]


def test_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(output("fn=(1) NAME", "1 5", "totals: 5").encode().replace(b"NAME", b"f\xff"))
    assert callgrind.advisor_read(path).regions[0].name == "f\udcff"


def test_a_file_in_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_dump(IS, numbered=True)
    monkeypatch.setattr("advisor.formats.valgrind.files._PIECE", 1000)
    found = read_dump(IS, numbered=True)
    assert found.places == whole.places
    assert np.array_equal(found.counts, whole.counts)
    assert found.calls is not None
    assert whole.calls is not None
    assert np.array_equal(found.calls, whole.calls)
    assert np.array_equal(found.line, whole.line)


@pytest.mark.parametrize(
    ("lines", "place", "reason"),
    [
        (("1 5", "totals: 5"), "line 8", "before the first function"),
        (("fn=(1) f", "1 5"), "line 10", "before its totals"),
        (("fn=(1) f", "1 x", "totals: 5"), "line 9", "expected a count, found 'x'"),
        (("fn=(1) f", "1 -5", "totals: 5"), "line 9", "expected a count, found '-5'"),
        (("fn=(1) f", "1 5 6", "totals: 5"), "line 9", "more counts than there are events"),
        (("fn=(1) f", "-9 5", "totals: 5"), "line 9", "source line is impossible"),
        (("fn=(1) f", "1 1234567890123456", "totals: 5"), "line 9", "expected a count"),
        (("fn=(1)", "1 5", "totals: 5"), "line 8", "the number (1) has no name"),
        (("fn=(1) f", "calls=1 2", "1 5", "totals: 5"), "line 9", "calls="),
        (("fn=(1) f", "cfn=(1)", "calls=1 2", "fn=(2) g", "1 5", "totals: 5"), "line 10", "calls="),
        (("fx=(1) f", "1 5", "totals: 5"), "line 8", "unknown line"),
        (("what is this", "totals: 5"), "line 8", "unknown line"),
        (("fn=(1) f", "1 5", "events: Ir Dr", "totals: 5"), "line 10", "different events"),
        (("fn=(1) f", "1 5", "totals: many"), "line 10", "totals"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_line(tmp_path: Path, lines: tuple[str, ...], place: str, reason: str) -> None:
    path = written(tmp_path / "out", *lines)
    with pytest.raises(InputError, match=reason.replace("(", r"\(").replace(")", r"\)")) as caught:
        callgrind.advisor_read(path)
    assert caught.value.place == place


def test_totals_that_are_no_sums_are_noted(tmp_path: Path) -> None:
    path = written(tmp_path / "out", "fn=(1) f", "1 5", "totals: 6")
    assert notes(callgrind.advisor_read(path))["totals disagree"] == 0.3


def test_what_does_not_fit_together(tmp_path: Path) -> None:
    written(tmp_path / "callgrind.out.7", "fn=(1) f", "1 5", "totals: 5")
    written(tmp_path / "callgrind.out.8", "fn=(1) f", "1 5 6", "totals: 5 6", pid=8, events="Ir Dr")
    with pytest.raises(InputError, match=r"counts other events than callgrind\.out\.7"):
        callgrind.advisor_read(tmp_path)
    written(tmp_path / "callgrind.out.8", "fn=(1) f", "1 5", "totals: 5")
    with pytest.raises(InputError, match="is the same part of the same process"):
        callgrind.advisor_read(tmp_path)


def test_too_many_functions_become_one(tmp_path: Path) -> None:
    lines = [part for n in range(100_005) for part in (f"fn=({n}) f{n}", f"1 {10 if n < 9 else 1}")]
    profile = callgrind.advisor_read(written(tmp_path / "out", *lines, f"totals: {100_005 + 81}"))
    assert len(profile.regions) == 100_000
    assert profile.counts["instructions"].sum() == 100_005 + 81
    assert notes(profile)["functions folded"] > 0
    assert row(profile, "instructions", "other functions") == [6]


def test_only_its_own_files_are_claimed(tmp_path: Path) -> None:
    others = [
        path for path in FOLDER.parent.rglob("*") if path.is_file() and path.parts[-3:-1] != ("together", "callgrind")
    ]
    others = [path for path in others if FOLDER not in path.parents]
    assert [path for path in others if callgrind.advisor_sniff(path)] == []
    assert callgrind.advisor_sniff(RANK0) == 1.0
    assert cachegrind.advisor_sniff(RANK0) is None
    assert callgrind.advisor_sniff(SMALL / "expected.rank0.txt") == 1.0, "a table of callgrind_annotate"
    assert callgrind.advisor_sniff(tmp_path) is None
    (tmp_path / "profile").write_text("version: 1\ncreator: xdebug 3.1\nevents: Time\n")
    assert callgrind.advisor_sniff(tmp_path) is None
    with pytest.raises(InputError, match="no output of valgrind here"):
        callgrind.advisor_read(tmp_path)
