"""From a document of the format ``gapwatch/profile/1`` to a Profile."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args

from advisor.analysis import soundness
from advisor.formats.native.phases import RESOLUTION_S, PhaseReader
from advisor.model.errors import InputError
from advisor.model.records import MEASURES, Causes, Note, Processor, Profile, Region, Status
from advisor.support.contract import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.formats.native.arrays import ArraySource
    from advisor.model.records import Phase
    from advisor.support.strict_json import Node

FORMAT: Final = "gapwatch/profile/"
SCHEMA: Final = f"{FORMAT}1"
PROCESSOR_LIMIT: Final = 1_000_000

_KEYS: Final = (
    *("schema", "program", "run", "reader", "actual_s", "processors", "regions", "synchronized", "phases", "status"),
    *("build", "started", "machine", "cores", "language", "paradigms", "parameters", "outside", "counts", "causes"),
    *("notes", "ranks_expected", "clock_uncertainty_s", *MEASURES),
)

Fields = dict[str, "Node"]
T = TypeVar("T")


def document(root: Node, arrays: ArraySource) -> Profile:
    """Return the run that a document describes; raises ``InputError`` with the path of the first mistake."""
    _check_version(root)
    found = root.fields(_KEYS)
    _require(root, found, "program", "run", "actual_s", "processors", "regions")
    processors = _processors(found["processors"])
    region_nodes = found["regions"].items()
    table = (len(region_nodes), len(processors))
    regions = tuple(map(_region, region_nodes))
    phases = PhaseReader(root, region_nodes, table, arrays).read()
    profile = Profile(
        program=found["program"].text(),
        run=found["run"].text(),
        reader=_text(found, "reader") or "native",
        actual_s=found["actual_s"].number(),
        processors=processors,
        regions=regions,
        phases=phases,
        status=_status(found, phases),
        build=_text(found, "build"),
        started=_text(found, "started"),
        machine=_text(found, "machine"),
        language=_text(found, "language"),
        paradigms=tuple(node.text() for node in _items(found, "paradigms")),
        parameters=_mapping(found, "parameters", _parameter),
        outside=_mapping(found, "outside", lambda node: arrays.numbers(node, table[1:], -RESOLUTION_S)),
        counts=_mapping(found, "counts", lambda node: arrays.numbers(node, table, 0)),
        causes=_causes(found["causes"], arrays) if "causes" in found else None,
        cores=found["cores"].whole(1) if "cores" in found else None,
        ranks_expected=found["ranks_expected"].whole(1) if "ranks_expected" in found else None,
        clock_uncertainty_s=found["clock_uncertainty_s"].number(0) if "clock_uncertainty_s" in found else None,
        notes=tuple(map(_note, _items(found, "notes"))),
    )
    arrays.refuse_unused(root)
    return _sound(root, replace(profile, notes=(*profile.notes, *_incomplete(arrays))))


def _sound(root: Node, profile: Profile) -> Profile:
    try:
        soundness.check(profile)
    except ContractError as error:
        raise InputError(root.file, error.reason, error.place or None) from error
    return profile


def _check_version(root: Node) -> None:
    found = root.fields()
    _require(root, found, "schema")
    schema = found["schema"].text()
    if not schema.startswith(FORMAT):
        raise found["schema"].error(f"expected {SCHEMA!r}, found {schema[:80]!r}")
    if schema != SCHEMA:
        raise found["schema"].error(f"{schema[:80]!r} is not known here, only {SCHEMA!r}; is this gapwatch too old?")


def _require(node: Node, found: Fields, *names: str) -> None:
    for name in names:
        if name not in found:
            raise node.error(f"{name!r} is missing")


def _text(found: Fields, name: str) -> str | None:
    return found[name].text() if name in found else None


def _items(found: Fields, name: str) -> list[Node]:
    return found[name].items() if name in found else []


def _mapping(found: Fields, name: str, read: Callable[[Node], T | None]) -> dict[str, T]:
    """Return what ``read`` makes of each member of the object ``name``, without those that come out as None."""
    members = found[name].fields() if name in found else {}
    return {key: value for key, node in members.items() if (value := read(node)) is not None}


def _parameter(node: Node) -> str | float:
    return node.text() if isinstance(node.value, str) else node.number()


def _processors(node: Node) -> tuple[Processor, ...]:
    """Return the processors of a list, or ranks from 0 where only their number is given."""
    if isinstance(node.value, list):
        return tuple(map(_processor, node.items()))
    count = node.whole(1)
    if count > PROCESSOR_LIMIT:
        raise node.error(f"more than {PROCESSOR_LIMIT:,}")
    return tuple(map(Processor, range(count)))


def _processor(node: Node) -> Processor:
    found = node.fields(("rank", "thread", "host", "from_s", "to_s"))
    _require(node, found, "rank")
    return Processor(
        rank=found["rank"].whole(),
        thread=found["thread"].whole() if "thread" in found else 0,
        host=_text(found, "host"),
        from_s=found["from_s"].number() if "from_s" in found else None,
        to_s=found["to_s"].number() if "to_s" in found else None,
    )


def _region(node: Node) -> Region:
    found = node.fields(("name", "file", "line", "threaded", *MEASURES))
    _require(node, found, "name")
    return Region(
        name=found["name"].text(),
        file=_text(found, "file"),
        line=found["line"].whole() if "line" in found else None,
        threaded=found["threaded"].flag() if "threaded" in found else False,
    )


def _note(node: Node) -> Note:
    found = node.fields(("name", "text", "penalty", "collect"))
    _require(node, found, "name", "text")
    penalty = found["penalty"].number(0) if "penalty" in found else 0.0
    return Note(found["name"].text(), found["text"].text(), penalty, _text(found, "collect"))


def _incomplete(arrays: ArraySource) -> list[Note]:
    return [Note("missing values", f"{place} holds null, so it is left out", 0.1) for place in arrays.incomplete]


def _status(found: Fields, phases: tuple[Phase, ...]) -> dict[str, Status]:
    """Return the status of each measure: as stated, else ``measured`` for what is there."""
    stated = found["status"].fields(MEASURES) if "status" in found else {}
    present = dict.fromkeys((name for phase in phases for name in phase.arrays), "measured")
    return cast("dict[str, Status]", present | {name: node.choice(get_args(Status)) for name, node in stated.items()})


def _causes(node: Node, arrays: ArraySource) -> Causes:
    names = tuple(field.name for field in fields(Causes))
    found = node.fields(names)
    _require(node, found, *names)
    seconds = arrays.numbers(found["seconds"], (None,), -RESOLUTION_S)
    if seconds is None:
        raise found["seconds"].error("a cause without seconds explains nothing")
    texts = {name: tuple(item.text() for item in found[name].items()) for name in ("kinds", "targets")}
    columns = {name: arrays.integers(found[name], (None,)) for name in names if name not in (*texts, "seconds")}
    known: dict[str, Any] = {**texts, **columns, "seconds": seconds}
    return Causes(**known)
