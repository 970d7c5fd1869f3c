"""What a harness of tests or experiments left beside a profile tells of its run: build, job and parameters.

ReFrame leaves ``.rfm_testcase.json`` in the stage directory of a test, Ramble and Benchpark, which is built on it,
``ramble_inventory.json`` in the directory of an experiment. What is no such file says nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from advisor.collect.sidecar import list_places
from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

if TYPE_CHECKING:
    from advisor.model.records import Profile

_LARGEST_B: Final = 4 << 20
#: Digits that tell builds apart, and characters of a text that is kept.
_DIGITS: Final = 12
_LONGEST: Final = 200
#: Parameters of a test in its name: ``heat %size=128 %solver=cg``.
_PARAMETER: Final = re.compile(r" %([A-Za-z_][\w.]*)=([^\s%]+)")
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")


@dataclass(frozen=True, slots=True)
class HarnessRecord:
    """What a harness states of a run; None where it says nothing."""

    build: str | None = None
    job: str | None = None
    parameters: Mapping[str, str | float] = field(default_factory=dict)


def apply_harness(profile: Profile, path: Path, top: Path) -> Profile:
    """Return the profile at ``path``, found below ``top``, with what a harness states that nobody else did."""
    said = find_record(path, top)
    if said is None:
        return profile
    return replace(
        profile,
        build=profile.build or said.build,
        job=profile.job or said.job,
        parameters={**said.parameters, **profile.parameters},
    )


def find_record(path: Path, top: Path) -> HarnessRecord | None:
    """Return what the nearest record of a harness states, None without one."""
    for place in list_places(path, top):
        for name, read_record in _RECORDS.items():
            file = place / name
            if file != path and file.is_file() and (found := _read_document(file, read_record)) is not None:
                return found
    return None


def _read_document(file: Path, read_record: Callable[[Any], HarnessRecord]) -> HarnessRecord | None:
    try:
        return read_record(json.loads(read_limited(file, _LARGEST_B)))
    except (InputError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _read_ramble(document: Any) -> HarnessRecord:  # noqa: ANN401 - whatever JSON holds
    """Return the build: the environments of software of an experiment, by their digests."""
    software = [(str(one["name"]), str(one["digest"])) for one in document["software"]]
    if not software:
        return HarnessRecord()
    name = PurePosixPath(software[0][0]).name
    whole = software[0][1] if len(software) == 1 else hashlib.blake2b(repr(sorted(software)).encode()).hexdigest()
    return HarnessRecord(build=_clean(f"{name}@{whole[:_DIGITS]}"))


def _read_reframe(document: Any) -> HarnessRecord:  # noqa: ANN401 - whatever JSON holds
    """Return job, parameters, and as the build what was built or loaded: specs, easyconfigs, modules."""
    job = document.get("_job") or {}
    is_local = "Local" in str(job.get("_rfm_unique_name"))  # its number is a process's
    built = document.get("build_system") or {}
    names = built.get("specs") or built.get("easyconfigs") or document.get("modules") or []
    texts = [one if isinstance(one, str) else str(one["name"]) for one in names]
    number = job.get("_jobid")
    return HarnessRecord(
        build=_clean("; ".join(texts)),
        job=_clean(str(number)) if number is not None and not is_local else None,
        parameters={
            name: float(value) if _NUMBER.fullmatch(value) else value[:_LONGEST]
            for name, value in _PARAMETER.findall(str(document["_rfm_display_name"]))
            if value.isprintable()
        },
    )


def _clean(text: str) -> str | None:
    return text[:_LONGEST] if text and text.isprintable() else None


_RECORDS: Final[Mapping[str, Callable[[Any], HarnessRecord]]] = {
    "ramble_inventory.json": _read_ramble,
    ".rfm_testcase.json": _read_reframe,
}
