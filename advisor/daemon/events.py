"""What the daemon has to tell, as it happens: one record each, for whoever shows or logs them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.history.file_states import State
    from advisor.model.records import Advice


@dataclass(frozen=True, slots=True)
class RunIngested:
    """A run is in the history, with its number and the advice on it."""

    number: int
    path: Path
    advice: Advice


@dataclass(frozen=True, slots=True)
class FileSettled:
    """A profile found a state without becoming a run, or waits because it could not be read."""

    path: Path
    state: State
    reason: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the daemon itself: a root that is gone, a history that was set aside."""

    text: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many files wait, and how many profiles are being read."""

    waiting: int
    reading: int


Event = RunIngested | FileSettled | Remark | Backlog
