"""A run that cannot go on: who waits in which call for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.errors import AdvisorError
from advisor_simulation.replay.program import Op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor_simulation.replay.program import Program

#: Ranks named in the message.
NAMED_AT_MOST = 8


class DeadlockError(AdvisorError):
    """No rank can go on; ``waiting`` holds each rank that has not ended, and the call in which it waits."""

    def __init__(self, waiting: tuple[tuple[int, str], ...]) -> None:
        self.waiting = waiting
        named = "; ".join(f"rank {rank} in {call}" for rank, call in waiting[:NAMED_AT_MOST])
        more = f"; and {len(waiting) - NAMED_AT_MOST} more" if len(waiting) > NAMED_AT_MOST else ""
        super().__init__(f"the replay ends in a deadlock: {named}{more}")


def build_error(program: Program, places: Sequence[int]) -> DeadlockError:
    """Return the error for the operations in which ranks are stuck."""
    rank = program.rank
    found = [(int(rank[at]), program.describe_operation(at)) for at in places]
    members = [at for at in places if program.op[at] == Op.JOIN]
    missing = {int(program.link[at]) for at in members}
    if missing:
        there = {link: {int(rank[at]) for at in members if int(program.link[at]) == link} for link in missing}
        comm = program.collectives.comm
        lost = {link: sorted(set(program.communicators[int(comm[link])]) - there[link]) for link in missing}
        calls = {int(rank[at]): lost[int(program.link[at])] for at in members}
        found = [(who, f"{call}, without {_format_ranks(calls[who])}" if who in calls else call) for who, call in found]
    return DeadlockError(tuple(found))


def _format_ranks(ranks: Sequence[int]) -> str:
    named = ", ".join(map(str, ranks[:NAMED_AT_MOST]))
    return f"ranks {named}{' …' if len(ranks) > NAMED_AT_MOST else ''}"
