"""The tools of the server: what each takes, as a JSON Schema, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from advisor.advice.explaining import explain_study
from advisor.agents import advice_answers
from advisor.agents.answers import DATA, Json, build_explanation_answer, quote_data, round_number
from advisor.agents.measuring import measure_command
from advisor.history.access import has_history, open_read_only
from advisor.history.build_comparison import compare_stored_builds
from advisor.history.history_queries import StoredHistory
from advisor.history.items import ItemStore
from advisor.history.marks import mark_stored_item
from advisor.history.runs import RunStore
from advisor.model.errors import UsageError
from advisor.model.reports import Table
from advisor.model.reports import Text as Paragraph

if TYPE_CHECKING:
    from advisor.agents.workplace import Workplace
    from advisor.history.dialect import HistoryConnection
    from advisor.pipeline import Study

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 400}
_RUN: Final = {**_TEXT, "description": "number of a run (list_runs), or path of a profile below the allowed roots"}
_NOTHING_MEASURED: Final = "nothing was measured yet; use measure"
_LANGUAGE: Final = {"enum": ["c", "cxx", "fortran"], "description": "language of the code that is shown"}
_PROGRAM: Final = {**_TEXT, "description": "program, where several have the same builds or items"}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its description for the model, the schema of its arguments, and what answers; ``writes`` if it does."""

    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    answer: Callable[[Workplace, Mapping[str, Any]], Json]
    writes: bool = False

    @property
    def schema(self) -> Json:
        """The JSON Schema of the arguments."""
        return {
            "type": "object", "properties": dict(self.properties), "required": list(self.required),
            "additionalProperties": False,
        }  # fmt: skip


def _list_runs(workplace: Workplace, arguments: Mapping[str, Any]) -> Json:
    if not has_history(workplace.state):
        return {"programs": [], "runs": [], "hint": _NOTHING_MEASURED}
    with closing(_open_history(workplace)) as connection:
        runs = RunStore(connection)
        entries = runs.list_entries(arguments.get("program"), 20)
        programs = runs.list_programs()
    rows = [
        {"run": one.number, "program": quote_data(one.program), "build": quote_data(one.build),
         "run_time_s": round_number(one.actual_s), "grade": one.grade, "verdict": one.verdict}
        for one in reversed(entries)
    ]  # fmt: skip
    return {"note": DATA, "programs": [quote_data(name) for name in programs], "runs": rows}


def _get_advice(workplace: Workplace, arguments: Mapping[str, Any]) -> Json:
    study = _study(workplace, arguments["run"])
    advice = study.advice
    if has_history(workplace.state):
        advice = StoredHistory(workplace.state).update_item_states(advice)
    advice = workplace.fill_commands(advice, study.files)
    measured = workplace.find_command(advice.profile)
    return advice_answers.build_advice_answer(
        advice, study, arguments.get("limit", 3), arguments.get("language"), measured
    )


def _explain_number(workplace: Workplace, arguments: Mapping[str, Any]) -> Json:
    found = explain_study(_study(workplace, arguments["run"]), arguments["what"])
    return build_explanation_answer(found.numbers)


def _study(workplace: Workplace, run: str) -> Study:
    """Return the study of a run by number, or of a profile by path."""
    if not run.isdecimal():
        return workplace.study_run(workplace.resolve_path(run))
    with closing(_open_history(workplace)) as connection:
        units = RunStore(connection).units_of_run(min(int(run), 2**62))
    if not units:
        raise UsageError(f"no run {run}; list_runs lists them")
    return workplace.study_run(workplace.resolve_path(str(units[0].path)))


def _open_history(workplace: Workplace) -> HistoryConnection:
    """Return the history to be read; where there is none yet, the error says what an agent can do."""
    if not has_history(workplace.state):
        raise UsageError(_NOTHING_MEASURED)
    return open_read_only(workplace.state)


def _show_action(workplace: Workplace, arguments: Mapping[str, Any]) -> Json:
    from advisor.advice.rules import load_default

    book = load_default((*workplace.host.rule_files(), *workplace.options.rules), workplace.host.collect_facts())
    action = next((one for one in book.actions if one.id == arguments["action"]), None)
    if action is None:
        raise UsageError(f"no action {arguments['action']!r}; the resource gapwatch://rules lists them")
    return advice_answers.build_action_answer(
        action.id, action.title, action.why, action.instructions, arguments.get("language")
    )


def _measure(workplace: Workplace, arguments: Mapping[str, Any]) -> Json:
    folder = workplace.resolve_path(arguments.get("directory", "."))
    if not folder.is_dir():
        raise UsageError("the directory is a file")
    made = measure_command(
        workplace, arguments["command"], folder, arguments.get("build"), arguments.get("repeats", 5),
        arguments.get("budget_s", workplace.budget_s),
    )  # fmt: skip
    last = made.runs[-1]
    return {
        "note": DATA,
        "build": quote_data(made.build),
        "program": quote_data(last.advice.profile.program),
        "runs": [{"run": one.number, "run_time_s": round_number(one.advice.profile.actual_s)} for one in made.runs],
        "status": "measured",
        "stopped": made.stopped,
        "verdict": last.advice.verdict,
        "printed": quote_data(made.output, 300),
        "next": f"get_advice run={last.number}, or compare two builds",
    }


