"""Which plugins the next child leaves out after a loss, so that a plugin costs only its own result.

Whoever was asked then did it, as a rule. But one that had answered before may have left a thread, a signal or a changed
library behind, which ends the child while another one is asked, or nobody. So of the children that were lost in the
same way, the next one leaves out the fewest plugins of which one had been asked in each: where several would do,
whoever was asked just then, otherwise the last one asked. Where it takes more than one and nobody was asked just then,
or too many children were lost, all who may have done it are left out. Where a task took too long there is no second
look: each further try would take as long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

#: After so many losses of one kind nobody is tried alone any more.
_TRIED: Final = 8


class _Loss(NamedTuple):
    """A child that was lost while calling ``plugin`` (None: nobody), having asked all of ``asked`` in this order."""

    plugin: str | None
    asked: tuple[str, ...]


class Suspects:
    """The plugins that the next child leaves out (``left_out``), those ``known`` before among them."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = frozenset(known)
        self._guilty: set[str] = set()  # of a child that was lost for its time
        self._together: set[str] = set()  # one of these, or several
        self._accused: set[str] = set()
        self._losses: defaultdict[str, list[_Loss]] = defaultdict(list)  # by the reason

    @property
    def left_out(self) -> frozenset[str]:
        """All that the next child does without."""
        return self._known.union(self._guilty, self._accused, self._together)

    @property
    def killers(self) -> frozenset[str]:
        """Those who ended a child, as far as one plugin alone can be named."""
        return frozenset((self._guilty | self._accused) - self._known)

    def record_loss(self, plugin: str | None, asked: Sequence[str], reason: str = "", *, late: bool = False) -> bool:
        """Record that a child was lost while calling ``plugin``, or after calling some; return whether to retry.

        ``asked`` are all that it had called, ``plugin`` among them; ``late``: because its task took too long.
        """
        left_out = self.left_out
        suspects = dict.fromkeys((*asked, plugin) if plugin else asked)
        loss = _Loss(plugin or None, tuple(one for one in suspects if one not in left_out))
        if plugin in left_out or not loss.asked:
            return False
        if late and (plugin or len(loss.asked) == 1):
            self._guilty.add(plugin or loss.asked[0])
        elif late:
            self._together.update(loss.asked)
        else:
            self._losses[reason].append(loss)
            self._accuse()
        return True

    def _accuse(self) -> None:
        self._accused = set()
        for losses in self._losses.values():
            fewest = _choose_fewest(losses)
            unnamed = [one for one in losses if not one.plugin]
            if len(losses) > _TRIED or (unnamed and len(fewest) > 1):
                self._accused.update(one.plugin for one in losses if one.plugin)
                self._together.update(*(one.asked for one in unnamed))
            else:
                self._accused.update(fewest)


def _choose_fewest(losses: Sequence[_Loss]) -> set[str]:
    """Return few plugins of which one had been asked in each of the losses: those without whom it is sure, then the one
    that explains most of the rest, and so on.
    """
    chosen = {one.asked[0] for one in losses if len(one.asked) == 1}
    while rest := [one for one in losses if chosen.isdisjoint(one.asked)]:
        candidates = [name for one in rest for name in one.asked]
        named = [one.plugin for one in rest]
        chosen.add(max(reversed(rest[-1].asked), key=lambda name: (candidates.count(name), named.count(name))))
    return chosen
