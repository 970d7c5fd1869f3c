"""Which plugins the next child leaves out after a loss, so that a plugin costs only its own result.

Whoever was asked then did it, as a rule. But one that had answered before may have left a thread, a signal or a changed
library behind, which ends the child while another one is asked: where a second child ends in the same way, whoever was
left out since the first is let in again, and is guilty if a child ends over it once more. Where nobody was asked,
everybody who had answered is suspect: each is left out in turn, the last one first, and only where none of them did it
alone, all are. Where a task took too long there is no second look, and all are left out at once: each further try would
take as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: So many are tried one at a time.
_TRIED: Final = 8


class Suspects:
    """The plugins that are left out: the ``guilty``, the accused, and ``tried``, without whom it is tried just now."""

    def __init__(self, guilty: Iterable[str] = ()) -> None:
        self.guilty = set(guilty)
        self.tried: frozenset[str] = frozenset()
        self._accused: dict[str, str] = {}  # once, others having been asked before; with the reason of the loss
        self._seen_twice: set[str] = set()  # guilty since two children ended over them
        self._known = frozenset(self.guilty)
        self._earlier: set[str] = set()  # accused at any time
        self._trials: list[frozenset[str]] | None = None

    @property
    def left_out(self) -> frozenset[str]:
        """All that the next child does without."""
        return self.tried | self.guilty | self._accused.keys()

    @property
    def killers(self) -> frozenset[str]:
        """Those who ended a child, as far as one plugin alone can be named."""
        return (self.left_out if len(self.tried) < 2 else self.left_out - self.tried) - self._known

    def record_loss(self, plugin: str | None, asked: Sequence[str], reason: str = "", *, late: bool = False) -> bool:
        """Record that a child was lost while calling ``plugin``, or after calling some; return whether to retry.

        ``asked`` are all that it had called, ``plugin`` among them; ``late``: because its task took too long.
        """
        if not plugin:
            return self._try_next(asked, late=late)
        if plugin in self.left_out:
            return False
        if plugin in self._earlier:
            self.guilty.add(plugin)
            self._seen_twice.add(plugin)
        elif late or self._trials is not None or set(asked) <= {plugin}:
            self.guilty.add(plugin)
        else:
            self.guilty.update(name for name, other in self._accused.items() if other != reason)
            self._accused = {plugin: reason}
        self._earlier.add(plugin)
        return True

    def _try_next(self, asked: Sequence[str], *, late: bool) -> bool:
        if self._trials is None:
            several = [one for one in reversed(dict.fromkeys(asked)) if one not in self.left_out]
            single = [frozenset((one,)) for one in several[:_TRIED]]
            together = [frozenset(several)] if late or len(several) > 1 else []
            self._trials = [*([] if late else single), *together] if several else []
            if not late:  # it may have been one of these each time
                self.guilty -= self._seen_twice
                self._accused = {}
        if not self._trials:
            return False
        self.tried = self._trials.pop(0)
        return True
