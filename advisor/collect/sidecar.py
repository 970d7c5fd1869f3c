"""What a user states about a profile in ``gapwatch.json`` beside it: the build, the machine, the problem size."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.support import strict_json

if TYPE_CHECKING:
    from advisor.model.records import Processor, Profile
    from advisor.support.strict_json import JsonNode

NAME: Final = "gapwatch.json"
SCHEMA: Final = "gapwatch/sidecar/1"
BUILD_VARIABLE: Final = "GAPWATCH_BUILD"
SIZE_LIMIT: Final = 1 << 20

#: The parameter that says which run the program is meant for; it may stand beside the parameters, too.
TARGET: Final = "target"
_TEXTS: Final = ("build", "machine", "host", "language")
_COUNTS: Final = ("cores", "ranks_expected")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The statements of one ``gapwatch.json``; None where it says nothing.

    ``source_root`` is the directory of the program's sources, absolute. It is a claim of whoever wrote the file: it may
    tell which source the run was built from, and gives nobody the right to be shown what lies there.
    """

    build: str | None = None
    machine: str | None = None
    host: str | None = None
    language: str | None = None
    cores: int | None = None
    ranks_expected: int | None = None
    source_root: Path | None = None
    parameters: Mapping[str, str | float] = field(default_factory=dict)


def find_sidecar(path: Path, top: Path | None = None) -> Path | None:
    """Return the sidecar of the profile at ``path``: inside a profile that is a directory, else beside the profile.

    Where the profile was found below the directory ``top``, the nearest one up to there, or beside ``top``, counts.
    """
    return next((place / NAME for place in list_places(path, top) if (place / NAME).is_file()), None)


def list_places(path: Path, top: Path | None = None) -> tuple[Path, ...]:
    """Return the directories in which something may be stated about the profile at ``path``, the nearest first."""
    places = [path, path.parent] if path.is_dir() else [path.parent]
    above = [] if top is None or top not in path.parents else [top, top.parent]
    while above and places[-1] not in above:
        places.append(places[-1].parent)
    return (*places, *above)


def read_sidecar(path: Path, top: Path | None = None) -> Sidecar | None:
    """Return what the sidecar of the profile at ``path`` says, None without one; raises ``InputError``."""
    file = find_sidecar(path, top)
    return _parse_statements(strict_json.read_json(file, SIZE_LIMIT)) if file is not None and file != path else None


def _parse_statements(root: JsonNode) -> Sidecar:
    found = root.require_fields(("schema", "source_root", "parameters", TARGET, *_TEXTS, *_COUNTS))
    if "schema" in found:
        found["schema"].require_choice((SCHEMA,))
    parameters = found["parameters"].require_fields() if "parameters" in found else {}
    stated = {key: _parse_parameter(node) for key, node in parameters.items()}
    if TARGET in found:
        stated[TARGET] = _parse_target(found[TARGET])
    folder = root.file.absolute().parent
    return Sidecar(
        build=_parse_text(found, "build"),
        machine=_parse_text(found, "machine"),
        host=_parse_text(found, "host"),
        language=_parse_text(found, "language"),
        cores=found["cores"].require_whole(1) if "cores" in found else None,
        ranks_expected=found["ranks_expected"].require_whole(1) if "ranks_expected" in found else None,
        source_root=folder / found["source_root"].require_text(4096) if "source_root" in found else None,
        parameters=stated,
    )


def _parse_text(found: Mapping[str, JsonNode], name: str) -> str | None:
    if name not in found:
        return None
    text = found[name].require_text(1000).strip()
    if not text:
        raise found[name].make_error("is empty; leave it out instead")
    return text


def _parse_target(node: JsonNode) -> str:
    """Return the run that the program is meant for as text: ``P=1024 N=8192 machine=cluster``.

    It is stated as that, or as an object of its values.
    """
    if isinstance(node.value, str):
        return node.require_text(1000)
    values = {key: _parse_parameter(value) for key, value in node.require_fields().items()}
    return " ".join(
        f"{key}={value if isinstance(value, str) else format(value, '.17g')}" for key, value in values.items()
    )


def _parse_parameter(node: JsonNode) -> str | float:
    return node.require_text(1000) if isinstance(node.value, str) else node.require_number()


def write_sidecar(folder: Path, stated: Mapping[str, object], parameters: Mapping[str, str | float]) -> Path:
    """State something about the profiles in ``folder``, on top of what its sidecar says, and return the file.

    Raises ``InputError`` where a sidecar is there already that cannot be read.
    """
    file = folder / NAME
    known: dict[str, object] = {}
    if file.exists():
        _parse_statements(strict_json.read_json(file, SIZE_LIMIT))
        known = json.loads(file.read_text(encoding="utf-8"))
    if parameters:
        before = known.get("parameters")
        known["parameters"] = {**(before if isinstance(before, dict) else {}), **parameters}
    text = json.dumps({"schema": SCHEMA, **known, **stated}, indent=2)
    new = file.with_name(f"{NAME}.new")
    new.write_text(text + "\n", encoding="utf-8")
    new.replace(file)
    return file


def apply_sidecar(
    profile: Profile, path: Path, environment: Mapping[str, str] = os.environ, top: Path | None = None
) -> Profile:
    """Return the profile with what its sidecar says; raises ``InputError`` for mistakes in the sidecar.

    The sidecar outranks what the tool recorded: it is there because somebody knows better. ``GAPWATCH_BUILD`` names the
    build where neither does.
    """
    said = read_sidecar(path, top) or Sidecar()
    return replace(
        profile,
        build=said.build or profile.build or environment.get(BUILD_VARIABLE, "").strip() or None,
        machine=said.machine or profile.machine,
        language=said.language or profile.language,
        cores=said.cores or profile.cores,
        ranks_expected=said.ranks_expected or profile.ranks_expected,
        parameters={**profile.parameters, **said.parameters},
        processors=tuple(_set_host(processor, said.host) for processor in profile.processors),
    )


def _set_host(processor: Processor, host: str | None) -> Processor:
    return processor if host is None or processor.host is not None else replace(processor, host=host)
