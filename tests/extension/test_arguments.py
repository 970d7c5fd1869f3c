"""What plugins of others change in a profile, nobody else sees."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest
from native_documents import PROFILES
from site_folder import load

from advisor.extension.host.arguments import protect_profile
from advisor.formats import native

if TYPE_CHECKING:
    from pathlib import Path

FIGURE = native.advisor_read(PROFILES / "fig4.json")
WITNESS = """
    @hookimpl
    def advisor_findings(profile):
        seconds = sum(float(array.sum()) for phase in profile.phases for array in phase.arrays.values())
        return [Finding("", "sum", "run", f"{profile.actual_s:g} s, {seconds:g} s, {sorted(profile.status)}")]
"""


@pytest.mark.parametrize(
    "deed",
    [
        "for phase in profile.phases: phase.arrays.clear()",
        "profile.status.clear()",
        "object.__setattr__(profile, 'actual_s', 1.0)",
        "object.__setattr__(profile.phases[0], 'arrays', {})",
    ],
)
def test_a_changed_profile_is_only_the_plugins_own(tmp_path: Path, deed: str) -> None:
    bad = f"\n    @hookimpl\n    def advisor_findings(profile):\n        {deed}\n        return []\n"
    host = load(tmp_path, a_good=WITNESS, m_bad=bad, z_good=WITNESS)
    before, after = (one.text for one in host.collect_findings(FIGURE, (), (), None, ()))
    assert before == after
    assert before.startswith("47 s, 82 s")


def test_arrays_cannot_be_made_writable() -> None:
    protected = protect_profile(FIGURE)
    array = next(iter(protected.phases[0].arrays.values()))
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True
    for field in fields(FIGURE):
        if field.name not in ("phases", "outside", "counts") and not field.name.startswith("sampled"):
            assert getattr(protected, field.name) == getattr(FIGURE, field.name)
