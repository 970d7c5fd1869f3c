"""The page ``docs/facts.md``: the vocabulary as the code has it, written by ``python -m advisor.advice.facts``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.advice.facts.event_facts import ALONE, SMALL_MESSAGE_B
from advisor.advice.facts.vocabulary import VOCABULARY
from advisor.model import policy
from advisor.model.units import format_bytes

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Fact

_UNITS: Final = {
    "s": "a time: `2 us`, `10 s`",
    "B": "a size: `4 KiB`, `1 MB`",
    "share": "a share: `3 %`",
    "ratio": "a plain number: `1.10`",
    "count": "a plain number: `8`",
    "name": "a name: `MPI_Barrier`",
    "yes/no": "`true` or `false`",
}

_PERCENT, _MILLISECONDS = 100 * policy.PLACE_SHARE, 1000 * policy.PLACE_SECONDS

_HEAD: Final = f"""\
# Facts

What conditions of rules may ask about ([rules.md](rules.md)). Facts under `run.` are about the run, the others about
one site: a phase, or small phases of a kind taken together, that takes at least {_PERCENT:g} % of the run time
and {_MILLISECONDS:g} ms. A fact is unknown, and never zero, where the profile lacks what it needs; the rule then
says so, with the command that records it. Where something was recorded and did not occur, it is 0.

Small messages are those of at most {format_bytes(SMALL_MESSAGE_B)}. One processor does the I/O if it spends at least
{100 * ALONE:g} % of the seconds. *Iterations with work* are the iterations of the site's family (phases of one name
that end in the same call): a loop that ends with ten reductions in a row does ten reductions per iteration, although
each of them ends a phase. Only instances count that compute a quarter of the usual
one at least: the one up to which half of all work is.

Needs with `_s` are arrays of the profile; `misses.L1`, `compiled_ops.load`, `memory_bytes`, `vectorized_ops` and
`contended_loads` (loads of lines that another core has changed) are counts, `topdown.*_s` are seconds of computation
that a processor's top-down counters lay to a cause, `causes` is its table of causes
([formats.md](formats.md)); `cores` and `machine` are what the user or the system says. `code.KIND_s` are seconds in
code of a kind, which the file of the program tells ([computation.md](computation.md)).

Plugins add facts with the hook `advisor_facts`. This page is made from the code: `python -m advisor.advice.facts`.
"""


def render_facts_page() -> str:
    """Return the page: every fact with its unit, formula, what it needs, and the command that records that."""
    topics: dict[str, list[Fact]] = {}
    for fact in VOCABULARY:
        topics.setdefault(fact.name.partition(".")[0], []).append(fact)
    return "\n".join((_HEAD, *(_render_section(topic, facts) for topic, facts in topics.items()), _render_commands()))


def _render_section(topic: str, facts: list[Fact]) -> str:
    rows = [f"| `{fact.name}` | {fact.unit} | {fact.formula} | {_format_needs(fact)} |" for fact in facts]
    return "\n".join((f"## {topic}", "", "| fact | unit | formula | needs |", "|---|---|---|---|", *rows, ""))


def _format_needs(fact: Fact) -> str:
    return ", ".join(f"`{name}`" for name in fact.needs)


def _render_commands() -> str:
    """Return the units, and the commands with what they record."""
    needed: dict[str, dict[str, None]] = {}
    for fact in VOCABULARY:
        if fact.command:
            needed.setdefault(fact.command, {}).update(dict.fromkeys(fact.needs))
    units = [f"| {unit} | {words} |" for unit, words in _UNITS.items()]
    rows = [f"| {', '.join(f'`{name}`' for name in names)} | `{command}` |" for command, names in needed.items()]
    return "\n".join(
        (
            *("## How thresholds are written", "", "| unit | threshold |", "|---|---|", *units, ""),
            *("## What records what they need", "", "| needs | command |", "|---|---|", *rows, ""),
            "`{launch}` stands for `mpirun -n RANKS` of a program with several processes.",
            "",
        )
    )
