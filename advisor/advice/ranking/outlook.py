"""Gaps that are small in this run and large at production size, from findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from advisor.advice.ranking.drafts import Draft
    from advisor.model.records import Finding

#: A finding of this kind whose subject is a gap says that the gap will matter more than it does today.
KIND: Final = "scaling"


def find_later_gaps(findings: Iterable[Finding]) -> dict[str, str]:
    """Return the gaps that will matter at the scale a program is meant for, each with the words on it."""
    return {one.subject: one.text for one in findings if one.kind == KIND}


def matters_later(draft: Draft, words: Mapping[str, str]) -> bool:
    """Return whether a draft is about gaps that will matter at the scale a program is meant for."""
    return not words.keys().isdisjoint(draft.recommendation.gaps)


def add_outlook(draft: Draft, words: Mapping[str, str]) -> Draft:
    """Return the draft, whose reasons say what its gaps will be at the scale the program is meant for."""
    made = draft.recommendation
    said = [words[name] for name in made.gaps if name in words]
    return replace(draft, recommendation=replace(made, why=" ".join([made.why, *said]))) if said else draft
