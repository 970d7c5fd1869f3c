"""The output of ``gapwatch scale --offers``: every offer with its best number of nodes, and the one to take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from advisor.model.reports import Column, Part, Table, Text
from advisor_scaling.linear import offers

if TYPE_CHECKING:
    from advisor_scaling.linear.offers import Choice, OfferTable

_ROWS: Final = 12


def build_offer_parts(table: OfferTable, choices: Sequence[Choice], budget: float | None, where: str) -> list[Part]:
    """Return the table of choices, the cheapest first, and the answer; ``where`` says which job it is."""
    if not choices:
        return [Text("No offer can be judged: the clocks of their machine models are not known.")]
    heads = (
        Column("offer"), Column("nodes"), Column("processors"), Column("from", "s"), Column("to", "s"),
        Column("USD from"), Column("USD to"), Column("data fit"),
    )  # fmt: skip
    rows = tuple(
        (
            choice.offer.name, choice.nodes, choice.processors, *choice.seconds,
            *(float(f"{usd:.3g}") for usd in choice.dollars),
            None if choice.fits is None else "yes" if choice.fits else "no",
        )
        for choice in choices[:_ROWS]
    )  # fmt: skip
    return [Table(f"Offers of {table.date} for {where}", heads, rows), Text(_describe_choice(choices, budget))]


def _describe_choice(choices: Sequence[Choice], budget: float | None) -> str:
    cheapest, fastest, is_sure = offers.pick_choices(choices, budget)
    if cheapest is None:
        return "The data of the job fit on none of these offers."
    words = [f"Cheapest: {_describe(cheapest)}."]
    if not is_sure:
        words.append("Its interval overlaps that of other offers: a run on each would tell them apart.")
    if budget is not None and fastest is None:
        words.append(f"No offer is sure to stay within {budget:g} USD.")
    elif fastest is not None and fastest is not cheapest:
        limit = f" within {budget:g} USD" if budget is not None else ""
        words.append(f"Fastest{limit}: {_describe(fastest)}.")
    return " ".join(words)


def _describe(each: Choice) -> str:
    nodes = f"{each.nodes} node{'s' if each.nodes > 1 else ''}"
    low, high = each.dollars
    return (
        f"{nodes} of {each.offer.name}, {each.seconds[0]:.3g} to {each.seconds[1]:.3g} s, {low:.3g} to {high:.3g} USD"
    )
