"""Executes a model step by step, as section 3.3.2 of the source lays it down, and logs what each processor does.

The clock of processor p advances by the weight of its share of a loop and by the latency of its data references
(T_exec in the source). At a full barrier all clocks become the latest one plus the barrier's cost. A fuzzy
barrier lets a processor do the independent share of the next loop before it waits; a synchronization of neighbours
makes it wait only for the processors that wrote what it is going to read, or used what it is going to overwrite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import DocumentError, UsageError
from advisor_simulation.mds.coherence import COHERENCE, MissPrices, Traffic, make_caches, simulate_references
from advisor_simulation.mds.log import MessageCount, RegionEntry, SimulationLog, SyncSpan, make_entry
from advisor_simulation.mds.nests import build_nest_stream, find_body_names
from advisor_simulation.mds.references import ReferenceStream, build_stream, compute_working_sets, find_granule
from advisor_simulation.mds.scheduling import Assignment, assign_indices, migrate_subdomains
from advisor_simulation.model import records

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.mds.costs import MachineCosts
    from advisor_simulation.model.records import Parallel, Serial, Step
    from advisor_simulation.model.world import World

    Scope = Mapping[str, object]

#: Synchronizations, and steps and turns of loops, after which a model is taken to run for ever.
MOST_SPANS = 2_000_000
MOST_STEPS = 10_000_000


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """What is simulated: ``data`` references at all; ``trace`` gets each stream with the processors of its
    sub-domains."""

    data: bool = True
    trace: Callable[[str, ReferenceStream, IntArray], None] | None = None


@dataclass(frozen=True, slots=True)
class _LoopShare:
    """A loop ready for execution: its indices, their weights, their processors, where sub-domains run."""

    chosen: IntArray
    weight: FloatArray
    assignment: Assignment
    place: IntArray


class Simulation:
    """One run of a model."""

    def __init__(self, world: World, costs: MachineCosts, settings: SimulationSettings | None = None) -> None:
        self.world, self.costs, self.settings = world, costs, settings or SimulationSettings()
        self.processors = world.processors
        self.time = np.zeros(self.processors)
        self.log = SimulationLog()
        self._open: list[RegionEntry] = []
        self._began = 0.0
        self._taken = 0
        self._relaxed: str | None = None
        self._reached: dict[int, int] = {}
        self._streams: dict[int, ReferenceStream] = {}
        self._random = np.random.default_rng(world.model.seed)
        self._data = self.settings.data and bool(world.arrays)
        self._granule = find_granule(world)
        if self._data:
            self._prepare_caches()

    def _prepare_caches(self) -> None:
        costs = self.costs
        if costs.line % self._granule:
            raise UsageError(f"a line of {costs.line} bytes does not hold whole items of {self._granule} bytes")
        private = any(array.private for array in self.world.arrays.values())
        reach = self.world.end * (1 + self.processors * private)
        words = -(-reach // self._granule) + costs.line
        self._caches = make_caches(words, costs.line // self._granule, self.processors, costs.sets, costs.ways)
        node = np.arange(self.processors, dtype=np.int64) // costs.node
        self._prices = MissPrices(costs.memory, costs.near, costs.far, node)

    def run_simulation(self) -> SimulationLog:
        """Return what happened; raises DocumentError for what the model gets wrong, with its place."""
        self._run_steps(self.world.model.control, self.world.names)
        if self._open:
            self._close_span("the end", 0.0)
        return self.log

    def _run_steps(self, steps: Iterable[Step], scope: Scope) -> None:
        for step in steps:
            self._count_step()
            if isinstance(step, records.Loop):
                for turn in range(max(self.world.evaluate_whole(step.times, scope), 0)):
                    self._count_step()
                    self._run_steps(step.do, {**scope, step.index: np.float64(turn)})
            elif isinstance(step, records.When):
                self._run_steps(step.do if self._condition_holds(step, scope) else step.else_, scope)
            elif isinstance(step, records.Call):
                self._run_steps(self.world.model.procedures[step.call.value], scope)
            elif isinstance(step, records.Barrier):
                self._apply_end(step.kind, step.barrier)
            elif isinstance(step, records.Parallel):
                self._run_parallel(step, scope)
                self._apply_end(step.end, "barrier")
            elif isinstance(step, records.Serial):
                self._run_serial(step, scope)
            elif isinstance(step, records.Messages):
                self._run_messages(step, scope)
            else:
                self._run_exchange(step, scope)

    def _count_step(self) -> None:
        self._taken += 1
        if self._taken > MOST_STEPS:
            raise DocumentError([self.world.model.mark.make_problem(f"the model takes more than {MOST_STEPS:,} steps")])

    def _condition_holds(self, step: records.When, scope: Scope) -> bool:
        """Return whether a condition holds; one with a ratio holds evenly spread over the times it is reached."""
        if step.condition is not None:
            return self.world.evaluate_number(step.condition, scope) != 0
        before = self._reached.get(id(step), 0)
        self._reached[id(step)] = before + 1
        ratio = step.ratio or 0.0
        return int((before + 1) * ratio + 1e-9) > int(before * ratio + 1e-9)

    def _apply_end(self, end: str, name: str) -> None:
        if end in ("barrier", "all"):
            self._close_span(name, self.costs.barrier)
        elif end != "none":
            self._relaxed = end

    def _close_span(self, name: str, cost: float) -> None:
        """Let everybody wait for everybody, and begin a new span."""
        if len(self.log.spans) >= MOST_SPANS:
            raise DocumentError(
                [self.world.model.mark.make_problem(f"the model synchronizes more than {MOST_SPANS:,} times")]
            )
        self._relaxed = None
        arrived = self.time.copy()
        left = float(arrived.max()) + cost
        waiting = make_entry(name, self.processors, wait=arrived.max() - arrived, sync=np.full(self.processors, cost))
        self.log.spans.append(SyncSpan((*self._open, waiting), name, self._began, arrived, left))
        self.time[:] = left
        self._open, self._began = [], left

    def _run_serial(self, step: Serial, scope: Scope) -> None:
        if self._open:
            self._close_span("join", 0.0)
        domain = step.over.value if step.over else None
        count = self.world.sizes[domain] if domain else 1
        chosen = np.arange(count)
        inner = {**scope, step.index: chosen.astype(np.float64)} if domain else scope
        weight = self.world.evaluate_values(step.weight, inner, count) if step.weight else np.zeros(count)
        share = _LoopShare(
            chosen, weight, Assignment(np.zeros(count, dtype=np.int64), _zero_counts(self.processors)), _zero_counts(1)
        )
        made = self._run_body(step, step.serial, scope, share, True)
        self.time += made.wall
        self._open.append(made)
        self._close_span("join", 0.0)

    def _run_exchange(self, step: records.Exchange, scope: Scope) -> None:
        each = np.arange(self.processors, dtype=np.float64)
        cost = self.world.evaluate_values(step.cost, {**scope, "p": each}, self.processors)
        part = {"transfer": "moved"}.get(step.kind, step.kind)
        made = make_entry(step.exchange, self.processors, False, **{part: cost})
        self.time += cost
        self._open.append(made)

    def _run_messages(self, step: records.Messages, scope: Scope) -> None:
        """Count messages, and let each processor spend what those that it sends and receives take."""
        count = self.processors
        each = {**scope, "p": np.arange(count, dtype=np.float64)}
        sent = np.ones(count, dtype=np.int64)
        if step.where is not None:
            sent = (self.world.evaluate_values(step.where, each, count) != 0).astype(np.int64)
        if step.count is not None:
            sent = sent * np.rint(self.world.evaluate_values(step.count, each, count)).astype(np.int64)
        size = np.rint(self.world.evaluate_values(step.size, each, count)).astype(np.int64)
        self.log.messages.append(MessageCount(step.messages, sent, sent * size, step.to is None))
        spent = sent * self.costs.latency + sent * size * self.costs.per_byte
        if step.to is not None:
            to = np.rint(self.world.evaluate_values(step.to, each, count)).astype(np.int64)
            inside = (to >= 0) & (to < count) & (sent > 0)
            spent = spent + np.bincount(to[inside], spent[inside], minlength=count)
        self.time += spent
        self._open.append(make_entry(step.messages, count, False, moved=spent))

    def _run_parallel(self, step: Parallel, scope: Scope) -> None:
        share = self._assign_loop(step, scope)
        made = self._run_body(step, step.parallel, scope, share, False)
        before = self.time.copy()
        if self._relaxed == "fuzzy":
            done = step.independent * made.work
            through = np.maximum(before + done, float(before.max()) + self.costs.barrier)
            made = _add_waiting(made, through - before - done, 0.0)
        elif self._relaxed == "neighbours":
            made = self._add_neighbour_wait(made, before)
        self._relaxed = None
        self.time += made.wall
        self._open.append(made)

    def _add_neighbour_wait(self, made: RegionEntry, before: FloatArray) -> RegionEntry:
        """Return the entry with the wait for those whose data are read, and who have used what is overwritten."""
        needs = self._needs
        np.fill_diagonal(needs, True)
        ready = np.where(needs, before[:, None], -np.inf).max(axis=0)
        partners = needs.sum(axis=0) - 1
        return _add_waiting(made, ready - before, np.where(partners > 0, self.costs.signal, 0.0))

    def _assign_loop(self, step: Parallel, scope: Scope) -> _LoopShare:
        """Return which indices are executed, at what weight, and by whom."""
        world, domain = self.world, step.over.value
        chosen = np.arange(world.sizes[domain])
        inner: dict[str, object] = {**scope, step.index: chosen.astype(np.float64)}
        if step.where is not None:
            chosen = chosen[world.evaluate_values(step.where, inner, len(chosen)) != 0]
        if step.ratio is not None:
            turn = np.arange(len(chosen) + 1) * step.ratio + 1e-9
            chosen = chosen[np.diff(turn.astype(np.int64)) > 0]
        inner[step.index] = chosen.astype(np.float64)
        weight = world.evaluate_values(step.weight, inner, len(chosen)) if step.weight else np.zeros(len(chosen))
        if step.weight and len(weight) and weight.min() < 0:
            raise DocumentError([step.weight.mark.make_problem(f"{step.weight.value.text}: a weight is negative")])
        owner = world.owner[domain][chosen]
        done = assign_indices(step.schedule, weight, owner, self.time, step.chunk, self.costs.dispatch)
        place = migrate_subdomains(self.processors, world.model.migration, self._random)
        return _LoopShare(chosen, weight, done, place if step.schedule == "static" else np.arange(self.processors))

    def _run_body(
        self, step: Parallel | Serial, name: str, scope: Scope, share: _LoopShare, serial: bool
    ) -> RegionEntry:
        """Return what the processors do in a loop, their references to data included."""
        sub = share.assignment.owner
        work = np.bincount(share.place[sub], share.weight, minlength=self.processors)
        sync = share.assignment.pieces * self.costs.dispatch + (0.0 if serial else self.costs.fork)
        made = make_entry(name, self.processors, serial, work=work, sync=sync)
        self._needs = np.zeros((self.processors, self.processors), dtype=np.bool_)
        if not self._data or not (step.reads or step.writes or step.body) or not len(share.chosen):
            return made
        parts = self._build_stream(step, scope, share)
        traffic = simulate_references(self._caches, parts, share.place, self._prices)
        self._needs = traffic.flow + traffic.overwritten > 0
        self.log.references += parts.items
        self.log.add_transactions(traffic.arrays, len(self.world.arrays))
        self._record_flow(name, parts, share.place, traffic)
        hits = np.bincount(share.place[parts.sub], parts.words, minlength=self.processors) * self.costs.hit
        return make_entry(
            name, self.processors, serial, work=work + hits, sync=sync, traffic=traffic.cost[:, :COHERENCE],
            memory=traffic.cost[:, COHERENCE:].sum(axis=1), counts=traffic.counts,
        )  # fmt: skip

    def _build_stream(self, step: Parallel | Serial, scope: Scope, share: _LoopShare) -> ReferenceStream:
        """Return the references of a loop; those that are always the same are made once."""
        names = find_body_names(step.body).union(*(one.value.names for one in (*step.reads, *step.writes)))
        static = not isinstance(step, records.Parallel) or (
            step.schedule in ("static", "chunk") and step.where is None and step.ratio is None
        )
        kept = static and not any(name in scope and name not in self.world.names for name in names)
        if kept and id(step) in self._streams:
            return self._streams[id(step)]
        if step.body:
            made = build_nest_stream(
                self.world, step.body, scope, step.index, share.chosen, share.assignment.owner, self._granule
            )
        else:
            made = build_stream(
                self.world, step.reads, step.writes, scope, step.index, share.chosen, share.assignment.owner,
                self._granule,
            )  # fmt: skip
        if kept:
            self._streams[id(step)] = made
        return made

    def _record_flow(self, name: str, parts: ReferenceStream, place: IntArray, traffic: Traffic) -> None:
        first = name not in self.log.flows
        sets = compute_working_sets(parts, place, self.processors) if first else _zero_counts(self.processors)
        self.log.add_flow(name, traffic.flow, sets, parts.items)
        if self.settings.trace is not None:
            self.settings.trace(name, parts, place)


def _zero_counts(processors: int) -> IntArray:
    return np.zeros(processors, dtype=np.int64)


def _add_waiting(made: RegionEntry, wait: FloatArray, sync: FloatArray | float) -> RegionEntry:
    return make_entry(
        made.region, len(wait), made.serial, work=made.work, memory=made.memory, traffic=made.traffic,
        counts=made.counts, moved=made.moved, io=made.io, sync=made.sync + sync, wait=wait,
    )  # fmt: skip
