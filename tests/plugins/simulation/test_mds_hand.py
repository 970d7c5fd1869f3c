"""Simulated runs that can be computed by hand, cycle by cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from aml_models import COSTS, FIGURE_4, FIGURE_5, run, small

from advisor.analysis import bounds

if TYPE_CHECKING:
    from pathlib import Path

    from advisor_simulation.mds.log import RegionEntry, SyncSpan
    from advisor_simulation.mds.run import SimulatedRun


def arrivals(span: SyncSpan) -> list[float]:
    return [float(time) for time in span.arrived]


def entry(found: SimulatedRun, region: str) -> RegionEntry:
    return next(one for span in found.log.spans for one in span.entries if one.region == region)


@pytest.mark.parametrize(
    ("figure", "expected"),
    [(FIGURE_4, (41.0, 42.0, 46.0, 47.0)), (FIGURE_5, (40.0, 40.0, 40.0, 60.0))],
    ids=["figure 4", "figure 5"],
)
def test_the_figures_of_the_source_give_their_bounds(figure: str, expected: tuple[float, ...], tmp_path: Path) -> None:
    found = {one.name: one.seconds for one in bounds.compute_bounds(run(figure, tmp_path).profile)}
    assert tuple(found[name] for name in ("IPCO", "IPCOL", "IPCOLM", "IPCOLMD")) == expected
    assert found["actual"] == expected[-1]


def test_two_processors_two_lines_one_barrier(tmp_path: Path) -> None:
    """Each writes its row of A (cold: 50) and its item of F, in a line of both (50 first, then 20 from the other)."""
    text = small(
        '  - {parallel: write, over: pair, weight: 10, writes: ["A[i]", "F[i]"]}\n'
        '  - {parallel: read, over: pair, weight: "5 + i", reads: ["A[1 - i]"]}'
    )
    first, second = run(text, tmp_path).log.spans
    assert arrivals(first) == [10 + 50 + 50, 10 + 50 + 20]
    assert first.departed == 110 + 7
    assert arrivals(second) == [117 + 5 + 20, 117 + 6 + 20]
    assert second.departed == 143 + 7


def test_words_of_others_in_a_line_are_false_sharing(tmp_path: Path) -> None:
    """Two processors write their own items of one line in turn: cold misses, then only false sharing."""
    text = small('  - {loop: l, times: 3, do: [{parallel: f, over: pair, writes: ["F[i]"]}]}')
    found = run(text, tmp_path)
    counts = sum(one.counts for span in found.log.spans for one in span.entries)
    assert np.asarray(counts).tolist() == [[0, 0, 2, 1, 0], [0, 0, 2, 1, 0]]
    assert [span.departed for span in found.log.spans] == [57, 57 + 27, 57 + 54]


def test_padding_ends_false_sharing(tmp_path: Path) -> None:
    text = small('  - {loop: l, times: 3, do: [{parallel: f, over: pair, writes: ["F[i]"]}]}')
    padded = text.replace("F: {shape: [n]}", "F: {shape: [n], pad: 3}")
    found = run(padded, tmp_path)
    assert sum(int(one.counts[:, 2].sum()) for span in found.log.spans for one in span.entries) == 0
    assert [span.departed for span in found.log.spans] == [57, 64, 71]


def test_reading_what_another_wrote_is_communication_and_costs_by_distance(tmp_path: Path) -> None:
    text = small(
        '  - {parallel: w, over: pair, writes: ["A[i]"]}\n  - {parallel: r, over: pair, reads: ["A[P - 1 - i]"]}'
    )
    near, far = run(text, tmp_path, 2), run(text, tmp_path, 4)
    assert entry(near, "r").traffic[:, 0].tolist() == [20, 20]
    assert entry(far, "r").traffic[:, 0].tolist() == [100, 100, 100, 100]
    assert near.log.flows["r"].words.tolist() == [[0, 4], [4, 0]]


def test_writing_what_another_has_read_costs_an_invalidation(tmp_path: Path) -> None:
    text = small(
        '  - {parallel: w, over: pair, writes: ["A[i]"]}\n'
        '  - {parallel: r, over: pair, reads: ["A[1 - i]"]}\n'
        '  - {parallel: again, over: pair, writes: ["A[i]"]}'
    )
    made = entry(run(text, tmp_path), "again")
    assert made.counts[:, 0].tolist() == [1, 1]
    assert made.traffic[:, 0].tolist() == [20, 20]


def test_a_finite_cache_forgets(tmp_path: Path) -> None:
    """Eight lines through a cache of four: every second pass misses everywhere; with eight lines nothing is lost."""
    control = '  - {loop: l, times: 3, do: [{parallel: r, over: line, reads: ["A[i]"]}]}'
    head = COSTS.replace("barrier: 7", "barrier: 7, cache: {size: %d B, ways: %d}")
    small_cache = run(small(control, head=head % (128, 4)), tmp_path, 1, finite=True)
    large = run(small(control, head=head % (256, 8)), tmp_path, 1, finite=True)
    infinite = run(small(control), tmp_path, 1)

    def counts(one: SimulatedRun) -> list[int]:
        return np.asarray(sum(e.counts for span in one.log.spans for e in span.entries)).sum(axis=0).tolist()

    assert counts(small_cache) == [0, 0, 0, 8, 16]
    assert counts(large) == counts(infinite) == [0, 0, 0, 8, 0]


def test_a_serial_part_lets_the_others_wait(tmp_path: Path) -> None:
    text = small("  - {serial: setup, weight: 30}\n  - {parallel: p, over: pair, weight: 10}")
    found = run(text, tmp_path)
    assert [phase.kind for phase in found.profile.phases] == ["serial", "parallel"]
    assert found.log.spans[0].entries[-1].wait.tolist() == [0, 30]
    assert found.log.spans[-1].departed == 30 + 10 + 7


def test_a_fuzzy_barrier_hides_what_needs_nothing(tmp_path: Path) -> None:
    """Weights 10 and 30, then 40 each, half of it independent: processor 0 has 20 of it done when the other arrives."""
    head = "  - {parallel: a, over: pair, weight: '10 + 20 * i', end: %s}\n"
    next_one = "  - {parallel: b, over: pair, weight: 40, independent: 0.5}"
    full = run(small(head % "barrier" + next_one), tmp_path)
    fuzzy = run(small(head % "fuzzy" + next_one), tmp_path)
    assert full.log.spans[-1].departed == 30 + 7 + 40 + 7
    # processor 0: 10 + 20, waits until 37, + 20; processor 1: 30 + 20, + 20
    assert arrivals(fuzzy.log.spans[-1]) == [57, 70]


def test_neighbours_wait_only_for_those_whose_data_they_read(tmp_path: Path) -> None:
    """Processor 3 is late; 0 reads from 1, 1 from 0, 2 from 3 and 3 from 2."""
    text = small(
        "  - {parallel: a, over: pair, weight: '10 + 90 * (i == 3)', writes: ['A[i]'], end: neighbours}\n"
        "  - {parallel: b, over: pair, weight: 5, reads: ['A[i + 1 - 2 * (i % 2)]'], end: none}\n",
        head="costs: {memory: 0, near: 0, far: 0, line: 32 B, signal: 3}",
    )
    assert arrivals(run(text, tmp_path, 4).log.spans[-1]) == [18, 18, 108, 108]


def test_neighbours_wait_before_they_overwrite_what_others_still_read(tmp_path: Path) -> None:
    """Processor 1 reads the row of 0 for 90 cycles; 0 is done after 10, but may not write its row before."""
    text = small(
        "  - {parallel: w, over: pair, writes: ['A[i]'], end: barrier}\n"
        "  - {parallel: r, over: pair, weight: '10 + 80 * i', reads: ['A[0]'], end: neighbours}\n"
        "  - {parallel: again, over: pair, weight: 5, writes: ['A[i]'], end: none}\n",
        head="costs: {memory: 0, near: 0, far: 0, line: 32 B, signal: 3}",
    )
    first, last = arrivals(run(text, tmp_path, 2).log.spans[-1])
    assert (first, last) == (90 + 3 + 5, 90 + 5)


def test_hand_computed_run_of_a_stencil(tmp_path: Path) -> None:
    """Four processors, two on a node, each with two rows of one line; 0: memory 50, 20 near, 100 far, barrier 7 + 0.

    Loop w: 2 cold lines each (100) and 2 x 3 cycles. Loop r: row i + 2 of the next processor, twice: processor 0 asks 1
    (near), 1 asks 2 (far), 2 asks 3 (near), 3 asks 0 (far); 4 words a row flow. Loop w again: both rows were read by
    the one before, so each takes them back: processor 0 from 3 (far), 1 from 0 (near), 2 from 1 (far), 3 from 2 (near).
    """
    text = small(
        "  - {parallel: w, over: line, weight: 3, writes: ['A[i]']}\n"
        "  - {parallel: r, over: line, weight: 1, reads: ['A[(i + 2) % n]']}\n"
        "  - {parallel: again, over: line, weight: 3, writes: ['A[i]']}"
    )
    found = run(text, tmp_path, 4)
    write, read, again = found.log.spans
    assert arrivals(write) == [106] * 4
    assert arrivals(read) == [113 + 2 + cost for cost in (40, 200, 40, 200)]
    assert arrivals(again) == [113 + 202 + 7 + 6 + cost for cost in (200, 40, 200, 40)]
    assert again.departed == 322 + 206 + 7
    assert found.log.flows["r"].words.tolist() == [[0, 0, 0, 8], [8, 0, 0, 0], [0, 8, 0, 0], [0, 0, 8, 0]]
    assert [int(size) for size in found.log.flows["r"].working_set] == [64] * 4


def test_conditions_and_ratios(tmp_path: Path) -> None:
    text = small(
        "  - loop: l\n    times: 10\n    do:\n"
        "      - {when: often, ratio: 0.3, do: [{parallel: p, over: pair, weight: 1}]}\n"
        "      - {when: first, condition: t == 0, do: [{parallel: q, over: pair, weight: 1}]}"
    )
    names = [span.entries[0].region for span in run(text, tmp_path).log.spans]
    assert (names.count("p"), names.count("q")) == (3, 1)


def test_a_processor_that_migrates_fetches_its_own_data(tmp_path: Path) -> None:
    control = '  - {loop: l, times: 20, do: [{parallel: r, over: line, reads: ["A[i]"], writes: ["A[i]"]}]}'
    bound = run(small(control), tmp_path, 4)
    moving = run(small(control, extra="migration: 0.5"), tmp_path, 4)

    def kinds(one: SimulatedRun) -> list[int]:
        return np.asarray(sum(e.counts for span in one.log.spans for e in span.entries)).sum(axis=0).tolist()

    assert kinds(bound) == [0, 0, 0, 8, 0]
    assert kinds(moving)[1] > 20
    assert kinds(moving)[0] == kinds(moving)[2] == 0


def test_exchanges_are_time_by_processor(tmp_path: Path) -> None:
    text = small("  - {exchange: halo, cost: 10 + p}\n  - {exchange: dump, kind: io, cost: 4}\n  - {barrier: end}")
    found = run(text, tmp_path)
    assert arrivals(found.log.spans[0]) == [14, 15]
    assert entry(found, "halo").transfer.tolist() == [10, 11]
    assert entry(found, "dump").io.tolist() == [4, 4]
