"""Recommendations: the things to do next in a few lines each, and everything about one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.model.lists import join_names
from advisor.output import numbers
from advisor.output.page import render_heading, render_paragraph
from advisor.output.text_cells import make_line, pad_text, shorten_all, wrap_text
from advisor.output.wording import BASES, COUNTS, EFFORTS, GAPS, describe_how, describe_target

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.model.recommendations import Effect, Evidence, HowTo, Recommendation
    from advisor.model.records import Advice
    from advisor.output.page import Page

#: How many recommendations stand on the first screen.
FIRST = 3
_INDENT = 3
_LABEL = 12
_SHOWN_PROCESSORS = 4
_SHOWN_PHASES = 2
#: Rules name what matters first, and exceptions later.
_SHOWN_VALUES = 3
#: Names are written out, on as many lines as they take; only what is longer than this loses its middle.
_LONGEST_NAME = 240
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def render_next_steps(advice: Advice, page: Page) -> list[Text]:
    """Return the first recommendations in brief, suppressed ones left out, or all in full on a verbose page."""
    items = advice.recommendations
    shown = items if page.verbose else advice.pending[:FIRST]
    if not shown:
        return render_paragraph("All recommendations are suppressed (--verbose lists them).", page) if items else []
    lines = render_heading(
        f"The {COUNTS.get(len(shown), f'{len(shown)} things')} to do next", page, describe_total(advice)
    )
    lines += render_paragraph(page.clean_remark(describe_target(advice)), page)
    places = _shorten_places(items, page)
    for item in shown:
        lines += [make_line(), *(_render_in_full if page.verbose else _render_brief)(item, places, page)]
    if len(shown) < len(items):
        lines += [make_line(), *render_paragraph(f"{len(items) - len(shown)} more with --verbose", page, "dim")]
    return lines + _render_revisit(advice, page)


def render_headlines(advice: Advice, page: Page) -> list[Text]:
    """Return the first recommendations in two lines each, suppressed ones left out: what it wins at most, and where."""
    shown = advice.pending[:FIRST]
    if not shown:
        return []
    lines = render_heading(
        f"The {COUNTS.get(len(shown), f'{len(shown)} things')} to do next", page, describe_total(advice)
    )
    places = _shorten_places(shown, page)
    for item in shown:
        lines += [*render_title(item, page), *render_labelled("where", describe_place(item, places, page), page)]
    return lines


def _render_revisit(advice: Advice, page: Page) -> list[Text]:
    if not (page.verbose and advice.steps_to_revisit):
        return []
    steps = ", ".join(map(str, advice.steps_to_revisit))
    return [make_line(), *render_paragraph(page.clean_prose(f"After these changes, revisit steps {steps}."), page)]


def describe_total(advice: Advice) -> str:
    """Return the combined saving of all recommendations, where there are several."""
    count, total = len(advice.recommendations), advice.total
    if count < 2:
        return ""
    what = "combined saving" if count <= FIRST else f"combined saving of all {count}"
    gain = f"{what}: up to {numbers.format_duration(total.ceiling_s)}"
    return gain if total.expected_s is None else f"{gain}, expected {numbers.format_duration(total.expected_s)}"


def _shorten_places(items: Sequence[Recommendation], page: Page) -> dict[str, str]:
    """Return the names of regions, phases and files as they are shown, different ones different."""
    names = {name for item in items for name in (item.region, item.phase, *item.more_phases, item.file) if name}
    clean = [page.clean_name(name) for name in sorted(names)]
    return dict(zip(sorted(names), shorten_all(clean, _LONGEST_NAME, page.signs.ellipsis), strict=True))


def render_title(item: Recommendation, page: Page) -> list[Text]:
    """Return number, title and, at the right, what the action is expected to win, else the most that it can win."""
    gain = f"at most {numbers.format_duration(item.ceiling_s)}"
    if item.expected_s is not None:
        gain = f"expected {numbers.format_duration(item.expected_s)}"
    number = pad_text(f"{item.rank}", _INDENT)
    named = f"{page.clean_prose(item.title)} {page.clean_name(f'[{item.action}]')}"
    if page.as_list:
        first, *rest = wrap_text(f"{named}: {gain}", page.prose_width - _INDENT)
        return [make_line((number + first, "bold")), *(make_line((part, "bold"), indent=_INDENT) for part in rest)]
    room = page.frame_width - _INDENT - len(gain) - 2
    first, *rest = wrap_text(named, room)
    top = make_line((number + pad_text(first, room), "bold"), "  ", (gain, "bold green"))
    return [top, *(make_line((part, "bold"), indent=_INDENT) for part in rest)]


def render_labelled(label: str, text: str, page: Page) -> list[Text]:
    """Return a label and the text beside it, wrapped; on a narrow page the text follows the label."""
    if not text:
        return []
    if page.as_list:
        parts = wrap_text(f"{label}: {text}", page.prose_width - _INDENT)
        return [make_line(part, indent=_INDENT) for part in parts]
    parts = wrap_text(text, page.prose_width - _INDENT - _LABEL)
    first = make_line((pad_text(label, _LABEL), "dim"), parts[0], indent=_INDENT)
    return [first, *(make_line(part, indent=_INDENT + _LABEL) for part in parts[1:])]


def _render_brief(item: Recommendation, places: dict[str, str], page: Page) -> list[Text]:
    how = item.how[0] if item.how else None
    spoken = describe_values(item, page)
    sentence = page.clean_prose(first_sentence(item.why)).rstrip(".")
    return [
        *render_title(item, page),
        *render_labelled("where", describe_place(item, places, page), page),
        *render_labelled("expected", describe_expected_gain(item), page),
        *render_labelled("at target", describe_target_gain(item, page), page),
        *render_labelled("why", f"{sentence} ({spoken})." if spoken else f"{sentence}.", page),
        *render_labelled(
            "how", page.clean_prose(f"{format_how_label(how)}{first_sentence(how.text)}") if how else "", page
        ),
        *render_labelled("risk", describe_effects("may increase", item.may_hurt, page), page),
    ]


def describe_place(item: Recommendation, places: dict[str, str], page: Page) -> str:
    """Return region, file and line, phase and processors as far as they are known."""
    parts = []
    source = ""
    if item.file:
        source = places[item.file] + (f":{item.line}" if item.line is not None else "")
    if item.region:
        parts.append(places[item.region] + (f" at {source}" if source else "") + _describe_more(item, page))
    elif source:
        parts.append(source)
    if item.phase:
        parts.append(_describe_phases([places[name] for name in (item.phase, *item.more_phases)]))
    if item.processors:
        parts.append(_describe_processors(item.processors, page))
    return "; ".join(parts) or "the whole run"


def _describe_more(item: Recommendation, page: Page) -> str:
    """Return the other regions that have to be changed as well: one or two by name, else how many."""
    if len(item.more_regions) > _SHOWN_PHASES - 1:
        return f" and {len(item.more_regions)} other regions"
    return "".join(f" and {page.clean_name(name)}" for name in item.more_regions)


def _describe_phases(names: Sequence[str]) -> str:
    """Return one or two phases by name; of more the first, and how many others."""
    if len(names) > _SHOWN_PHASES:
        return f'phase "{names[0]}" and {len(names) - 1} others'
    return ("phase " if len(names) == 1 else "phases ") + " and ".join(f'"{name}"' for name in names)


def _describe_processors(names: Sequence[str], page: Page) -> str:
    return join_names([page.clean_name(name) for name in names], _SHOWN_PROCESSORS)


def describe_expected_gain(item: Recommendation) -> str:
    """Return the expected gain with its interval, where it comes from, and the most it can be; nothing without one."""
    if item.expected_s is None:
        return ""
    doubt = [numbers.format_interval(item.interval_s)] if item.interval_s else []
    source = [BASES[item.basis]] if item.basis else []
    inside = ", ".join(doubt + source)
    span = f" ({inside})" if inside else ""
    return f"{numbers.format_duration(item.expected_s)}{span}, at most {numbers.format_duration(item.ceiling_s)}"


def describe_target_gain(item: Recommendation, page: Page) -> str:
    """Return the most that an action can win in the run that the program is meant for, beside this run's seconds."""
    if item.target is None:
        return ""
    there, here = (numbers.format_duration(seconds) for seconds in (item.target.seconds, item.ceiling_s))
    return f"at most {there} at {page.clean_name(item.target.point)}, {here} in this run"


