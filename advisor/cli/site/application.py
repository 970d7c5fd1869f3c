"""The application: where each answer is, who may ask, and what every answer says to browsers."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from advisor.model.errors import AdvisorError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from advisor.cli.site.answers import HistoryAnswers

#: What every answer says: no other page may frame it, no cache may keep it, no type is guessed.
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"private, no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
#: Of what is no page. Pages carry a policy with the hashes of their style and script.
_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
_LARGEST: Final = 2**63 - 1


def build_application(answers: HistoryAnswers, token: str | None, hosts: Sequence[str]) -> Starlette:
    """Return the application; without a ``token`` everybody who reaches it may read. ``hosts`` are its own names."""

    def answer_page(make: Callable[[Request], str]) -> Callable[[Request], Response]:
        return _guard(lambda request: HTMLResponse(make(request)))

    def answer_document(make: Callable[[Request], object]) -> Callable[[Request], Response]:
        return _guard(lambda request: JSONResponse(make(request), headers={"content-security-policy": _POLICY}))

    def answer_metrics(request: Request) -> Response:
        kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
        return Response(answers.render_metrics(), media_type=kind)

    routes = [
        Route("/", answer_page(lambda _: answers.render_index())),
        Route("/runs/{number:int}", answer_page(lambda request: answers.render_run(_run_number(request)))),
        Route("/metrics", _guard(answer_metrics)),
        Route("/api/v1/programs", answer_document(lambda _: answers.list_programs())),
        Route("/api/v1/runs", answer_document(lambda request: answers.list_runs(request.query_params.get("program")))),
        Route(
            "/api/v1/runs/{number:int}",
            answer_document(lambda request: answers.build_run_document(_run_number(request))),
        ),
        Route(
            "/api/v1/items",
            answer_document(lambda request: answers.list_items(request.query_params.get("program", ""))),
        ),
        Route("/api/v1/files", answer_document(lambda _: answers.count_files())),
    ]
    middleware = [
        Middleware(_HeaderMiddleware),
        Middleware(TrustedHostMiddleware, allowed_hosts=[*hosts], www_redirect=False),
        Middleware(_TokenMiddleware, token=token),
    ]
    return Starlette(routes=routes, middleware=middleware)


def _run_number(request: Request) -> int:
    return min(int(request.path_params["number"]), _LARGEST)


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
    """Adds the headers that every answer has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
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
