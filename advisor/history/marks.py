"""What a user says of an item of advice: acknowledged, suppressed, applied."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from advisor.history.access import open_transaction
from advisor.history.items import ItemStore, compute_resolved_gain
from advisor.history.runs import RunStore
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from advisor.history.dialect import HistoryConnection
    from advisor.history.items import Item, ItemState
    from advisor.history.location import HistoryLocation


def mark_stored_item(
    place: HistoryLocation,
    state: ItemState,
    name: str,
    program: str | None = None,
    region: str | None = None,
    *,
    reason: str | None = None,
    until: str | None = None,
) -> tuple[Item, float | None]:
    """Note a state of the item that ``name`` (an action, or a fingerprint) names; return it as it was before.

    With it come the seconds that it has won, where it is applied after it was resolved. Raises ``StoreError``, and
    ``UsageError`` where no item fits, or several, or the state does not fit the item.
    """
    with open_transaction(place) as connection:
        items = ItemStore(connection)
        item = items.find_item(program, name, region)
        if (state, item.state) == ("acknowledged", "resolved"):
            raise UsageError(f"{item.action} is resolved: the latest run no longer shows it")
        won_s = _require_won_seconds(connection, item) if (state, item.state) == ("applied", "resolved") else None
        items.mark_item(item, state, datetime.now(UTC), reason=reason, until=until, won_s=won_s)
    return item, won_s


def _require_won_seconds(connection: HistoryConnection, item: Item) -> float:
    """Return what a resolved item has won; raises ``UsageError`` where the history cannot tell."""
    won_s = compute_resolved_gain(RunStore(connection), item)
    if won_s is None:
        raise UsageError(
            f"{item.action} is already resolved, and its gain is unknown: the history has no runs "
            "of the build that showed it and of the next one"
        )
    return won_s
