"""Books of rules: bundled ones are sound, users' files lie on top, mistakes come all at once, lint finds the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from advisor.advice import facts, rules
from advisor.advice.rules.cases import build_case_sheet, run_examples, try_example
from advisor.advice.rules.lint import check_rule_file, lint_book
from advisor.advice.rules.matching import is_run_wide, match_action
from advisor.advice.rules.rule_loader import list_action_files
from advisor.model.errors import DocumentError
from advisor.model.recommendations import Need

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.advice.rules.records import Action

ACTION = """
- id: {id}
  title: Do something
  step: 4
  issue: I-15
  targets: [L]
  when: {when}
  applies_to: [mpi, hybrid]
  effort: 2
  typical_fraction: 0.5
  change: {{schedule: dynamic}}
  why: Because.
  how: {{any: {{text: Do it.}}}}
  sources: [somewhere]
  examples: {examples}
"""
WHEN = "{gap: L, share: '>= 2 %'}"
EXAMPLES = "[{case: skewed-load, expect: fires}, {case: clean, expect: no_match}]"


def action(number: str = "site-1", when: str = WHEN, examples: str = EXAMPLES, more: str = "") -> str:
    return ACTION.format(id=number, when=when, examples=examples).rstrip() + ("\n  " + more if more else "") + "\n"


def written(tmp_path: Path, *actions: str, name: str = "site.yaml") -> Path:
    path = tmp_path / name
    path.write_text("".join(actions))
    return path


def checked(tmp_path: Path, *actions: str) -> list[str]:
    path = written(tmp_path, *actions)
    return [f"{problem.line}:{problem.column} {problem.message}" for problem in check_rule_file(path)]


def bundled(number: str) -> Action:
    found = rules.load_default().find_action(number)
    assert found is not None
    return found


# ---- the bundled book


def test_bundled_rules_are_complete_and_without_doubt() -> None:
    book = rules.load_default()
    assert len([action for action in book.actions if action.id.startswith("A-")]) == 40
    assert len(book.steps) == 9
    assert len(book.issues) >= 20
    assert not book.off
    assert lint_book(book) == []


def test_advice_needs_no_examples() -> None:
    book, short = rules.load_default(), rules.load_default(examples=False)
    assert not any(action.examples for action in short.actions)
    assert replace(book, actions=tuple(replace(action, examples=()) for action in book.actions)) == short


def test_bundled_files_can_be_checked_where_they_stand() -> None:
    for file in list_action_files():
        assert check_rule_file(file) == []


def test_issues_show_in_gaps() -> None:
    book = rules.load_default()
    assert book.gaps_of_issue("I-15") == ("L",)
    assert book.gaps_of_issue("I-2") == ("C'",)
    assert book.gaps_of_issue("I-17") == ("S'",)
    assert book.gaps_of_issue("I-18") == ("M'",)
    assert all(book.gaps_of_issue(issue.id) for issue in book.issues)


def test_places_say_file_and_line() -> None:
    name, _, line = bundled("A-29").place.rpartition(":")
    assert name.endswith("4-load-per-phase.yaml")
    assert int(line) > 1


# ---- users' files


def test_a_file_adds_actions(tmp_path: Path) -> None:
    book = rules.load_default([written(tmp_path, action())])
    assert len(book.actions) == len(rules.load_default().actions) + 1
    added = book.find_action("site-1")
    assert added is not None
    assert [result.has_passed for result in run_examples(book, only=["site-1"])] == [True, True]


def test_a_file_switches_off_and_on(tmp_path: Path) -> None:
    off = written(tmp_path, "- {id: A-29, enabled: false}\n")
    on = written(tmp_path, "- {id: A-29, enabled: true}\n", name="on.yaml")
    book = rules.load_default([off])
    assert [action.id for action in book.off] == ["A-29"]
    assert "A-29" not in {action.id for action in book.actions}
    assert not rules.load_default([off, on]).off
    fired = {match.action.id for match in rules.match_rules(rules.load_default(), build_case_sheet("omp-skew")).fired}
    assert fired - {match.action.id for match in rules.match_rules(book, build_case_sheet("omp-skew")).fired} == {
        "A-29"
    }


def test_a_file_replaces(tmp_path: Path) -> None:
    under_its_name = rules.load_default([written(tmp_path, action("A-29", more="replaces: A-29"))])
    found = under_its_name.find_action("A-29")
    assert found is not None
    assert found.title == "Do something"
    under_another = rules.load_default([written(tmp_path, action("site-1", more="replaces: A-29"))])
    assert under_another.find_action("A-29") is None
    assert under_another.find_action("site-1") is not None
    assert len(under_another.actions) == len(rules.load_default().actions)


def test_later_files_lie_on_top(tmp_path: Path) -> None:
    first = written(tmp_path, action("site-1"))
    second = written(tmp_path, action("site-2", more="replaces: site-1"), name="second.yaml")
    book = rules.load_default([first, second])
    assert book.find_action("site-1") is None
    assert book.find_action("site-2") is not None


def test_a_file_of_its_own_is_a_book(tmp_path: Path) -> None:
    book = rules.load_rules([written(tmp_path, action())])
    assert [action.id for action in book.actions] == ["site-1"]
    assert len(book.steps) == 9


def test_an_action_can_be_born_switched_off(tmp_path: Path) -> None:
    book = rules.load_default([written(tmp_path, action(more="enabled: false"))])
    assert [action.id for action in book.off] == ["site-1"]


def test_rules_may_use_facts_of_plugins(tmp_path: Path) -> None:
    extra = facts.Fact("site.load", "share", "phase", ("x",), "measure x", "formula", lambda *_: 0.5)
    examples = "[{case: clean, override: {site.load: 30 %}, expect: fires}, {case: clean, expect: needs}]"
    path = written(tmp_path, action(when="{fact: site.load, is: '>= 20 %'}", examples=examples))
    book = rules.load_default([path], [extra])
    results = run_examples(book, [extra], only=["site-1"])
    assert [result.has_passed for result in results] == [True, True]
    (match,) = results[1].matches
    assert match.outcome.needs == (Need("site.load", "measure x"),)
    assert check_rule_file(path, [extra]) == []
    assert "no such fact" in check_rule_file(path)[0].message


# ---- mistakes


def test_twelve_mistakes_are_twelve_problems(tmp_path: Path) -> None:
    text = """
