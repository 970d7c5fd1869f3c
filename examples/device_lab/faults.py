"""Programs by seed: sound ones, and each with one fault and its repair; some with noise and slow loading beside it."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from device_lab.machine import MS, US, Program, run_program

if TYPE_CHECKING:
    from collections.abc import Callable

#: The actions of the rules that repair each fault.
REPAIRS = {
    "none": (),
    "launches": ("D-1", "D-2", "D-3"),
    "waits": ("D-4",),
    "turns": ("D-5",),
    "pageable": ("D-6", "D-7"),
    "exposed": ("D-8", "D-9"),
    "straggler": ("D-11", "D-42"),
    "loader": ("D-13",),
    "allocations": ("D-14",),
    "host": ("D-15", "D-25"),
}
#: A fault costs at least this share of the run, or it is made stronger.
LEAST = 0.06


@dataclass(frozen=True)
class Case:
    """A program with a fault, and what it is without; ``gain`` is the difference of both runs in nanoseconds."""

    seed: int
    fault: str
    program: Program
    repaired: Program

    @property
    def gain(self) -> int:
        """What the repair wins."""
        return run_program(self.program)[1] - run_program(self.repaired)[1]


def make_case(seed: int) -> Case:
    """Return the case of a seed; a sound program is its own repair."""
    dice = random.Random(seed)
    fault = list(REPAIRS)[(seed // 2) % len(REPAIRS)]
    sound = _make_sound(dice)
    for strength in (1, 2, 4, 8, 16):
        faulty, repaired = _FAULTS[fault](dice, sound, strength)
        beside = int(dice.choice((0.0, 0.01, 0.03)) * sum(faulty.kernels)) if fault not in ("none", "loader") else 0
        more = {"seed": seed, "noise": dice.choice((0.0, 0.05, 0.15)), "load": faulty.load + beside}
        case = Case(seed, fault, replace(faulty, **more), replace(repaired, **{**more, "load": repaired.load + beside}))
        if fault == "none" or case.gain >= LEAST * run_program(case.program)[1]:
            return case
    raise AssertionError(f"seed {seed}: {fault} costs nothing")


def _make_sound(dice: random.Random) -> Program:
    """Return a program whose devices compute nearly all the time."""
    ranks = dice.choice((1, 2, 2, 4))
    kernels = tuple(int(dice.uniform(150, 900) * US) for _ in range(dice.randint(12, 40)))
    bursts = tuple(int(dice.uniform(0.3, 1.2) * MS) for _ in range(4)) if ranks > 1 else ()
    speed = tuple(dice.uniform(0.995, 1.005) for _ in range(ranks))
    return Program(ranks, dice.randint(5, 12), kernels, speed, dice.randint(5, 9) * US, bursts, copy=100 * US)


_Pair = tuple[Program, Program]


def _small_kernels(dice: random.Random, sound: Program, strength: int) -> _Pair:
    short = tuple(int(dice.uniform(3, 12) * US) for _ in range(dice.randint(150, 300)))
    faulty = replace(sound, kernels=short, bursts=(), launch=(12 + 6 * strength) * US)
    return faulty, replace(faulty, launch=faulty.launch // 10)


def _waits(dice: random.Random, sound: Program, strength: int) -> _Pair:
    kernels = tuple(int(dice.uniform(40, 120) * US) for _ in range(60))
    faulty = replace(sound, kernels=kernels, wait_every=1, launch=(6 + 4 * strength) * US, bursts=())
    return faulty, replace(faulty, wait_every=0)


def _turns(dice: random.Random, sound: Program, strength: int) -> _Pair:
    kernels = tuple(int(dice.uniform(2, 9) * MS) for _ in range(6))
    faulty = replace(sound, ranks=1, speed=(1.0,), kernels=kernels, bursts=(), in_turns=True, copy=0)
    return faulty, replace(faulty, at_once=True)


def _pageable(dice: random.Random, sound: Program, strength: int) -> _Pair:
    faulty = replace(sound, copy=int(dice.uniform(0.8, 1.6) * strength * MS), pageable=True)
    return faulty, replace(faulty, pageable=False, copy=int(faulty.copy * dice.uniform(0.35, 0.55)))


def _exposed(dice: random.Random, sound: Program, strength: int) -> _Pair:
    bursts = tuple(int(dice.uniform(0.3, 0.7) * strength * MS) for _ in range(4))
    ranks = max(sound.ranks, 2)
    faulty = replace(sound, ranks=ranks, speed=(1.0,) * ranks, bursts=bursts, overlapped=False)
    return faulty, replace(faulty, overlapped=True)


def _straggler(dice: random.Random, sound: Program, strength: int) -> _Pair:
    ranks = max(sound.ranks, 2)
    speed = [1.0] * ranks
    speed[dice.randrange(ranks)] = 1.0 + 0.25 * strength * dice.uniform(0.8, 1.2)
    bursts = sound.bursts or (MS // 2,) * 4
    faulty = replace(sound, ranks=ranks, speed=tuple(speed), bursts=bursts)
    return faulty, replace(faulty, speed=(sum(speed) / ranks,) * ranks)


def _loader(dice: random.Random, sound: Program, strength: int) -> _Pair:
    faulty = replace(sound, load=int(sum(sound.kernels) * dice.uniform(1.1, 1.5)) + strength * MS)
    return faulty, replace(faulty, load=0)


def _allocations(dice: random.Random, sound: Program, strength: int) -> _Pair:
    faulty = replace(sound, allocations=dice.randint(20, 60), allocation=0)
    faulty = replace(faulty, allocation=int(1.2 * sum(sound.kernels) / faulty.allocations) + strength * 30 * US)
    return faulty, replace(faulty, allocation=3 * US)


def _host(dice: random.Random, sound: Program, strength: int) -> _Pair:
    """Every step ends with a wait, and the host works before it launches the next one."""
    last = len(sound.kernels)
    faulty = replace(
        sound, host=int(sum(sound.kernels) * dice.uniform(0.2, 0.5) * strength), wait_every=last, bursts=()
    )
    return faulty, replace(faulty, host_ahead=True, wait_every=0)


_FAULTS: dict[str, Callable[[random.Random, Program, int], _Pair]] = {
    "none": lambda _, sound, __: (sound, sound),
    "launches": _small_kernels,
    "waits": _waits,
    "turns": _turns,
    "pageable": _pageable,
    "exposed": _exposed,
    "straggler": _straggler,
    "loader": _loader,
    "allocations": _allocations,
    "host": _host,
}
