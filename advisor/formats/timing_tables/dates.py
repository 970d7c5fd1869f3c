"""The dates between which a run took place, against the seconds that it states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from advisor.formats.plain_text import PlainText

#: Dates are read a little before and behind the clocks, and where summer time begins or ends they jump by an hour.
_SLACK_S: Final = 5.0
_SHARE: Final = 0.05
_JUMPS_S: Final = (0.0, -3600.0, 3600.0)


def check_dates(text: PlainText, line: int, begin: datetime, end: datetime, wall_s: float) -> None:
    """Raise ``InputError`` for the line where a run between two dates did not take the seconds that it states."""
    between_s = (end - begin).total_seconds()
    if min(abs(between_s + jump_s - wall_s) for jump_s in _JUMPS_S) > _SLACK_S + _SHARE * wall_s:
        raise text.make_error(line, f"{between_s:g} s lie between the dates, the run is said to take {wall_s:g} s")