- id: site-1
  titel: Do something
  step: 10
  issue: I-99
  targets: [Q]
  when:
    all:
      - {gap: L, share: ">= 2 s"}
      - {fact: phase.imbalence, is: ">= 1"}
      - {fact: phase.is_serial, is: maybe}
      - {fact: comm.mean_message_B, is: "4 KiB"}
  applies_to: [mpi, cuda]
  effort: 7
  typical_fraction: half
  change: {schedule: dynamic}
  conflicts: [A-99]
  why: Because.
  how: {any: {text: Do it.}}
  sources: [somewhere]
  examples: [{case: clean, expect: no_match}]
"""
    expected = {3: 3, 4: 9, 5: 10, 6: 13, 9: 25, 10: 16, 11: 37, 12: 41, 13: 21, 14: 11, 15: 21, 17: 15}
    path = written(tmp_path, text)
    found = check_rule_file(path)
    assert {problem.line: problem.column for problem in found} == expected
    assert len(found) == 12
    with pytest.raises(DocumentError) as caught:
        rules.load_default([path])
    assert len(caught.value.problems) == 12


def test_mistakes_of_all_files_come_together(tmp_path: Path) -> None:
    first = written(tmp_path, action(when="{gap: Q, share: '> 1 %'}"))
    second = written(tmp_path, action("A-28"), name="second.yaml")
    with pytest.raises(DocumentError) as caught:
        rules.load_default([first, second])
    assert sorted(problem.path for problem in caught.value.problems) == sorted(map(str, (first, second)))


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (action("A-29"), "2:7", "to replace it write 'replaces: A-29'"),
        (action() + action(), "17:7", "the action site-1 a second time"),
        (action(more="replaces: A-299"), "16:13", "no such action (did you mean 'A-29'?)"),
        ("- {id: A-299, enabled: false}\n", "1:8", "no such action (did you mean 'A-29'?)"),
        (action(examples="[{case: skewed, expect: fires}]"), "15:21", "no such case (did you mean 'skewed-load'?)"),
        (action(examples="[{case: clean, expect: maybe}]"), "15:36", "one of fires, no_match, needs"),
        (
            action(examples="[{case: clean, override: {phase.imbalance: 5 %}, expect: fires}]"),
            "15:56",
            "this fact is a ratio and has no unit",
        ),
        (
            action(examples="[{case: clean, override: {phase.imbalence: 5}, expect: fires}]"),
            "15:39",
            "did you mean 'phase.imbalance'?",
        ),
        ("steps: []\n", "1:1", "expected a list"),
        ("", "1:1", "expected a list"),
    ],
)
def test_mistakes_have_a_place(tmp_path: Path, text: str, place: str, words: str) -> None:
    found = checked(tmp_path, text)
    assert any(problem.startswith(f"{place} ") and words in problem for problem in found), found


# ---- lint


@pytest.mark.parametrize(
    ("when", "words"),
    [
        (
            "{all: [{gap: L, share: '>= 5 %'}, {gap: L, share: '< 3 %'}]}",
            "can never fire, because share of gap L cannot be >= 0.05 and < 0.03",
        ),
        (
            "{all: [{fact: phase.imbalance, is: '> 1.2'}, {not: {fact: phase.imbalance, is: '>= 1.1'}}]}",
            "phase.imbalance cannot be > 1.2 and < 1.1",
        ),
        ("{fact: phase.imbalance, is: '< 0.9'}", "phase.imbalance cannot be < 0.9"),
        ("{fact: comm.share, is: '> 100 %'}", "comm.share cannot be > 1"),
        ("{gap: L, share: '>= 300 %'}", "can never fire, because share of gap L cannot be >= 3"),
        (
            "{all: [{fact: phase.closed_by, is: MPI_Barrier}, {fact: phase.closed_by, is: MPI_Allreduce}]}",
            "phase.closed_by cannot be == MPI_Barrier and == MPI_Allreduce",
        ),
        (
            "{all: [{fact: phase.is_serial, is: true}, {not: {fact: phase.is_serial, is: true}}]}",
            "phase.is_serial cannot be == True and != True",
        ),
        (
            "{any: [{gap: L, share: '> 2 %'}, {all: [{fact: io.share, is: '> 9 %'}, {fact: io.share, is: '< 5 %'}]}]}",
            "this alternative can never be true",
        ),
        (
            "{all: [{gap: L, share: '> 2 %'}, {fact: phase.imbalance, is: '>= 1'}]}",
            "'phase.imbalance >= 1' is always true",
        ),
        ("{all: [{gap: L, share: '> 2 %'}, {fact: io.share, is: '<= 100 %'}]}", "'io.share <= 100 %' is always true"),
    ],
)
def test_lint_finds_conditions_without_meaning(tmp_path: Path, when: str, words: str) -> None:
    assert any(words in problem for problem in checked(tmp_path, action(when=when, examples="[]"))), words


@pytest.mark.parametrize(
    "when",
    [
        "{all: [{gap: L, share: '>= 5 %'}, {gap: L, share: '<= 5 %'}]}",
        "{all: [{fact: phase.imbalance, is: '!= 1.2'}, {fact: phase.imbalance, is: '>= 1.2'}]}",
        "{any: [{gap: L, share: '>= 5 %'}, {gap: L, share: '< 3 %'}]}",
        "{all: [{gap: L, share: '>= 5 %'}, {gap: M', share: '< 3 %'}]}",
    ],
)
def test_lint_leaves_possible_conditions_alone(tmp_path: Path, when: str) -> None:
    assert not any("can never" in problem for problem in checked(tmp_path, action(when=when, examples="[]")))


def test_lint_asks_for_examples_on_both_sides(tmp_path: Path) -> None:
    none = checked(tmp_path, action(examples="[]"))
    assert any("no example in which it fires" in problem for problem in none)
    assert any("no example in which it stays silent" in problem for problem in none)
    assert checked(tmp_path, action()) == []


def test_lint_names_actions_that_never_fire(tmp_path: Path) -> None:
    never = action(when="{fact: run.ranks, is: '>= 100000'}", examples="[]")
    assert any("never fires, on none of the" in problem for problem in checked(tmp_path, never))


def test_lint_runs_the_examples(tmp_path: Path) -> None:
    wrong = action(examples="[{case: clean, expect: fires}, {case: skewed-load, expect: no_match}]")
    found = checked(tmp_path, wrong)
    assert "15:14 site-1: expected fires on clean, but it does not match" in found
    assert "15:44 site-1: expected no_match on skewed-load, but it fires" in found


def test_lint_finds_twins_in_any_order(tmp_path: Path) -> None:
    first = action("site-1", when="{all: [{gap: L, share: '>= 2 %'}, {fact: run.ranks, is: '>= 2'}]}")
    second = action("site-2", when="{all: [{fact: run.ranks, is: '>=  2'}, {gap: L, share: '>= 2 %'}]}")
    found = checked(tmp_path, first, second)
    assert any(problem.startswith("17:3 site-2: has the conditions and gaps of site-1") for problem in found), found


def test_lint_knows_what_fits_together(tmp_path: Path) -> None:
    text = action(more="helps: [I-15]\n  hurts: [I-15]\n  conflicts: [site-1]").replace("step: 4", "step: 2")
    found = checked(tmp_path, text)
    assert any("stands in step 2, but I-15 belongs to step 4" in problem for problem in found)
    assert any("helps and hurts I-15" in problem for problem in found)
    assert any("conflicts with itself" in problem for problem in found)


def test_lint_reports_conflicts_with_what_is_gone() -> None:
    book = rules.load_default()
    gone = replace(book, actions=tuple(action for action in book.actions if action.id != "A-3"))
    assert any("conflicts with A-3, which does not exist" in problem.message for problem in lint_book(gone))


# ---- matching


def test_rules_for_other_models_are_not_asked() -> None:
    action = bundled("A-28")
    assert "openmp" not in action.applies_to
    assert list(match_action(action, build_case_sheet("omp-skew-4"))) == []
    assert len(list(match_action(action, build_case_sheet("multiphase")))) == 2


def test_rules_about_the_run_are_asked_once() -> None:
    vocabulary = build_case_sheet("clean").run.vocabulary
    about_run = {action.id for action in rules.load_default().actions if is_run_wide(action, vocabulary)}
    assert {"G-24", "G-27", "G-28"} <= about_run
    assert not {"A-28", "A-16", "A-27"} & about_run
    (match,) = match_action(bundled("G-27"), build_case_sheet("slow-start"))
    assert match.site.place is None


def test_a_clean_run_fires_nothing() -> None:
    found = rules.match_rules(rules.load_default(), build_case_sheet("clean"))
    assert found.fired == ()
    assert found.needs


def test_needs_come_once_and_the_costliest_first() -> None:
    found = rules.match_rules(rules.load_default(), build_case_sheet("skewed-load")).needs
    names = [need.fact for need in found]
    assert len(set(names)) == len(names)
    assert "gap $" in names
    assert all(need.command for need in found)


def test_what_could_decide_about_nothing_is_not_asked_for() -> None:
    book = rules.load_default()
    matches = rules.match_rules(book, build_case_sheet("clean"))
    tiny = tuple(
        replace(match, site=match.site.with_values({}, dict.fromkeys(match.site.spans, 1e-6)))
        for match in matches.undecided
    )
    assert replace(matches, undecided=tiny).needs == ()


def test_a_fact_that_is_unknown_makes_a_rule_need_it() -> None:
    action = bundled("G-19")
    given = {"io.fsync_share": "unknown", "io.forced_share": "unknown"}
    example = replace(next(e for e in action.examples if e.case == "fsync"), override=given)
    result = try_example(action, example)
    assert result.outcome == "needs"
    assert [need.fact for match in result.matches for need in match.outcome.needs] == list(given)


def test_a_renamed_key_is_named_with_its_new_name(tmp_path: Path) -> None:
    renamed = {"case": "given", "override": "with", "typical_fraction": "prior"}
    text = action(examples="[{case: clean, override: {L: 3 %}, expect: no_match}]")
    for now, before in renamed.items():
        text = text.replace(f"{now}:", f"{before}:")
    found = checked(tmp_path, text)
    for now, before in renamed.items():
        assert any(f"unknown key '{before}' (renamed to '{now}')" in problem for problem in found), found
