"""The application: where each page and document is, who may ask, and what every answer says to browsers.

Pages and documents of the history are made once for a state of the history.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from advisor.history import program_views
from advisor.history.access import read_history
from advisor.history.dialect import StoreLost
from advisor.history.file_states import FileStates
from advisor.history.items import ItemStore
from advisor.history.runs import LAST_NUMBER, RunEntry, RunStore
from advisor.model.errors import AdvisorError, StoreError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from advisor.history.location import HistoryLocation
    from advisor.history.program_views import HistoryViews, RunOverview
    from advisor.model.records import Advice


#: What every answer says: no other page may frame it, no cache may keep it, no type is guessed.
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"private, no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
#: Of pages, which carry the hashes of their style and script themselves, and of everything else.
_PAGE_POLICY: Final = b"frame-ancestors 'none'"
_POLICY: Final = b"default-src 'none'; frame-ancestors 'none'"
#: Digits of the largest number of a run that a history can hold.
_MOST_DIGITS: Final = 19
#: Runs of a program on the page that lists all, runs in a document, and answers that are kept.
_RUNS, _ENTRIES, _KEPT = 20, 1_000, 64
SCHEMA: Final = "gapwatch/site/1"


def build_application(answers: HistoryAnswers, token: str | None, hosts: Sequence[str]) -> Starlette:
    """Return the application; without a ``token`` everybody who reaches it may read. ``hosts`` are its own names."""

    def answer_page(make: Callable[[Request], str]) -> Callable[[Request], Response]:
        return _guard(lambda request: HTMLResponse(make(request)))

    def answer_document(make: Callable[[Request], object]) -> Callable[[Request], Response]:
        return _guard(lambda request: JSONResponse(make(request)))

    def answer_metrics(request: Request) -> Response:
        kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
        return Response(answers.render_metrics(), media_type=kind)

    routes = [
        Route("/", answer_page(lambda _: answers.render_index())),
        Route("/runs/{number}", answer_page(lambda request: answers.render_run(_run_number(request)))),
        Route("/metrics", _guard(answer_metrics)),
        Route("/api/v1/programs", answer_document(lambda _: answers.list_programs())),
        Route(
            "/api/v1/runs",
            answer_document(
                lambda request: answers.list_runs(
                    request.query_params.get("program"),
                    _read_number(request, "limit", most=_ENTRIES),
                    _read_number(request, "before", most=LAST_NUMBER),
                )
            ),
        ),
        Route(
            "/api/v1/runs/{number}", answer_document(lambda request: answers.build_run_document(_run_number(request)))
        ),
        Route("/api/v1/items", answer_document(lambda request: answers.list_items(_program_name(request)))),
        Route("/api/v1/files", answer_document(lambda _: answers.count_files())),
    ]
    middleware = [
        Middleware(_HeaderMiddleware),
        Middleware(TrustedHostMiddleware, allowed_hosts=[*hosts], www_redirect=False),
        Middleware(_TokenMiddleware, token=token),
    ]
    return Starlette(routes=routes, middleware=middleware)


def _run_number(request: Request) -> int:
    said = str(request.path_params["number"])
    if not (said.isascii() and said.isdigit() and len(said) <= _MOST_DIGITS):
        raise HTTPException(404, f"no run has the number {said[:_MOST_DIGITS]!r}\n")
    return min(int(said), LAST_NUMBER)


def _read_number(request: Request, name: str, most: int) -> int:
    """Return a number from 1 to ``most`` that the query gives, ``most`` where it gives none."""
    said = request.query_params.get(name, str(most))
    number = int(said) if said.isascii() and said.isdigit() and len(said) <= _MOST_DIGITS else 0
    if not 1 <= number <= most:
        raise HTTPException(400, f"{name}: expected a whole number from 1 to {most}\n")
    return number


def _program_name(request: Request) -> str:
    if not (name := request.query_params.get("program")):
        raise HTTPException(400, f"of which program? {request.url.path}?program=NAME\n")
    return name


def _guard(answer: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Turn what the history cannot tell into an answer: 404 for what it does not hold, else 503."""

    def answer_guarded(request: Request) -> Response:
        try:
            return answer(request)
        except StoreError as error:
            missing = str(error).startswith("no ")
            return PlainTextResponse(f"{error}\n", 404 if missing else 503)
        except AdvisorError as error:
            return PlainTextResponse(f"{error}\n", 501)

    return answer_guarded


