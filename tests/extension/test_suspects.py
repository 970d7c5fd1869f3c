"""Who is left out after a child was lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.extension.suspects import Suspects


def test_whoever_was_asked_is_left_out() -> None:
    suspects = Suspects(["old"])
    assert suspects.record_loss("bad", ("good", "bad"))
    assert suspects.left_out == {"old", "bad"}
    assert suspects.killers == {"bad"}
    assert not suspects.record_loss("bad", ()), "without it, it cannot have been it"


def test_two_that_end_children_are_both_left_out() -> None:
    for reasons in (("exited", "exited"), ("exited", "was killed")):
        suspects = Suspects()
        children = _lose_children(suspects, {"bad": reasons[0], "worse": reasons[1]})
        assert suspects.left_out == {"bad", "worse"}
        assert children == 2 + (reasons[0] == reasons[1])


def test_one_whose_timer_ends_children_over_others_costs_no_other() -> None:
    for over in (["next"], ["next", "other", "next"], ["other", "next", "other"]):
        suspects, asked = Suspects(), ("other", "timer", "next")
        for victim in over:
            assert suspects.record_loss(victim, [one for one in asked if one not in suspects.left_out], "exited")
        while "timer" not in suspects.left_out:
            left = [one for one in asked if one not in suspects.left_out]
            assert suspects.record_loss(None, left, "exited")
        assert suspects.killers == {"timer"}


@given(st.data())
def test_one_that_ends_children_at_any_time_after_it_was_asked_costs_no_other(data: st.DataObject) -> None:
    suspects, plugins, lost = Suspects(), "abcdefg", 0
    killer = data.draw(st.sampled_from(plugins))
    while killer not in suspects.left_out:
        asked = [one for one in plugins if one not in suspects.left_out]
        last = data.draw(st.integers(asked.index(killer), len(asked) - 1))
        assert suspects.record_loss(asked[last], asked[: last + 1], "exited")
        lost += 1
    assert suspects.left_out == suspects.killers == {killer}
    assert lost <= len(plugins)


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["exited", "was killed"]), max_size=8))
def test_those_that_end_children_are_found_and_nobody_else(killers: dict[str, str]) -> None:
    suspects = Suspects()
    assert _lose_children(suspects, killers) <= 2 * len(killers)
    assert suspects.killers == set(killers)


def _lose_children(suspects: Suspects, killers: dict[str, str]) -> int:
    """Ask all plugins in turn, in one child after the other, until none is lost; return how many were."""
    for lost in range(100):
        asked: list[str] = []
        for name in ["a_good", *sorted(killers)]:
            if name not in suspects.left_out:
                asked.append(name)
                if name in killers:
                    assert suspects.record_loss(name, asked, killers[name])
                    break
        else:
            return lost
    raise AssertionError("no end")


def test_of_those_that_were_asked_before_each_is_left_out_alone_before_all_are() -> None:
    suspects, tried = Suspects(["old"]), []
    while suspects.record_loss(None, ("old", "first", "second", "third")):
        tried.append(set(suspects.left_out))
    alone = [{"old", one} for one in ("third", "second", "first")]
    assert tried == [*alone, {"old", "first", "second", "third"}]


def test_all_are_left_out_at_once_where_a_task_took_too_long() -> None:
    suspects = Suspects(["old"])
    assert suspects.record_loss(None, ("old", "first", "second"), late=True)
    assert suspects.left_out == {"old", "first", "second"}
    assert not suspects.record_loss(None, (), late=True)


def test_nobody_is_left_out_where_nobody_was_asked() -> None:
    assert not Suspects().record_loss(None, ())
