from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from strategies import build, phase

from advisor.analysis.measures import MISSING, derive_quantities, join_reasons, recording_command, worst_status
from advisor.model.records import Phase, Processor, Profile

MPI = build([phase([[1.0], [2.0]])])
THREADS = replace(MPI, processors=(Processor(0), Processor(0, 1)))
SERIAL = build([phase([[1.0]])])


@pytest.mark.parametrize("profile", [MPI, THREADS, SERIAL, replace(SERIAL, language="fortran")])
@pytest.mark.parametrize("name", MISSING)
def test_every_missing_measurement_has_a_command_of_our_own(name: str, profile: Profile) -> None:
    found = recording_command(profile, name)
    assert found.startswith("gapwatch ")
    assert not set("{}") & set(found)
    assert MISSING[name].what


def test_commands_start_as_many_ranks_as_the_program_has() -> None:
    assert recording_command(MPI, "wait_s") == "gapwatch run -- mpirun -n 2 ./PROGRAM"
    assert "mpirun -n 8 " in recording_command(replace(MPI, ranks_expected=8), "wait_s")
    assert recording_command(SERIAL, "compiled_ops") == "gapwatch run --deep -- ./PROGRAM"


def profile_of(*names: str) -> Profile:
    arrays = {name: np.ones((1, 2, 1)) for name in names}
    return build([Phase("phase", "parallel", np.array([0]), arrays)])


@pytest.mark.parametrize(
    ("names", "computation", "work"),
    [
        (("cpu_s",), {"cpu_s": 1}, None),
        (("wall_s", "wait_s", "sync_s"), None, {"wall_s": 1, "wait_s": -1, "sync_s": -1}),
        (("work_s", "wall_s", "transfer_s", "io_s"), {"work_s": 1, "transfer_s": -1, "io_s": -1}, {"work_s": 1}),
        (("wall_s", "wait_s"), None, None),
    ],
)
def test_quantities_are_made_of_what_is_there(
    names: tuple[str, ...], computation: dict[str, int] | None, work: dict[str, int] | None
) -> None:
    found = derive_quantities(profile_of(*names))
    for quantity, expected in ((found.computation, computation), (found.work, work)):
        assert quantity.is_known == (expected is not None)
        assert dict(quantity.terms) == (expected or {})


def test_a_measure_that_one_phase_lacks_is_missing() -> None:
    first = Phase("first", "parallel", np.array([0]), {"cpu_s": np.ones((1, 2, 1))})
    second = Phase("second", "parallel", np.array([0]), {"io_s": np.ones((1, 2, 1))})
    assert not derive_quantities(build([first, second])).computation.is_known


def test_the_least_sure_status_wins_and_reasons_are_said_once() -> None:
    assert worst_status(["measured", "estimated", "measured"]) == "estimated"
    assert worst_status(["modelled", "estimated"]) == "modelled"
    assert worst_status([]) == "measured"
    assert join_reasons(["a; b", None, "b; c"]) == "a; b; c"
    assert join_reasons([None]) is None


def only_io(*more: str) -> Profile:
    arrays = {name: np.full((2, 2, 1), 2.0) for name in ("wall_s", *more)}
    arrays["io_s"] = np.array([[[0.0], [0.0]], [[1.5], [0.5]]])
    whole = Phase("the whole run", "whole", np.array([0, 1]), arrays)
    return build([whole], actual_s=4.0)


def test_where_nothing_but_io_is_told_apart_the_rest_is_one_quantity() -> None:
    found = derive_quantities(only_io())
    assert found.all_but_io
    assert dict(found.communication.terms) == {"wall_s": 1, "io_s": -1}
    assert found.communication.status == "estimated"
    assert "waiting" in (found.communication.reason or "")
    assert not any(each.is_known for each in (found.computation, found.work, found.sync, found.wait))


@pytest.mark.parametrize("more", ["cpu_s", "transfer_s", "wait_s", "sync_s"])
def test_io_is_not_alone_where_something_else_is_told_apart(more: str) -> None:
    assert not derive_quantities(only_io(more)).all_but_io


def test_one_rank_alone_waits_for_nobody_so_its_work_is_known() -> None:
    alone = only_io()
    first = replace(alone.phases[0], arrays={name: array[:, :1] for name, array in alone.phases[0].arrays.items()})
    found = derive_quantities(replace(alone, processors=alone.processors[:1], phases=(first,)))
    assert found.work.is_known
    assert not found.all_but_io
