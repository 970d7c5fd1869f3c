"""The caches against a second simulator, written from the definitions alone: slow, with sets and dictionaries."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_simulation.mds.coherence import KINDS, MissPrices, make_caches, simulate_references
from advisor_simulation.mds.references import ReferenceStream

LINE, LINES, PROCESSORS = 4, 6, 3
NODE = [0, 0, 1]
MEMORY, NEAR, FAR = 50.0, 20.0, 100.0

REFERENCE = st.tuples(
    st.integers(0, 4), st.integers(0, LINE * LINES - 6), st.integers(1, 6), st.booleans()
)  # sub-domain, first word, words, whether they are written


@dataclass
class Word:
    """Who wrote a word last, for which sub-domain and when, and who has used it since."""

    writer: int | None = None
    sub: int = -1
    time: int = 0
    users: set[int] = field(default_factory=set)


class Oracle:
    """Infinite (``ways`` None) or fully associative caches of ``ways`` lines."""

    def __init__(self, ways: int | None) -> None:
        self.ways, self.time = ways, 0
        self.words: dict[int, Word] = defaultdict(Word)
        self.cached: list[dict[int, int]] = [{} for _ in range(PROCESSORS)]  # line: last use
        self.had: list[dict[int, tuple[int, bool]]] = [{} for _ in range(PROCESSORS)]  # line: lost when, by eviction
        self.modified: dict[int, int] = {}
        self.counts = np.zeros((PROCESSORS, len(KINDS)), dtype=np.int64)
        self.cost = np.zeros((PROCESSORS, len(KINDS)))
        self.flow = np.zeros((PROCESSORS, PROCESSORS), dtype=np.int64)
        self.overwritten = np.zeros((PROCESSORS, PROCESSORS), dtype=np.int64)

    def refer(self, p: int, sub: int, first: int, count: int, write: bool) -> None:
        for line in range(first // LINE, (first + count - 1) // LINE + 1):
            words = [w for w in range(first, first + count) if w // LINE == line]
            self.time += 1
            held = line in self.cached[p]
            if not held:
                self.miss(p, sub, line, words)
            self.cached[p][line] = self.time
            if self.ways is not None and len(self.cached[p]) > self.ways:
                self.evict(p)
            self.write(p, sub, line, words, held) if write else self.read(p, words)

    def miss(self, p: int, sub: int, line: int, words: list[int]) -> None:
        lost, evicted = self.had[p].get(line, (-1, False))
        new = [self.words[w] for w in words if self.words[w].writer not in (None, p) and self.words[w].time > lost]
        if new:
            kind = "communication" if any(one.sub != sub for one in new) else "migration"
        elif lost < 0:
            kind = "cold miss"
        else:
            kind = "capacity miss" if evicted else "false sharing"
        others = [q for q in range(PROCESSORS) if line in self.cached[q]]
        if line in self.modified:
            price = self.way(p, self.modified.pop(line))
        elif kind in ("cold miss", "capacity miss") or not others:
            price = MEMORY
        else:
            price = min(self.way(p, q) for q in others)
        self.pay(p, kind, price)

    def way(self, p: int, q: int) -> float:
        return NEAR if NODE[p] == NODE[q] else FAR

    def pay(self, p: int, kind: str, price: float) -> None:
        self.counts[p, KINDS.index(kind)] += 1
        self.cost[p, KINDS.index(kind)] += price

    def evict(self, p: int) -> None:
        line = min(self.cached[p], key=lambda one: self.cached[p][one])
        del self.cached[p][line]
        self.had[p][line] = (self.time, True)
        if self.modified.get(line) == p:
            del self.modified[line]

    def read(self, p: int, words: list[int]) -> None:
        for w in words:
            word = self.words[w]
            if p not in word.users and word.writer not in (None, p):
                self.flow[word.writer, p] += 1
            word.users.add(p)

    def write(self, p: int, sub: int, line: int, words: list[int], held: bool) -> None:
        others = [q for q in range(PROCESSORS) if q != p and line in self.cached[q]]
        if others and held:
            moved = any(self.words[w].writer not in (None, p) and self.words[w].sub == sub for w in words)
            used = any(self.words[w].users - {p} for w in words)
            kind = "migration" if moved else "communication" if used else "false sharing"
            self.pay(p, kind, max(self.way(p, q) for q in others))
        for q in others:
            del self.cached[q][line]
            self.had[q][line] = (self.time - 1, False)
        self.modified[line] = p
        for w in words:
            word = self.words[w]
            last = set() if word.writer is None else {word.writer}
            for q in (word.users | last) - {p}:
                self.overwritten[q, p] += 1
            self.words[w] = Word(p, sub, self.time, {p})


@pytest.mark.parametrize("ways", [None, 2, 3])
@settings(max_examples=100, deadline=None)
@given(references=st.lists(REFERENCE, max_size=40), place=st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_both_simulators_agree(
    ways: int | None, references: list[tuple[int, int, int, bool]], place: list[int]
) -> None:
    oracle = Oracle(ways)
    for sub, first, count, write in references:
        oracle.refer(place[sub], sub, first, count, write)
    columns = [np.array(column, dtype=np.int64) for column in zip(*references, strict=True)] or [np.zeros(0, int)] * 4
    array = np.zeros(len(columns[0]), dtype=np.int32)
    made = ReferenceStream(columns[1], columns[2], columns[3].astype(bool), columns[0], 0, 8, array)
    state = make_caches(LINE * LINES, LINE, PROCESSORS, *(() if ways is None else (1, ways)))
    found = simulate_references(state, made, np.array(place), MissPrices(MEMORY, NEAR, FAR, np.array(NODE)))
    assert found.counts.tolist() == oracle.counts.tolist()
    assert found.cost.tolist() == oracle.cost.tolist()
    assert found.flow.tolist() == oracle.flow.tolist()
    assert found.overwritten.tolist() == oracle.overwritten.tolist()