def describe_values(item: Recommendation, page: Page) -> str:
    """Return the first values that speak for the action: ``phase.imbalance = 1.42``, one after another.

    That something which would speak against it is not there at all, comes last.
    """
    first = sorted(item.evidence, key=lambda piece: not piece.value)
    shown = dict.fromkeys(_format_evidence(piece, item) for piece in first)
    return ", ".join(map(page.clean_name, [*shown][:_SHOWN_VALUES]))


def _format_evidence(piece: Evidence, item: Recommendation) -> str:
    """Return name and value; a gap is what lies in the phase, which may be little of what lies in the run."""
    which = "the first phase" if item.more_phases else "this phase"
    here = f" in {which}" if item.phase and piece.fact in GAPS else ""
    return f"{piece.fact}{here} {piece.relation} {numbers.format_value(piece.value, piece.unit)}"


def format_evidence_value(piece: Evidence) -> str:
    """Return the value in a column of its own, with ``>=`` or ``<=`` where it is a limit."""
    limit = "" if piece.relation == "=" else f"{piece.relation} "
    return limit + numbers.format_value(piece.value, piece.unit)


def describe_effects(verb: str, items: Sequence[Effect], page: Page) -> str:
    """Return the gaps that an action ``verb`` (may reduce, may increase), with their present seconds."""
    words = ", ".join(
        f"{GAPS[item.gap]} ({item.gap}, now {numbers.format_duration(item.seconds)})"
        if item.gap in GAPS
        else f"{item.gap} (now {numbers.format_duration(item.seconds)})"
        for item in items
    )
    return page.clean_prose(f"{verb} {words}") if words else ""


