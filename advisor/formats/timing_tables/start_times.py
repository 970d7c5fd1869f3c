"""When a run started, as programs print it, in ISO 8601: English names of months, whatever the locale."""

from __future__ import annotations

import re
from typing import Final

_MONTHS: Final = {
    name: n
    for n, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], start=1
    )
}
_CLOCK: Final = r"(?P<hour>[ \d]\d):(?P<minute>[ \d]\d):(?P<second>[ \d]\d)"
_FORMS: Final = (
    re.compile(rf"(?P<year>\d{{4}})-(?P<number>\d\d)-(?P<day>\d\d)[ T]{_CLOCK}"),
    re.compile(rf"\w{{3}} (?P<month>\w{{3}}) +(?P<day>\d{{1,2}}) {_CLOCK} (?P<year>\d{{4}})"),
    re.compile(rf"(?P<day>[ \d]?\d)(?P<month>[A-Z][a-z]{{2}})(?P<year>\d{{4}}) {_CLOCK}"),
)


def parse_start_time(text: str | None) -> str | None:
    """Return ``text`` as ``YYYY-MM-DDThh:mm:ss``, None where it is no time of a form that is known."""
    for form in _FORMS:
        found = form.match((text or "").strip())
        if found is None:
            continue
        parts = found.groupdict()
        month = int(parts["number"]) if "number" in parts else _MONTHS.get(parts["month"])
        if month is None:
            return None
        day, hour, minute, second = (int(parts[name]) for name in ("day", "hour", "minute", "second"))
        return f"{parts['year']}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
    return None
