from __future__ import annotations

import io
from contextlib import contextmanager, redirect_stderr
from typing import TYPE_CHECKING

import pytest
from patience import wait_until

from advisor.cli import progress

if TYPE_CHECKING:
    from collections.abc import Iterator


class Stream(io.StringIO):
    """A standard error that may be a terminal."""

    encoding = "utf-8"
    terminal = True

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    made = Stream()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_PERIOD", 0.001)
    monkeypatch.setattr(progress, "monotonic", lambda: 0.0)
    return made


@contextmanager
def working(stream: Stream, words: str) -> Iterator[None]:
    """The line on ``stream``; pytest has its own standard error outside of a test's body."""
    with redirect_stderr(stream), progress.show_progress(words):
        yield


def wait_for(stream: Stream, words: str) -> None:
    wait_until(lambda: words in stream.getvalue(), lambda: f"{words} never came")


def test_a_line_is_shown_and_taken_back(stream: Stream) -> None:
    with working(stream, "reading a\x1b[2J\n"):
        wait_for(stream, "reading a\\x1b[2J\\n: 0 s")
    shown = stream.getvalue()
    assert shown.endswith("\r" + " " * len("reading a\\x1b[2J\\n: 0 s") + "\r")
    assert "\x1b" not in shown
    assert "\n" not in shown


def test_long_names_stay_on_one_line(stream: Stream) -> None:
    with working(stream, "x" * 500):
        wait_for(stream, "xx")
    assert max(map(len, stream.getvalue().split("\r"))) <= 78


def test_nothing_is_shown_to_nobody(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    stream.terminal = False
    monkeypatch.setattr(progress, "Thread", None)  # nobody is there who could show anything
    with working(stream, "reading"):
        pass
    assert stream.getvalue() == ""


def test_nothing_is_shown_on_a_dumb_terminal(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(progress, "Thread", None)
    with working(stream, "reading"):
        pass
    assert stream.getvalue() == ""


def test_what_is_quick_shows_nothing(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)
    with working(stream, "reading"):
        pass
    assert stream.getvalue() == ""


def test_a_terminal_that_goes_away_stops_nothing(stream: Stream) -> None:
    done = False
    with working(stream, "reading"):
        wait_for(stream, "reading")
        stream.close()
        done = True
    assert done


def test_errors_pass(stream: Stream) -> None:
    with pytest.raises(KeyError), working(stream, "reading"):
        raise KeyError("x")
