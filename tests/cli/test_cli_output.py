from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from command_line import environment, run

from advisor.cli import output
from advisor.model.errors import AdvisorError
from advisor.output.page import Page

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SAY = "import sys; from advisor.cli import output; output.prepare_streams(); "
SAY += "output.write_output(sys.argv[1] * int(sys.argv[2]))"


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "environ", "terminal", "colored"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("auto", {"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_decides_about_colour(choice: str, environ: Mapping[str, str], terminal: bool, colored: bool) -> None:
    assert output.wants_color(choice, Terminal() if terminal else io.StringIO(), environ) is colored


@pytest.mark.parametrize(
    ("environ", "encoding"),
    [
        ({}, "utf-8"),
        ({"LC_ALL": "C"}, "ascii"),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, "ascii"),
        ({"LANG": "C"}, "ascii"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "ascii"),
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, "utf-8"),
        ({"LANG": "C.UTF-8"}, "utf-8"),
        ({"LC_ALL": "C", "PYTHONIOENCODING": "utf-8"}, "utf-8"),
    ],
)
def test_the_c_locale_means_ascii(environ: Mapping[str, str], encoding: str) -> None:
    assert output.stream_encoding(Terminal(), environ) == encoding


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("1", 20), ("100000", 500)])
def test_a_terminal_decides_the_width(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert output.build_page(argparse.Namespace()).width == width


def test_a_pipe_is_wide_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    page = output.build_page(argparse.Namespace(color="auto"))
    assert (page.width, page.color) == (120, False)


def test_a_file_is_wide_plain_and_utf8(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setattr(sys, "stdout", Terminal())
    page = output.build_page(argparse.Namespace(color="auto", output=tmp_path / "advice.txt"))
    assert page == Page(120, "utf-8", color=False)


@pytest.mark.parametrize("width", ["0", "19", "501", "-80", "x", "8e1", "٨٠"])
def test_widths_that_are_refused(width: str) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    output.add_output_arguments(parser)
    with pytest.raises(argparse.ArgumentError, match="whole number from 20 to 500"):
        parser.parse_args([f"--width={width}"])


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(AdvisorError, match="No such file or directory"):
        output.write_output("x", tmp_path / "missing" / "advice.txt")


def test_messages_are_one_line_each_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_messages("no file 'a\x1b[2J\nCRITICAL'", "second")
    assert capsys.readouterr().err == "gapwatch: no file 'a\\x1b[2J\\nCRITICAL'\ngapwatch: second\n"


def test_undecodable_names_reach_the_screen_as_escapes(tmp_path: Path) -> None:
    done = run("\udce4\n", "1", home=tmp_path, code=SAY)
    assert (done.returncode, done.stdout) == (0, b"\\udce4\n")


def test_latin_1_gets_what_it_has(tmp_path: Path) -> None:
    done = run("ä日\n", "1", home=tmp_path, code=SAY, PYTHONIOENCODING="latin-1", PYTHONUTF8="1")
    assert done.stdout == b"\xe4\\u65e5\n"


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SAY, "line\n", "100000"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path), cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_pipe_that_does_not_block_gets_everything(tmp_path: Path) -> None:
    receiving, sending = os.pipe()
    os.set_blocking(sending, False)  # as node leaves the pipes that it shares with its children
    command = [sys.executable, "-c", SAY, "line\n", "100000"]
    with subprocess.Popen(command, stdout=sending, env=environment(tmp_path), cwd=tmp_path) as process:
        os.close(sending)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)  # it waits for its reader
        with os.fdopen(receiving, "rb") as stream:
            assert stream.read() == b"line\n" * 100000
    assert process.returncode == 0


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = run("--version", home=tmp_path, stdout=full.fileno())
    assert done.returncode == 2
    assert done.stderr == b"gapwatch: standard output: No space left on device\n"


def test_a_closed_output_is_an_error(tmp_path: Path) -> None:
    script = 'exec "$0" -m gapwatch --version >&-'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable],
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert b"standard output" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_closed_error_stream_is_no_error(tmp_path: Path) -> None:
    script = 'exec "$0" -m gapwatch nonsense 2>&-'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable],
        stdout=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")


def test_descriptors_are_not_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    receiving, sending = os.pipe()
    os.close(receiving)
    before = set(os.listdir("/proc/self/fd"))
    with os.fdopen(sending, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        output.write_output("x")
        assert set(os.listdir("/proc/self/fd")) == before


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode_and_links(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old", encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    with real.open(encoding="utf-8") as reader:
        output.write_output("new", link)
        assert reader.read() == "old", "who reads the old file reads all of it"
    assert (link.is_symlink(), real.read_text(encoding="utf-8"), real.stat().st_mode & 0o777) == (True, "new", 0o640)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.txt", "real.txt"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        output.write_output("words", pipe)
        assert os.read(reader, 100) == b"words"
    finally:
        os.close(reader)
