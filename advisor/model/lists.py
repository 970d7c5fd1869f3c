"""Lists in sentences: ``a and b``; ``a, b and 3 more``."""

from __future__ import annotations

from collections.abc import Sequence


def join_names(names: Sequence[str], most: int | None = None) -> str:
    """Return ``a``, ``a and b``, or ``a, b and c``; of more than ``most`` the first ones: ``a, b and 3 more``."""
    shown = _shorten(names, most)
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def join_clauses(clauses: Sequence[str], most: int) -> str:
    """Return ``a; b``, or of more than ``most`` clauses the first ones: ``a; b; 3 more``."""
    return "; ".join(_shorten(clauses, most))


def _shorten(items: Sequence[str], most: int | None) -> list[str]:
    shown = [*items[:most]]
    return shown if len(shown) == len(items) else [*shown, f"{len(items) - len(shown):,} more"]
