"""I/O that is mostly formatting and parsing of numbers: it computes instead of waiting for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.disturbance import delayed_io_share

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import Profile

#: CPU seconds of calls that turn numbers into text and back, by region and processor: a count.
TEXT_SECONDS: Final = "io_text_s"
_MOSTLY: Final = 0.5


def find_formatting_regions(profile: Profile) -> npt.NDArray[np.bool_]:
    """Return which regions (R,) spend most of their I/O on formatting; time without a core does not count."""
    text = profile.counts.get(TEXT_SECONDS)
    if text is None:
        return np.zeros(len(profile.regions), dtype=bool)
    spent = np.zeros(len(profile.regions))
    for phase in profile.phases:
        if "io_s" in phase.arrays:
            np.add.at(spent, phase.regions, phase.arrays["io_s"].sum(axis=(1, 2)))
    mine = text.sum(axis=1)
    found: npt.NDArray[np.bool_] = (mine > 0) & (mine >= _MOSTLY * spent * (1.0 - delayed_io_share(profile)))
    return found
