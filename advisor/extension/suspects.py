"""Which plugins the next child leaves out after a loss, so that a plugin costs only its own result.

Whoever was asked then did it. Where nobody was, somebody who had answered before left a thread, a signal or a changed
library behind: each is left out in turn, the last one first, and only where none of them did it alone, all are. Where
a task took too long all are at once: each further try would take as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: So many are tried one at a time.
_TRIED: Final = 8


class Suspects:
    """The plugins that are left out: the ``guilty``, and ``tried``, without whom it is tried just now."""

    def __init__(self, guilty: Iterable[str] = ()) -> None:
        self.guilty = set(guilty)
        self.tried: frozenset[str] = frozenset()
        self._trials: list[frozenset[str]] | None = None

    @property
    def left_out(self) -> frozenset[str]:
        """All that the next child does without."""
        return self.tried | self.guilty

    def record_loss(self, plugin: str | None, asked: Sequence[str], *, late: bool = False) -> bool:
        """Record that a child was lost while calling ``plugin``, or after calling some; return whether to retry.

        ``late``: because its task took too long.
        """
        if plugin:
            known = plugin in self.left_out
            self.guilty.add(plugin)
            return not known
        if self._trials is None:
            several = [one for one in reversed(dict.fromkeys(asked)) if one not in self.left_out]
            single = [] if late or len(several) < 2 else [frozenset((one,)) for one in several[:_TRIED]]
            self._trials = [*single, frozenset(several)] if several else []
        if not self._trials:
            return False
        self.tried = self._trials.pop(0)
        return True
