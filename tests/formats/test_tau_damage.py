"""Damaged profiles of TAU: refused, or read with a note; what stands there twice shows what changed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import damage
import pytest

from advisor.formats import tau

if TYPE_CHECKING:
    from advisor.model.records import Profile

PROFILES = Path(__file__).parents[1] / "profiles" / "tau"
FLAT = PROFILES / "faultlab-imbalance30"
TRIED = damage.TRIED


METADATA = re.compile(r"<metadata>.*</metadata>")
SHORT = "<metadata><attribute><name>Hostname</name><value>vm</value></attribute></metadata>"


def small(tmp_path: Path) -> Path:
    """A copy of a recorded run with most of its metadata left out, so that what is damaged matters."""
    run = Path(shutil.copytree(FLAT, tmp_path / "run"))
    for path in run.glob("MULTI__*/profile.*"):
        path.write_text(METADATA.sub(SHORT, path.read_text()))
    shutil.copytree(run, tmp_path / "whole")
    return run


def read_all_metrics(folder: Path) -> Profile:
    return tau.advisor_read(folder.parent)


PATHS = """\
7 templated_functions_MULTI_TIME
# Name Calls Subrs Excl Incl ProfileCalls # <metadata></metadata>
".TAU application" 1 1 10 160 0 GROUP="TAU_UTILITY"
"main [{a.c} {7,0}]" 1 3 50 150 0 GROUP="TAU_DEFAULT"
".TAU application => main [{a.c} {7,0}]" 1 3 50 150 0 GROUP="TAU_CALLPATH|TAU_DEFAULT"
"MPI_Allreduce()  " 3 0 100 100 0 GROUP="MPI"
".TAU application => main [{a.c} {7,0}] => MPI_Allreduce()  " 3 0 100 100 0 GROUP="TAU_CALLPATH|MPI"
"[SAMPLE] f [{a.c} {9}]" 2 0 20 20 0 GROUP="TAU_SAMPLE"
".TAU application => main [{a.c} {7,0}] => [CONTEXT] main => [SAMPLE] f [{a.c} {9}]" 2 0 20 20 0 GROUP="TAU_SAMPLE"
0 aggregates
1 userevents
# eventname numevents max min mean sumsqr
"Message size for all-reduce" 3 8 8 8 192
"""


@pytest.mark.parametrize("several", [False, True])
def test_call_paths_cut_off_anywhere(tmp_path: Path, several: bool) -> None:
    source = tmp_path / "source" / "profile.0.0.0"
    source.parent.mkdir()
    source.write_text(PATHS)
    run = tmp_path / "run"
    run.mkdir()
    (run / "profile.1.0.0").write_text(PATHS)
    damage.every_prefix(source, tmp_path, tau.advisor_read, run if several else None)


@pytest.mark.parametrize("metric", ["MULTI__TIME", "MULTI__CPU_TIME"])
def test_a_file_of_one_metric_cut_off_anywhere(tmp_path: Path, metric: str) -> None:
    target = small(tmp_path) / metric
    damage.every_prefix(tmp_path / "whole" / metric / "profile.0.0.0", tmp_path, read_all_metrics, target)


def test_a_single_file_cut_off_anywhere(tmp_path: Path) -> None:
    damage.every_prefix(small(tmp_path) / "MULTI__TIME" / "profile.0.0.0", tmp_path, tau.advisor_read)


def test_bits_turned_over(tmp_path: Path) -> None:
    silent = damage.bit_flips(small(tmp_path) / "MULTI__TIME" / "profile.0.0.0", tmp_path, tau.advisor_read)
    assert silent < 0.4 * TRIED, "more than names and their places"


def test_bits_of_one_metric_turned_over(tmp_path: Path) -> None:
    target = small(tmp_path) / "MULTI__TIME"
    source = tmp_path / "whole" / "MULTI__TIME" / "profile.0.0.0"
    silent = damage.bit_flips(source, tmp_path, read_all_metrics, target)
    assert silent < 0.01 * TRIED, "every number and name stands beside both metrics"


def test_bits_of_a_trace_turned_over(tmp_path: Path) -> None:
    trace = PROFILES / "trace" / "tautrace.0.0.0.trc"
    content = trace.read_bytes()
    for bit in range(8 * 64):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / "x").write_bytes(changed)
        assert tau.advisor_sniff(tmp_path / "x") in (None, 1)


@pytest.mark.parametrize("part", range(4))
def test_another_digit_anywhere_in_the_numbers_is_noticed(tmp_path: Path, part: int) -> None:
    source = FLAT / "MULTI__TIME" / "profile.0.0.0"
    whole = tau.advisor_read(source)
    lines = source.read_text().splitlines(keepends=True)
    places = [
        (number, column)
        for number, line in enumerate(lines)
        if number != 1
        for word in re.finditer(r'(?<=" )[\d. ]+|^\d+', line)
        for column in range(*word.span())
        if line[column].isdigit()
    ]
    assert len(places) > 200
    silent = []
    for number, column in places[part :: 4 if damage.FULL else 8]:
        line = lines[number]
        other = str((int(line[column]) + 5) % 10)
        changed = [*lines[:number], line[:column] + other + line[column + 1 :], *lines[number + 1 :]]
        (tmp_path / "profile.0.0.0").write_text("".join(changed))
        found = damage._read(tau.advisor_read, tmp_path / "profile.0.0.0")
        if found is not None and not damage.same(found, whole) and not damage._says_more(found, whole):
            silent.append((number + 1, column + 1, line))
    assert not silent
