"""Each threshold of the facts at its boundary, in numbers that do not come from it."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from advisor.advice import facts
from advisor.advice.facts import code_facts, collecting, event_facts, load_facts, run_facts, sheet
from advisor.analysis import disturbance
from advisor.model.records import OTHER_PROGRAMS
from advisor.trace.counts import BYTES_TO_FIRST

if TYPE_CHECKING:
    from collections.abc import Callable

TWO_RANKS = (SimpleNamespace(rank=0), SimpleNamespace(rank=1))


def count_iterations(work: list[float], everything: float) -> float:
    """The iterations with work of a phase that is gone through seven times, in a program that works ``everything``."""
    phases = [SimpleNamespace(mean=np.array([everything]))]
    source: Any = SimpleNamespace(
        family=(0,), loads=SimpleNamespace(phases=phases), mean_computation=lambda _: np.array(work),
        profile=SimpleNamespace(phases=[SimpleNamespace(iterations=7)]),
    )  # fmt: skip
    return event_facts.iterations_with_work(source)


def is_relayed(part: float) -> bool:
    """Collecting and broadcasting; of the one there are a part of the calls of the other."""

    def select(category: str, kinds: object, trait: str) -> SimpleNamespace:
        often = 100.0 if trait == event_facts.event_rows.COLLECTS else 100.0 * part
        return SimpleNamespace(calls_per_processor=lambda: often, seconds=1.0)

    events = SimpleNamespace(select_rows=select)
    totals = SimpleNamespace(sum_measure=lambda *_: 100.0)
    source: Any = SimpleNamespace(events=events, family_events=events, totals=totals, phases=(0,))
    return bool(event_facts._relay_share(source))


def is_by_one(part: float) -> bool | None:
    seconds = np.array([part, 1.0 - part])
    rows = SimpleNamespace(seconds_by_processor=lambda _: seconds)
    source: Any = SimpleNamespace(
        events=SimpleNamespace(select_rows=lambda _: rows), profile=SimpleNamespace(processors=TWO_RANKS)
    )
    return event_facts._is_io_by_one(source)


def differs(slower: float) -> bool | None:
    """Everywhere the first rank works longest, at the site the second, longer by a share of its own work."""
    source: Any = SimpleNamespace(
        phases=(0,), is_work_known=True, work=np.array([1.0 - slower, 1.0]),
        loads=SimpleNamespace(parallel_work=np.array([2.0, 1.0])),
        profile=SimpleNamespace(phases=[SimpleNamespace(kind="parallel")]),
    )  # fmt: skip
    return load_facts._slowest_differs(source)


def is_alone(part: float) -> bool:
    """The first of two ranks does a part of one region; the rest of the work is even."""
    wall = np.array([[part, 1.0 - part], [9.0, 9.0]])[:, :, None]
    phase = SimpleNamespace(arrays={"wall_s": wall}, regions=np.array([0, 1]))
    source: Any = SimpleNamespace(
        phases=(0,), is_work_known=True, profile=SimpleNamespace(regions=("a", "b"), phases=[phase], notes=()),
        loads=SimpleNamespace(
            team=SimpleNamespace(master=np.array([0, 1])),
            quantities=SimpleNamespace(work=SimpleNamespace(terms=(("wall_s", 1.0),))),
        ),
    )  # fmt: skip
    return load_facts._alone_share(source) == pytest.approx(1.0)


def has_work(part: float) -> bool:
    source: Any = SimpleNamespace(
        phases=(0,), is_work_known=True, peaks=np.array([part]), seconds=np.array([1.0]),
        profile=SimpleNamespace(phases=[SimpleNamespace(duration_s=np.ones(1))]),
    )  # fmt: skip
    return not load_facts._is_empty_phase(source)


def is_named(excess: float, largest: float) -> bool:
    """Of a hundred processors with a work of about 1, one exceeds the mean by ``largest``, one by ``excess``."""
    work = np.ones(100)
    work[:2] += (largest, excess)
    work[2:] -= (largest + excess) / 98
    loads = SimpleNamespace(phases=[SimpleNamespace(work=work, has_work=True)])
    made: Any = SimpleNamespace(loads=loads)
    place: Any = SimpleNamespace(place=SimpleNamespace(phases=(0,)))
    return 1 in sheet.find_slowest_processors(made, place)


def count_named(number: int) -> int:
    loads = SimpleNamespace(phases=[SimpleNamespace(work=np.r_[np.full(number, 2.0), np.ones(100)], has_work=True)])
    made: Any = SimpleNamespace(loads=loads)
    whole: Any = SimpleNamespace(place=None)
    return len(sheet.find_slowest_processors(made, whole))


def take_turns(*work: float) -> bool:
    """Threads compute for so many seconds of 10, and wait for notices of each other."""
    events = SimpleNamespace(select_rows=lambda *_: SimpleNamespace(count=500))
    source: Any = SimpleNamespace(
        events=events, is_work_known=True, work=np.array(work), seconds=np.array([10.0]), phases=(0,)
    )
    return bool(event_facts._turns_s(source))


def sleeps(often: float) -> bool:
    profile: Any = SimpleNamespace(counts={"switches.voluntary": np.array([[2.0 * often]])}, actual_s=2.0)
    return not run_facts._polls(profile)


def code_share(kind: str, known: float, share: float) -> float | None:
    """The share of code of a kind, of computation of which a part is known."""
    seconds = {"all": 1.0, "known": known, kind: share}
    counts = {f"code.{name}_s": np.array([[part]]) for name, part in seconds.items()}
    phases = [SimpleNamespace(regions=np.array([0]))]
    source: Any = SimpleNamespace(phases=(0,), profile=SimpleNamespace(counts=counts, phases=phases))
    return code_facts._share(kind, source)


def is_collected(kept: float = 1.0, of_all: float = 1.0) -> bool:
    """The first of two ranks gets 100 bytes, a part of all that are sent, and keeps a part of them."""
    returned = 100.0 * (1.0 - kept)
    sent = np.array([[returned, 100.0 / of_all - returned]])
    profile: Any = SimpleNamespace(
        counts={BYTES_TO_FIRST: np.array([[0.0, 100.0]]), "bytes": sent}, processors=TWO_RANKS
    )
    return collecting._is_collected(profile)


def is_answered(answers: float = 5.0, to_others: float = 0.0) -> bool:
    """Two ranks send the first one 5 messages, which answers so many, and so many to others."""
    sent = np.array([[answers, 5.0 + to_others, 0.0]])
    counts = {"messages": sent, collecting.TO_FIRST: np.array([[0.0, 5.0, 0.0]])}
    profile: Any = SimpleNamespace(counts=counts, processors=[SimpleNamespace(rank=n) for n in range(3)])
    asked = collecting._sum_asked(profile)
    return asked is not None and asked[0] > 0


def is_beyond_data(seconds: float, moved: float = 1.0) -> bool:
    """A message of so many bytes took so long."""
    arrays = {name: np.array([[[part]]]) for name, part in (("transfer_s", seconds), ("wait_s", 0.0), ("sync_s", 0.0))}
    counts = {"messages": np.array([[1.0]]), "bytes": np.array([[moved]])}
    phase = SimpleNamespace(arrays=arrays, regions=np.array([0]))
    profile = SimpleNamespace(counts=counts, regions=[SimpleNamespace(name="MPI_Send")], phases=[phase])
    source: Any = SimpleNamespace(profile=profile, phases=[0])
    return load_facts._seconds_beyond_data(source) > 0


def has_free_cores(busy: float) -> bool:
    counts = {disturbance.BUSY: np.array([[busy * 40.0]])}
    profile: Any = SimpleNamespace(counts=counts, cores=2, actual_s=20.0)
    return disturbance.has_free_cores(profile)


def is_at_work(share: float) -> bool:
    taken = np.array([[share, 2.0 - share]])
    profile: Any = SimpleNamespace(
        processors=TWO_RANKS, has_measure=lambda name: True, sum_by_region=lambda name: taken
    )
    return disturbance.count_idle_processors(profile) == 0


def is_disturbed(share: float) -> bool:
    profile: Any = SimpleNamespace(counts={}, outside={OTHER_PROGRAMS: np.array([share * 20.0])}, actual_s=20.0)
    return disturbance.disturbance_seconds(profile) > 0


def is_io_delayed(share: float) -> bool:
    counts = {disturbance.IO_DELAY: np.array([[share * 40.0, 0.0]])}
    profile: Any = SimpleNamespace(counts=counts, processors=TWO_RANKS, actual_s=20.0)
    return disturbance._io_delay_seconds(profile) > 0


#: Of each threshold what it decides, a value on the one side, and a value on the other.
BOUNDARIES: dict[str, tuple[Callable[[float], object], float, float]] = {
    "event_facts.ALONE": (is_by_one, 0.899, 0.9),
    "event_facts.WORTH_COUNTING": (lambda x: count_iterations([1.0, 1.0, 1.0, x], 4.0) == 4, 0.249, 0.25),
    "event_facts.WORKING": (lambda x: count_iterations([x], 100.0) == 1, 1.0, 1.001),
    "event_facts.SHARED_WORK": (lambda x: take_turns(8.0, 10.0 * x), 0.099, 0.1),
    "event_facts.IN_TURNS": (lambda x: not take_turns(5.0, 10.0 * x - 5.0), 1.05, 1.051),
    "event_facts._PAIRED": (is_relayed, 0.799, 0.8),
    "load_facts.NOTICEABLE": (differs, 0.0199, 0.0201),
    "load_facts.ALONE": (is_alone, 0.949, 0.951),
    "load_facts.EMPTY": (has_work, 0.00999, 0.01),
    "load_facts.SLOW_LATENCY_S": (is_beyond_data, 0.001, 0.0011),
    "load_facts.SLOW_RATE": (lambda x: not is_beyond_data(1.001, x), 0.99e8, 1e8),
    "sheet._NEAR_WORST": (lambda x: is_named(x, 1.0), 0.499, 0.501),
    "sheet._NAMED_PROCESSORS": (lambda x: count_named(int(x)) < x, 3, 4),
    "run_facts.SLEEPING_PER_S": (sleeps, 49.9, 50.0),
    "code_facts._KNOWN": (lambda x: code_share("scalar", x, 0.1) is not None, 0.499, 0.5),
    "code_facts._CERTAIN": (lambda x: code_share("math", 0.3, x) is not None, 0.199, 0.2),
    "collecting._MAIN": (lambda x: is_collected(kept=x), 0.499, 0.5),
    "collecting._ALONE": (lambda x: is_answered(to_others=10.0 / x - 10.0), 0.899, 0.9),
    "collecting._ANSWERED": (lambda x: is_answered(answers=5.0 * x), 0.799, 0.8),
    "disturbance._LEAST_SHARE": (is_disturbed, 0.00999, 0.01),
    "disturbance._IDLE_SHARE": (is_at_work, 0.0499, 0.05),
    "disturbance._CROWDED": (has_free_cores, 0.75, 0.749),
}
#: Those whose boundary is tested elsewhere: of messages in ``test_facts.py``, of computation that CPU clocks prove in
#: ``test_proven_imbalance.py``, of what others held in ``test_disturbance.py``.
ELSEWHERE = {"event_facts.SMALL_MESSAGE_B", "disturbance.SPEED_SHARE", "run_facts._HELD_BY_OTHERS"}


def numbers_in(path: Path) -> set[str]:
    """The constants of a module that are numbers."""
    assigned = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.AnnAssign)]
    return {
        f"{path.stem}.{node.target.id}"
        for node in assigned
        if isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int | float)
    }


def test_each_threshold_of_the_facts_has_a_case() -> None:
    modules = [*Path(facts.__file__).parent.glob("*.py"), Path(disturbance.__file__)]
    found = set[str]().union(*map(numbers_in, modules))
    assert {name for name in found if not name.startswith("page.")} == set(BOUNDARIES) | ELSEWHERE


@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_threshold_decides_where_it_says(name: str) -> None:
    decides, below, above = BOUNDARIES[name]
    assert not decides(below)
    assert decides(above)


@pytest.mark.parametrize(
    ("decides", "below", "above"),
    [
        (lambda x: is_collected(of_all=x), 0.499, 0.5),
        (is_io_delayed, 0.00999, 0.01),
        (lambda x: is_named(x, x), 0.0199, 0.0201),
    ],
    ids=["what goes elsewhere", "input and output", "noticeable excess"],
)
def test_a_threshold_decides_at_its_other_places(
    decides: Callable[[float], object], below: float, above: float
) -> None:
    assert not decides(below)
    assert decides(above)
