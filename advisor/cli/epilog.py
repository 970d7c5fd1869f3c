"""``gapwatch epilog``: what a batch job used, where its time went and what to do, in three lines, printed or sent."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import advise, history_location, output, supervision, user_folders
from advisor.cli.error_messages import run_guarded
from advisor.cli.next_commands import fill_commands
from advisor.model.errors import AdvisorError, InputError, UsageError

if TYPE_CHECKING:
    import argparse

    from advisor.collect.batch_jobs import BatchJob
    from advisor.extension.host.plugin_host import PluginHost
    from advisor.model.job_account import JobAccount

NAME = "epilog"
#: Of what a job wrote, so many of the newest entries of its directory are looked at.
_MOST_ENTRIES: Final = 200
#: Clocks of nodes and of file servers differ; a file this much older than the job may be its own (seconds).
_CLOCK_SLACK_S: Final = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", type=Path,
        help="Profiles of the job (default: what it wrote into the directory that it was submitted in)",
    )  # fmt: skip
    parser.add_argument("--job", metavar="ID", help="Job of Slurm, PBS or Flux (default: the one that this runs in)")
    parser.add_argument(
        "--account", metavar="FILE", type=Path, help="What sacct -P, seff, qstat -f or flux jobs --json printed"
    )
    parser.add_argument("--mail", metavar="ADDRESS", help="Mail the lines (sendmail) instead of printing them")
    parser.add_argument(
        "--post", metavar="FILE", type=Path,
        help="File with the address of a chat's webhook, readable by its owner only: post the lines there",
    )  # fmt: skip
    parser.add_argument(
        "--quiet", action="store_true", help="Print nothing for a job without a profile (for site-wide use)"
    )
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="Write to FILE")
    advise.add_study_arguments(parser)
    history_location.add_state_argument(parser)


def run_command(args: argparse.Namespace) -> int:
    """Print, mail or post the three lines; returns the exit code."""
    from advisor.collect.batch_jobs import BatchJob, find_batch_job

    job = find_batch_job()
    if args.job:
        job = replace(job, number=args.job) if job else BatchJob(None, args.job, folder=Path.cwd())
    if job is None and not (args.paths or args.account):
        raise UsageError("not in a batch job (Slurm, PBS, Flux); name a job with --job, or profiles")
    account = _load_account(job, args.account)
    if args.job and args.account and not isinstance(account, str) and not _is_same_job(args.job, account.job):
        account = f"{args.account} is the account of job {account.job}"
    with tempfile.TemporaryDirectory(prefix="gapwatch-") as folder:
        told = Path(folder) / "lines"

        def write_lines() -> int:
            told.write_text("".join(f"{line}\n" for line in _describe_job(job, account, args)), encoding="utf-8")
            return 0

        code = supervision.run_part(lambda: run_guarded(write_lines))  # readers and plugins reach no network
        text = told.read_text(encoding="utf-8") if not code else ""
    if text:
        _deliver_lines(text, args)
    return code


def _deliver_lines(text: str, args: argparse.Namespace) -> None:
    if args.mail or args.post:
        from advisor.cli import job_messages

        if args.mail:
            job_messages.send_mail(args.mail, text)
        if args.post:
            job_messages.post_text(job_messages.read_address(args.post), text)
    if args.output or not (args.mail or args.post):
        output.write_output(text, args.output)


def _describe_job(job: BatchJob | None, account: JobAccount | str, args: argparse.Namespace) -> list[str]:
    """Return the lines; none where the job wrote no profile, and nobody wants to hear of that."""
    from advisor.collect.batch_jobs import name_launcher
    from advisor.output import job_lines

    folders = _list_folders(job, account, inside=not (args.job or args.account))
    numbers = {job.number if job else None, None if isinstance(account, str) else account.job} - {None}
    paths = args.paths or _find_profiles(folders, numbers, _find_start(account))
    if not paths and args.quiet:
        return []
    is_named = job is not None or args.account is not None
    first = [job_lines.render_job_line(_name_job(job, account), account)] if is_named else []
    if not paths:
        where = " or ".join(map(str, folders))
        launch = f"to do: gapwatch run -- {name_launcher(job)} ./PROGRAM"
        return [*first, f"no profile of the job{' in ' if where else ''}{where}", launch]
    study = advise.study_runs(paths, args, history_location.open_history(args))
    newest = study.runs[study.chosen].paths if study.runs else study.files
    place = Path(os.path.relpath(newest[0] if newest else paths[-1]))
    advice = fill_commands(advise.update_item_states(study.advice, args), [place])
    command = f"gapwatch advise {shlex.quote(str(place))}"
    return [*first, job_lines.render_run_line(advice, len(study.runs)), job_lines.render_action_line(advice, command)]


def _load_account(job: BatchJob | None, file: Path | None) -> JobAccount | str:
    """Return what the scheduler accounts of the job, or why it tells nothing: the profiles speak all the same."""
    from advisor.collect.scheduler_accounts import print_account
    from advisor.formats.plain_text import read_content

    try:
        if file is not None:
            return _parse_account(file, read_content(file).decode("utf-8", "replace"))
        if job is None:
            return "no job was named"
        text = print_account(job)
        with tempfile.TemporaryDirectory(prefix="gapwatch-") as folder:
            printed = Path(folder) / "account.txt"
            printed.write_text(text, encoding="utf-8")
            return _parse_account(printed, text)
    except InputError as error:
        return error.reason
    except AdvisorError as error:
        return str(error)
    except OSError as error:
        return f"{file}: {error.strerror}"


def _parse_account(file: Path, text: str) -> JobAccount:
    from advisor.collect.scheduler_accounts import parse_account
    from advisor.formats.job_accounts import read_account

    return parse_account(text) or read_account(file)


def _is_same_job(number: str, other: str) -> bool:
    """Return whether two numbers may name one job: with or without server (``12.pbs``), step or task (``12_3``)."""
    alone, other_alone = (re.split(r"[._+\[]", text.replace("\u0192", "f"))[0] for text in (number, other))
    return alone == other_alone


def _name_job(job: BatchJob | None, account: JobAccount | str) -> str:
    from advisor.output.clean import clean_text

    number = account.job if not isinstance(account, str) else job.number if job else ""
    name = account.name if not isinstance(account, str) and account.name else job.name if job else ""
    return clean_text(" ".join(part for part in ("job", number, name) if part))


def _list_folders(job: BatchJob | None, account: JobAccount | str, *, inside: bool) -> list[Path]:
    """Return where a job writes: into the directory of its submission, as its scheduler says, else the environment.

    A script that asks from ``inside`` of its job may have gone elsewhere, where it is now.
    """
    submitted = account.folder if not isinstance(account, str) else None
    folder = Path(submitted) if submitted else job.folder if job else None
    here = Path.cwd() if inside and job is not None else None
    return list(dict.fromkeys(path for path in (here, folder) if path is not None))


def _find_start(account: JobAccount | str) -> float | None:
    """Return when the job began, seconds of the epoch; None where nobody tells."""
    said = os.environ.get("SLURM_JOB_START_TIME", "")
    if said.isascii() and said.isdigit():
        return float(said)
    with suppress(ValueError):
        if not isinstance(account, str) and account.started:
            return datetime.fromisoformat(account.started).timestamp()
    return None


def _find_profiles(folders: list[Path], numbers: Collection[str | None], started_s: float | None) -> list[Path]:
    """Return what the job wrote into its directories: recordings that name it, else profiles newer than its start."""
    entries = sorted(entry for folder in folders for entry in sorted(_list_entries(folder))[-_MOST_ENTRIES:])
    own = [path for _, path in entries if _recorded_job(path) in numbers]
    if own or started_s is None:
        return own
    host = user_folders.load_host()
    newer = [path for changed_s, path in entries if changed_s >= started_s - _CLOCK_SLACK_S]
    return [path for path in newer if _holds_profile(host, path)]


def _holds_profile(host: PluginHost, path: Path) -> bool:
    with suppress(InputError):
        return bool(host.find_profiles(path))
    return False


def _list_entries(folder: Path) -> list[tuple[float, Path]]:
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            if not path.name.startswith(".") and not path.is_symlink():
                with suppress(OSError):
                    found.append((path.stat().st_mtime, path))
    return found


def _recorded_job(path: Path) -> str | None:
    from advisor.trace.recordings.command import read_command

    if not path.is_dir():
        return None
    with suppress(InputError):
        command = read_command(path)
        return command.job if command else None
    return None
