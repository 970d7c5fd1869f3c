"""What rules require of a run before a change is tried on it, whatever a simulation says that it wins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.advice import rules
from advisor.advice.rules.cases import build_case_sheet
from advisor.advice.rules.matching import compute_truth


@pytest.mark.parametrize(("calls", "ranks", "tried"), [(6.0, 3, False), (11.0, 3, True), (2.0, 128, True)])
def test_a_few_files_of_few_ranks_are_not_shared(calls: float, ranks: int, tried: bool) -> None:
    action = next(one for one in rules.load_default().actions if one.id == "G-52")
    (site,) = build_case_sheet("io-file-each").sites
    site = replace(site, values={**site.values, "io.metadata_calls": calls, "run.ranks": ranks})
    assert action.requires is not None
    assert compute_truth(action.requires, site) is tried
