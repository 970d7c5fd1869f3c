"""mpiP reports: what the profile holds is what the report says, to the digits printed there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.analysis import gaps, soundness
from advisor.analysis.bounds import compute_bounds
from advisor.formats import mpip
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths

REPORTS = sorted((Path(__file__).parents[1] / "profiles" / "mpip").glob("*/*.mpiP"))
IMBALANCE = next(path for path in REPORTS if path.parent.name == "faultlab-imbalance30")
TASK = re.compile(r" +(\d+) +(\S+) +(\S+) +(\S+)")
SITE = re.compile(r"(\w+) +(\d+) +(\d+|\*) +(\d+) +(\S+) +(\S+) +(\S+) +\S+ +\S+")
SENT = re.compile(r"(\w+) +(\d+) +(\d+) +(\d+) +(\S+) +(\S+) +(\S+) +(\S+)")


def section(path: Path, title: str) -> str:
    """The lines below a heading, up to the next one."""
    return path.read_text().split(f"@--- {title}")[1].split("@---")[0]


def digits(value: float, count: int = 3) -> str:
    return f"{value:.{count}g}"


def edited(path: Path, tmp_path: Path, *changes: tuple[str, str]) -> Path:
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    target = tmp_path / "report.mpiP"
    target.write_text(text)
    return target


def notes(profile: Profile) -> dict[str, float]:
    return {note.name: note.penalty for note in profile.notes}


def of_call(paths: CallPaths, name: str) -> list[int]:
    return [n for n, node in enumerate(paths.nodes) if node.name == name]


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.parent.name)
def test_times_of_tasks_are_those_of_the_report(path: Path) -> None:
    paths = mpip.read_call_paths(path)
    assert paths.wall_s is not None
    tasks = TASK.findall(section(path, "MPI Time"))
    assert len(tasks) == len(paths.processors)
    mpi = np.array([node.role not in (Role.ROOT, Role.USER) for node in paths.nodes])
    for task, app, in_mpi, _ in tasks:
        own = paths.wall_s[:, int(task)]
        assert digits(own.sum()) == digits(float(app))
        # The sites' means have three digits each, so their sum is known as exactly as that allows.
        assert own[mpi].sum() == pytest.approx(float(in_mpi), rel=5e-3)


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.parent.name)
def test_times_and_bytes_of_calls_are_those_of_the_report(path: Path) -> None:
    paths = mpip.read_call_paths(path)
    assert paths.wall_s is not None
    assert paths.visits is not None
    assert paths.bytes is not None
    seconds: dict[tuple[str, int], float] = {}
    count: dict[tuple[str, int], int] = {}
    for call, _, rank, visits, _, mean, _ in SITE.findall(section(path, "Callsite Time statistics")):
        if rank != "*":
            key = (call, int(rank))
            seconds[key] = seconds.get(key, 0) + int(visits) * float(mean) / 1e3
            count[key] = count.get(key, 0) + int(visits)
    sent: dict[tuple[str, int], float] = {}
    for call, _, rank, *_, total in SENT.findall(section(path, "Callsite Message Sent")):
        sent[call, int(rank)] = sent.get((call, int(rank)), 0) + float(total)
    for (call, rank), total_s in seconds.items():
        nodes = of_call(paths, f"MPI_{call}")
        assert paths.wall_s[nodes, rank].sum() == pytest.approx(total_s)
        assert paths.visits[nodes, rank].sum() == count[call, rank]
        assert paths.bytes[nodes, rank].sum() == pytest.approx(sent.get((call, rank), 0.0))
    assert paths.visits.sum() == sum(count.values())


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.parent.name)
def test_real_reports_hold_no_contradictions(path: Path) -> None:
    profile = mpip.advisor_read(path)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert max(notes(profile).values()) == 0
    assert profile.program in path.name
    assert {processor.host for processor in profile.processors} == {"vm"}
    assert not profile.has_phases


def test_the_aggregates_of_the_report(tmp_path: Path) -> None:
    path = next(path for path in REPORTS if "lulesh" in path.name)
    profile = mpip.advisor_read(path)
    assert profile.started == "2026-11-21T01:03:46"
    assert profile.paradigms == ("mpi",)
    waits = [region for region in profile.regions if region.name == "MPI_Wait" and region.file == "lulesh-comm.cc"]
    assert {region.line for region in waits} >= {911, 945, 980, 1053, 1067, 1251}
    assert "_Z7CommSBNR6DomainiPMS_FRdiE" in {region.name for region in profile.regions}


def test_the_injected_imbalance_shows() -> None:
    profile = mpip.advisor_read(IMBALANCE)
    found = {gap.name: gap.seconds for gap in gaps.attribute_gaps(profile, compute_bounds(profile))}
    true = json.loads((IMBALANCE.parent / "truth.json").read_text())["bounds"]["from_measured_wall"]
    assert found["L"] == pytest.approx(true["IPCOL"] - true["IPCO"], abs=2e-3)
    assert found["L"] > 0.12


def test_the_number_of_messages_is_the_injected_one() -> None:
    path = next(path for path in REPORTS if path.parent.name == "faultlab-messages64")
    profile = mpip.advisor_read(path)
    assert profile.counts["messages"].sum(axis=0).tolist() == [2560, 2560]
    assert profile.counts["bytes"].sum(axis=0) == pytest.approx([2621440, 2621440], rel=1e-3)


def test_barriers_of_unknown_places_are_still_barriers() -> None:
    profile = mpip.advisor_read(IMBALANCE)
    places = {(region.file, region.line) for region in profile.regions if region.name == "MPI_Barrier"}
    assert places == {("faultlab.c", 154), (None, None)}
    assert "call sites unknown" in notes(profile)


def test_a_call_stack_becomes_a_call_path(tmp_path: Path) -> None:
    site = "  2   0 faultlab.c           163 exchange                 Sendrecv\n"
    outer = "".join(
        f"  2   {level} {file:18} {line:5} {name:24} \n"
        for level, file, line, name in ((1, "faultlab.c", 290, "step"), (2, "my main.c", 12, "main"))
    )
    paths = mpip.read_call_paths(edited(IMBALANCE, tmp_path, (site, site + outer)))
    send = next(n for n in of_call(paths, "MPI_Sendrecv") if paths.nodes[n].line == 163)
    names = []
    while send >= 0:
        names.append(paths.nodes[send].name)
        send = paths.nodes[send].parent
    assert names == ["MPI_Sendrecv", "exchange", "step", "main", "program"]
    assert "my main.c" in {node.file for node in paths.nodes}


def test_names_with_blanks_and_of_many_bytes(tmp_path: Path) -> None:
    name = "größe<a> ::operator[]"
    old = b"  1   0 faultlab.c           326 main                     Gather"
    new = old.replace(b"main".ljust(24), name.encode().ljust(24))
    (tmp_path / "x").write_bytes(IMBALANCE.read_bytes().replace(old, new))
    paths = mpip.read_call_paths(tmp_path / "x")
    assert paths.nodes[paths.nodes[of_call(paths, "MPI_Gather")[0]].parent].name == name


def test_lines_below_the_threshold_leave_their_seconds(tmp_path: Path) -> None:
    hidden = "Barrier             11    0      1     2.33     2.33     2.33   0.42  57.19\n"
    path = edited(IMBALANCE, tmp_path, (hidden, ""))
    paths = mpip.read_call_paths(path)
    assert paths.wall_s is not None
    assert paths.nodes[-1].name == "MPI"
    assert paths.wall_s[-1] == pytest.approx([2.33e-3, 0], abs=2e-5)
    profile = mpip.advisor_read(path)
    assert "lines left out" in notes(profile)
    assert "contradictions in the report" not in notes(profile)


def test_a_report_without_call_sites(tmp_path: Path) -> None:
    text = IMBALANCE.read_text()
    sections = re.split(r"(?=-{75}\n@---)", text)
    kept = [part for part in sections if "@--- Callsite" not in part]
    (tmp_path / "x").write_text("".join(kept))
    paths = mpip.read_call_paths(tmp_path / "x")
    assert [node.name for node in paths.nodes] == ["program", "MPI"]
    assert paths.wall_s is not None
    assert paths.wall_s[1].tolist() == [0.00408, 0.269]
    assert notes(mpip.advisor_read(tmp_path / "x"))["no call sites"] > 0


CONCISE = """\
@ mpiP
@ Command : ./heat
@ Version                  : 3.5.0
@ Start time               : 2026 11 21 00:54:50

