"""Changes of models by hand: what moves, what it costs, and that every action of the rules is known or has a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from aml_models import COSTS, small
from aml_models import model as model_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from advisor.advice import rules
from advisor.analysis import machines
from advisor_simulation.whatif.model_report import ModelBench, build_candidates
from advisor_simulation.whatif.modelled.change_table import CHANGES, OF_MODELS
from advisor_simulation.whatif.modelled.setting import find_parallel_loops
from advisor_simulation.whatif.placing import place_by_exchange, sum_outside

if TYPE_CHECKING:
    from pathlib import Path

    from advisor_simulation.model.records import Model


class Tried:
    """A model and what a change makes of it."""

    def __init__(self, text: str, folder: Path, action: str, processors: int = 2, finite: bool = False) -> None:
        self.bench = ModelBench(folder, machines.load_machine("convex-spp1600"), processors, finite)
        self.model = model_of(text, folder)
        setting = self.bench.build_setting(self.model)
        made = {one.action: one for one in build_candidates(setting)}[action].make(self.model)
        self.changed: Model | None = made

    def gap(self, name: str) -> tuple[float, float]:
        """Return a gap before and after, cycles."""
        return self.cycles(self.bench.compute_gaps(self.model)[name]), self.cycles(
            self.bench.compute_gaps(self.made)[name]
        )

    def cycles(self, seconds: float) -> float:
        return round(seconds / self.bench.simulated_run(self.model).costs.second, 6)

    @property
    def times(self) -> tuple[float, float]:
        return self.cycles(self.bench.total_seconds(self.model)), self.cycles(self.bench.total_seconds(self.made))

    @property
    def made(self) -> Model:
        assert self.changed is not None
        return self.changed


def test_scattered_writes_go_to_copies_that_are_added_up(tmp_path: Path) -> None:
    """Both processors write two rows of F, a line goes to and fro; with copies only the sum reads what others wrote."""
    control = '  - {loop: l, times: 3, do: [{parallel: s, over: line, writes: ["F[i % 2]"]}]}'
    found = Tried(small(control), tmp_path, "A-6")
    assert transfers(found, found.model, "s") > 5 * transfers(found, found.made, "s")
    assert transfers(found, found.made, "add up F") > 0


def transfers(found: Tried, model: Model, region: str) -> int:
    """Return the transactions of a region that move lines between processors."""
    spans = found.bench.simulated_run(model).log.spans
    return sum(int(one.counts[:, :3].sum()) for span in spans for one in span.entries if one.region == region)


def test_scratch_of_one_loop_gets_copies_and_shares_no_lines(tmp_path: Path) -> None:
    control = '  - {loop: l, times: 4, do: [{parallel: s, over: pair, reads: ["F[i]"], writes: ["F[i]"]}]}'
    found = Tried(small(control), tmp_path, "A-6")
    assert found.made.arrays["F"].private
    assert found.gap("false sharing")[0] > 0 == found.gap("false sharing")[1]


def test_what_no_two_processors_write_needs_no_copies(tmp_path: Path) -> None:
    control = '  - {parallel: s, over: line, writes: ["F[i]"]}\n  - {parallel: r, over: line, reads: ["F[i]"]}'
    assert Tried(small(control), tmp_path, "A-6").changed is None


def test_subdomains_that_exchange_share_a_node(tmp_path: Path) -> None:
    """Processor p reads what p + 2 wrote, of four on two nodes: 100 cycles a line, and 20 if they share a node."""
    control = (
        '  - {parallel: w, over: pair, writes: ["A[i]"]}\n  - {parallel: r, over: pair, reads: ["A[(i + 2) % 4]"]}'
    )
    found = Tried(small(control), tmp_path, "A-12", processors=4)
    assert found.times == (50 + 7 * 2 + 100 + 7 * 0, 50 + 7 * 2 + 20)
    assert Tried(small(control), tmp_path, "A-12", processors=2).changed is None


def test_no_barrier_between_loops_over_own_rows(tmp_path: Path) -> None:
    own = (
        '  - {parallel: a, over: pair, weight: "10 + 20 * i", writes: ["F[i]"]}\n'
        '  - {parallel: b, over: pair, weight: "30 - 20 * i", reads: ["F[i]"]}'
    )
    text = small(own).replace("F: {shape: [n]}", "F: {shape: [n], pad: 3}")
    found = Tried(text, tmp_path, "G-13")
    assert found.times == (30 + 50 + 7 + 30 + 7, 40 + 50 + 7)
    assert Tried(text.replace('F[i]"]}\n', 'F[1 - i]"]}\n'), tmp_path, "G-13").changed is None


def test_fuzzy_barriers_where_the_model_knows_independent_work(tmp_path: Path) -> None:
    loops = "  - {parallel: a, over: pair, weight: '10 + 20 * i'}\n  - {parallel: b, over: pair, weight: 40%s}"
    found = Tried(small(loops % ", independent: 0.5"), tmp_path, "A-30")
    assert found.times == (30 + 7 + 40 + 7, 70)
    assert Tried(small(loops % ""), tmp_path, "A-30").changed is None


def test_padding_ends_false_sharing_and_costs_capacity(tmp_path: Path) -> None:
    """Rows of three items: 8 of them fill six lines of a cache of six, padded to whole lines they need eight."""
    head = COSTS.replace("barrier: 7", "barrier: 7, cache: {size: 96 B, ways: 3}")
    control = '  - {loop: l, times: 4, do: [{parallel: w, over: line, reads: ["A[i]"], writes: ["A[i]"]}]}'
    found = Tried(small(control, head=head).replace("[n, 4]", "[n, 3]"), tmp_path, "G-12", finite=True)
    assert found.made.arrays["A"].pad == 1
    assert found.gap("computation")[1] - found.gap("computation")[0] >= 3 * 50  # three more passes miss everywhere
    free = Tried(small(control, head=head).replace("[n, 4]", "[n, 3]"), tmp_path, "G-12")
    assert free.gap("computation")[1] <= free.gap("computation")[0] + 50


def test_handing_out_chunks_evens_the_load_and_costs_locality(tmp_path: Path) -> None:
    """The front of the work moves: chunks end up elsewhere each time, and bring their lines along."""
    control = (
        "  - {loop: l, times: 6, do: [{parallel: w, over: line, weight: '20 + 60 * ((i + 3 * t) % 8 < 3)', "
        'reads: ["A[i]"], writes: ["A[i]"]}]}'
    )
    found = Tried(small(control), tmp_path, "A-29")
    loads = [sum(found.gap(name)[when] for name in ("L", "M'", "D")) for when in (0, 1)]
    assert loads[1] < loads[0]
    assert found.gap("C'")[1] > found.gap("C'")[0] + 20


def test_a_serial_loop_is_shared(tmp_path: Path) -> None:
    found = Tried(small("  - {serial: s, over: line, weight: 10}"), tmp_path, "G-1")
    assert found.times == (80, 40 + 7)


def test_decompositions_for_one_loop_for_each_and_by_all(tmp_path: Path) -> None:
    """Indices 0 and 1 are heavy in the first loop (30), index 7 in the second (24), the others weigh 2 and 1."""
    control = (
        '  - {parallel: a, over: line, weight: "2 + 28 * (i < 2)"}\n'
        '  - {parallel: b, over: line, weight: "1 + 6 * (i > 6)"}'
    )
    first, second = 30 + 30 + 2 + 2, 2 + 2 + 2 + 2
    assert Tried(small(control), tmp_path, "A-33").times == (first + 7 + 10 + 7, 42 + 7 + 13 + 7)
    assert second == 8
    each = Tried(small(control), tmp_path, "A-34")
    assert [step.over.value for step in find_parallel_loops(each.made)] == ["line_for_1", "line_for_2"]
    assert each.times[1] == 42 + 7 + 7 + 7
    assert Tried(small(control), tmp_path, "A-1").times[1] < first + 7 + 10 + 7


def test_affinity_helps_without_losing_the_own_part(tmp_path: Path) -> None:
    control = '  - {parallel: a, over: line, weight: "10 + 30 * (i < 4)", reads: ["A[i]"]}'
    found = Tried(small(control), tmp_path, "A-32")
    assert found.times[1] < found.times[0]
    assert found.gap("L")[1] < found.gap("L")[0]


def test_every_action_of_the_rules_changes_models_or_has_a_reason() -> None:
    carried = [name for change in CHANGES for name in change.actions]
    assert len(carried) == len(set(carried))
    for action in rules.load_default((), examples=False).actions:
        known = [word in OF_MODELS for word in action.change.items()]
        assert (action.id in carried) != all(known), action.id
    words = {word for action in rules.load_default((), examples=False).actions for word in action.change.items()}
    assert OF_MODELS.keys() <= words


@given(arrays(np.int64, (8, 8), elements=st.integers(0, 9)), st.sampled_from([1, 2, 3, 4, 8]))
def test_a_mapping_fills_nodes_and_is_never_worse_than_the_order(exchanged: np.ndarray, per_node: int) -> None:
    place = place_by_exchange(exchanged, per_node)
    assert sorted(place) == list(range(8))
    assert sum_outside(exchanged, place // per_node) <= sum_outside(exchanged, np.arange(8) // per_node)


def test_pairs_that_exchange_are_found() -> None:
    exchanged = np.zeros((6, 6), dtype=np.int64)
    for one, other in ((0, 5), (1, 3), (2, 4)):
        exchanged[one, other] = 7
    assert sum_outside(exchanged, place_by_exchange(exchanged, 2) // 2) == pytest.approx(0)
