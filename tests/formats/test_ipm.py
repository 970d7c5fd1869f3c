"""IPM's XML: every task's seconds in each call, and the imbalance of the program behind the sample.

The sample is made after IPM's ``report_xml.c``: four tasks work 8.0, 8.1, 8.2 and 11.6 s of 12.5.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor.analysis import bounds, gaps, loads, soundness
from advisor.formats import ipm
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

SAMPLE = Path(__file__).parents[1] / "profiles" / "ipm" / "heat.xml"


def edited(tmp_path: Path, old: str, new: str) -> Path:
    text = SAMPLE.read_text()
    assert old in text
    (tmp_path / "heat.xml").write_text(text.replace(old, new, 1))
    return tmp_path / "heat.xml"


def test_seconds_of_every_task_and_call() -> None:
    assert ipm.advisor_sniff(SAMPLE) == 1.0
    paths = ipm.read_call_paths(SAMPLE)
    assert (paths.program, paths.ranks_expected, paths.started) == ("heat", 4, "2026-11-22T23:10:00+00:00")
    rows = {node.name: row for row, node in enumerate(paths.nodes)}
    assert paths.wall_s is not None
    assert paths.visits is not None
    assert paths.bytes is not None
    assert paths.wall_s[rows["MPI_Allreduce"]] == pytest.approx([4.25, 4.15, 4.05, 0.65])
    assert paths.wall_s.sum(axis=0) == pytest.approx([12.5] * 4)
    assert paths.bytes[rows["MPI_Isend"]].tolist() == [400 * 65536] * 4
    assert paths.visits[rows["MPI_Waitall"]].tolist() == [200] * 4
    assert paths.nodes[paths.nodes[rows["MPI_Allreduce"]].parent].name == "solve"


def test_imbalance() -> None:
    profile = ipm.advisor_read(SAMPLE)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    summary = loads.summarize_loads(profile)
    found = gaps.attribute_gaps(profile, bounds.compute_bounds(profile, None, summary), summary)
    imbalance = next(gap for gap in found if gap.name == "L")
    assert imbalance.seconds == pytest.approx(11.6 - np.mean([8.0, 8.1, 8.2, 11.6]), rel=1e-3)
    assert imbalance.processors[0].name == "rank 3"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('mpi_rank="2"', 'mpi_rank="1"', "two tasks have the same rank"),
        ("4.2500e+00 8.0000e-04", "4.2500e+0x 8.0000e-04", "could not convert"),
        ('count="200" tid', 'count="-200" tid', "contradict each other"),
        ("</ipm_job_profile>", "", "no sound XML"),
        (' mpi_size="4"', "", "mpi_size is missing"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ipm.advisor_read(edited(tmp_path, old, new))


def test_what_is_said_twice(tmp_path: Path) -> None:
    path = edited(tmp_path, 'nlog="800"', 'nlog="801"')
    assert "contradictions in the profile" in {note.name for note in ipm.advisor_read(path).notes}
    path = edited(tmp_path, "4.2500e+00 8.0000e-04", "3.2500e+00 8.0000e-04")
    assert "contradictions in the profile" in {note.name for note in ipm.advisor_read(path).notes}


def test_without_calls_nothing_is_concluded(tmp_path: Path) -> None:
    import re

    text = re.sub(r"<hash.*?</hash>\n", "", SAMPLE.read_text(), flags=re.DOTALL)
    (tmp_path / "heat.xml").write_text(text)
    notes = {note.name: note.penalty for note in ipm.advisor_read(tmp_path / "heat.xml").notes}
    assert notes["calls not listed"] == 1.0