class _HeaderMiddleware:
    """Adds the headers that every answer has, and the policy of its kind."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kind = dict(message["headers"]).get(b"content-type", b"")
                policy = _PAGE_POLICY if kind.startswith(b"text/html") else _POLICY
                message["headers"] = [*message["headers"], *HEADERS, (b"content-security-policy", policy)]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class _TokenMiddleware:
    """Lets nobody in without the token: as ``Bearer``, or as the password of ``Basic``, which browsers ask for."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._token is not None:
            said = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            if not hmac.compare_digest(_find_token(said).encode(), self._token.encode()):
                headers = {"www-authenticate": 'Basic realm="gapwatch", charset="UTF-8"'}
                await PlainTextResponse("a token is required\n", 401, headers)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _find_token(authorization: str) -> str:
    """Return the token of a header, '' where there is none."""
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


class HistoryAnswers:
    """Answers from the history at ``location``; threads may share it. Every method raises ``StoreError``.

    Pages are drawn one at a time, since the library that draws figures is not made for threads.
    """

    def __init__(self, location: HistoryLocation, views: HistoryViews) -> None:
        self._location, self._views = location, views
        self._lock = Lock()
        self._known: OrderedDict[tuple[object, ...], str] = OrderedDict()

    def render_index(self) -> str:
        """Return the page of all programs, with their newest runs."""
        return self._answer_once("index", 0, self._render_index)

    def render_run(self, number: int) -> str:
        """Return the page of a run."""
        return self._answer_once("run", number, lambda: self._render_run(number))

    def render_metrics(self) -> str:
        """Return the newest run of each program as OpenMetrics."""
        return self._answer_once("metrics", 0, self._render_metrics)

    def list_programs(self) -> dict[str, Any]:
        """Return the programs, each with its newest run and the number of unseen items."""
        found = self._views.list_programs()
        return {
            "schema": SCHEMA,
            "programs": [{"newest": asdict(one.newest), "new_items": one.new_items} for one in found],
        }

    def list_runs(self, program: str | None, limit: int, before: int) -> dict[str, Any]:
        """Return the newest runs before one, of a program if given, the oldest first, and what leads to older ones."""
        with read_history(self._location) as connection:
            found = RunStore(connection).list_entries(program, limit + 1, before)
        shown = found[-limit:]
        older = shown[0].number if len(found) > limit else None
        return {"schema": SCHEMA, "runs": [asdict(one) for one in shown], "before": older}

    def list_items(self, program: str) -> dict[str, Any]:
        """Return the items of a program with their states."""
        with read_history(self._location) as connection:
            return {
                "schema": SCHEMA, "items": [asdict(one) for one in ItemStore(connection).items_of_program(program)],
            }  # fmt: skip

    def build_run_document(self, number: int) -> dict[str, Any]:
        """Return the advice on a run, ``gapwatch/advice/1``."""
        from advisor.output.advice_document import build_advice_document

        with read_history(self._location) as connection:
            document: dict[str, Any] = json.loads(
                json.dumps(build_advice_document(RunStore(connection).load_advice(number)))
            )
            return document

    def count_files(self) -> dict[str, Any]:
        """Return the files by state."""
        with read_history(self._location) as connection:
            return {"schema": SCHEMA, "files": dict(FileStates(connection).count_states())}

    def _answer_once(self, kind: str, number: int, make_answer: Callable[[], str]) -> str:
        key = (kind, number, *self._views.read_version())
        with self._lock:
            if key not in self._known:
                self._known[key] = make_answer()
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]

    def _render_index(self) -> str:
        from advisor.output.html import index

        shown: list[RunOverview] = []
        problems: list[str] = []
        if self._views.has_history:
            with read_history(self._location) as connection:
                runs = RunStore(connection)
                for program in runs.list_programs():
                    self._add_runs(runs, runs.list_entries(program, _RUNS), shown, problems)
        return index.render_index_page(program_views.group_by_program(shown), tuple(problems))

    @staticmethod
    def _add_runs(runs: RunStore, entries: tuple[RunEntry, ...], shown: list[RunOverview], problems: list[str]) -> None:
        earlier: list[Advice] = []
        for entry in entries:
            try:
                advice = runs.load_advice(entry.number)
            except StoreLost:
                raise
            except StoreError as error:
                problems.append(f"{error}; it is left out")
                continue
            shown.append(program_views.build_run_overview(advice, earlier, f"runs/{entry.number}"))
            earlier.append(advice)

    def _render_run(self, number: int) -> str:
        from advisor.history.history_queries import StoredHistory
        from advisor.output.html.advice_page import render_advice_page

        with read_history(self._location) as connection:
            advice = RunStore(connection).load_advice(number)
        past = StoredHistory(self._location, until=number - 1)
        earlier = past.load_summaries(advice.profile.program)
        return render_advice_page(StoredHistory(self._location).update_item_states(advice), earlier, "../")

    def _render_metrics(self) -> str:
        from advisor.output.open_metrics import render_open_metrics

        with read_history(self._location) as connection:
            runs = RunStore(connection)
            return render_open_metrics(runs.load_newest(runs.list_programs())[0])
