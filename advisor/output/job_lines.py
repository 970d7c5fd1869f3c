"""A batch job in three lines, for its mail or the end of its output: what it used, where its time went, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.model.units import format_bytes, format_count, format_share
from advisor.output import numbers
from advisor.output.clean import clean_text
from advisor.output.text_cells import shorten_text
from advisor.output.wording import (
    describe_gap,
    describe_grade,
    describe_processors,
    describe_unanswered_gap,
    includes_outside_time,
    select_command,
)

if TYPE_CHECKING:
    from advisor.model.job_account import JobAccount
    from advisor.model.records import Advice, Gap

#: Names from jobs and profiles are cut to this length; a line is not wrapped.
_LONGEST: Final = 80


def render_job_line(name: str, account: JobAccount | str) -> str:
    """Return what the job used; ``account`` is the reason where its scheduler does not tell."""
    if isinstance(account, str):
        return f"{name}: what it used is not known: {_clean(account)}"
    state = f"{_clean(account.state)} after" if account.state else "ran for"
    where = f" on {format_count(account.nodes, 'node')}" if account.nodes else ""
    parts = [f"{name}: {state} {numbers.format_duration(account.elapsed_s)}{where}"]
    cores = format_count(account.cores, "core")
    if account.cpu_s is None:
        parts.append(f"{cores}; its scheduler recorded no CPU time")
    elif not account.is_complete:
        parts.append(f"{cores}; what it used is accounted when it has ended")
    elif account.elapsed_s > 0 and account.cores > 0:
        busy = account.cpu_s / account.elapsed_s
        parts.append(f"used {busy:.3g} of {cores} ({format_share(busy / account.cores)})")
    if account.memory is not None:
        parts.append(f"at most {format_bytes(account.memory)} in memory of a task")
    if account.job_memory is not None:
        parts.append(f"at most {format_bytes(account.job_memory)} in memory")
    return "; ".join(parts)


def render_run_line(advice: Advice, runs: int) -> str:
    """Return where the time of the job's run went; of several ``runs`` the newest is meant, which is said."""
    profile = advice.profile
    took = f"{numbers.format_duration(profile.actual_s)} on " if profile.has_run_time else ""
    parts = [f"{_clean(profile.program or profile.run)}: {took}{describe_processors(profile)}"]
    if runs > 1:
        parts[0] += f" (the newest of {runs} runs)"
    parts.append(f"evidence {describe_grade(advice.grade)}")
    return "; ".join([*parts, *_describe_losses(advice)])


def _describe_losses(advice: Advice) -> list[str]:
    """Return the largest gap, and where it is; behind what lies outside of all phases, the largest gap within them."""
    largest = max(advice.gaps, key=lambda gap: gap.seconds, default=None)
    if largest is None or largest.seconds <= 0:
        return []
    words = [f"most is lost to {_describe_loss(largest)}"]
    if not includes_outside_time(largest):
        return words
    edges = advice.profile.start_and_shutdown_s
    if edges > largest.seconds / 2:
        words[0] += f", of which a longer run makes up for {numbers.format_duration(edges)}"
    inner = max(
        (gap for gap in advice.gaps if not includes_outside_time(gap)), key=lambda gap: gap.seconds, default=None
    )
    if inner is not None and inner.seconds > 0:
        words.append(f"then to {_describe_loss(inner)}")
    return words


def _describe_loss(gap: Gap) -> str:
    place = max(gap.regions, key=lambda share: share.seconds, default=None)
    where = f", mostly in {_clean(place.name)}" if place is not None and place.seconds > gap.seconds / 2 else ""
    return f"{describe_gap(gap)}: {numbers.format_duration(gap.seconds)} ({format_share(gap.share)} of the run){where}"


def render_action_line(advice: Advice, command: str) -> str:
    """Return what to do first, or what to measure where there is nothing; ``command`` shows all of the advice.

    The commands of ``advice`` are filled in.
    """
    item = next(iter(advice.pending), None)
    if item is None:
        return f"{_describe_nothing(advice)}; {command}"
    place = ""
    if item.region:
        place = f" at {_clean(item.region)}" + (
            f" ({_clean(item.file)}:{item.line})" if item.file and item.line else ""
        )
    gain = f"at most {numbers.format_duration(item.ceiling_s)}"
    if item.expected_s is not None:
        gain = f"expected {numbers.format_duration(item.expected_s)}"
    return f"to do: {_clean(item.title)} [{item.action}]{place}, {gain}; {command}"


def _describe_nothing(advice: Advice) -> str:
    if advice.recommendations:
        return "no advice but what is suppressed"
    if advice.verdict == "nothing significant":
        fits = describe_unanswered_gap(advice)
        return "no action fits what the run loses" if fits else "nothing to do: no gap is large enough to act on"
    measure = select_command(advice)
    return "no advice: not enough evidence" + (f"; measure more: {measure}" if measure else "")


def _clean(text: str) -> str:
    return shorten_text(clean_text(text), _LONGEST)
