"""What a reader has to know about a run on the oracle machine before trusting its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor_similarity.executed_functions import (
    GENERATED,
    collect_functions,
    count_rewritten,
    count_unknown,
    is_stripped,
)
from advisor_similarity.qemu_tracing import find_architecture, find_program

if TYPE_CHECKING:
    from advisor_similarity.parallelism import Observation

_LISTED = 8


def collect_notes(observed: Observation) -> list[str]:
    """Return sentences on what is missing or uncertain, most serious first."""
    found = [
        *_exit_notes(observed),
        *filter(None, [observed.region]),
        *_unknown_notes(observed),
        *_unclaimed_notes(observed),
        *_generated_notes(observed),
    ]
    return [*found, *_sampling_notes(observed), *_second_run_notes(observed), *_symbol_notes(observed)]


def _exit_notes(observed: Observation) -> list[str]:
    code = observed.traced.exit_code
    return [f"The program ended with exit code {code}: this is what it did until then."] if code else []


def _unknown_notes(observed: Observation) -> list[str]:
    counts = count_unknown(observed.image, observed.traced.templates)
    if not counts:
        return []
    most = sorted(counts.items(), key=lambda entry: -entry[1])[:_LISTED]
    names = ", ".join(f"{mnemonic} {count:,} times" for mnemonic, count in most)
    share = sum(counts.values()) / max(1, observed.workload.instructions)
    return [f"Instructions of no known class, {share:.2g} of all, stand outside of the centroid: {names}."]


def _unclaimed_notes(observed: Observation) -> list[str]:
    accesses = sum(stream.unclaimed + stream.lost for stream in observed.image.streams)
    return [f"{accesses:,} accesses to memory belong to no load or store that was understood."] if accesses else []


def _generated_notes(observed: Observation) -> list[str]:
    found = collect_functions(observed.image, observed.traced.templates)
    made = sum(place.instructions for place in found if place.name == GENERATED)
    if not made:
        return []
    share = made / max(1, observed.workload.instructions)
    text = f"{share:.2g} of the instructions were generated while the program ran; they belong to no function."
    changed = count_rewritten(observed.image)
    return [f"{text} At {changed:,} places they were rewritten later on." if changed else text]


def _sampling_notes(observed: Observation) -> list[str]:
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


def _second_run_notes(observed: Observation) -> list[str]:
    if observed.slots is None or observed.workload.smoothability is not None:
        return []
    return [f"No smoothability: the second run did {observed.differs:.1%} more or less work than the first."]


def _symbol_notes(observed: Observation) -> list[str]:
    program = find_program(observed.traced.program)
    if find_architecture(program) is None or not is_stripped(program):
        return []
    return [f"{program.name} is stripped: its functions have no names. Link without -s to see them."]
