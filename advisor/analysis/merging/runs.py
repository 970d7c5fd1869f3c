"""Which recordings belong to one run, and which say the same.

Copies of a file, or a table that a program prints into its output and into its log, would pass for repeats without any
noise if they were taken for two runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.measures import derive_quantities
from advisor.model.run_points import STATED

if TYPE_CHECKING:
    from advisor.model.records import IntArray, Profile


#: Names of programs are cut to this length by the system (``comm`` of a process), so as long a beginning is the name.
_COMM: Final = 15
#: Two recordings of which one took so many times as long as the other, and this much more, are of different runs.
LONGER: Final = 2.0
SLACK_S: Final = 1.0
#: The same where one of the two does not name its program.
NAMELESS_LONGER: Final = 1.25
NAMELESS_SLACK_S: Final = 0.1
#: Times of commands are rounded by so much.
ROUNDING_S: Final = 0.01
#: Clocks of zones differ by multiples of this, and by no more than the day and the hours around the date line.
_ZONE_STEP_S: Final = 900.0
_ZONES_S: Final = 26 * 3600.0
#: Tools note the start, the end, or when they wrote their file.
_START_SLACK_S: Final = 60.0
#: What tools write that know the number of a host only.
_NUMBERED: Final = re.compile(r"[0-9a-f]{8}|[0-9]+")


def group_by_run(recordings: Sequence[Profile], folders: Mapping[int, PurePath] | None = None) -> list[list[Profile]]:
    """Return the recordings by run, the oldest run first, and those without a run time before all others.

    Recordings of one run come from different readers, and agree on program, batch job, build, parameters and, as far as
    they are timed, on the number of ranks. Of several runs that a recording could belong to, it goes to the one nearest
    in time. One without the name of its program lies in the same folder (``folders`` maps the ids of recordings to
    theirs) as the others or in one around them, and belongs to none where several fit and no time of start tells which.
    So does the account of a whole command, if the command names the program and took no less time.
    """
    runs: list[list[Profile]] = []
    places = folders or {}
    for recording in sorted(recordings, key=recording_weight, reverse=True):
        fitting = [
            run
            for run in runs
            if all(_is_same_run(recording, other) and _lies_together(recording, other, places) for other in run)
        ]
        if len(fitting) > 1 and (not recording.program or recording.command):
            fitting = [run for run in fitting if math.isfinite(_start_distance(recording, run[0]))]
        if fitting:
            min(fitting, key=lambda run: _start_distance(recording, run[0])).append(recording)
        else:
            runs.append([recording])
    return sorted(runs, key=_start_order)


def _start_order(run: Sequence[Profile]) -> tuple[bool, bool, str]:
    known = any(one.command is None for one in run)
    return known, any(one.has_run_time for one in run), min((one.started for one in run if one.started), default="")


def recording_weight(recording: Profile) -> tuple[bool, bool, bool, bool, int]:
    """Return what decides which recording leads: phases, then times of waiting, then times at all, then regions.

    The account of a whole command never does.
    """
    return (
        recording.command is None,
        recording.has_phases,
        derive_quantities(recording).work.is_known,
        recording.has_run_time,
        len(recording.regions),
    )


def match_processors(leader: Profile, other: Profile) -> IntArray | None:
    """Return the place of each of the leader's processors in ``other``; None where some are missing there."""
    places = {(processor.rank, processor.thread): q for q, processor in enumerate(other.processors)}
    found = [places.get((processor.rank, processor.thread)) for processor in leader.processors]
    known = [place for place in found if place is not None]
    return np.array(known, dtype=np.int64) if len(known) == len(found) else None


def _is_same_run(one: Profile, other: Profile) -> bool:
    if (one.command is None) != (other.command is None):
        return _is_command_of(*((one, other) if one.command else (other, one)))
    shared = (one.parameters.keys() & other.parameters.keys()) - {STATED}
    return (
        one.reader != other.reader
        and (_is_same_program(one.program, other.program) or _accounts_for(one, other) or _accounts_for(other, one))
        and (one.job is None or other.job is None or one.job == other.job)
        and (one.build is None or other.build is None or one.build == other.build)
        and all(one.parameters[name] == other.parameters[name] for name in shared)
        and (one.ranks == other.ranks or not (one.has_run_time and other.has_run_time))
        and not _differ(one, other)
    )


