import json
import math
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis import machine_rates, machines
from advisor.analysis.machines.records import (
    Count,
    FunctionalUnit,
    Machine,
    Number,
    NumberSource,
    SynchronizationCost,
    iterate_numbers,
)
from advisor.model.errors import DocumentError, UsageError
from advisor.support.documents.field_types import describe_expectation, fields_of, is_dict, is_record, union_members

DOC = (Path(__file__).resolve().parents[2] / "docs" / "machines.md").read_text(encoding="utf-8")
BUNDLED = tuple(name for name in machines.list_model_names() if name != "host")
S = "measured"

SMALL = """\
name: small
title: a small machine
description: for tests
sources:
  sheet: {title: its data sheet}
sockets: 1 @sheet
frequency: 2 GHz @sheet
flops_per_cycle: 4 flop/cycle @sheet
units:
  fp_add: {per_cycle: 1 op/cycle @sheet, width: 128 bit @sheet, pipes: fp}
  fp_mul: {per_cycle: 1 op/cycle @sheet, width: 128 bit @sheet, pipes: fp}
  load: {per_cycle: 2 op/cycle @sheet}
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def unit(per_cycle: float, width: float | None = None, pipes: str | None = None) -> FunctionalUnit:
    return FunctionalUnit(per_cycle=Number(per_cycle, S), width=Number(width, S) if width else None, pipes=pipes)


#: At 2 GHz, boosting to 3 GHz: adders and multipliers share two 256-bit pipes.
MACHINE = Machine(
    name="m",
    title="a machine",
    description="for tests",
    sources={S: NumberSource("measured")},
    frequency=Number(2e9, S),
    boost=Number(3e9, S),
    flops_per_cycle=Number(16, S),
    units={"fp_add": unit(2, 256, "fp"), "fp_mul": unit(2, 256, "fp"), "load": unit(1), "fp_div": unit(0.2)},
)


def test_there_are_at_least_ten_models_and_the_host() -> None:
    assert len(BUNDLED) >= 10
    assert machines.list_model_names() == (*sorted(BUNDLED), "host")


@pytest.mark.parametrize("name", BUNDLED)
def test_every_number_of_a_bundled_model_resolves_to_a_source(name: str) -> None:
    model = machines.load_machine(name)
    found = list(iterate_numbers(model))
    assert model.name == name
    assert len(found) >= 8
    assert all(len(model.sources[number.source].title) > 15 for _, number in found)
    assert all(number > 0 and math.isfinite(number) for _, number in found)


def test_no_field_takes_a_number_without_source() -> None:
    expected = {what for _, what in described(Machine)}
    assert {"a count", "a time such as '2 us'"} <= expected
    assert not expected & {"a number", "a whole number"}


@pytest.mark.parametrize("name", BUNDLED)
def test_caches_grow_with_their_level(name: str) -> None:
    sizes = [cache.size for cache in machines.load_machine(name).caches.values() if cache.size is not None]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("name", BUNDLED)
def test_the_peak_is_no_less_than_what_the_units_deliver_together(name: str) -> None:
    """Otherwise the bound M could exceed MA: every group of pipes works on what gives it most operations."""
    model = machines.load_machine(name)
    best: dict[str, float] = {}
    for operation, flops in (("fp_add", 1), ("fp_mul", 1), ("fp_fma", 2)):
        if operation in model.units:
            found = model.units[operation]
            pipes = found.pipes or operation
            best[pipes] = max(best.get(pipes, 0.0), flops * found.operations_per_cycle)
    assert model.flops_per_cycle is not None
    assert model.flops_per_cycle >= sum(best.values())


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("a64fx", 3.3792e12),  # 48 cores x 32 x 2.2 GHz
        ("ibm-sp2-p2sc", 480e6),  # the stated 480 Mflop/s
        ("convex-spp1600", 1.92e9),  # 8 x 240 Mflop/s
        ("ncube-3200", 300e3),  # the stated 300 kflop/s
        ("grace", 7.1e12),  # the stated 7.1 Tflop/s
    ],
)
def test_peaks_agree_with_what_the_makers_state(name: str, peak: float) -> None:
    model = machines.load_machine(name)
    assert model.sockets is not None
    assert model.cores_per_socket is not None
    processors = model.sockets * model.cores_per_socket
    assert machine_rates.peak_flops_per_s(model, processors) == pytest.approx(peak, rel=2e-3)


def test_a_model_is_loaded_from_a_file_or_a_folder_of_the_user(small: Path) -> None:
    by_file = machines.load_machine(small)
    assert (
        by_file
        == machines.load_machine(str(small))
        == machines.load_machine("small", [small.parent])
        == machines.load_machine("small", [small])
    )
    assert "small" in machines.list_model_names([small.parent])
    assert "small" not in machines.list_model_names()


def test_a_users_model_goes_before_a_bundled_one(small: Path) -> None:
    own = small.with_name("grace.yaml")
    own.write_text(SMALL.replace("name: small", "name: grace"))
    assert machines.load_machine("grace", [own.parent]).title == "a small machine"
    assert machines.list_model_names([own]).count("grace") == 1


def test_an_unknown_name_is_a_usage_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"no machine model 'gracee' \(did you mean 'grace'\?\); there are a64fx, "):
        machines.load_machine("gracee")


def test_mistakes_in_a_model_are_reported_at_their_places(small: Path) -> None:
    small.write_text(
        SMALL.replace("2 GHz @sheet", "2 GHz @shet")
        .replace("4 flop/cycle @sheet", "4 flop/cycle")
        .replace("sockets: 1", "sockets: 0")
    )
    with pytest.raises(DocumentError) as caught:
        machines.load_machine(small)
    assert [str(problem).removeprefix(f"{small}:") for problem in caught.value.problems] == [
        "6:10: sockets: found '0 @sheet', expected a number above zero; leave out what is not known",
        "8:18: flops_per_cycle: found '4 flop/cycle', expected the number and the name of its source, such as "
        "'2.4 GHz @datasheet'",
    ]


def test_sources_are_listed_and_none_in_vain(small: Path) -> None:
    small.write_text(
        SMALL.replace("2 GHz @sheet", "2 GHz @shet").replace("sources:", "sources:\n  idle: {title: unused}")
    )
    with pytest.raises(DocumentError) as caught:
        machines.load_machine(small)
    assert [str(problem).removeprefix(f"{small}:") for problem in caught.value.problems] == [
        "5:9: no number names the source 'idle'",
        "8:12: the source 'shet' is not listed in sources (did you mean 'sheet'?)",
    ]


def test_the_name_is_that_of_the_file(small: Path) -> None:
    other = small.with_name("other.yaml")
    other.write_text(SMALL)
    with pytest.raises(DocumentError, match="name: found 'small', expected 'other'"):
        machines.load_machine(other)


def test_numbers_are_floats_that_keep_their_source() -> None:
    number = pickle.loads(pickle.dumps(Number(2.5, "x")))
    count = pickle.loads(pickle.dumps(Count(3, "y")))
    assert (number, number.source, number * 2) == (2.5, "x", 5.0)
    assert (count, count.source, count + 1) == (3, "y", 4)


def test_rates_use_the_highest_clock() -> None:
    assert machine_rates.peak_flops_per_s(MACHINE, 4) == 4 * 16 * 3e9
    assert machine_rates.unit_rates(MACHINE) == pytest.approx(
        {"fp_add": 24e9, "fp_mul": 24e9, "load": 3e9, "fp_div": 0.6e9}
    )
    assert machine_rates.peak_flops_per_s(replace(MACHINE, boost=None), 1) == 16 * 2e9


def test_what_is_not_known_is_absent() -> None:
    unclocked = replace(MACHINE, boost=None, frequency=None)
    assert machine_rates.peak_flops_per_s(unclocked, 1) is None
    assert machine_rates.unit_rates(unclocked) == {}
    assert machine_rates.busiest_unit(unclocked, {"fp_add": 1.0}) is None
    assert machine_rates.peak_flops_per_s(replace(MACHINE, flops_per_cycle=None), 1) is None
    assert machine_rates.barrier_s(MACHINE, 8) is None


@pytest.mark.parametrize(
    ("operations", "busiest", "seconds"),
    [
        ({"fp_add": 24e9, "fp_mul": 24e9, "load": 4.5e9}, "fp", 2.0),
        ({"fp_add": 24e9, "load": 6e9}, "load", 2.0),
        ({"fp_add": 24e9, "branch": 1e15}, "fp", 1.0),
    ],
)
def test_the_busiest_unit_adds_up_what_shares_pipes(operations: dict[str, float], busiest: str, seconds: float) -> None:
    found = machine_rates.busiest_unit(MACHINE, operations)
    assert found is not None
    assert found[0] == busiest
    assert found[1] == pytest.approx(seconds)


def test_operations_without_a_rate_give_no_time() -> None:
    assert machine_rates.busiest_unit(MACHINE, {"branch": 1.0}) is None


OPERATIONS = st.dictionaries(st.sampled_from(["fp_add", "fp_mul", "load", "fp_div"]), st.floats(0, 1e15), min_size=1)


@given(OPERATIONS, st.floats(1, 1e3))
def test_more_operations_never_take_less_time(operations: dict[str, float], factor: float) -> None:
    once = machine_rates.busiest_unit(MACHINE, operations)
    more = machine_rates.busiest_unit(MACHINE, {name: count * factor for name, count in operations.items()})
    assert once is not None
    assert more is not None
    assert more[1] >= once[1]


def test_a_barrier_costs_more_for_every_doubling() -> None:
    cost = SynchronizationCost(per_doubling=Number(2e-6, S), base=Number(1e-6, S))
    model = replace(MACHINE, synchronization=cost)
    assert [machine_rates.barrier_s(model, processors) for processors in (1, 2, 8)] == pytest.approx([1e-6, 3e-6, 7e-6])


@pytest.mark.parametrize("name", machines.list_model_names())
def test_the_document_is_json_and_resolves_its_sources(name: str) -> None:
    document = json.loads(json.dumps(machines.to_document(machines.load_machine(name)), allow_nan=False))
    assert document["name"] == name
    entries = list(quantities(document))
    assert entries
    assert all(entry["source"] in document["sources"] for entry in entries)


def quantities(document: object) -> Iterator[dict[str, object]]:
    if isinstance(document, dict):
        if "source" in document:
            yield document
        for value in document.values():
            yield from quantities(value)


def test_a_number_of_the_document_has_value_unit_text_and_source(small: Path) -> None:
    document = machines.to_document(machines.load_machine(small))
    assert document["frequency"] == {"value": 2e9, "unit": "Hz", "text": "2.00 GHz", "source": "sheet"}
    assert document["sockets"] == {"value": 1, "source": "sheet"}
    assert document["per_core"] == {
        "peak": {"value": 8e9, "unit": "op/s", "text": "8.00 Gop/s"},
        "units": {
            "fp_add": {"value": 4e9, "unit": "op/s", "text": "4.00 Gop/s"},
            "fp_mul": {"value": 4e9, "unit": "op/s", "text": "4.00 Gop/s"},
            "load": {"value": 4e9, "unit": "op/s", "text": "4.00 Gop/s"},
        },
    }
    assert "boost" not in document
    assert "memory" not in document


def described(record: type, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Path and expectation of every key that a model file may have."""
    for field in fields_of(record):
        (hint,) = (one for one in union_members(field.hint) if one is not type(None))
        inner = get_args(hint)[1] if is_dict(hint) else hint
        path = f"{prefix}{field.key}"
        if not is_record(hint):
            yield path, describe_expectation(hint)
        if is_record(inner) and isinstance(inner, type):
            yield from described(inner, f"{path}.*." if is_dict(hint) else f"{path}.")


def test_the_table_of_fields_is_the_record() -> None:
    rows = re.findall(r"^\| `([a-z_.*]+)` \| ([^|]+) \|", DOC.split("## Fields")[1].split("\n## ")[0], re.MULTILINE)
    assert rows == list(described(Machine))


def test_the_table_of_models_is_the_folder() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| ([^|]+) \|$", DOC.split("## The bundled models")[1], re.MULTILINE)
    assert rows == [(name, machines.load_machine(name).title) for name in BUNDLED]


def test_the_example_of_the_page_is_a_model(tmp_path: Path) -> None:
    example = re.search(r"```yaml\n(.*?)```", DOC, re.DOTALL)
    assert example is not None
    path = tmp_path / "mine.yaml"
    path.write_text(example[1])
    assert machines.load_machine(path).title == "two processors of the model Example 1000"
