"""Offers, surfaces and memory: which machine for this job, and how its time is shared over sizes and processors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.analysis import machines
from advisor.model.errors import DocumentError
from advisor.model.reports import HeatMap
from advisor_scaling.linear import application, expressions, model, offers, setup, surfaces
from advisor_scaling.linear.application import ApplicationModel, ArrayUse

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = {"operations": "1e6*N/P", "messages": "N*log2(P)", "bytes": "8*N"}
STATED = ApplicationModel("job", ("N", "P"), COUNTS, (ArrayUse("grid", "1e6*N/P"),))

TABLE = """
date: 2026-04
sources: {here: {title: "an offer on paper"}}
offers:
  - {name: slow, machine: ncube-3200, price: 0.10 USD/h @here, cores: 64 @here, memory: 1 GB @here}
  - {name: quick, machine: a64fx, price: 1.00 USD/h @here}
"""


@pytest.fixture
def table(tmp_path: Path) -> offers.OfferTable:
    (path := tmp_path / "offers.yaml").write_text(TABLE)
    return offers.load_offers(path)


def test_the_bundled_offers_name_machines_and_sources() -> None:
    found = offers.load_offers(None)
    assert len(found.offers) >= 3
    assert found.date >= "2026-04"
    assert all(machines.load_machine(each.machine).name == each.machine for each in found.offers)


def test_a_number_of_an_offer_needs_its_source(tmp_path: Path) -> None:
    (path := tmp_path / "offers.yaml").write_text(TABLE.replace("0.10 USD/h @here", "0.10 USD/h @there"))
    with pytest.raises(DocumentError, match="the source 'there' is not listed"):
        offers.load_offers(path)


def test_the_price_is_that_of_the_nodes_for_the_time(table: offers.OfferTable) -> None:
    plain = ApplicationModel("job", ("N", "P"), COUNTS)
    found = offers.rank_choices(plain, table, machines.load_machine, {"N": 1000.0}, efficiency=1.0)
    for each in found:
        assert each.dollars[0] == pytest.approx(float(each.offer.price) * each.nodes * each.seconds[0] / 3600)
        assert each.seconds[0] <= each.seconds[1]
    quick = next(each for each in found if each.offer.name == "quick" and each.nodes == 1)
    assert quick.processors == 48
    assert quick.seconds[0] == pytest.approx(1e9 / 48 / 64e9 + 1000 * np.log2(48) * 0.49e-6 + 8000 / 38.1e9, rel=1e-6)


def test_what_nobody_states_widens_the_interval(table: offers.OfferTable) -> None:
    sure = offers.rank_choices(STATED, table, machines.load_machine, {"N": 1000.0}, efficiency=0.5)
    open_ = offers.rank_choices(STATED, table, machines.load_machine, {"N": 1000.0})
    width = {(each.offer.name, each.nodes): each.seconds[1] / each.seconds[0] for each in sure}
    assert all(each.seconds[1] / each.seconds[0] > width[each.offer.name, each.nodes] for each in open_)
    assert width["quick", 1] == pytest.approx(1.0)


def test_data_that_do_not_fit_come_last_and_are_never_picked(table: offers.OfferTable) -> None:
    memory = expressions.parse_formula("1e6*N/P", ("N", "P"))
    found = offers.rank_choices(STATED, table, machines.load_machine, {"N": 2e4}, memory)
    fits = [each.fits for each in found]
    assert False in fits
    assert fits == sorted(fits, key=lambda each: each is False)
    cheapest, _, _ = offers.pick_choices(found, None)
    assert cheapest is not None
    assert cheapest.fits


def test_a_budget_counts_at_the_upper_end(table: offers.OfferTable) -> None:
    found = offers.rank_choices(STATED, table, machines.load_machine, {"N": 1e5})
    limit = sorted(each.dollars[1] for each in found)[2]
    _, fastest, _ = offers.pick_choices(found, limit)
    assert fastest is not None
    assert fastest.dollars[1] <= limit
    assert offers.pick_choices(found, 0.0)[1] is None


def test_surfaces_are_figures_4_and_5() -> None:
    counts = {name: expressions.parse_formula(text, ("N", "P")) for name, text in COUNTS.items()}
    linear = model.LinearModel(("N", "P"), counts, {"operations": 1e-9, "messages": 1e-5, "bytes": 1e-8})
    found = [
        each for each in surfaces.build_surface_parts(linear, np.array([[1024.0, 64.0]])) if isinstance(each, HeatMap)
    ]
    shares = [each for each in found if each.title.startswith("Share of")]
    sums = np.sum([each.cells for each in shares], axis=0)
    assert sums == pytest.approx(np.ones_like(sums), abs=0.03)
    latency = next(each for each in found if "10 us of latency" in each.title)
    cells = np.array(latency.cells, dtype=float)
    ranks = np.array([float(name.partition("=")[2]) for name in latency.columns])
    sizes = np.array([float(name.partition("=")[2]) for name in latency.rows])
    assert cells == pytest.approx(np.outer(sizes, np.log2(ranks)) * 1e-5)
    alone = model.LinearModel(("N",), {"operations": expressions.parse_formula("N", ("N",))}, {"operations": 1.0})
    assert surfaces.build_surface_parts(alone, np.array([[4.0]])) == []


def test_paging_has_a_cost_on_every_machine_and_it_is_said() -> None:
    machine = machines.load_machine("a64fx")
    assert model.known_costs(machine, STATED)["page_faults"] == model.PAGE_FAULT_S
    assert "taken for 100 us" in setup.describe_memory(STATED, machine)[0]
    sizes = application.machine_sizes(machine)
    linear = model.LinearModel(
        STATED.parameters, application.build_counts(STATED, sizes), model.machine_costs(machine, STATED)
    )
    at = np.array([[1e3, 48.0], [1e6, 48.0]])
    faults = linear.column_seconds(at)[linear.columns.index("page_faults")]
    assert faults[0] == 0.0
    assert faults[1] > 1.0
    assert "paging is left out" in setup.describe_memory(STATED, machines.load_machine("epyc-9654"))[0]
