"""Work on parts of a trace, done here or by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from advisor.trace.events import Trace

Result = TypeVar("Result")


class Spread(Protocol):
    """Applies ``work`` to a trace and each of the tasks, which are its other arguments; yields results in their order.

    ``work`` is a function of a module, so that other processes find it by its name.
    """

    def __call__(self, work: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Result]: ...  # noqa: D102


def run_locally(trace: Trace, work: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
    """Do the work in this process, one task after the other."""
    return (work(trace, *task) for task in tasks)
