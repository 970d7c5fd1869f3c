"""Where a command's text goes: which stream, how wide, with or without colour; and what happens when it can't go."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from advisor.cli import option_types, supervision
from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    import argparse

    from advisor.output.page import Page

#: The width of text that no terminal limits.
PIPE_WIDTH = 120
_WIDEST = 500
_NARROWEST = 20
_USUAL = 80
_C_LOCALES = ("C", "POSIX")


def add_output_arguments(parser: argparse.ArgumentParser, forms: Sequence[str] = ("text", "json")) -> None:
    """Give a command the options that say how its result is shown; the first of several forms is the default."""
    if forms:
        parser.add_argument(
            "--format", dest="form", choices=forms, default=forms[0], help=f"Output format (default: {forms[0]})"
        )
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="Write to FILE instead of standard output")
    parser.add_argument(
        "--width",
        dest="page_width",
        metavar="N",
        type=option_types.whole_number(
            f"a whole number from {_NARROWEST} to {_WIDEST}", least=_NARROWEST, most=_WIDEST
        ),
        help="Text width in columns (default: terminal width, else 120)",
    )
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="Use colors (default: auto, only on a terminal)",
    )


def build_page(args: argparse.Namespace, *, verbose: bool = False) -> Page:
    """Return the page that the arguments ask for, on the stream that the text goes to."""
    from advisor.output.page import Page

    to_file = getattr(args, "output", None) is not None
    stream = None if to_file else supervision.result_stream()
    return Page(
        width=getattr(args, "page_width", None) or text_width(stream),
        encoding="utf-8" if to_file else stream_encoding(stream, os.environ),
        color=wants_color(getattr(args, "color", "auto"), stream, os.environ),
        verbose=verbose,
    )


def text_width(stream: TextIO | None) -> int:
    """Return how many columns text on ``stream`` has: those of its terminal at this moment, else ``PIPE_WIDTH``."""
    if stream is None or not stream.isatty():
        return PIPE_WIDTH
    return max(_NARROWEST, min(_WIDEST, terminal_columns()))


def terminal_columns() -> int:
    """Return ``shutil.get_terminal_size().columns`` without importing all that copies and packs files."""
    with suppress(ValueError):
        if (stated := int(os.environ.get("COLUMNS", ""))) > 0:
            return stated
    stream = supervision.result_stream() or sys.__stdout__
    if stream is not None:
        with suppress(ValueError, OSError):
            return os.get_terminal_size(stream.fileno()).columns or _USUAL
    return _USUAL


def stream_encoding(stream: TextIO | None, environ: Mapping[str, str]) -> str:
    """Return the encoding that text must fit: ASCII in the C locale, although Python would write UTF-8 there."""
    if "PYTHONIOENCODING" not in environ and "PYTHONUTF8" not in environ:
        coerced = environ.get("LC_CTYPE") == "C.UTF-8"  # Python itself sets it so when the locale is C
        names = [environ.get("LC_ALL"), None if coerced else environ.get("LC_CTYPE"), environ.get("LANG")]
        if next(filter(None, names), "") in _C_LOCALES:
            return "ascii"
    return getattr(stream, "encoding", None) or "utf-8"


def wants_color(choice: str, stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Return whether to colour: what the user chose, else NO_COLOR, FORCE_COLOR, TERM and the stream, in that order."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if "FORCE_COLOR" in environ:
        return environ["FORCE_COLOR"].lower() not in ("", "0", "false", "no")
    return environ.get("TERM") != "dumb" and stream is not None and stream.isatty()


def prepare_streams() -> None:
    """Make the standard streams write what their encoding lacks as visible escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write_output(text: str, file: Path | None = None, encoding: str | None = None, *, private: bool = False) -> None:
    """Write a command's result; quiet where the reader has gone, ``AdvisorError`` where it can't be written.

    ``encoding`` is that of results for other programs, which no locale changes. A ``private`` file is made with mode
    0600, others as the mask of the user says.
    """
    supervision.announce_delivery()
    if file is not None:
        _write_file(text, file, 0o600 if private else 0o666)
        return
    stream = supervision.result_stream()
    if stream is None:
        raise AdvisorError("standard output is closed: cannot write the result")
    from advisor.output.clean import escape_ci_commands

    try:
        _write_stream(escape_ci_commands(text, os.environ), stream, encoding)
    except BrokenPipeError:
        _discard_buffer(stream)
    except OSError as error:
        _discard_buffer(stream)
        raise AdvisorError(f"standard output: {error.strerror}") from error


def _write_stream(text: str, stream: TextIO, encoding: str | None) -> None:
    """Write all of it, also where whoever shares the pipe or terminal lets writes fail while it is full."""
    with suppress(OSError, ValueError):  # it is no file of the system
        os.set_blocking(stream.fileno(), True)
    if encoding is not None and isinstance(stream, TextIOWrapper):
        stream.flush()
        stream.buffer.write(text.encode(encoding, "backslashreplace"))
    else:
        stream.write(text)
    stream.flush()


def _write_file(text: str, file: Path, mode: int) -> None:
    """Replace a file as a whole, so that nobody reads half of it; write into what is no file, such as a pipe."""
    import shutil

    from advisor.support.atomic_write import atomic_write

    content = text.encode("utf-8", "backslashreplace")
    try:
        if file.exists() and (not file.is_file() or not os.access(file.resolve().parent, os.W_OK)):
            file.write_bytes(content)
            return
        target = file.resolve()
        with atomic_write(target) as partial:
            with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as stream:
                stream.write(content)
            if target.exists():
                shutil.copymode(target, partial)
    except OSError as error:
        raise AdvisorError(f"{file}: {error.strerror}") from error


def _discard_buffer(stream: TextIO) -> None:
    """Send what is still buffered to nowhere, or Python would complain about it when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def write_messages(*messages: str) -> None:
    """Write messages to standard error, each of them one line, whatever names are in it.

    Where they can't be written, nothing is kept: Python would try again when it ends, and change the exit code.
    """
    from advisor.output.clean import clean_text, escape_ci_commands

    encoding = stream_encoding(sys.stderr, os.environ)
    with suppress(ValueError, AttributeError):
        try:
            lines = (escape_ci_commands(clean_text(message, encoding), os.environ) for message in messages)
            sys.stderr.write("".join(f"gapwatch: {line}\n" for line in lines))
            sys.stderr.flush()
        except OSError:
            _discard_buffer(sys.stderr)
