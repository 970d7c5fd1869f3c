"""Who is on a core where ranks queue for too few of them, told by when their computations end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
from lab.archive import write_archive
from lab.engine import Engine, Machine
from lab.exchanges import Exchange
from lab.groups import Coupled
from lab.loads import Load
from lab.operations import Collective, Work
from lab.shapes import build
from lab.world import Code, Noise, run

from advisor import pipeline
from advisor.extension import host
from advisor_simulation.whatif.traced.queue_loop import follow_queue, prepare_queue

if TYPE_CHECKING:
    from lab.operations import Program


@settings(deadline=None, max_examples=30)
@given(work_s=st.lists(st.floats(0.0005, 0.03), min_size=1, max_size=5), cores=st.integers(1, 4))
def test_the_seconds_on_a_core_are_those_of_the_work(work_s: list[float], cores: int) -> None:
    """Of ranks that compute the same between barriers, however they share cores."""
    engine = Engine(4, Machine(ranks_per_host=4, cores=cores), record=True)
    engine.run([_steps(work_s) for _ in range(4)])
    end = np.array([[time_s for time_s, kind, _ in log if kind == "enter"] for log in engine.log])
    left = np.array([[time_s for time_s, kind, _ in log if kind == "leave"] for log in engine.log])
    begin = np.c_[np.zeros(4), left[:, :-1]]
    order = np.lexsort((end.ravel(), begin.ravel().round(9)))
    start, stop = begin.ravel()[order], end.ravel()[order]
    by_end = np.argsort(stop, kind="stable")
    on_core, counts, last = np.zeros(len(stop)), np.zeros(2, dtype=np.int64), np.ones(len(stop), dtype=np.bool_)
    state, rules = prepare_queue(len(stop), cores), np.array([0.004, 1e-9, 0.0])
    assert follow_queue(start, stop[by_end], by_end, last, rules, state, on_core, counts)
    assert on_core == pytest.approx(np.tile(work_s, 4)[order][by_end])


def _steps(work_s: list[float]) -> Program:
    for seconds in work_s:
        yield Work(seconds)
        yield Collective("MPI_Barrier")


def shared_cores(code: Code, folder: Path) -> dict[str, float] | None:
    """What is found of shared cores in a program."""
    each = code.machine.ranks_per_host
    log = run(code, record=True).log
    trace = write_archive(folder / "run", log, ranks=code.ranks, threads=1, ranks_per_host=each, sources=code.sources())
    advice = pipeline.advise([trace], pipeline.Options(), host.load_plugins())
    return next((dict(one.measures) for one in advice.findings if one.kind == "shared cores"), None)


COUPLED = Coupled(name="advance_air", work_s=0.011)
GROWING = Exchange(name="update_cells", work_s=0.0231, load=Load("growing", 0.3, 4), boundary=1.0)
NOISE = Noise(jitter=0.004)


def test_a_queue_is_found_where_work_differs_as_well(tmp_path: Path) -> None:
    for number, (phase, ranks, cores) in enumerate(((COUPLED, 7, 3), (GROWING, 10, 5))):
        machine = Machine(ranks_per_host=ranks, cores=cores)
        code = Code(5, "queue", ranks, 40, (phase,), machine=machine, noise=NOISE)
        assert shared_cores(code, tmp_path / str(number)) == {"cores": cores, "ranks": ranks}


def test_ranks_with_cores_of_their_own_queue_for_none(tmp_path: Path) -> None:
    for number, (phase, ranks) in enumerate(((COUPLED, 7), (GROWING, 10))):
        code = Code(5, "own", ranks, 40, (phase,), machine=Machine(ranks_per_host=ranks), noise=NOISE)
        assert shared_cores(code, tmp_path / str(number)) is None


@pytest.mark.parametrize("seed", [60017, 60041], ids=["always the same ranks", "now these and now those"])
def test_work_that_differs_is_no_queue(seed: int, tmp_path: Path) -> None:
    """Whoever has more work ends last, as who queues does."""
    assert shared_cores(build(seed, "sample_sort"), tmp_path) is None