def _is_command_of(account: Profile, other: Profile) -> bool:
    """Return whether the command that was accounted for can be the one that ran the other's program.

    A program that was only counted, such as under a simulator, may have taken another time than it does by itself.
    """
    names = {PurePath(word).name for word in (account.command or "").split()}
    return (
        (not other.program or any(_is_same_program(name, other.program) for name in names))
        and other.has_run_time
        and other.actual_s <= account.actual_s + ROUNDING_S
        and (account.build is None or other.build is None or account.build == other.build)
        and not _started_apart(account, other)
    )


def _accounts_for(account: Profile, other: Profile) -> bool:
    """Return whether a profile is the account of the other's batch job, which has the name of the job."""
    return account.job is not None and account.job == other.job and len(account.regions) == 1


def _lies_together(one: Profile, other: Profile, folders: Mapping[int, PurePath]) -> bool:
    """Return whether both name their programs, or lie in one folder, or one in a folder around the other's.

    Commands name their programs, too, but are not recorded where these write: many name the same one.
    """
    here, there = folders.get(id(one)), folders.get(id(other))
    named = one.program and other.program and not (one.command or other.command)
    if named or here is None or there is None:
        return True
    return here.is_relative_to(there) or there.is_relative_to(here)


def _differ(one: Profile, other: Profile) -> bool:
    """Return whether two recordings can't be of one run: of nobody's name on other ranks, elsewhere, or far longer."""
    nameless = not (one.program and other.program) and one.ranks != other.ranks
    here, there = _host_names(one), _host_names(other)
    elsewhere = bool(here and there) and here.isdisjoint(there)
    longer = False
    if one.has_run_time and other.has_run_time:
        named = one.program and other.program
        share, slack = (LONGER, SLACK_S) if named else (NAMELESS_LONGER, NAMELESS_SLACK_S)
        short, long = sorted((one.actual_s, other.actual_s))
        longer = long > share * short + slack
    return nameless or elsewhere or longer or _started_apart(one, other)


def _started_apart(one: Profile, other: Profile) -> bool:
    """Return whether one run was over before the other began, whatever the zones of the clocks.

    Tools write times of their zone, often without naming it: what is left of the distance beside a difference of zones
    has to be within the run.
    """
    distance = _start_distance(one, other)
    longest = max((run.actual_s for run in (one, other) if run.has_run_time), default=math.inf)
    if not math.isfinite(distance + longest):
        return False
    beside = min(distance % _ZONE_STEP_S, -distance % _ZONE_STEP_S)
    return distance > _ZONES_S + longest or beside > longest + _START_SLACK_S


def _host_names(run: Profile) -> set[str]:
    """Return the hosts of a run without their domains, none where some are unknown or only numbered."""
    hosts = {(processor.host or "").split(".")[0] for processor in run.processors}
    return set() if "" in hosts or any(_NUMBERED.fullmatch(host) for host in hosts) else hosts


def _is_same_program(one: str, other: str) -> bool:
    """Return whether two names can be of one program: without directories, and one perhaps cut off or unknown."""
    first, second = PurePath(one).name, PurePath(other).name
    if not first or not second or first == second:
        return True
    short, long = sorted((first, second), key=len)
    return len(short) == _COMM and long.startswith(short)


def _start_distance(one: Profile, other: Profile) -> float:
    """Return how far apart two recordings began, seconds; infinite where that is not known of both."""
    try:
        first, second = (datetime.fromisoformat(run.started or "").replace(tzinfo=None) for run in (one, other))
    except ValueError:
        return math.inf
    return abs((first - second).total_seconds())


def describe_content(profile: Profile, name: str) -> bytes:
    """Return what recordings that say the same have in common; ``name`` is that of the file, in which copies differ."""
    total = blake2b(digest_size=16)
    run = "" if profile.run == name else profile.run
    about = (profile.reader, profile.program, run, profile.build, profile.started, profile.actual_s, profile.machine)
    parts = (about, sorted(profile.parameters.items()), profile.processors, profile.regions, sorted(profile.status))
    total.update(repr(parts).encode("utf-8", "surrogateescape"))
    arrays = {f"{n} {key}": values for n, phase in enumerate(profile.phases) for key, values in phase.arrays.items()}
    for key, values in sorted({**arrays, **profile.outside, **profile.counts}.items()):
        total.update(f"{key} {values.shape}".encode())
        total.update(np.ascontiguousarray(values).tobytes())
    return total.digest()
