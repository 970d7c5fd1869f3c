"""The advice on a run as the database holds it: all of it, and beside that the summary, which later runs ask for.

A summary is the advice without what takes most of its room: the words and reasons of recommendations, regions, what a
gap is made of by processor, pictures. What stays are names, parameters, times, bounds, gaps by region, findings, and
which recommendations there were, where, and at most for how many seconds.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any, Final

import msgspec
import numpy as np

from advisor.model.errors import StoreError
from advisor.model.records import Advice, FloatArray, Phase
from advisor.model.reports import HeatMap, Picture
from advisor.support import record_json
from advisor.support.contract import ContractError

#: So many bytes of packed summaries stay unpacked, which takes some three times as much memory.
_CACHED_B: Final = 6 << 20
#: Steps between one power of two and the next in pictures that are kept.
_STEPS: Final = 1024
#: What no later run asks for: parts of advice, of its profile, of a gap, a finding and a recommendation.
_ADVICE: Final = {
    **dict.fromkeys(("efficiencies", "steps_to_revisit", "needs", "problems", "dismissed", "accounts", "pictures"), ()),
    "timeline": None,
}
_PROFILE: Final = dict.fromkeys(("regions", "phases", "notes"), ())
_GAP: Final = dict.fromkeys(("processors", "iterations", "causes"), ())
_FINDING: Final = {"pictures": ()}
_RECOMMENDATION: Final = {
    **dict.fromkeys(("processors", "may_help", "may_hurt", "conflicts", "alternatives", "how", "evidence"), ()),
    "why": "",
}


def strip_arrays(advice: Advice) -> Advice:
    """Return ``load_advice`` without the arrays of its profile, which the files of the profile hold.

    Of its pictures three digits are kept, which is what can be seen of them.
    """
    profile = advice.profile
    phases = tuple(Phase(phase.name, phase.kind, phase.regions[:0], {}, phase.closed_by) for phase in profile.phases)
    devices = replace(profile.devices, timeline=None) if profile.devices else None  # the advice has it
    slim = replace(profile, phases=phases, counts={}, outside={}, causes=None, devices=devices)
    timeline = advice.timeline and replace(advice.timeline, seconds=_round_array(advice.timeline.seconds))
    return replace(advice, profile=slim, timeline=timeline, pictures=tuple(map(_round_picture, advice.pictures)))


def _round_array(values: FloatArray) -> FloatArray:
    """Return the values to 10 bits, so that the zeros that follow pack well."""
    parts, exponents = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(parts * _STEPS) / _STEPS, exponents))


def _round_picture(picture: Picture) -> Picture:
    if not isinstance(picture, HeatMap):
        return picture
    cells = (tuple(None if cell is None else float(f"{cell:.3g}") for cell in row) for row in picture.cells)
    return replace(picture, cells=tuple(cells))


def pack_advice(advice: Advice) -> tuple[bytes, bytes]:
    """Return the advice on a run, without arrays, and its summary."""
    document = record_json.pack_record(strip_arrays(advice))
    return _pack(document), _pack(_summarize(document))


def unpack_advice(number: int, packed: bytes) -> Advice:
    """Return the advice on a run; raises ``StoreError`` where it is damaged."""
    return _unpack(number, lambda: json.loads(zlib.decompress(packed)))


def unpack_summary(number: int, packed: bytes) -> Advice:
    """Return a summary of a run, from it or from the whole advice; raises ``StoreError`` where it is damaged."""
    return _unpack(number, lambda: _share_texts(_summarize(_parse_json(zlib.decompress(packed)))))


def _pack(document: dict[str, Any]) -> bytes:
    return zlib.compress(json.dumps(document).encode("ascii"), level=1)


def _unpack(number: int, read: Callable[[], dict[str, Any]]) -> Advice:
    try:
        return record_json.unpack_record(Advice, read())
    except (ValueError, TypeError, LookupError, zlib.error, ContractError) as error:
        raise StoreError(f"the advice on run {number} is damaged: {error}") from error


def _parse_json(text: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:  # it takes neither NaN nor infinity, which Python writes as such
        return json.loads(text)


def _summarize(document: dict[str, Any]) -> dict[str, Any]:
    return {
        **document,
        **_ADVICE,
        "profile": {**document["profile"], **_PROFILE},
        "gaps": [{**gap, **_GAP} for gap in document["gaps"]],
        "findings": [{**finding, **_FINDING} for finding in document["findings"]],
        "recommendations": [{**one, **_RECOMMENDATION} for one in document["recommendations"]],
    }


def _share_texts(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return the value with one text for all that are alike: two thirds of a summary are what other runs say, too."""
    if isinstance(value, str):
        return sys.intern(value)
    if isinstance(value, dict):
        return {key: _share_texts(each) for key, each in value.items()}
    return [_share_texts(each) for each in value] if isinstance(value, list | tuple) else value


class SummaryCache:
    """The summaries that were asked for last, unpacked, up to so many packed bytes; threads may share it.

    A run is told by its number and its stamp, which is another one whenever it is stored anew, in whatever database.
    """

    def __init__(self, most_B: int = _CACHED_B) -> None:
        self._most_B, self._size_B = most_B, 0
        self._known: OrderedDict[tuple[int, int], tuple[Advice, int]] = OrderedDict()
        self._lock = Lock()

    def find_summary(self, number: int, stamp: int) -> Advice | None:
        """Return the summary of a run that was read before; None where it has to be read."""
        with self._lock:
            known = self._known.get((number, stamp))
            if known is None:
                return None
            self._known.move_to_end((number, stamp))
            return known[0]

    def add_summary(self, number: int, stamp: int, summary: Advice, size_B: int) -> None:
        """Add a summary of this packed size, and drop the oldest ones that no longer fit."""
        with self._lock:
            self._size_B += size_B - self._known.pop((number, stamp), (None, 0))[1]
            self._known[number, stamp] = summary, size_B
            while self._size_B > self._most_B:
                self._size_B -= self._known.popitem(last=False)[1][1]