def _what_if(workplace: Workplace, arguments: Mapping[str, Any]) -> Json:
    path = _study(workplace, arguments["run"]).files[0]
    region = ["--region", arguments["region"]] if "region" in arguments else []
    report = workplace.run_report("whatif", [str(path), *region, "--action", *arguments["actions"]])
    tables = [part for part in report.parts if isinstance(part, Table)]
    return {
        "note": DATA,
        "status": "modelled",
        "tables": [
            {"title": part.title, "columns": [f"{column.name} {column.unit}".strip() for column in part.columns],
             "rows": [[round_number(cell) if isinstance(cell, float) else cell if isinstance(cell, int) else
                       quote_data(cell) for cell in row] for row in part.rows]}
            for part in tables
        ],
        "text": [quote_data(part.text, 300) for part in report.parts if isinstance(part, Paragraph)],
    }  # fmt: skip


def _compare(workplace: Workplace, arguments: Mapping[str, Any]) -> Json:
    with closing(_open_history(workplace)) as connection:
        compared = compare_stored_builds(
            RunStore(connection), arguments["before"], arguments["after"], arguments.get("program")
        )
        program = compared.comparison.program
        applied = [one for one in ItemStore(connection).items_of_program(program) if one.applied_after is not None]
    answer = advice_answers.build_comparison_answer(compared.comparison)
    answer["applied"] = [
        {"action": one.action, "region": quote_data(one.region), "state": one.state,
         "promised_s": round_number(one.promised_s), "realised_s": round_number(one.realised_s)}
        for one in applied[:4]
    ]  # fmt: skip
    return answer


def _mark_applied(workplace: Workplace, arguments: Mapping[str, Any]) -> Json:
    item, won_s = mark_stored_item(
        workplace.state, "applied", arguments["item"], arguments.get("program"), arguments.get("region")
    )
    gone = (
        {} if won_s is None else {"state": "resolved", "realised_s": round_number(won_s), "next": "nothing: it is gone"}
    )
    return {
        "note": DATA, "action": item.action, "region": quote_data(item.region), "state": "applied",
        "next": "measure the changed program under a new build name, then compare", **gone,
    }  # fmt: skip


#: In schemas, limits of length stand first: they are checked in order, and what is too long is not looked at.
TOOLS: Final[Mapping[str, Tool]] = {
    "list_runs": Tool(
        "List the measured programs and their newest runs.", {"program": _PROGRAM}, (), _list_runs
    ),
    "get_advice": Tool(
        "Say where the time of a run goes and what to do first: file:line, cause, expected gain in seconds with "
        "interval and status, the code to change towards, and how to prove it.",
        {"run": _RUN, "limit": {"type": "integer", "minimum": 1, "maximum": 10}, "language": _LANGUAGE},
        ("run",), _get_advice,
    ),
    "explain_number": Tool(
        "Explain how the numbers of a gap, bound or action of a run came about: formula, inputs, sources.",
        {"run": _RUN, "what": {**_TEXT, "description": "a gap (L), a bound (I) or an action (A-28)"}},
        ("run", "what"), _explain_number,
    ),
    "show_action": Tool(
        "Show why and how an action is carried out, with code before and after.",
        {"action": {**_TEXT, "description": "such as A-28"}, "language": _LANGUAGE}, ("action",), _show_action,
    ),
    "measure": Tool(
        "Run an allowed command several times, recorded, and store the runs under a build name. Five runs of each "
        "build tell a change from noise. No shell: give the words of the command.",
        {
            "command": {
                "type": "array", "minItems": 1, "maxItems": 200, "items": {"type": "string", "maxLength": 4000},
            },
            "build": {**_TEXT, "description": "name of this state of the code (default: git commit and changes)"},
            "directory": {**_TEXT, "description": "where to run it (default: the first root)"},
            "repeats": {"type": "integer", "minimum": 1, "maximum": 20},
            "budget_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400},
        },
        ("command",), _measure, writes=True,
    ),
    "what_if": Tool(
        "Simulate what actions would gain on a recorded run, alone and together.",
        {
            "run": _RUN,
            "actions": {"type": "array", "minItems": 1, "maxItems": 5, "items": {"type": "string", "maxLength": 20,
                        "pattern": "^[A-Z]-?[A-Za-z0-9.]+$"}},
            "region": {**_TEXT, "pattern": "^[^-]"},
        },
        ("run", "actions"), _what_if,
    ),
    "compare": Tool(
        "Compare two builds (or runs by number): did the change help, hurt, or is it noise, and which gaps moved.",
        {"before": _TEXT, "after": _TEXT, "program": _PROGRAM}, ("before", "after"), _compare,
    ),
    "mark_applied": Tool(
        "Say that an item of advice was carried out, before the changed build is measured, so that its gain is kept.",
        {"item": {**_TEXT, "description": "an action such as A-28, or a fingerprint"}, "region": _TEXT,
         "program": _PROGRAM},
        ("item",), _mark_applied, writes=True,
    ),
}  # fmt: skip
