"""The operations of a trace as changes are tried on them: which changes of messages and meetings there are, and how
long the operations take then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.ranking.effects import NOWHERE
from advisor.model.errors import AdvisorError
from advisor.trace.events import Role, Trace
from advisor.trace.profile import from_trace
from advisor.trace.regions import classify_region
from advisor_simulation.replay import conversion, rebuilding
from advisor_simulation.replay.program import Op, Program
from advisor_simulation.whatif.traced import (
    background,
    ceilings,
    chains,
    collectives,
    completing,
    core_limit,
    core_queue,
    core_sharing,
    loads,
    messages,
    ordering,
    others,
    pipelines,
    row_replay,
    rows,
    sharing,
    time_slices,
    unnamed,
    work,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray, Profile
    from advisor_simulation.whatif.measured_run import MeasuredRun
    from advisor_simulation.whatif.traced.rows import Numbers, ReplayRows

    Mask = npt.NDArray[np.bool_]
    Rewrite = Callable[[ReplayRows, Mask], ReplayRows | None]


#: Events of a trace whose operations are replayed, at most; larger ones are tried by phases alone.
MOST_EVENTS: Final = 2_000_000
#: By how much a replay of the unchanged operations may miss the measured time, as a share of it.
MISSED: Final = 0.02
#: Calls without messages may take this share of the computation where all messages are to be known.
LOST: Final = 0.01
#: Changes that are tried on a run, about: whether compiling pays.
EXPECTED_REPLAYS: Final = 25
EARLY: Final = ("send", "early")
FEWER_RANKS: Final = ("ranks", "cores")
FUSED: Final = ("reductions", "fused")
HANDED: Final = ("jobs", "larger")


def _overlap_messages(these: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Let messages travel while the processors compute; not those of pipelines, which are needed at once."""
    return background.hide_messages(these, chosen & ~pipelines.are_in_pipelines(these, chosen))


