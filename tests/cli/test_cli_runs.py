"""The command on real input, from the file to the screen and the document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command_line import run

from advisor import cli
from advisor.output.advice_document import load_schema

PROFILES = Path(__file__).parents[1] / "profiles"
TRACES = sorted(file.parent for file in (PROFILES / "otf2").rglob("*.otf2"))


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def document(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The document on a run, checked against the schema."""
    assert cli.main(["advise", str(path), "--format", "json"]) == 0
    read: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(load_schema()).validate(read)
    return read


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fig4", {"IPCO": 41.0, "IPCOL": 42.0, "IPCOLM": 46.0, "IPCOLMD": 47.0}),
        ("fig5", {"IPCO": 40.0, "IPCOL": 40.0, "IPCOLM": 40.0, "IPCOLMD": 60.0}),
    ],
)
def test_the_figures_of_the_source(name: str, expected: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    bounds = {bound["name"]: bound["seconds"] for bound in document(PROFILES / f"{name}.json", capsys)["bounds"]}
    assert {bound: bounds[bound] for bound in expected} == expected


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
def test_documents_on_traces_follow_the_schema_and_add_up(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = document(trace, capsys)
    actual = read["profile"]["actual_s"]
    lowest = next(bound["seconds"] for bound in read["bounds"] if bound["seconds"] is not None)
    assert lowest + sum(gap["seconds"] for gap in read["gaps"]) == pytest.approx(actual, rel=1e-9)
    for gap in read["gaps"]:
        assert gap["share"] == pytest.approx(gap["seconds"] / actual)


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
@pytest.mark.parametrize("width", ["40", "60", "200"])
def test_screens_on_traces(trace: Path, width: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", str(trace), "--width", width, "--verbose"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "Where the" in out
    assert "not a number" not in out


def test_a_pipe_gets_plain_text(tmp_path: Path) -> None:
    done = run("advise", str(PROFILES / "fig4.json"), home=tmp_path, COLUMNS="30", TERM="xterm-256color")
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert max(map(len, done.stdout.decode().split("\n"))) > 80


def test_the_c_locale_gets_ascii(tmp_path: Path) -> None:
    done = run("advise", str(PROFILES / "fig4.json"), home=tmp_path, LC_ALL="C")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert b"#####" in done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", b"is in no format that is known"),
        (b"\x00\xff" * 100, b"is in no format that is known"),
        (b"\x1f\x8b\x08" + b"\x00" * 50, b"packed by gzip: unpack it first: gunzip"),
    ],
)
def test_what_is_no_profile_is_one_message(content: bytes, message: bytes, tmp_path: Path) -> None:
    file = tmp_path / "pro\nfile"
    file.write_bytes(content)
    done = run("advise", str(file), home=tmp_path)
    assert done.returncode == 2
    assert done.stdout == b""
    assert message in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_missing_file_is_one_message(tmp_path: Path) -> None:
    done = run("advise", str(tmp_path / "none"), home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"No such file" in done.stderr
