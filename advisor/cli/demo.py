"""``gapwatch demo``: advice on the trace of a real run that comes with the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.cli import advise
from advisor.model.errors import AdvisorError
from advisor.support.bundled import find_example_trace

if TYPE_CHECKING:
    import argparse

NAME = "demo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    advise.add_advice_arguments(parser)


def run_command(args: argparse.Namespace) -> int:
    """Advise on the bundled trace, whatever the user's own history holds; returns the exit code."""
    trace = find_example_trace()
    if trace is None:
        raise AdvisorError("this installation has no example trace; run 'gapwatch advise' on your own profile")
    study = advise.study_runs([trace], args, None)
    advise.deliver_advice(study.advice, study.earlier, args)
    return 0