def _hide_collectives(these: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Let reductions go on while the processors compute; not those of a chain, whose results are needed at once."""
    return background.hide_collectives(these, chosen & ~chains.are_in_chains(these))


#: Changes that are made on the operations of a trace.
REWRITES: Final[Mapping[tuple[str, str], Rewrite]] = {
    ("messages", "grouped"): messages.group_messages,
    ("messages", "collective"): messages.group_messages,
    ("access", "blocks"): messages.group_messages,
    HANDED: messages.hand_out_more,
    EARLY: messages.send_early,
    ("turns", "together"): messages.drop_tokens,
    ("receive", "early"): messages.post_early,
    ("pipeline", "finer"): pipelines.refine_pipelines,
    ("messages", "overlapped"): _overlap_messages,
    ("remote", "prefetched"): _overlap_messages,
    ("alltoall", "overlapped"): messages.transpose_in_pieces,
    ("bytes", "fewer"): messages.send_fewer_bytes,
    ("messages", "eager"): messages.send_at_once,
    ("collectives", "nonblocking"): _hide_collectives,
    ("barriers", "fuzzy"): background.hide_barriers,
    ("barriers", "removed"): collectives.drop_barriers,
    ("barriers", "pairwise"): collectives.drop_barriers,
    ("barriers", "relaxed"): collectives.drop_barriers,
    ("barriers", "merged"): collectives.merge_barriers,
    FUSED: collectives.merge_collectives,
    ("collectives", "grouped"): collectives.merge_collectives,
    ("phases", "fused"): collectives.drop_barriers,
    ("sleep", "removed"): loads.remove_sleep,
}


#: Changes that can't be made where a hub answers each message of the others before they go on.
OF_MESSAGES: Final = frozenset(
    word for word in REWRITES if word[0] in ("messages", "access", "remote", "send", "pipeline")
)


@dataclass(frozen=True, slots=True)
class TracedOperations:
    """The operations of a run: ``rows``, how long they take, and the phase and instance of each recorded one.

    ``noise`` is how much equal computations of it scatter. Where ranks take turns on ``shared_cores``, how long they
    compute tells nothing of how much they do; where the recording shows how many make progress at a time, that is the
    ``limit``, and no change of messages or meetings makes the run shorter than these need; where it shows the ``turns``
    themselves, what fewer ranks would take is known. ``units`` are those of the rows, None where not found yet.
    ``missed_s`` is by how much the replay of the recorded run misses its time; what is replayed is the run without
    other programs (``others``).
    """

    rows: ReplayRows
    time_s: float
    site: tuple[Numbers, Numbers]
    noise: work.NoiseLevels = field(default_factory=work.NoiseLevels)
    shared_cores: bool = False
    limit: core_limit.CoreLimit | None = None
    turns: time_slices.Turns | None = None
    visit: IntArray | None = None
    units: tuple[work.Unit, ...] | None = None
    missed_s: float = 0.0

    @staticmethod
    def is_rewrite(word: tuple[str, str]) -> bool:
        """Return whether a change is one of messages or meetings, not of loads."""
        return word in REWRITES

    @staticmethod
    def is_decided(word: tuple[str, str]) -> bool:
        """Return whether the operations alone decide the gain of a change: none, if they hold nothing of it."""
        return word in REWRITES or sharing.moves_work(word)

    def apply_change(
        self, word: tuple[str, str], before: MeasuredRun, after: MeasuredRun | None, phases: set[int]
    ) -> TracedOperations | None:
        """Return the operations after a change, of messages and meetings in ``phases`` (all, if none) or of loads.

        Loads change as those of the run do from ``before`` to ``after``. None where the change is not about these
        operations; raises ``DeadlockError``.
        """
        rewrite = REWRITES.get(word)
        chosen = self._select_rows(before, phases)
        if word in OF_MESSAGES:
            chosen = self._extend_by_exchange(chosen) & ~messages.find_own_messages(self.rows)
            hubs = list(work.find_hubs(self.rows, self._site()[0]))
            chosen = chosen & ~np.isin(self._site()[0], hubs) if hubs else chosen
        if word == HANDED:
            chosen = chosen & np.isin(self._site()[0], list(work.find_hubs(self.rows, self._site()[0], others=2)))
        if word == EARLY:
            made = ordering.send_early(self.rows, self._site(), chosen)
        elif rewrite is not None:
            made = rewrite(self.rows, chosen)
            if word == FUSED:
                made = self._fuse_with_work_between(made or self.rows) or made
        elif word == FEWER_RANKS:
            made = None if self.turns is None else sharing.scale_work(self.rows, self.turns.factor)
        elif sharing.moves_work(word):
            if self.shared_cores:
                return None
            serial = [number for number, phase in enumerate(before.phases) if phase.serial]
            made = self._move_work(word, before, phases, serial)
        else:
            made = loads.carry_loads(self.rows, self.site, before, after) if after is not None else None
        return self._replay_rows(made) if made is not None else None

    def _move_work(
        self, word: tuple[str, str], run: MeasuredRun, phases: set[int], serial: list[int]
    ) -> ReplayRows | None:
        chosen, everywhere = self._select_rows(run, phases), word[0] == "schedule"
        chosen = self._extend_by_region(chosen) if everywhere else chosen
        if word == sharing.SERIAL:
            return sharing.share_serial_work(self.rows, self._site()[0], chosen)
        units = self.rows.ask_once(
            ("units", frozenset(phases), everywhere, tuple(phase.number for phase in run.phases)),
            lambda: tuple(work.find_units(self.rows, *self._site(), chosen, self.noise)),
        )
        return sharing.move_work(self.rows, [unit for unit in units if unit.phase not in serial], word)

    def most_seconds(self, word: tuple[str, str], run: MeasuredRun, phases: set[int]) -> float:
        """Return the most that a change could win in ``phases`` (all, if none): what it is about costs nothing."""
        chosen = self._select_rows(run, phases)
        if word[0] == "schedule":
            chosen = self._extend_by_region(chosen)
        if word in OF_MESSAGES:
            chosen = self._extend_by_exchange(chosen)
        freed = ceilings.remove_costs(self.rows, self._site(), chosen, word)
        return max(self.time_s - row_replay.run_time_s(freed, EXPECTED_REPLAYS), 0.0)

    def scale_speed(self, processor: float, network: float) -> TracedOperations:
        """Return the operations on a processor and a network sped up by these factors."""
        limit = self.limit
        faster = replace(self, limit=limit and limit._replace(busy_s=limit.busy_s / processor))
        return faster._replay_rows(loads.scale_speed(self.rows, processor, network))

    def build_profile(self) -> Profile:
        """Return the profile of the replayed operations."""
        program, mine = rows.to_program(self.rows)
        ends = row_replay.replay_rows(self.rows).end_s[mine]
        return from_trace(rebuilding.rebuild_trace(program, ends), program.title, "replay")

    def find_units(self) -> tuple[work.Unit, ...]:
        """Return the computations of all regions in all phases."""
        if self.units is not None:
            return self.units
        return tuple(work.find_units(self.rows, *self._site(), np.ones(len(self.rows), dtype=bool), self.noise))

    def without_noise(self) -> TracedOperations | None:
        """Return the operations without noise and disturbances, None where they hold none."""
        made = sharing.drop_noise(self.rows, self.find_units())
        return None if made is None else self._replay_rows(made)

    def disturbed_seconds(self) -> float:
        """Return by how much the run is longer for computations that were disturbed, seconds."""
        made = sharing.drop_disturbances(self.rows, self.find_units())
        return 0.0 if made is None else max(self.time_s - row_replay.run_time_s(made, EXPECTED_REPLAYS), 0.0)

    def count_passes(self) -> dict[int, int]:
        """Return how often the main region of each phase is passed, by place in ``Run.phases``."""
        largest: dict[int, work.Unit] = {}
        names = self.rows.program.names
        for unit in self.find_units():
            region = int(self.rows.region[unit.at[0]])
            is_file = region >= 0 and classify_region(names[region])[1] == Role.IO
            if not is_file and unit.seconds.sum() > (largest[unit.phase].seconds.sum() if unit.phase in largest else 0):
                largest[unit.phase] = unit
        return {phase: unit.seconds.shape[1] for phase, unit in largest.items()}

    def count_outputs(self) -> dict[int, int]:
        """Return how often the rank with most seconds in files turns to them in each phase, by place in ``Run.phases``.

        Calls with no computation to speak of in between are one output, or input.
        """
        files = self.rows.op_mask(Op.BURST) & work.file_mask(self.rows)
        at = np.flatnonzero(files)
        since = np.cumsum(work.computing_mask(self.rows) & ~files)[at]
        phase, line, seconds = self._site()[0][at], self.rows.line[at], self.rows.seconds[at]
        found = {}
        for number in np.unique(phase[phase >= 0]).tolist():
            mine = phase == number
            busiest = np.bincount(line[mine], seconds[mine]).argmax()
            found[number] = len(np.unique(since[mine & (line == busiest)]))
        return found

    def moved_seconds(self, after: TracedOperations) -> dict[str, float]:
        """Return the seconds that computations lose in a run with the same rows, by region; none where rows differ."""
        if len(after.rows) != len(self.rows):
            return {}
        moved = np.maximum(self.rows.seconds - after.rows.seconds, 0.0) * self.rows.op_mask(Op.BURST)
        recorded = self.rows.program.region[self.rows.key.astype(np.int64)]
        by_region = np.bincount(recorded + 1, moved)[1:]
        return {self.rows.program.names[n]: float(by_region[n]) for n in np.flatnonzero(by_region)}

    def reduces_in_pieces(self) -> bool:
        """Return whether reductions with work in between may be one."""
        merged = collectives.merge_collectives(self.rows, np.ones(len(self.rows), dtype=bool)) or self.rows
        return self._fuse_with_work_between(merged) is not None

    def _fuse_with_work_between(self, these: ReplayRows) -> ReplayRows | None:
        """Return the rows with one reduction for those of a visit of a region, or of a chain; None without any."""
        made = None
        if self.visit is not None:
            made = collectives.fuse_reductions(these, np.ones(len(these), dtype=bool), self._visit(these))
        left = made or these
        return chains.fuse_chains(left, np.ones(len(left), dtype=bool)) or made

    def _visit(self, these: ReplayRows) -> IntArray:
        recorded: IntArray = np.asarray(self.visit)[these.key.astype(np.int64)]
        return recorded

    def shows_order(self, run: MeasuredRun, phases: set[int]) -> bool:
        """Return whether ranks show others that these can send earlier."""
        return ordering.is_shown(self.rows, self._site(), self._select_rows(run, phases))

    def _extend_by_region(self, chosen: Mask) -> Mask:
        """Return the chosen rows and all computations of their regions: a loop has one schedule everywhere."""
        bursts = self.rows.op_mask(Op.BURST)
        these = np.flatnonzero(bursts & chosen)
        seconds = np.bincount(self.rows.region[these] + 1, self.rows.seconds[these])
        regions = np.flatnonzero(seconds > work.SMALL * seconds.sum()) - 1
        found: Mask = chosen | (bursts & np.isin(self.rows.region, regions[regions >= 0]))
        return found

    def _extend_by_exchange(self, chosen: Mask) -> Mask:
        """Return the chosen rows and all messages of their regions: an exchange is changed in all phases that have it.

        Where nothing but the program itself was recorded as a region, that tells no exchange from another.
        """
        passing = rows.message_mask(self.rows)
        named = self.rows.region_mask(lambda name: name not in NOWHERE)
        regions = np.unique(self.rows.region[chosen & passing & named])
        found: Mask = chosen | (passing & np.isin(self.rows.region, regions))
        return found

    def _select_rows(self, run: MeasuredRun, phases: set[int]) -> Mask:
        """Return which rows lie in some phases; all of them for none."""
        if not phases:
            return np.ones(len(self.rows), dtype=bool)
        found: Mask = np.isin(self._site()[0], [*phases])
        return found

    def _site(self) -> tuple[Numbers, Numbers]:
        """Return in which phase and instance each row lies; not to be written to."""
        return self.rows.ask_once("site", self._find_site)

    def _find_site(self) -> tuple[Numbers, Numbers]:
        recorded = self.rows.key.astype(np.int64)
        return rows.freeze_array(self.site[0][recorded]), rows.freeze_array(self.site[1][recorded])

    def _replay_rows(self, made: ReplayRows) -> TracedOperations:
        least_s = 0.0 if self.limit is None else min(self.limit.busy_s, self.time_s)
        time_s = max(row_replay.run_time_s(made, EXPECTED_REPLAYS), least_s)
        return replace(self, rows=made, time_s=time_s, units=None)


def build_operations(run: MeasuredRun, trace: Trace) -> TracedOperations | None:
    """Return the operations of a trace, None where it leaves out messages or threads, or replays to another time."""
    if not 0 < len(trace.time_s) <= MOST_EVENTS or run.team.is_hybrid or trace.ranks != run.processors:
        return None
    try:
        program = conversion.find_program(trace)
        if program.left_out or not len(program.source) + len(program.collectives) or _loses_messages(program):
            return None
        made = unnamed.tell_by_calls(completing.split_waits(rows.build_rows(program)))
        time_s = row_replay.replay_rows(made).time_s
    except AdvisorError:
        return None
    missed_s = abs(time_s - run.profile.actual_s)
    if missed_s > MISSED * run.profile.actual_s:
        return None
    site = loads.find_places(made, run)
    if (own := others.drop_delay(made, run.profile)) is not None:
        made, time_s = own, row_replay.replay_rows(own).time_s
    found = TracedOperations(made, time_s, site, work.measure_noise(made, *site), missed_s=missed_s)
    hosts = {name: number for number, name in enumerate(dict.fromkeys(one.host for one in run.profile.processors))}
    of_rank = np.array([hosts[one.host] for one in run.profile.processors])
    units = found.find_units()
    turns = core_queue.find_queue(made, units, of_rank)
    limit = core_limit.find_core_limit(made, units, of_rank) if turns is None else _limit_turns(made, turns, of_rank)
    turns = turns or time_slices.find_turns(made, units, of_rank)
    shared = limit is not None or turns is not None or core_sharing.are_cores_shared(units, of_rank)
    visit = collectives.number_visits(made, trace)
    return replace(found, shared_cores=shared, limit=limit, turns=turns, visit=visit, units=units)


def _limit_turns(made: ReplayRows, turns: time_slices.Turns, hosts: IntArray) -> core_limit.CoreLimit:
    """Return what the cores of a host need at least for what is computed on them in turns."""
    mine = np.isin(made.line, np.flatnonzero(hosts == np.bincount(hosts).argmax())) & work.computing_mask(made)
    busy_s = float((made.seconds * turns.factor)[mine].sum()) / turns.ranks
    return core_limit.CoreLimit(turns.cores, turns.ranks, busy_s)


def _loses_messages(program: Program) -> bool:
    """Return whether calls that send or receive take time to speak of without a message in the recording."""
    passing = [classify_region(name)[1] in (Role.SEND, Role.RECV, Role.SENDRECV, Role.RMA) for name in program.names]
    silent = (program.op == Op.FIXED) & (program.call >= 0) & np.array([*passing, False])[program.call]
    return float(program.value[silent].sum()) > LOST * float(program.value[program.op <= Op.FIXED].sum())
