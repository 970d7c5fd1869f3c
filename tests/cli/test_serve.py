"""The server of the history: what it answers, who may ask, and what it refuses."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import advice_samples as samples
import html5lib
import pytest
from command_line import environment
from run_history import add_runs, make_run

pytest.importorskip("starlette", reason="there is no Starlette here: pip install starlette")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from advisor.cli.serve import read_token
from advisor.cli.site.application import HistoryAnswers, build_application
from advisor.history.program_views import HistoryViews
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.applications import Starlette

TOKEN = "a token of the tests"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def ask(app: Starlette, path: str, method: str = "GET", **headers: str) -> Answer:
    """Ask as a client does, without a network."""
    place, _, query = path.partition("?")
    given = {"host": "127.0.0.1:8750"} | headers
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": place,
        "raw_path": place.encode(), "query_string": query.encode(), "root_path": "", "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8750),
    }  # fmt: skip
    told: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        told.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    headers_told = {name.decode(): value.decode() for name, value in told[0]["headers"]}  # type: ignore[attr-defined]
    body = b"".join(part.get("body", b"") for part in told[1:])  # type: ignore[misc]
    return Answer(int(str(told[0]["status"])), headers_told, body)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("served") / "state"
    add_runs(folder, [make_run(), make_run(build="v2", actual_s=50.0), make_run("<script>alert(1)</script>")])
    return folder


def build(state: Path, token: str | None = None) -> Starlette:
    return build_application(HistoryAnswers(state, HistoryViews(state)), token, ("127.0.0.1",))


def test_pages_lead_to_each_other(state: Path) -> None:
    app = build(state)
    index = ask(app, "/")
    assert (index.status, index.headers["content-type"]) == (200, "text/html; charset=utf-8")
    html5lib.HTMLParser(strict=True).parse(index.body.decode())
    assert b'href="runs/2"' in index.body
    assert b"<script>alert" not in index.body
    page = ask(app, "/runs/2")
    assert b"since" in page.body or b"jacobi" in page.body
    assert b'href="../"' in page.body
    assert ask(app, "/runs/2").body == page.body


def test_documents_say_what_the_history_holds(state: Path) -> None:
    app = build(state)
    programs = json.loads(ask(app, "/api/v1/programs").body)
    assert [one["newest"]["program"] for one in programs["programs"]] == ["<script>alert(1)</script>", "jacobi"]
    assert programs["schema"] == "gapwatch/site/1"
    runs = json.loads(ask(app, "/api/v1/runs?program=jacobi").body)["runs"]
    assert [(one["number"], one["build"], one["actual_s"]) for one in runs] == [(1, "v1", 47.0), (2, "v2", 50.0)]
    assert json.loads(ask(app, "/api/v1/runs/2").body)["schema"] == "gapwatch/advice/1"
    items = json.loads(ask(app, "/api/v1/items?program=jacobi").body)["items"]
    assert len(items) == len(samples.full().recommendations)
    assert json.loads(ask(app, "/api/v1/files").body)["files"]["ingested"] == 0
    metrics = ask(app, "/metrics")
    assert metrics.headers["content-type"].startswith("application/openmetrics-text")
    assert b"# EOF" in metrics.body


def test_runs_come_in_parts(state: Path) -> None:
    app = build(state)

    def list_runs(query: str) -> tuple[list[int], int | None]:
        answer = json.loads(ask(app, f"/api/v1/runs?{query}").body)
        return [one["number"] for one in answer["runs"]], answer["before"]

    assert list_runs("") == ([1, 2, 3], None)
    assert list_runs("limit=2") == ([2, 3], 2)
    assert list_runs("limit=2&before=2") == ([1], None)
    assert list_runs("program=jacobi&limit=1") == ([2], 2)
    assert list_runs("program=jacobi&limit=1&before=2") == ([1], None)
    assert list_runs("before=1") == ([], None)


@pytest.mark.parametrize("said", ["0", "-1", "1001", "x", "", "9" * 5000, "\N{SUPERSCRIPT TWO}"])
def test_an_impossible_number_of_runs_is_refused(state: Path, said: str) -> None:
    answer = ask(build(state), f"/api/v1/runs?limit={quote(said)}")
    assert (answer.status, answer.body) == (400, b"limit: expected a whole number from 1 to 1000\n")


def test_a_damaged_run_takes_its_own_metrics_only(tmp_path: Path) -> None:
    add_runs(tmp_path, [make_run(), make_run("solver")])
    with closing(sqlite3.connect(tmp_path / "history.sqlite")) as connection, connection:
        connection.execute("UPDATE runs SET advice = X'00' WHERE program = 'jacobi'")
    metrics = ask(build(tmp_path), "/metrics")
    assert metrics.status == 200
    assert b'program="solver"' in metrics.body
    assert b'program="jacobi"' not in metrics.body


@pytest.mark.parametrize(
    "path", ["/runs/99", "/api/v1/runs/99", f"/runs/{10**30}", "/runs/-1", "/nothing", "/../etc/passwd"]
)
def test_what_is_not_there_is_not_found(state: Path, path: str) -> None:
    assert ask(build(state), path).status == 404


def test_numbers_longer_than_any_integer_are_not_found(state: Path) -> None:
    for path in ("/runs/", "/api/v1/runs/"):
        answer = ask(build(state), path + "9" * 5000)
        assert (answer.status, len(answer.body) < 100) == (404, True)


def test_items_are_those_of_a_program(state: Path) -> None:
    answer = ask(build(state), "/api/v1/items")
    assert (answer.status, answer.body) == (400, b"of which program? /api/v1/items?program=NAME\n")


def test_without_a_history_there_is_an_empty_page(tmp_path: Path) -> None:
    app = build(tmp_path / "none")
    assert ask(app, "/").status == 200
    assert ask(app, "/api/v1/runs").status == 404
    assert not (tmp_path / "none").exists()


def test_only_reading_is_answered(state: Path) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert ask(build(state), "/", method).status == 405


def test_every_answer_has_the_headers(state: Path) -> None:
    for app, path in ((build(state), "/"), (build(state), "/nothing"), (build(state, TOKEN), "/")):
        headers = ask(app, path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "private, no-store"
    for path in ("/api/v1/files", "/metrics", "/nothing", "/api/v1/items"):
        assert (
            ask(build(state), path).headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        )
    assert ask(build(state), "/").headers["content-security-policy"] == "frame-ancestors 'none'"


def test_nobody_comes_in_without_the_token(state: Path) -> None:
    app = build(state, TOKEN)
    basic = base64.b64encode(f"anybody:{TOKEN}".encode()).decode()
    for said in ("", "Bearer wrong", "Basic ???", "Basic " + base64.b64encode(b"\xff:").decode(), f"Digest {TOKEN}"):
        answer = ask(app, "/", authorization=said)
        assert (answer.status, b"jacobi" in answer.body) == (401, False)
        assert answer.headers["www-authenticate"].startswith("Basic")
    assert ask(app, "/", authorization=f"Bearer {TOKEN}").status == 200
    assert ask(app, "/", authorization=f"Basic {basic}").status == 200


def test_other_names_of_the_server_are_refused(state: Path) -> None:
    assert ask(build(state), "/", host="attacker.example").status == 400


def test_a_token_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        read_token(file)
    file.chmod(0o600)
    assert read_token(file) == TOKEN
    file.write_text("short")
    with pytest.raises(UsageError, match="at least 16"):
        read_token(file)
    with pytest.raises(UsageError, match="No such file"):
        read_token(tmp_path / "none")


def test_only_loopback_is_served_without_a_token(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gapwatch", "serve", "--host", "0.0.0.0"]
    made = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert made.returncode == 2
    assert "--token-file" in made.stderr
    assert shutil.which("gapwatch") is None or not (tmp_path / ".local").exists()
