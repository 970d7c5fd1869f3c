"""Programs of devices of which Caliper recorded the host alone: told by how they were built, and by what they call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.analysis.quality import DEVICES_UNSEEN
from advisor.model.records import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from advisor.trace.callpaths.records import CallPathNode

#: What tells a model of devices: names of globals, files of libraries, and functions of its interface.
_MODELS: Final = {
    "CUDA": (r"(?:.*[_.])?(?:cuda|nvcc)(?:[_.].*)?", r"libcuda(?:rt)?[.-]", r"cu(?:da)?[A-Z]\w+"),
    "HIP": (r"(?:.*[_.])?(?:hip|rocm)(?:[_.].*)?", r"lib(?:amdhip64|hsa-runtime64)[.-]", r"hip[A-Z]\w+"),
    "Level Zero": (r"(?:.*[_.])?level_zero(?:[_.].*)?", r"libze_loader[.-]", r"ze[A-Z]\w+"),
}
_LIBRARIES: Final = "libraries"
#: Such a build may also run on the host alone, which nothing in the file tells.
_PENALTY: Final = 0.3
_HOW: Final = "CALI_CONFIG=cuda-activity-report or rocm-activity-report; or nsys profile, rocprofv3"


def note_unseen_devices(told: Mapping[str, str], nodes: Iterable[CallPathNode]) -> tuple[Note, ...]:
    """Return the doubt of a profile that holds the host's part of a program for devices; ``told`` are its globals."""
    names = {node.name for node in nodes}
    models = [
        model
        for model, (name, library, function) in _MODELS.items()
        if any(re.fullmatch(name, key, re.IGNORECASE) for key in told)
        or re.search(library, told.get(_LIBRARIES, ""))
        or any(re.fullmatch(function, called) for called in names)
    ]
    if not models:
        return ()
    text = (
        f"the program is made for {', '.join(models)}, and what devices did is not in the profile: time in which the "
        "host waits for them counts as computation"
    )
    return (Note(DEVICES_UNSEEN, text, _PENALTY, _HOW),)
