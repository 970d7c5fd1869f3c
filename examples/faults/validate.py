"""Judge the advice on recorded faults: is the first item one of the accepted actions? Writes ``docs/validation.md``.

python examples/faults/validate.py              # the cases recorded under tests/profiles/faults
python examples/faults/validate.py --also DIR   # and recordings elsewhere, faults told by their truth.json
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from advisor import pipeline
from advisor.extension import host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.model.records import Advice

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORDED = ROOT / "tests" / "profiles" / "faults"
PAGE = ROOT / "docs" / "validation.md"
MARKS = ("<!-- {}: begin -->", "<!-- {}: end -->")


@dataclass(frozen=True, slots=True)
class Case:
    """A recording, the faults it has (the strongest first), and how strong they are."""

    name: str
    path: Path
    faults: tuple[str, ...]
    strength: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was advised first and what to think of it: ``hit``, ``miss``, or why the trace can't show the fault."""

    case: Case
    first: str
    seconds: str
    verdict: str

    @property
    def row(self) -> str:
        """One line of the table."""
        faults = ", ".join(self.case.faults) or "none"
        return (
            f"| {self.case.name} | {faults} | {self.case.strength} | {self.first} | {self.seconds} | {self.verdict} |"
        )


def recorded() -> Iterator[Case]:
    """Yield the cases of ``cases.yaml`` that are recorded."""
    for entry in yaml.safe_load((HERE / "cases.yaml").read_text()):
        path = RECORDED / entry["name"]
        if path.is_dir():
            yield Case(entry["name"], path, tuple(entry["faults"]), entry.get("strength", ""))


def elsewhere(folder: Path) -> Iterator[Case]:
    """Yield recordings of other programs that write the same kind of ``truth.json``."""
    for truth in sorted(folder.glob("*/truth.json")):
        yield Case(f"{folder.name}/{truth.parent.name}", truth.parent, _named(truth.parent.name), "")


def _named(directory: str) -> tuple[str, ...]:
    """Return the fault that the name of a directory tells, such as ``faultlab-imbalance30``."""
    words = {
        "imbalance": "imbalance", "multiphase": "multiphase", "dynamic": "dynamic", "serial": "serial",
        "late": "straggler", "io": "io-all", "thrash": "thrash", "ompfalse": "false-sharing",
    }  # fmt: skip
    found = re.fullmatch(r"[a-z]+-(?:sleep\d+)?([a-z]+)\d*", directory)
    return (words[found[1]],) if found and found[1] in words else ()


def judge(case: Case, accepted: dict[str, dict[str, object]], plugins: host.PluginHost) -> Judgement:
    """Return what the first item of the advice on ``case`` is worth."""
    advice = pipeline.advise([case.path], pipeline.Options(), plugins)
    items = advice.recommendations
    first = f"{items[0].action} at {items[0].region or items[0].phase or 'the run'}" if items else "no advice"
    seconds = f"{items[0].ceiling_s:.3f}" if items else ""
    return Judgement(case, first, seconds, _verdict(case, advice, accepted))


def _verdict(case: Case, advice: Advice, accepted: dict[str, dict[str, object]]) -> str:
    items = advice.recommendations
    if not case.faults:
        return "miss" if items else "hit"
    wanted = accepted[case.faults[0]]
    if items and items[0].action in str(wanted["actions"]):
        return "hit"
    return str(wanted["shown"]) if not items and wanted["shown"] != "yes" else "miss"


def table(judgements: list[Judgement]) -> str:
    """Return the Markdown table of all cases and the count."""
    shown = [each for each in judgements if each.verdict in ("hit", "miss")]
    hits = sum(each.verdict == "hit" for each in shown)
    clean = [each for each in shown if not each.case.faults]
    quiet = sum(each.verdict == "hit" for each in clean)
    lines = [
        f"First item right: {hits} of {len(shown)} cases that a trace can show; "
        f"no advice on {quiet} of {len(clean)} clean runs. "
        f"{len(judgements) - len(shown)} further cases cannot be seen in a trace.",
        "",
        "| case | faults | strength | first item | at most, s | verdict |",
        "|---|---|---|---|---|---|",
        *(each.row for each in judgements),
    ]
    return "\n".join(lines)


def accepted_table() -> str:
    """Return the Markdown table of the faults, their gaps and the accepted actions."""
    rows = ["| fault | gaps | accepted as first item | shown by a trace |", "|---|---|---|---|"]
    for fault, entry in yaml.safe_load((HERE / "accepted.yaml").read_text()).items():
        rows.append(f"| {fault} | {', '.join(entry['gaps'])} | {', '.join(entry['actions'])} | {entry['shown']} |")
    return "\n".join(rows)


def filled(page: str, name: str, text: str) -> str:
    """Return ``page`` with ``text`` between the marks of ``name``."""
    begin, end = (mark.format(name) for mark in MARKS)
    before, after = page.split(begin)[0], page.split(end)[1]
    return f"{before}{begin}\n{text}\n{end}{after}"


def run(also: list[Path]) -> list[Judgement]:
    """Return the judgement of every case."""
    accepted = yaml.safe_load((HERE / "accepted.yaml").read_text())
    plugins = host.load_plugins()
    cases = [*recorded(), *(case for folder in also for case in elsewhere(folder))]
    return [judge(case, accepted, plugins) for case in cases]


def main() -> int:
    """Write the table into the page; exit status 1 when fewer than nine in ten first items are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--also", metavar="DIR", type=Path, action="append", default=[])
    parser.add_argument("--print", action="store_true", help="print the table instead of writing the page")
    args = parser.parse_args()
    judgements = run(args.also)
    text = table(judgements)
    if args.print:
        print(text)
    else:
        page = filled(PAGE.read_text(), "accepted", accepted_table())
        PAGE.write_text(filled(page, "cases", text))
    shown = [each for each in judgements if each.verdict in ("hit", "miss")]
    return int(sum(each.verdict == "hit" for each in shown) < 0.9 * len(shown))


if __name__ == "__main__":
    sys.exit(main())
