"""``gapwatch applied``, ``ack`` and ``suppress``: what a user says of an item of advice."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from advisor.cli import history_location, output

if TYPE_CHECKING:
    from advisor.history.items import ItemState
    from advisor.history.location import HistoryLocation

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class ItemCommand:
    """One of the three commands: what it is called, what it says of an item, and what is said in return."""

    NAME: str
    state: ItemState
    reply: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Give the command its arguments."""
        parser.add_argument(
            "item", metavar="ACTION", help="Action such as A-29, or a fingerprint from gapwatch history"
        )
        parser.add_argument("--region", metavar="NAME", help="Region, if the action is recommended for several")
        parser.add_argument("--program", metavar="NAME", help="Program, if several have this recommendation")
        if self.state == "suppressed":
            parser.add_argument(
                "--until", metavar="DAY", type=_parse_day, help="Show it again after this day, such as 2027-01-31"
            )
        if self.state != "applied":
            parser.add_argument("--reason", metavar="TEXT", help="Reason to store in the history")
        history_location.add_state_argument(parser)

    def run_command(self, args: argparse.Namespace) -> int:
        """Note it in the history; returns the exit code."""
        reason, until = getattr(args, "reason", None), getattr(args, "until", None)
        place = history_location.locate_history(args)
        output.write_output(
            self.mark_stored_item(place, args.item, args.program, args.region, reason=reason, until=until) + "\n"
        )
        return 0

    def mark_stored_item(
        self,
        place: HistoryLocation,
        name: str,
        program: str | None = None,
        region: str | None = None,
        *,
        reason: str | None = None,
        until: str | None = None,
    ) -> str:
        """Note it of the item of that name in the history at ``place``; return one line on what was noted.

        Raises ``StoreError``, and ``UsageError`` where no item fits, or several.
        """
        from advisor.history.marks import mark_stored_item
        from advisor.output import numbers
        from advisor.output.clean import clean_text

        item, won_s = mark_stored_item(place, self.state, name, program, region, reason=reason, until=until)
        at = f" at {item.region or item.phase}" if item.region or item.phase else ""
        said = self.reply if won_s is None else f"applied, and gone since; it won {numbers.format_duration(won_s)}"
        more = f" until {until}" if until else ""
        return clean_text(f"{item.action} ({item.title}){at}: {said}{more}")


def _parse_day(text: str) -> str:
    wrong = argparse.ArgumentTypeError(f"expected a day such as 2027-01-31, found {text!r}")
    if not _DAY.fullmatch(text):
        raise wrong
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise wrong from None
    if day < datetime.now(UTC).date():
        raise argparse.ArgumentTypeError(f"expected a future day, found {text}")
    return day.isoformat()


applied = ItemCommand("applied", "applied", "applied; the next build will show what it gained")
ack = ItemCommand("ack", "acknowledged", "acknowledged")
suppress = ItemCommand("suppress", "suppressed", "suppressed")
