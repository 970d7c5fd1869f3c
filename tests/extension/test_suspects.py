"""Who is left out after a child was lost."""

from __future__ import annotations

from advisor.extension.suspects import Suspects


def test_whoever_was_asked_is_guilty() -> None:
    suspects = Suspects(["old"])
    assert suspects.record_loss("bad", ("good", "bad"))
    assert suspects.left_out == {"old", "bad"}
    assert not suspects.record_loss("bad", ()), "without it, it cannot have been it"


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