---------------------------------------------------------------------------
@--- Task Time Statistics (seconds) ---------------------------------------
---------------------------------------------------------------------------
                     AppTime           MPITime   MPI%   App Task   MPI Task
Max                10.000000          6.000000                 2          3
Mean                9.900000          4.000000
Min                 9.800000          1.000000                 1          0
Stddev              0.100000          2.000000
Aggregate          39.600000         16.000000  40.40
---------------------------------------------------------------------------
@--- End of Report --------------------------------------------------------
---------------------------------------------------------------------------
"""


def test_a_concise_report_is_an_estimate(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(CONCISE)
    profile = mpip.advisor_read(tmp_path / "x")
    assert profile.ranks == 4
    paths = mpip.read_call_paths(tmp_path / "x")
    assert paths.wall_s is not None
    assert paths.wall_s[1].tolist() == pytest.approx([1.0, 4.5, 4.5, 6.0])
    assert paths.wall_s.sum(axis=0).tolist() == pytest.approx([9.9, 9.8, 10.0, 9.9])
    assert profile.status["wall_s"] == "estimated"
    assert notes(profile)["concise report"] > 0


def test_fixed_decimals_are_read_as_such(tmp_path: Path) -> None:
    parts = re.split(r"(?=-{75}\n@---)", IMBALANCE.read_text())
    kept = "".join(part for part in parts if "@--- Aggregate" not in part and "@--- Callsite Message" not in part)
    number = re.compile(r"(?<= )(\d+(?:\.\d+)?)(?= +[\d.]+(?: +[\d.]+){1,3}$)", re.MULTILINE)
    text = number.sub(lambda match: f"{float(match[1]):.3f}" if "." in match[1] else match[1], kept)
    total = "      1.100      0.273    24.78"
    assert total in text
    (tmp_path / "x").write_text(text.replace(total, "      1.103      0.273    24.75"))
    profile = mpip.advisor_read(tmp_path / "x")
    assert profile.actual_s == 0.553
    assert not any(notes(profile).values())


def test_more_seconds_in_mpi_than_in_the_program(tmp_path: Path) -> None:
    path = edited(
        IMBALANCE, tmp_path, ("   1       0.55      0.269    48.93\n", "   1      0.155      0.269   173.55\n")
    )
    profile = mpip.advisor_read(path)
    soundness.check_profile(profile)
    assert notes(profile)["more MPI than run time"] > 0
    assert profile.phases[0].arrays["wall_s"].sum(axis=0)[1, 0] == pytest.approx(0.155)


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("   0      0.553 ", "   0      nan   ", "impossible", 20),
        ("   0      0.553 ", "   0     -0.553 ", "impossible", 20),
        ("   0      0.553 ", "   7      0.553 ", "expected task 0", 20),
        ("Barrier              5    0     20", "Barrier              5    9     20", "no task 9", 74),
        ("Barrier              5    0     20", "Barrier              5    0     2x", "not a whole number", 74),
    ],
)
def test_impossible_values_are_refused_with_their_line(
    tmp_path: Path, old: str, new: str, reason: str, line: int
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        mpip.advisor_read(edited(IMBALANCE, tmp_path, (old, new)))
    assert caught.value.place is not None
    assert caught.value.path == tmp_path / "report.mpiP"
    assert re.fullmatch(r"line \d+", caught.value.place)
    text = (tmp_path / "report.mpiP").read_text().splitlines()[int(caught.value.place.split()[1]) - 1]
    assert new.split()[0] in text


def test_what_is_no_report_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("@ mpiPx\n")
    assert mpip.advisor_sniff(tmp_path / "x") is None
    assert mpip.advisor_sniff(tmp_path) is None
    assert mpip.advisor_sniff(IMBALANCE) == 1
    (tmp_path / "x").write_text("@ mpiP\n")
    with pytest.raises(InputError, match="no times of tasks"):
        mpip.advisor_read(tmp_path / "x")
