"""Advice as OpenMetrics text: for GitLab's metrics reports and the textfile collector of Prometheus' node_exporter.

All families are gauges without timestamps, which both OpenMetrics 1.0 and Prometheus' older text format read alike.
What a run does not show has no sample: unknown is never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.output.clean import clean_text

if TYPE_CHECKING:
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Advice

Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class Family:
    """Samples of one name: what they mean, and how to find those of a run; a value may be unknown."""

    name: str
    unit: str
    meaning: str
    find_samples: Callable[[Advice], Iterable[tuple[Labels, float | None]]]


def _label_item(item: Recommendation) -> Labels:
    place = {"region": item.region or "", "phase": item.phase or ""}
    return {"action": item.action, **place, "item": item.fingerprint}


FAMILIES: Final = (
    Family(
        "gapwatch_run_seconds", "seconds", "Run time.",
        lambda run: [({}, run.profile.actual_s if run.profile.has_run_time else None)],
    ),
    Family(
        "gapwatch_bound_seconds", "seconds", "Lower bound on the run time.",
        lambda run: [({"bound": bound.name, "status": bound.status}, bound.seconds) for bound in run.bounds],
    ),
    Family(
        "gapwatch_gap_seconds", "seconds", "Difference of two neighbouring bounds.",
        lambda run: [({"gap": gap.name, "status": gap.status}, gap.seconds) for gap in run.gaps],
    ),
    Family(
        "gapwatch_efficiency_ratio", "ratio", "POP efficiency.",
        lambda run: [({"efficiency": each.name, "status": each.status}, each.value) for each in run.efficiencies],
    ),
    Family(
        "gapwatch_saving_ceiling_seconds", "seconds", "Most that a recommended action can save.",
        lambda run: [(_label_item(item), item.ceiling_s) for item in run.recommendations],
    ),
    Family(
        "gapwatch_saving_expected_seconds", "seconds", "Saving to expect of a recommended action.",
        lambda run: [(_label_item(item), item.expected_s) for item in run.recommendations],
    ),
    Family(
        "gapwatch_recommendations", "", "Number of recommended actions.",
        lambda run: [({"verdict": run.verdict}, float(len(run.recommendations)))],
    ),
    Family(
        "gapwatch_evidence_ratio", "ratio", "Quality of the profile that the advice rests on.",
        lambda run: [({"grade": run.grade.letter}, run.grade.score)],
    ),
)  # fmt: skip


def render_open_metrics(runs: Sequence[Advice]) -> str:
    """Return the run times, bounds, gaps, efficiencies and savings of runs, each of another program or build."""
    return "".join(line for family in FAMILIES for line in _format_family(family, runs)) + "# EOF\n"


def _format_family(family: Family, runs: Sequence[Advice]) -> Iterator[str]:
    yield f"# TYPE {family.name} gauge\n"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}\n"
    yield f"# HELP {family.name} {family.meaning}\n"
    for run in runs:
        identity = {"program": run.profile.program, "build": run.profile.build or ""}
        for labels, value in family.find_samples(run):
            if value is not None:
                inside = ",".join(f'{key}="{_escape_label(text)}"' for key, text in (identity | labels).items())
                yield f"{family.name}{{{inside}}} {float(value)!r}\n"


def _escape_label(text: str) -> str:
    return clean_text(text).replace("\\", "\\\\").replace('"', '\\"')
