"""What findings explain of the gaps is on every screen: beside its gap, and the two that matter most with source."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePosixPath

import advice_samples
import jsonschema
import pytest

from advisor.model.gap_parts import GapAccount, GapPart
from advisor.model.records import Advice, Finding
from advisor.output.advice_document import build_advice_document, load_schema, to_json
from advisor.output.html.advice_page import render_advice_page
from advisor.output.markdown import render_comment
from advisor.output.page import Page
from advisor.output.sarif import render_sarif
from advisor.output.source_tree import SourcePlace, SourceTree
from advisor.output.terminal import render_screen
from advisor.output.watch_screen import ProgramScreen, WatchScreen, render_watch_screen

PAIR = GapPart("L", "coupling", 4.4, "gapwatch couple at N=9", "measured", (4.1, 4.7), ("flux", "update"), ("K-2",))
STRIDE = GapPart("L", "stride", 3.1, "loads counted", "estimated", None, ("flux",))
TREE = SourceTree(None, SourcePlace(PurePosixPath("Makefile"), 3))
TINY = GapPart("W", "latency of MPI_Recv", 0.01, "replay", "modelled")
FIRST = "4.40 s (4.10 s to 4.70 s) of L: coupling of flux and update; measured: gapwatch couple at N=9"


@pytest.fixture
def advice() -> Advice:
    parts = (PAIR, STRIDE)
    return replace(
        advice_samples.full(),
        findings=(Finding("coupling", "coupling", "flux,update", "they hurt each other", explains=parts),),
        accounts=(GapAccount("L", 8.0, parts), GapAccount("W", 0.7, (TINY,))),
    )


def test_the_terminal_shows_the_account_and_how_it_is_known(advice: Advice) -> None:
    shown = " ".join(render_screen(advice, Page(110)).split())
    assert "4.40 s coupling of flux and update, 3.10 s stride of flux, 500 ms unexplained" in shown
    assert FIRST in shown
    assert "MPI_Recv" not in shown.split("The three things")[0].split("What explains them")[1]
    assert "latency of MPI_Recv" in " ".join(render_screen(advice, Page(110, verbose=True)).split())


def test_the_live_screen_shows_the_two_that_matter(advice: Advice) -> None:
    screen = WatchScreen(("runs",), (ProgramScreen(1, advice),), {"ingested": 1}, 0, ())
    shown = " ".join(render_watch_screen(screen, Page(110)).plain.split())
    assert FIRST in shown
    assert "3.10 s of L: stride of flux; estimated: loads counted" in shown


def test_comments_notifications_and_pages_show_them(advice: Advice) -> None:
    assert "**What explains the gaps**" in render_comment(advice)
    assert "coupling of flux and update; measured: gapwatch couple at N=9" in render_comment(advice)
    run = json.loads(render_sarif(advice, TREE))["runs"][0]
    told = [one["message"]["text"] for one in run["invocations"][0]["toolExecutionNotifications"]]
    assert FIRST in told
    assert "coupling of flux and update" in render_advice_page(advice)


def test_the_document_has_all_parts_and_fits_its_schema(advice: Advice) -> None:
    document = json.loads(to_json(build_advice_document(advice)))
    jsonschema.validate(document, load_schema())
    first = document["explained"][0]
    assert (first["gap"], first["seconds"], round(first["unexplained_s"], 9)) == ("L", 8.0, 0.5)
    assert first["parts"][0] == document["findings"][0]["explains"][0]
    assert first["parts"][0]["regions"] == ["flux", "update"]
    assert "explained" not in build_advice_document(advice_samples.full())
