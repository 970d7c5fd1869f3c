"""Advice as SARIF 2.1.0, so that code hosts and editors show it at the line.

One result per recommendation, one rule per action. Source files stand relative to ``SRCROOT``, the root of the sources;
what lies elsewhere keeps its own place, and a recommendation without a file has only the name of its region.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from advisor import __version__
from advisor.output import numbers
from advisor.output.advice_document import to_json
from advisor.output.clean import clean_text
from advisor.output.wording import BASES, describe_how

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.records import Advice, HowTo, Recommendation

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "SRCROOT"
#: The name under which a result keeps its identity from run to run.
FINGERPRINT = "gapwatch/1"
#: From this share of the run on, what an action can win is a warning and not only a note.
WARNING_SHARE = 0.05
_LINK = re.compile(r"[\[\]\\](?=[^\[\]]*\]?\()|\](?=\()")
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~-])")

Json = dict[str, Any]


def render_sarif(advice: Advice, source_root: str | None = None) -> str:
    """Return the advice as a SARIF log with one run; ``source_root`` is the absolute path of the sources."""
    actions = list({item.action: item for item in advice.recommendations}.values())
    order = {item.action: number for number, item in enumerate(actions)}
    root = None if source_root is None else PurePosixPath(source_root)
    driver = {"name": "gapwatch", "version": __version__, "rules": [_build_rule(item) for item in actions]}
    run: Json = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"gapwatch/{clean_text(advice.profile.program) or 'program'}/"},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": _build_notifications(advice)}],
        "columnKind": "unicodeCodePoints",
        "results": [_build_result(item, order[item.action], advice, root) for item in advice.recommendations],
    }
    if root is not None:
        run["originalUriBaseIds"] = {ROOT: {"uri": f"{_file_uri(root)}/"}}
    return to_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _build_rule(item: Recommendation) -> Json:
    """Return what is said about an action wherever it is recommended."""
    tags = ["performance", *(f"gap {gap}" for gap in item.gaps)]
    return {
        "id": item.action,
        "name": "".join(word.capitalize() for word in re.findall(r"[A-Za-z0-9]+", item.title)) or item.action,
        "shortDescription": _build_message(item.title),
        "fullDescription": _build_message(item.why),
        "help": {"text": _render_plain_help(item.how) or _escape_links(item.why), "markdown": _render_help(item)},
        "defaultConfiguration": {"level": "note"},
        "properties": {"tags": tags, "step": item.step, "effort": item.effort},
    }


def _build_result(item: Recommendation, rule: int, advice: Advice, root: PurePosixPath | None) -> Json:
    actual = advice.profile.actual_s
    share = item.ceiling_s / actual if actual > 0 else 0.0
    return {
        "ruleId": item.action,
        "ruleIndex": rule,
        "level": "warning" if share >= WARNING_SHARE else "note",
        "message": _build_message(_describe_item(item)),
        "locations": [_build_location(item, root)],
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


def _describe_item(item: Recommendation) -> str:
    """Return in a sentence what to do, where, and what it can win."""
    where = f" in {item.region}" if item.region else ""
    wins = f"wins at most {numbers.format_duration(item.ceiling_s)}"
    if item.expected_s is not None:
        wins += f", about {numbers.format_duration(item.expected_s)} {BASES.get(item.basis or '', '')}"
    return f"{item.title}{where}: {wins} of gap {'+'.join(item.gaps)}. {item.why}"


def _build_location(item: Recommendation, root: PurePosixPath | None) -> Json:
    location: Json = {}
    if item.file:
        physical: Json = {"artifactLocation": _build_artifact(item.file, root)}
        if item.line:
            physical["region"] = {"startLine": item.line}
        location["physicalLocation"] = physical
    names = [{"name": clean_text(item.region), "kind": "function"}] if item.region else []
    names += [{"name": clean_text(name), "kind": "phase"} for name in (item.phase, *item.more_phases) if name]
    return location | {"logicalLocations": names} if names else location


def _build_artifact(file: str, root: PurePosixPath | None) -> Json:
    """Return where a file is: relative to the root of the sources, where it lies below it or is relative anyway."""
    path = PurePosixPath(file)
    if not path.is_absolute():
        return {"uri": _quote_path(path), "uriBaseId": ROOT}
    if root is not None and path.is_relative_to(root):
        return {"uri": _quote_path(path.relative_to(root)), "uriBaseId": ROOT}
    return {"uri": _file_uri(path)}


def _file_uri(path: PurePosixPath) -> str:
    return f"file://{_quote_path(path)}"


def _quote_path(path: PurePosixPath) -> str:
    return quote(str(path).encode("utf-8", "surrogateescape"))


def _build_notifications(advice: Advice) -> list[Json]:
    """Return what the reader of the results must know: the verdict, doubts about the profile, problems."""
    verdict = f"{advice.verdict}; evidence {advice.grade.letter}"
    told: list[tuple[str, str]] = [("note", verdict)]
    told += [("note", note.text) for note in advice.grade.notes if note.penalty > 0]
    told += [("warning", problem) for problem in advice.problems]
    return [{"level": level, "message": _build_message(text)} for level, text in told]


def _build_message(text: str) -> Json:
    return {"text": _escape_links(text)}


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
