"""Sampled cycles as seconds on a processor, where nothing tells how long they took."""

from __future__ import annotations

import re
from typing import Final

from advisor.model.records import Note

#: Processors of computers run at 2 to 5 GHz, most of the time.
_USUAL_HZ: Final = 3e9
_NAMED_HZ: Final = re.compile(r"@ (\d{1,2}\.\d{1,3}) ?GHz")


def read_clock_rate(processor: str) -> float:
    """Return the cycles per second of a processor: those that its name states (``… @ 2.40GHz``), else the usual."""
    named = _NAMED_HZ.search(processor)
    return float(named[1]) * 1e9 or _USUAL_HZ if named else _USUAL_HZ


def note_clock_rate(processor: str) -> Note:
    """Return the note that seconds are cycles at that rate: shares of the run are right whatever it was."""
    rate = f"{read_clock_rate(processor) / 1e9:g} GHz"
    return Note("cycles without times", f"seconds are cycles at {rate}, and may be off by half; shares are not", 0.0)