def format_how_label(how: HowTo) -> str:
    """Return ``MPI, C++: `` for instructions that hold for one model or language."""
    words = describe_how(how)
    return f"{words}: " if words else ""


def first_sentence(text: str) -> str:
    """Return the first sentence of a paragraph."""
    return _SENTENCE.split(" ".join(text.split()), maxsplit=1)[0]


def render_recommendation(item: Recommendation, page: Page) -> list[Text]:
    """Return everything about one recommendation: why, evidence, how with code, effects, where the rule stands."""
    return _render_in_full(item, _shorten_places([item], page), page)


def _render_in_full(item: Recommendation, places: dict[str, str], page: Page) -> list[Text]:
    """Return everything about one recommendation: why, evidence, how with code, effects, where the rule stands."""
    conflicts = ", ".join(item.conflicts)
    return [
        *render_title(item, page),
        *render_labelled("where", describe_place(item, places, page), page),
        *render_labelled("expected", describe_expected_gain(item), page),
        *render_labelled("at target", describe_target_gain(item, page), page),
        *render_labelled(
            "gaps", page.clean_prose(", ".join(f"{gap} {GAPS.get(gap, '')}".strip() for gap in item.gaps)), page
        ),
        *render_labelled("why", page.clean_prose(item.why), page),
        *_render_evidence(item, page),
        *_render_instructions(item.how, page),
        *render_labelled("also", describe_effects("may reduce", item.may_help, page), page),
        *render_labelled("risk", describe_effects("may increase", item.may_hurt, page), page),
        *render_labelled("not with", page.clean_name(conflicts), page),
        *render_labelled("or", page.clean_name(", ".join(item.alternatives)), page),
        *render_labelled("effort", f"{item.effort} of 5, {EFFORTS.get(item.effort, '')}", page),
        *render_labelled("confidence", numbers.format_percentage(item.confidence), page),
        *render_labelled(
            "rule", page.clean_name(f"{item.action}, step {item.step}, issue {item.issue}, {item.rule_place}"), page
        ),
        *render_labelled("state", page.clean_name(f"{item.state}, {item.fingerprint}"), page),
    ]


def _render_evidence(item: Recommendation, page: Page) -> list[Text]:
    lines = []
    for at, piece in enumerate(item.evidence):
        value = page.clean_name(_format_evidence(piece, item))
        required = page.clean_prose(f", required {piece.condition}; {piece.formula}")
        lines += render_labelled("evidence" if not at or page.as_list else "", value + required, page)
    return lines


def _render_instructions(hows: Sequence[HowTo], page: Page) -> list[Text]:
    lines = []
    for how in hows:
        lines += render_labelled("how", page.clean_prose(format_how_label(how) + how.text), page)
        for title, code in (("before", how.before), ("after", how.after)):
            if code:
                lines += [make_line((f"{title}:", "dim"), indent=_INDENT), *_render_code(code, page)]
    return lines


def _render_code(code: str, page: Page) -> list[Text]:
    rows = code.expandtabs(4).strip("\n").split("\n")
    return [make_line((page.clean_name(row), "cyan"), indent=_INDENT + 2) for row in rows]
