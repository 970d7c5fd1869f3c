"""What a reader has to know about a run on the oracle machine before trusting its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor_similarity.places import GENERATED, places, rewritten, stripped, unknown_counts
from advisor_similarity.tracing import architecture_of, find_program

if TYPE_CHECKING:
    from advisor_similarity.parallelism import Observed

_LISTED = 8


def notes(observed: Observed) -> list[str]:
    """Return sentences on what is missing or uncertain, most serious first."""
    found = [*_ending(observed), *_unknown(observed), *_unclaimed(observed), *_generated(observed)]
    return [*found, *_sampling(observed), *_second_run(observed), *_symbols(observed)]


def _ending(observed: Observed) -> list[str]:
    code = observed.traced.exit_code
    return [f"The program ended with exit code {code}: this is what it did until then."] if code else []


def _unknown(observed: Observed) -> list[str]:
    counts = unknown_counts(observed.image, observed.traced.templates)
    if not counts:
        return []
    most = sorted(counts.items(), key=lambda entry: -entry[1])[:_LISTED]
    names = ", ".join(f"{mnemonic} {count:,} times" for mnemonic, count in most)
    share = sum(counts.values()) / max(1, observed.workload.instructions)
    return [f"Instructions of no known class, {share:.2g} of all, stand outside of the centroid: {names}."]


def _unclaimed(observed: Observed) -> list[str]:
    accesses = sum(stream.unclaimed + stream.lost for stream in observed.image.streams)
    return [f"{accesses:,} accesses to memory belong to no load or store that was understood."] if accesses else []


def _generated(observed: Observed) -> list[str]:
    found = places(observed.image, observed.traced.templates)
    made = sum(place.instructions for place in found if place.name == GENERATED)
    if not made:
        return []
    share = made / max(1, observed.workload.instructions)
    text = f"{share:.2g} of the instructions were generated while the program ran; they belong to no function."
    changed = rewritten(observed.image)
    return [f"{text} At {changed:,} places they were rewritten later on." if changed else text]


def _sampling(observed: Observed) -> list[str]:
    sampled = observed.sampled
    if not observed.sampling:
        return []
    if sampled is None:
        return [
            "Sampled: one window was scheduled, the beginning of the run. How much windows differ is not known; take a "
            "shorter --window."
        ]
    return [
        f"Sampled: {sampled.windows} windows were scheduled, each as if everything before it had been there. "
        "Parallelism that reaches further than a window is not seen, and no standard error tells of it: "
        "try another --window."
    ]


def _second_run(observed: Observed) -> list[str]:
    if observed.slots is None or observed.workload.smoothability is not None:
        return []
    return [f"No smoothability: the second run did {observed.differs:.1%} more or less work than the first."]


def _symbols(observed: Observed) -> list[str]:
    program = find_program(observed.traced.program)
    if architecture_of(program) is None or not stripped(program):
        return []
    return [f"{program.name} is stripped: its functions have no names. Link without -s to see them."]
