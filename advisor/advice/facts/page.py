"""The page ``docs/facts.md``: the vocabulary as the code has it, written by ``python -m advisor.advice.facts``."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final

from advisor.advice.facts.event_facts import ALONE, SMALL_MESSAGE_B
from advisor.advice.facts.vocabulary import VOCABULARY
from advisor.model import policy
from advisor.model.units import format_bytes
from advisor.support import bundled

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

The facts that conditions of rules may use ([rules.md](rules.md)). Facts under `run.` refer to the run, the others to
one site: a phase, or small phases of a kind taken together, that takes at least {_PERCENT:g} % of the run time
and {_MILLISECONDS:g} ms. If the profile lacks what a fact needs, the fact is unknown, never zero, and the rule says so,
with the command that records it. Something that was recorded and did not occur is 0.

Small messages have at most {format_bytes(SMALL_MESSAGE_B)}. One processor does the I/O if it accounts for at least
{100 * ALONE:g} % of the seconds. *Iterations with work* are the iterations of the site's family (phases of one name
that end in the same call): a loop that ends with ten reductions in a row does ten reductions per iteration, although
each of them ends a phase. Only instances with at least a quarter of the usual computation count; the usual one is that
up to which half of all work is done.

Needs with `_s` are arrays of the profile. `misses.L1`, `compiled_ops.load`, `memory_bytes`, `vectorized_ops` and
`contended_loads` (loads of lines that another core has changed) are counts. `topdown.*_s` are seconds of computation
that the processor's top-down counters attribute to a cause. `causes` is the profile's table of causes
([formats.md](formats.md)). `cores` and `machine` are stated by the user or the system. `code.KIND_s` are seconds in
code of a kind, as found in the program's binary ([computation.md](computation.md)).

Plugins add facts with the hook `advisor_facts`. This page is generated: `python -m advisor.advice.facts`.
"""


def render_facts_page() -> str:
    """Return the page: every fact with its unit, formula, what it needs, and the command that records that."""
    topics: dict[str, list[Fact]] = {}
    for fact in VOCABULARY:
        topics.setdefault(fact.name.partition(".")[0], []).append(fact)
    sections = (_render_section(topic, facts) for topic, facts in topics.items())
    return "\n".join((_HEAD, _render_unused(), *sections, _render_commands()))


def _render_unused() -> str:
    """Return which facts are there for rules of sites alone."""
    rules = "".join(file.read_text(encoding="utf-8") for file in bundled.list_documents("rules"))
    used = set(re.findall(r"\b(?:fact|of): ([a-z]+\.\w+)", rules))
    names = ", ".join(f"`{fact.name}`" for fact in VOCABULARY if fact.name not in used)
    text = f"No rule in `rules/` uses {names}: they are provided for plugins and for rules of your own."
    return "\n".join((*textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False), ""))


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
