"""From a document of the format ``gapwatch/profile/1`` to a Profile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args

from advisor.analysis import soundness
from advisor.formats.native.phases import RESOLUTION_S, PhaseReader
from advisor.model.errors import InputError
from advisor.model.records import MEASURES, Causes, Note, Phase, Processor, Profile, Region, Status
from advisor.support.contract import ContractError
from advisor.support.strict_json import JsonNode, optional_text

if TYPE_CHECKING:
    from advisor.formats.native.arrays import ArraySource

FORMAT: Final = "gapwatch/profile/"
SCHEMA: Final = f"{FORMAT}1"
PROCESSOR_LIMIT: Final = 1_000_000

_KEYS: Final = (
    *("schema", "program", "run", "reader", "actual_s", "processors", "regions", "synchronized", "phases", "status"),
    *("build", "started", "machine", "cores", "language", "executable", "paradigms", "parameters", "outside"),
    *(
        "counts",
        "causes",
        "notes",
        "ranks_expected",
        "clock_uncertainty_s",
        "job",
        "command",
        "sampled_code",
        *MEASURES,
    ),
)

Fields = dict[str, "JsonNode"]
T = TypeVar("T")


def parse_document(root: JsonNode, arrays: ArraySource) -> Profile:
    """Return the run that a document describes; raises ``InputError`` with the path of the first mistake."""
    _check_version(root)
    found = root.require_fields(_KEYS, needed=("program", "run", "processors", "regions"))
    region_nodes = found["regions"].require_items(soundness.REGION_LIMIT)
    processors = _read_processors(found["processors"])
    table = (len(region_nodes), len(processors))
    regions = tuple(map(_read_region, region_nodes))
    phases = PhaseReader(root, region_nodes, table, arrays).read_phases()
    profile = Profile(
        program=found["program"].require_text(),
        run=found["run"].require_text(),
        reader=optional_text(found, "reader") or "native",
        actual_s=_read_run_time(root, found),
        processors=processors,
        regions=regions,
        phases=phases,
        status=_read_status(found, phases),
        build=optional_text(found, "build"),
        started=optional_text(found, "started"),
        machine=optional_text(found, "machine"),
        language=optional_text(found, "language"),
        executable=optional_text(found, "executable"),
        job=optional_text(found, "job"),
        command=optional_text(found, "command"),
        paradigms=tuple(node.require_text() for node in _optional_items(found, "paradigms")),
        parameters=_read_mapping(found, "parameters", _read_parameter),
        outside=_read_mapping(found, "outside", lambda node: arrays.read_numbers(node, table[1:], -RESOLUTION_S)),
        counts=_read_mapping(found, "counts", lambda node: arrays.read_numbers(node, table, 0)),
        causes=_read_causes(found["causes"], arrays) if "causes" in found else None,
        cores=found["cores"].require_whole(1) if "cores" in found else None,
        ranks_expected=found["ranks_expected"].require_whole(1) if "ranks_expected" in found else None,
        clock_uncertainty_s=found["clock_uncertainty_s"].require_number(0) if "clock_uncertainty_s" in found else None,
        notes=tuple(map(_read_note, _optional_items(found, "notes"))),
        sampled_code=tuple(map(_read_sampled_place, _optional_items(found, "sampled_code"))),
    )
    arrays.refuse_unused(root)
    return _check_soundness(root, replace(profile, notes=(*profile.notes, *_note_missing_values(arrays))))


def _read_run_time(root: JsonNode, found: Fields) -> float:
    """Return the wall time, NaN where ``null`` says that it was not recorded: leaving it out is a mistake."""
    if "actual_s" in found:
        return found["actual_s"].require_number()
    if not isinstance(root.value, dict) or "actual_s" not in root.value:
        raise root.make_error("'actual_s' is missing")
    return math.nan


def _check_soundness(root: JsonNode, profile: Profile) -> Profile:
    try:
        soundness.check_profile(profile)
    except ContractError as error:
        raise InputError(root.file, error.reason, error.place or None) from error
    return profile


def _check_version(root: JsonNode) -> None:
    found = root.require_fields(needed=("schema",))
    schema = found["schema"].require_text()
    if not schema.startswith(FORMAT):
        raise found["schema"].make_error(f"expected {SCHEMA!r}, found {schema[:80]!r}")
    if schema != SCHEMA:
        raise found["schema"].make_error(
            f"{schema[:80]!r} is not known here, only {SCHEMA!r}; is this gapwatch too old?"
        )


def _optional_items(found: Fields, name: str) -> list[JsonNode]:
    return found[name].require_items() if name in found else []


def _read_mapping(found: Fields, name: str, read: Callable[[JsonNode], T | None]) -> dict[str, T]:
    """Return what ``read`` makes of each member of the object ``name``, without those that come out as None."""
    members = found[name].require_fields() if name in found else {}
    return {key: value for key, node in members.items() if (value := read(node)) is not None}


def _read_parameter(node: JsonNode) -> str | float:
    return node.require_text() if isinstance(node.value, str) else node.require_number()


def _read_processors(node: JsonNode) -> tuple[Processor, ...]:
    """Return the processors of a list, or ranks from 0 where only their number is given."""
    if isinstance(node.value, list):
        return tuple(map(_read_processor, node.require_items(PROCESSOR_LIMIT)))
    count = node.require_whole(1)
    if count > PROCESSOR_LIMIT:
        raise node.make_error(f"more than {PROCESSOR_LIMIT:,}")
    return tuple(map(Processor, range(count)))


def _read_processor(node: JsonNode) -> Processor:
    found = node.require_fields(("rank", "thread", "host", "from_s", "to_s", "device"), needed=("rank",))
    return Processor(
        rank=found["rank"].require_whole(),
        thread=found["thread"].require_whole() if "thread" in found else 0,
        host=optional_text(found, "host"),
        from_s=found["from_s"].require_number() if "from_s" in found else None,
        to_s=found["to_s"].require_number() if "to_s" in found else None,
        device=found["device"].require_whole(0) if "device" in found else None,
    )


def _read_region(node: JsonNode) -> Region:
    found = node.require_fields(("name", "file", "line", "threaded", *MEASURES), needed=("name",))
    return Region(
        name=found["name"].require_text(),
        file=optional_text(found, "file"),
        line=found["line"].require_whole() if "line" in found else None,
        threaded=found["threaded"].require_flag() if "threaded" in found else False,
    )


def _read_sampled_place(node: JsonNode) -> tuple[int, int]:
    pair = node.require_items(2)
    if len(pair) != 2:
        raise node.make_error("expected a place in the program's file and its samples")
    return pair[0].require_whole(), pair[1].require_whole(1)


def _read_note(node: JsonNode) -> Note:
    found = node.require_fields(("name", "text", "penalty", "collect"), needed=("name", "text"))
    penalty = found["penalty"].require_number(0) if "penalty" in found else 0.0
    return Note(found["name"].require_text(), found["text"].require_text(), penalty, optional_text(found, "collect"))


def _note_missing_values(arrays: ArraySource) -> list[Note]:
    return [Note("missing values", f"{place} holds null, so it is left out", 0.1) for place in arrays.incomplete]


def _read_status(found: Fields, phases: tuple[Phase, ...]) -> dict[str, Status]:
    """Return the status of each measure: as stated, else ``measured`` for what is there."""
    stated = found["status"].require_fields(MEASURES) if "status" in found else {}
    present = dict.fromkeys((name for phase in phases for name in phase.arrays), "measured")
    return cast(
        "dict[str, Status]", present | {name: node.require_choice(get_args(Status)) for name, node in stated.items()}
    )


def _read_causes(node: JsonNode, arrays: ArraySource) -> Causes:
    names = tuple(field.name for field in fields(Causes))
    found = node.require_fields(names, needed=names)
    seconds = arrays.read_numbers(found["seconds"], (None,), -RESOLUTION_S)
    if seconds is None:
        raise found["seconds"].make_error("a cause without seconds explains nothing")
    texts = {name: tuple(item.require_text() for item in found[name].require_items()) for name in ("kinds", "targets")}
    columns = {name: arrays.read_integers(found[name], (None,)) for name in names if name not in (*texts, "seconds")}
    known: dict[str, Any] = {**texts, **columns, "seconds": seconds}
    return Causes(**known)
