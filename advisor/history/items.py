"""The state of each item of advice over all runs of a program: one line of history per cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal

from advisor.model.errors import UsageError
from advisor.model.records import OF_COMPUTATION
from advisor.support import record_json

if TYPE_CHECKING:
    from advisor.history.dialect import HistoryConnection
    from advisor.history.runs import RunStore
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Advice

ItemState = Literal["new", "open", "acknowledged", "suppressed", "applied", "resolved", "back"]
#: A region holds all that an item promises if no more than this share of it is missing.
_ROUNDING: Final = 0.01
ANY_GAIN: Final = "SELECT 1 FROM items WHERE program = ? AND realised_s IS NOT NULL LIMIT 1"


@dataclass(frozen=True, slots=True)
class Item:
    """One item of advice as it stands: what it is about, when it was seen, what was promised and what it won."""

    program: str
    fingerprint: str
    action: str
    title: str
    region: str | None
    phase: str | None
    gaps: tuple[str, ...]
    state: ItemState
    first_run: int
    last_run: int
    ceiling_s: float
    expected_s: float | None
    until: str | None
    reason: str | None
    applied_after: int | None
    promised_s: float | None
    realised_s: float | None


_COLUMNS: Final = ", ".join(field.name for field in fields(Item))
ITEMS_OF_PROGRAM: Final = (
    f"SELECT {_COLUMNS} FROM items WHERE program = ? ORDER BY last_run DESC, ceiling_s DESC, fingerprint"
)
ITEMS_WITH_GAINS: Final = (
    f"SELECT {_COLUMNS} FROM items WHERE realised_s IS NOT NULL ORDER BY program, last_run, fingerprint"
)


def sum_gap_seconds(advice: Advice, item: Item, *, whole: bool = False) -> float | None:
    """Return the seconds that a run loses to an item's gaps: at its region, or all where there is none or ``whole``.

    Gaps of computation that a run does not tell apart are part of its lowest known bound, whose seconds stand for them.
    None for gaps that the run does not show.
    """
    shown = [gap for gap in advice.gaps if gap.name in item.gaps]
    if not shown and OF_COMPUTATION.issuperset(item.gaps):
        return next((bound.seconds for bound in advice.bounds if bound.seconds is not None), None)
    if not shown:
        return None
    if whole or item.region is None:
        return sum(gap.seconds for gap in shown)
    return sum(share.seconds for gap in shown for share in gap.regions if share.name == item.region)


class ItemStore:
    """The items of the database; writing methods work inside the transaction that their caller opened."""

    def __init__(self, connection: HistoryConnection) -> None:
        self._connection = connection

    def items_of_program(self, program: str) -> tuple[Item, ...]:
        """Return all items of a program, those seen last first."""
        rows = self._connection.execute(ITEMS_OF_PROGRAM, (program,))
        return tuple(_parse_row(row) for row in rows)

    def has_realised_gains(self, program: str) -> bool:
        """Return whether it is known of any item of a program what it has won."""
        return self._connection.execute(ANY_GAIN, (program,)).fetchone() is not None

    def items_with_gains(self) -> tuple[Item, ...]:
        """Return the items of all programs whose gain is known."""
        rows = self._connection.execute(ITEMS_WITH_GAINS)
        return tuple(_parse_row(row) for row in rows)

    def update_items(
        self,
        number: int,
        advice: Advice,
        before: Sequence[Advice],
        now: datetime,
        *,
        repeats: Sequence[Advice] = (),
        since: int = 0,
        is_same_point: Callable[[int], bool] = lambda number: True,
    ) -> None:
        """Take in the advice on run ``number``, which ``repeats`` those of its build.

        ``before`` are the runs of the build that came before, from run ``since`` on. Items that the run shows are new,
        open, or back; items that it no longer shows are resolved, and an applied one gets what it won: the mean of its
        seconds ``before`` less that in this build. Where it promised more than lies at its region, because it is about
        several, these are all seconds of its gaps. A run without evidence changes nothing. What a run at one size or
        number of ranks shows says nothing of others: only one at the point of the run that an item was last seen in
        (``is_same_point``) resolves it, and it is back only at the point where it was resolved.
        """
        if advice.verdict == "insufficient evidence":
            return
        program = advice.profile.program
        known = {item.fingerprint: item for item in self.items_of_program(program)}
        shown = {one.fingerprint: one for one in advice.recommendations}
        for fingerprint, recommendation in shown.items():
            self._store_seen(number, program, recommendation, known.get(fingerprint), now, is_same_point)
        for fingerprint, item in known.items():
            applied = item.applied_after is not None and item.applied_after < number
            if applied and before and (item.realised_s is None or int(item.applied_after or 0) >= since > 0):
                won = _compute_gain(before, (*repeats, advice), item)
                self._set_state(item, now, number, item.state, realised_s=won)
            if fingerprint not in shown and item.state != "resolved" and is_same_point(item.last_run):
                self._set_state(item, now, number, "resolved")

    def mark_item(
        self,
        item: Item,
        state: ItemState,
        now: datetime,
        *,
        reason: str | None = None,
        until: str | None = None,
        won_s: float | None = None,
    ) -> None:
        """Set what a user says of an item: acknowledged, suppressed (``until`` a day, with a ``reason``) or applied.

        One that is applied and has won seconds already (``won_s``, see ``compute_resolved_gain``) stays resolved.
        """
        more: dict[str, object] = {"reason": reason, "until": until}
        if state == "applied":
            promised = item.ceiling_s if item.expected_s is None else item.expected_s
            more |= {"applied_after": item.last_run, "promised_s": promised, "realised_s": won_s}
        self._set_state(item, now, item.last_run, state if won_s is None else "resolved", **more)

    def find_item(self, program: str | None, text: str, region: str | None = None) -> Item:
        """Return the one item that ``text`` (an action or the beginning of a fingerprint) names.

        Raises ``UsageError`` with the choices where none fits, or several.
        """
        asked = f"SELECT {_COLUMNS} FROM items ORDER BY last_run DESC, ceiling_s DESC, program, fingerprint"
        rows = self._connection.execute(asked)
        items = [_parse_row(row) for row in rows]
        fits = [
            item
            for item in items
            if (item.action == text or item.fingerprint.startswith(text))
            and (program is None or item.program == program)
            and (region is None or item.region == region)
        ]
        if len(fits) == 1:
            return fits[0]
        choices = [
            f"{one.fingerprint[:12]} {one.action} of {one.program} at {one.region or one.phase or 'the whole run'}"
            for one in (fits or items)[:8]
        ]
        listed = "; ".join(choices) or "there is no advice yet"
        if fits:
            raise UsageError(
                f"several items match {text!r}; choose one by fingerprint, --region or --program: {listed}"
            )
        where = "".join(f" {word} {name!r}" for word, name in (("of", program), ("at", region)) if name is not None)
        raise UsageError(f"no item named {text!r}{where}; most recent: {listed}")

    def apply_actions(
        self, program: str, actions: Sequence[tuple[str, str | None]], reason: str, now: datetime
    ) -> None:
        """Set items to applied that commits name, by action and region (None: wherever the action is advised)."""
        for item in self.items_of_program(program):
            named = any(item.action == action and region in (None, item.region) for action, region in actions)
            if named and item.state not in ("applied", "resolved"):
                self.mark_item(item, "applied", now, reason=reason)

    def _find_resolving_run(self, item: Item) -> int:
        """Return the run that resolved an item last; the one that showed it last where no step is known."""
        asked = (
            "SELECT run FROM steps WHERE program = ? AND fingerprint = ? AND state = 'resolved' "
            "ORDER BY id DESC LIMIT 1"
        )
        row = self._connection.execute(asked, (item.program, item.fingerprint)).fetchone()
        return item.last_run if row is None else int(row[0])

    def _store_seen(
        self,
        number: int,
        program: str,
        shown: Recommendation,
        known: Item | None,
        now: datetime,
        is_same_point: Callable[[int], bool],
    ) -> None:
        if known is None:
            values = (
                program, shown.fingerprint, shown.action, shown.title, shown.region, shown.phase,
                "+".join(shown.gaps), "new", number, number, shown.ceiling_s, shown.expected_s,
            )  # fmt: skip
            self._connection.execute(
                "INSERT INTO items (program, fingerprint, action, title, region, phase, gaps, state, first_run, "
                "last_run, ceiling_s, expected_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            self._store_step(program, shown.fingerprint, number, now, "new", None)
            return
        state: ItemState = _next_state(known, now)
        if state == "back" and not is_same_point(self._find_resolving_run(known)):
            state = "open"
        self._set_state(
            known, now, number, state,
            last_run=number, ceiling_s=shown.ceiling_s, expected_s=shown.expected_s,
        )  # fmt: skip

    def _set_state(self, item: Item, now: datetime, number: int, state: ItemState, **more: object) -> None:
        names = ", ".join(f"{name} = ?" for name in more)
        self._connection.execute(
            f"UPDATE items SET state = ?{', ' if names else ''}{names} WHERE program = ? AND fingerprint = ?",
            (state, *more.values(), item.program, item.fingerprint),
        )
        if state != item.state:
            reason = more.get("reason")
            self._store_step(
                item.program, item.fingerprint, number, now, state, reason if isinstance(reason, str) else None
            )

    def _store_step(
        self, program: str, fingerprint: str, number: int, now: datetime, state: ItemState, reason: str | None
    ) -> None:
        at = now.astimezone(UTC).isoformat("T", "seconds")
        self._connection.execute(
            "INSERT INTO steps (program, fingerprint, run, at, state, reason) VALUES (?, ?, ?, ?, ?, ?)",
            (program, fingerprint, number, at, state, reason),
        )


def compute_resolved_gain(runs: RunStore, item: Item) -> float | None:
    """Return the seconds that a resolved item has won: those in the build that showed it last, less those in the next.

    None where the history does not hold runs of both builds any more, or does not know their builds.
    """
    entries = runs.list_entries(item.program)
    last = next((one for one in entries if one.number == item.last_run), None)
    if last is None:
        return None
    alike = [one for one in entries if one.ranks == last.ranks]
    later = [one for one in alike if one.number > last.number and one.build != last.build]
    sides = [one for one in alike if one.build == last.build], [one for one in later if one.build == later[0].build]
    if not all(sides):
        return None
    before, after = ([runs.load_summary(one.number) for one in side] for side in sides)
    return _compute_gain(before, after, item)


def _compute_gain(before: Sequence[Advice], after: Sequence[Advice], item: Item) -> float | None:
    """Return what an applied item has won: the mean of its seconds before, less that after; None where unknown.

    So it is where only some of the runs tell the gaps of computation apart.
    """
    told = {any(gap.name in item.gaps for gap in run.gaps) for run in (*before, *after)}
    if len(told) > 1 and OF_COMPUTATION.issuperset(item.gaps):
        return None
    shown = [one for run in before for one in run.recommendations if one.fingerprint == item.fingerprint]
    most = fmean([one.ceiling_s for one in shown]) if shown else item.ceiling_s
    at_region = _average_seconds(before, item, whole=False)
    whole = at_region is not None and most > (1 + _ROUNDING) * at_region
    lost, left = (_average_seconds(runs, item, whole=whole) for runs in (before, after))
    return None if lost is None or left is None else lost - left


def _average_seconds(runs: Sequence[Advice], item: Item, *, whole: bool) -> float | None:
    """Return the mean seconds of an item's gaps over the runs that show them; None where none does."""
    seconds = [sum_gap_seconds(run, item, whole=whole) for run in runs]
    known = [one for one in seconds if one is not None]
    return fmean(known) if known else None


def _next_state(item: Item, now: datetime) -> ItemState:
    """Return the state of an item that shows again."""
    if item.state == "resolved":
        return "back"
    if item.state == "suppressed" and item.until is not None and item.until < now.astimezone(UTC).date().isoformat():
        return "open"
    return "open" if item.state == "new" else item.state


def _parse_row(row: Sequence[object]) -> Item:
    """Return the item of a row in the order of ``_COLUMNS``; raises ``ContractError`` for what none wrote."""
    values = dict(zip((field.name for field in fields(Item)), row, strict=True))
    return record_json.unpack_record(Item, {**values, "gaps": str(values["gaps"]).split("+")})
