"""Outputs of cachegrind: what the profile holds is what cg_annotate prints, to every digit."""

from __future__ import annotations

import math
from pathlib import Path

import annotated
import pytest

from advisor.analysis import soundness
from advisor.formats import cachegrind
from advisor.formats.valgrind.files import read_dump
from advisor.model.errors import InputError
from advisor.model.records import Processor, Profile
from advisor.support import contract
from advisor.trace.events import Role

FOLDER = Path(__file__).parents[1] / "profiles" / "cachegrind"
TINY = FOLDER / "tiny"
MG = FOLDER / "npb-mg.S"
HEAD = "desc: I1 cache:         32768 B, 64 B, 8-way associative\ncmd: ./app\nevents: Ir Dr Dw\n"


def written(path: Path, body: str, head: str = HEAD) -> Path:
    path.write_text(head + body)
    return path


@pytest.mark.parametrize("rank", [0, 1])
def test_functions_are_those_of_the_report(rank: int) -> None:
    dump = read_dump(TINY / f"cachegrind.out.{rank}", numbered=False)
    listed = annotated.functions(TINY / f"expected.{rank}.txt")
    assert annotated.counted(dump) == listed
    assert len(listed) > 40


def test_functions_of_a_benchmark_are_those_of_the_report() -> None:
    listed = annotated.functions(MG / "expected.txt")
    mine = annotated.counted(read_dump(MG / "cachegrind.out.6890", numbered=False))
    assert len(listed) == 13
    assert {name: mine[name] for name in listed} == listed


def test_the_profile_of_two_ranks() -> None:
    assert cachegrind.advisor_sniff(TINY) == 1.0
    profile = cachegrind.advisor_read(TINY)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert profile.program == "tiny"
    assert profile.processors == (Processor(0), Processor(1))
    assert profile.ranks_expected == 2
    assert math.isnan(profile.actual_s)
    walk = next(n for n, region in enumerate(profile.regions) if region.name == "walk")
    assert (profile.regions[walk].file, profile.regions[walk].line) == ("/src/tiny.c", 5)
    assert profile.counts["instructions"][walk].tolist() == [13_062, 13_062]
    assert profile.counts["compiled_ops.load"][walk].tolist() == [2, 2]
    assert profile.counts["compiled_ops.branch"][walk, 0] == 4352


def test_ranks_by_process_ids_are_a_guess(tmp_path: Path) -> None:
    written(tmp_path / "cachegrind.out.812", "fl=a.c\nfn=main\n1 5 0 0\nsummary: 5 0 0\n")
    written(tmp_path / "cachegrind.out.99", "fl=a.c\nfn=main\n1 6 0 0\nsummary: 6 0 0\n")
    profile = cachegrind.advisor_read(tmp_path)
    assert profile.counts["instructions"][0].tolist() == [6, 5]
    assert "order of ranks" in {note.name for note in profile.notes}
    assert profile.ranks_expected is None


def test_names_in_parentheses_and_numbers_are_names(tmp_path: Path) -> None:
    path = written(tmp_path / "out", "fl=a.c\nfn=(below main)\n1 5 0 0\nfn=(1)\n2 6 0 0\nsummary: 11 0 0\n")
    assert [region.name for region in cachegrind.advisor_read(path).regions] == ["(below main)", "(1)"]


def test_without_simulated_caches(tmp_path: Path) -> None:
    path = written(tmp_path / "out", "fl=a.c\nfn=main\n1 5\nsummary: 5\n", "cmd: ./app\nevents: Ir \n")
    assert cachegrind.advisor_sniff(path) == 1.0
    profile = cachegrind.advisor_read(path)
    assert set(profile.counts) == {"instructions"}
    assert "caches not simulated" in {note.name for note in profile.notes}


def test_code_without_a_name_is_a_librarys_in_a_program_with_mpi(tmp_path: Path) -> None:
    body = "fl=a.c\nfn=main\n1 5 0 0\nfl=???\nfn=???\n0 7 0 0\nfn={}\n0 9 0 0\nsummary: 21 0 0\n"
    alone = cachegrind.read_call_paths(written(tmp_path / "alone", body.format("helper")))
    assert alone.counts["instructions"].ravel().tolist() == [5, 7, 9]
    assert "library.instructions" not in alone.counts
    mpi = cachegrind.read_call_paths(written(tmp_path / "mpi", body.format("opal_progress")))
    assert mpi.counts["instructions"].ravel().tolist() == [5, 0, 0]
    assert mpi.counts["library.instructions"].ravel().tolist() == [0, 7, 9]
    assert mpi.nodes[2].role == Role.COMM_OTHER


def test_a_summary_that_is_no_sum_is_noted(tmp_path: Path) -> None:
    path = written(tmp_path / "out", "fl=a.c\nfn=main\n1 5 0 0\nsummary: 5 0 1\n")
    assert {note.name: note.penalty for note in cachegrind.advisor_read(path).notes}["totals disagree"] > 0


@pytest.mark.parametrize(
    ("body", "place", "reason"),
    [
        ("fl=a.c\nfn=main\n1 5 0 0\n", "line 7", "before its totals"),
        ("fl=a.c\n1 5 0 0\nsummary: 5 0 0\n", "line 5", "before the first function"),
        ("fl=a.c\nfn=main\n1 5 . 0\nsummary: 5 0 0\n", "line 6", "expected a count"),
        ("fl=a.c\nfn=main\n1 5 0 0\nsummary: 5 0 0", "line 7", "cut off"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, body: str, place: str, reason: str) -> None:
    path = written(tmp_path / "out", body)
    with pytest.raises(InputError, match=reason) as caught:
        cachegrind.advisor_read(path)
    assert caught.value.place == place


def test_only_its_own_files_are_claimed() -> None:
    others = [
        path for path in FOLDER.parent.rglob("*") if path.is_file() and path.parts[-3:-1] != ("together", "callgrind")
    ]
    others = [path for path in others if FOLDER not in path.parents]
    assert [path for path in others if cachegrind.advisor_sniff(path)] == []
    own = [path.name for path in FOLDER.rglob("*") if path.is_file() and cachegrind.advisor_sniff(path)]
    tables = ["expected.0.txt", "expected.1.txt"]  # of cg_annotate
    assert sorted(own) == ["cachegrind.out.0", "cachegrind.out.1", "cachegrind.out.6890", *tables]
