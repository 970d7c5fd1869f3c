"""Advice as SARIF 2.1.0, so that code hosts and editors show it at the line.

One result per recommendation, one rule per action. Every result has a place in the checkout, relative to ``SRCROOT``,
as GitHub demands: that of its file, else the fallback of the ``SourceTree``. A file outside it is a related location.

GitLab's code quality report is an array of the Code Climate subset that merge requests show.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from advisor import __version__
from advisor.model.policy import NOTABLE_GAIN
from advisor.output import numbers
from advisor.output.advice_document import to_json
from advisor.output.clean import clean_text
from advisor.output.explanation_text import describe_part, select_parts
from advisor.output.wording import BASES, describe_how

if TYPE_CHECKING:
    from advisor.model.recommendations import HowTo, Recommendation
    from advisor.model.records import Advice
    from advisor.output.source_tree import SourcePlace, SourceTree

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "SRCROOT"
#: The name under which a result keeps its identity from run to run.
FINGERPRINT = "gapwatch/1"
#: What GitHub takes at most: characters of a description, and tags of a rule.
SHORT, MOST_TAGS = 1024, 10
_LINK = re.compile(r"[\[\]\\](?=[^\[\]]*\]?\()|\](?=\()")
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~-])")

Json = dict[str, Any]


def render_sarif(advice: Advice, tree: SourceTree) -> str:
    """Return the advice as a SARIF log with one run, its places in the ``tree`` of the sources."""
    actions = list({item.action: item for item in advice.recommendations}.values())
    order = {item.action: number for number, item in enumerate(actions)}
    driver = {"name": "gapwatch", "version": __version__, "rules": [_build_rule(item) for item in actions]}
    run: Json = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"gapwatch/{clean_text(advice.profile.program) or 'program'}/"},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": _build_notifications(advice)}],
        "columnKind": "unicodeCodePoints",
        "results": [_build_result(item, order[item.action], advice, tree) for item in advice.recommendations],
    }
    if tree.root is not None:
        run["originalUriBaseIds"] = {ROOT: {"uri": f"{_file_uri(tree.root)}/"}}
    return to_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _build_rule(item: Recommendation) -> Json:
    """Return what is said about an action wherever it is recommended."""
    tags = ["performance", *(f"gap {gap}" for gap in item.gaps)]
    return {
        "id": item.action,
        "name": "".join(word.capitalize() for word in re.findall(r"[A-Za-z0-9]+", item.title)) or item.action,
        "shortDescription": _build_message(item.title),
        "fullDescription": _build_message(item.why, SHORT),
        "help": {"text": _render_plain_help(item.how) or _escape_links(item.why), "markdown": _render_help(item)},
        "defaultConfiguration": {"level": "note"},
        "properties": {"tags": tags[:MOST_TAGS], "step": item.step, "effort": item.effort},
    }


def _build_result(item: Recommendation, rule: int, advice: Advice, tree: SourceTree) -> Json:
    actual = advice.profile.actual_s
    share = item.ceiling_s / actual if actual > 0 else 0.0
    stated = tree.find_place(item.file, item.line)
    outside = {"relatedLocations": [{"id": 1, **_build_physical(stated)}]} if stated and not stated.in_tree else {}
    return outside | {
        "ruleId": item.action,
        "ruleIndex": rule,
        "level": "warning" if share >= NOTABLE_GAIN else "note",
        "message": _build_message(describe_item(item)),
        "locations": [_build_location(item, tree)],
        "partialFingerprints": {FINGERPRINT: item.fingerprint},
        "rank": round(100 * min(max(share, 0.0), 1.0), 3),
        "properties": {
            "gaps": list(item.gaps),
            "ceiling_s": item.ceiling_s,
            "expected_s": item.expected_s,
            "interval_s": None if item.interval_s is None else list(item.interval_s),
            "basis": item.basis,
            "confidence": item.confidence,
            "phase": item.phase,
            "state": item.state,
        },
    }


def describe_item(item: Recommendation) -> str:
    """Return in a sentence what to do, where, and what it can win."""
    where = f" in {item.region}" if item.region else ""
    wins = f"wins at most {numbers.format_duration(item.ceiling_s)} of gap {'+'.join(item.gaps)}"
    if item.target is not None:
        wins += f" ({numbers.format_duration(item.target.seconds)} at {item.target.point})"
    if item.expected_s is not None:
        wins += f", about {numbers.format_duration(item.expected_s)} {BASES.get(item.basis or '', '')}"
    return f"{item.title}{where}: {wins}. {item.why}"


def _build_location(item: Recommendation, tree: SourceTree) -> Json:
    location = _build_physical(tree.choose_place(item.file, item.line))
    names = [{"name": clean_text(name), "kind": "function"} for name in (item.region, *item.more_regions) if name]
    names += [{"name": clean_text(name), "kind": "phase"} for name in (item.phase, *item.more_phases) if name]
    return location | {"logicalLocations": names} if names else location


def _build_physical(place: SourcePlace) -> Json:
    """Return a place as GitHub wants it: a line always, the first where none is known."""
    uri = _quote_path(place.path)
    if place.in_tree:
        artifact = {"uri": uri, "uriBaseId": ROOT}
    else:
        artifact = {"uri": _file_uri(place.path) if place.path.is_absolute() else uri}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": place.line or 1}}}


def _file_uri(path: PurePosixPath) -> str:
    return f"file://{_quote_path(path)}"


def _quote_path(path: PurePosixPath) -> str:
    return quote(str(path).encode("utf-8", "surrogateescape"))


def _build_notifications(advice: Advice) -> list[Json]:
    """Return what the reader of the results must know: verdict, what explains most, doubts, problems."""
    verdict = f"{advice.verdict}; evidence {advice.grade.letter}"
    told: list[tuple[str, str]] = [("note", verdict)]
    told += [("note", describe_part(part)) for part in select_parts(advice)]
    told += [("note", note.text) for note in advice.grade.notes if note.penalty > 0]
    told += [("warning", problem) for problem in advice.problems]
    return [{"level": level, "message": _build_message(text)} for level, text in told]


def _build_message(text: str, most: int | None = None) -> Json:
    """Return a message of at most ``most`` characters."""
    whole = _escape_links(text)
    return {"text": whole if most is None or len(whole) <= most else f"{whole[: most - 1].rstrip()}…"}


def _escape_links(text: str) -> str:
    """Return text that no reader takes for a link or a placeholder."""
    return _LINK.sub(r"\\\g<0>", clean_text(text)).replace("{", "{{").replace("}", "}}")


def _render_plain_help(hows: Sequence[HowTo]) -> str:
    return "\n".join(
        _escape_links(f"{describe_how(how)}: {how.text}" if describe_how(how) else how.text) for how in hows
    )


def _render_help(item: Recommendation) -> str:
    """Return the instructions with their code, in Markdown."""
    parts = [_escape_markdown(item.why)]
    for how in item.how:
        words = describe_how(how)
        parts.append(
            f"**{_escape_markdown(words)}**: {_escape_markdown(how.text)}" if words else _escape_markdown(how.text)
        )
        for title, code in (("Before", how.before), ("After", how.after)):
            if code:
                parts.append(f"{title}:\n\n{_indent_code(code)}")
    return "\n\n".join(parts)


def _escape_markdown(text: str) -> str:
    """Return text whose signs mean themselves in Markdown."""
    return _MARKUP.sub(r"\\\1", clean_text(text))


def _indent_code(code: str) -> str:
    """Return code as a block that no sign in it can end."""
    return "\n".join(f"    {clean_text(row)}" for row in code.expandtabs(4).splitlines())


def render_code_quality(advice: Advice, tree: SourceTree) -> str:
    """Return one entry per recommendation, at its place in the ``tree`` of the sources."""
    actual = advice.profile.actual_s
    entries = []
    for item in advice.recommendations:
        place = tree.choose_place(item.file, item.line)
        entries.append({
            "description": clean_text(describe_item(item)),
            "check_name": item.action,
            "fingerprint": item.fingerprint,
            "severity": "major" if actual > 0 and item.ceiling_s >= NOTABLE_GAIN * actual else "minor",
            "location": {"path": clean_text(str(place.path)), "lines": {"begin": place.line or 1}},
        })  # fmt: skip
    return to_json(entries)
