"""What the host threads of a process do at given moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.events import DEVICE_CALLS, CallRole, DeviceTrace
from advisor.trace.devices.intervals import find_covering

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray, IntArray

#: What a thread does on behalf of its process: while another thread does nothing, this is why.
_OF_PROCESS: Final = (
    CallRole.SYNCHRONIZE, CallRole.START, CallRole.COMMUNICATE, CallRole.INPUT_OUTPUT, CallRole.LOAD_DATA,
)  # fmt: skip
#: A host that returns from a wait this long after its device became idle waited for the device.
_RETURNS_S: Final = 1e-6


class HostView:
    """The calls of one process: who is in which call, and how long its threads issue nothing."""

    def __init__(self, trace: DeviceTrace, rank: int) -> None:
        self._trace = trace
        ranks = trace.thread_ranks
        calls = trace.calls
        mine = np.flatnonzero(ranks[calls.thread] == rank)
        self._by_role: dict[int, dict[int, IntArray]] = {}
        named = mine[calls.role[mine] != CallRole.WORK]
        for thread in np.unique(calls.thread[named]).tolist():
            here = named[calls.thread[named] == thread]
            roles = calls.role[here]
            self._by_role[thread] = {int(role): here[roles == role] for role in np.unique(roles)}
        self.edges_s: FloatArray = np.unique(np.r_[calls.start_s[named], calls.end_s[named]])
        self._feeding = {
            thread: np.sort(np.concatenate([named[:0], *(roles[role] for role in DEVICE_CALLS if role in roles)]))
            for thread, roles in self._by_role.items()
        }
        self.main_thread = self._find_main_thread(mine, ranks, rank)
        devices = [n for n, device in enumerate(trace.devices) if device.rank == rank]
        own = np.flatnonzero(np.isin(trace.activities.device, devices))
        self.first_activity_s = float(trace.activities.start_s[own].min()) if len(own) else np.inf
        self.last_activity_s = float(trace.activities.end_s[own].max()) if len(own) else -np.inf

    def _find_main_thread(self, mine: IntArray, ranks: IntArray, rank: int) -> int:
        """Return the thread with most calls to the device, else with most calls, else the first."""
        feeding = {thread: len(calls) for thread, calls in self._feeding.items()}
        if any(feeding.values()):
            return max(feeding, key=lambda thread: (feeding[thread], -thread))
        if len(mine):
            threads, counts = np.unique(self._trace.calls.thread[mine], return_counts=True)
            return int(threads[counts.argmax()])
        return int(np.flatnonzero(ranks == rank)[0]) if (ranks == rank).any() else 0

    def find_calls(self, thread: IntArray, moment: FloatArray) -> IntArray:
        """Return the call that counts at each moment (``CallRole``), -1 for none.

        Where the thread itself is in no such call, those of the other threads of its process count.
        """
        found: IntArray = np.full(len(moment), -1, dtype=np.int64)
        for each in np.unique(thread).tolist():
            here = np.flatnonzero(thread == each)
            found[here] = self._find_in_thread(each, moment[here], tuple(CallRole))
            for other in self._by_role:
                left = here[found[here] < 0]
                if other != each and len(left):
                    found[left] = self._find_in_thread(other, moment[left], _OF_PROCESS)
        return found

    def _find_in_thread(self, thread: int, moment: FloatArray, roles: tuple[CallRole, ...]) -> IntArray:
        calls = self._trace.calls
        found: IntArray = np.full(len(moment), -1, dtype=np.int64)
        for role, some in sorted(self._by_role.get(thread, {}).items()):
            left = np.flatnonzero(found < 0)
            if role in roles and len(left):
                covering = find_covering(calls.start_s[some], calls.end_s[some], moment[left])
                found[left] = np.where(covering >= 0, some[covering], -1)
        return found

    def is_waiting_on(self, thread: IntArray, moment: FloatArray) -> BoolArray:
        """Return whether each thread is blocked in a synchronous call at a moment, the end of its device's work."""
        waiting = np.zeros(len(moment), dtype=bool)
        calls = self._trace.calls
        for each in np.unique(thread).tolist():
            here = np.flatnonzero(thread == each)
            some = self._by_role.get(each, {}).get(CallRole.SYNCHRONIZE)
            if some is not None:
                waiting[here] = find_covering(calls.start_s[some], calls.end_s[some], moment[here] - _RETURNS_S) >= 0
        return waiting

    def stretch_lengths(self, thread: IntArray, moment: FloatArray) -> FloatArray:
        """Return how long the thread issues nothing around each moment, seconds."""
        calls = self._trace.calls
        length = np.full(len(moment), np.inf)
        for each in np.unique(thread).tolist():
            here = np.flatnonzero(thread == each)
            some = self._feeding.get(each)
            if some is None or not len(some):
                continue
            reach = np.maximum.accumulate(calls.end_s[some])
            place = np.searchsorted(calls.start_s[some], moment[here], side="right")
            before = np.where(place > 0, reach[np.maximum(place - 1, 0)], -np.inf)
            after = np.where(place < len(some), calls.start_s[some[np.minimum(place, len(some) - 1)]], np.inf)
            length[here] = after - before
        return length
