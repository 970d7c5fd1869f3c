"""Ceilings of changes that are replayed: no change wins more than where what it is about costs nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
from lab.archive import write_archive
from lab.shapes import build
from lab.truth import gain_of
from lab.world import run

from advisor.advice import rules
from advisor.extension import host
from advisor_simulation.whatif.evidence import select_regions
from advisor_simulation.whatif.gains import try_change
from advisor_simulation.whatif.measured_run import build_run
from advisor_simulation.whatif.trial import build_trial

#: Changes that the laboratory carries out as they are simulated.
REALIZED = ("rebalance", "schedule", "serial", "io", "messages")
#: Programs with a master, one that computes beside, output by all, a transpose, uneven pieces.
PROGRAMS = (
    (6149, "master_on_demand"), (6495, "master_static"), (6105, "checkpoints"), (6011, "spectral"), (6145, "packages"),
)  # fmt: skip


@pytest.mark.parametrize(("seed", "shape"), PROGRAMS)
def test_no_change_wins_more_than_its_ceiling(seed: int, shape: str, tmp_path: Path) -> None:
    code = build(seed, shape)
    recorded = run(code, record=True)
    each = code.machine.ranks_per_host
    path = write_archive(
        tmp_path / "run", recorded.log, ranks=code.ranks, threads=1, ranks_per_host=each, sources=code.sources()
    )
    plugins = host.load_plugins()
    known = plugins.find_profiles(path)[0]
    measured = build_run(plugins.read_profile(known))
    assert measured is not None
    trial = build_trial(measured, plugins.read_trace(known))
    assert trial.traced is not None
    for action in rules.load_default((), examples=False).actions:
        found = try_change(trial, action.change) if len(action.change) == 1 else None
        if found is None or not found.changed.is_replayed:
            continue
        word = next(iter(action.change.items()))
        most_s = trial.traced.most_seconds(word, measured, set())
        if word[0] not in ("ranks", "sleep"):
            assert found.expected_s <= most_s + 1e-9, word
        won_s = gain_of(code, recorded.wall_s, action.id, None)
        if (
            word[0] in ("rebalance", "schedule", "serial", "io", "messages")
            and found.expected_s > 0.01 * recorded.wall_s
        ):
            assert won_s <= most_s + 1e-9, word


def test_regions_of_a_change_hold_nearly_all_of_it() -> None:
    many = {f"loop {n}": 1.0 for n in range(40)}
    assert len(select_regions({**many, "sum": 10.0})) >= 35
    assert select_regions({"sweep": 9.7, "sum": 0.3}) == ("sweep",)
    assert select_regions({}) == ()
