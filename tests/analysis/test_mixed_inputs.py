"""Files that do not make one run: two hundred seeded mixes get no advice above grade D, and each is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from mixed_inputs import FORMATS, KINDS, UNNUMBERED, copied, spoiled

from advisor import pipeline
from advisor.analysis import bounds, gaps, loads, quality
from advisor.extension import host
from advisor.formats.rank_files import Origin, compare_origins
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Grade, Profile

SEEDS = 200
#: What each kind of damage is called; of a mix that makes the files several runs, ranks are missing in each.
NAMES = {
    "mix": {
        "files of different runs", "event files of other locations", "processors missing", "most processors missing",
        "ranks unlike", "processes of other programs",
    },
    "duplicate": {"contradictory times", "the same file twice", "processors missing", "most processors missing"},
    "swap": {"event files of other locations"},
    "unit": {"ranks unlike", "contradictory records", "contradictory times", "contradictions in the profile"},
    "omission": {"processors missing", "most processors missing", "event files missing", "partners missing"},
}  # fmt: skip


def graded(profile: Profile) -> Grade:
    summary = loads.summarize_loads(profile)
    levels = bounds.compute_bounds(profile, None, summary)
    return quality.grade_profile(profile, levels, gaps.attribute_gaps(profile, levels, summary), summary)


def works(profile: Profile) -> list[float]:
    """The seconds of the processors, in order of length: what stays when names change."""
    total = sum((phase.arrays["wall_s"].sum(axis=(0, 2)) for phase in profile.phases), np.zeros(1))
    return sorted(total.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_spoiled_runs_are_not_believed(tmp_path: Path, kind: str) -> None:
    loaded = host.load_plugins()
    whole = [
        pipeline.read_runs([copied(made, tmp_path / f"whole-{n}")], pipeline.Options(), loaded)[0][-1]
        for n, made in enumerate(FORMATS)
    ]
    for seed in range(KINDS.index(kind), SEEDS, len(KINDS)):
        one = spoiled(tmp_path, seed)
        try:
            runs, problems = pipeline.read_runs([one.path], pipeline.Options(), loaded)
        except InputError:
            continue
        if problems:
            assert one.what.split()[0] in "".join(problems) or one.what.split()[2] in "".join(problems)
            continue
        if len(runs) > 1 and one.path.parent.name.startswith(UNNUMBERED):
            continue  # two runs, which are listed: nothing in such files says that there were more ranks
        profile = runs[-1]
        grade = graded(profile)
        if one.harmless:
            assert works(profile) == pytest.approx(works(whole[seed // len(KINDS) % len(FORMATS)])), one
            continue
        assert grade.letter in "DF", (one, grade)
        assert NAMES[one.kind] & {note.name for note in grade.notes}, (one, grade)


def test_recorded_runs_are_believed(tmp_path: Path) -> None:
    loaded = host.load_plugins()
    doubts = set().union(*NAMES.values())
    for n, made in enumerate(FORMATS):
        (profile,), _ = pipeline.read_runs([copied(made, tmp_path / str(n))], pipeline.Options(), loaded)
        assert not doubts & {note.name for note in graded(profile).notes}


def test_what_tells_that_files_are_of_different_runs() -> None:
    one = Origin("a", "app", 100.0, 4, b"1")
    assert not list(compare_origins([one, Origin("b", "app", 101.0, 4, b"2"), Origin("c")]))
    for other, words in (
        (Origin("b", "other", 100.0, 4, b"2"), "of other"),
        (Origin("b", "app", 9000.0, 4, b"2"), "8,900 s after"),
        (Origin("b", "app", 100.0, 8, b"2"), "one on 8"),
        (Origin("b", "app", 100.0, 4, b"1"), "same process"),
    ):
        (note,) = compare_origins([one, other])
        assert words in note.text
