"""What profiles and findings call the scale that a program is meant for."""

from __future__ import annotations

from typing import Final

#: The kind of the findings on growth; the subject is the run, its gaps, or one gap that grows.
KIND: Final = "scaling"
#: The parameter of a profile that says what scale the program is meant for, such as "P=1024 N=8192".
TARGET: Final = "target"
#: A measure of a finding on a gap: the seconds of the gap in a region there, whose name follows.
IN_REGION: Final = "seconds in "
#: Gaps between the machine's peak and the computation that was measured: only counts and a machine model show them.
MACHINE_GAPS: Final = frozenset({"A", "C", "S", "$"})
