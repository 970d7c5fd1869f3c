from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from advisor.model.reports import Column, Report, Table, Text
from advisor.output.advice_document import to_json
from advisor.output.page import Page
from advisor.output.report_text import build_report_document, render_report

SAMPLE = Report(
    "Coupling of the kernels",
    (
        Text("Two kernels share the cache.\n\n  model = alpha + beta"),
        Table(
            "Pairs",
            (Column("pair"), Column("seconds", "s"), Column("share", "share"), Column("bytes", "B"), Column("calls")),
            (("solve, smooth", 1.5, 0.0213, 65536.0, 12), ("solve, norm", None, 0.5, 12.0, 3)),
        ),
        Table("Nothing", (Column("pair"),), ()),
    ),
)


def test_a_report_as_text() -> None:
    assert render_report(SAMPLE, Page(80)).split("\n") == [
        "Coupling of the kernels",
        "",
        "Two kernels share the cache.",
        "",
        "  model = alpha + beta",
        "",
        "Pairs",
        "  pair           seconds   share   bytes  calls",
        "  solve, smooth   1.50 s   2.1 %  64 KiB     12",
        "  solve, norm          -  50.0 %    12 B      3",
        "",
        "Nothing",
        "  none",
        "",
    ]


def test_a_report_as_a_document() -> None:
    read = json.loads(to_json(build_report_document(SAMPLE)))
    assert read["schema"] == "gapwatch/report/1"
    assert read["title"] == "Coupling of the kernels"
    assert read["parts"][1]["columns"][1] == {"name": "seconds", "unit": "s"}
    assert read["parts"][1]["rows"][1] == ["solve, norm", None, 0.5, 12.0, 3]


def test_too_many_columns_for_the_page_become_a_list() -> None:
    wide = Report("", (Table("", tuple(Column(f"column {n}") for n in range(20)), (tuple(map(str, range(20))),)),))
    lines = render_report(wide, Page(60)).split("\n")
    assert lines[0] == "0"
    assert "  column 19: 19" in lines


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_no_line_of_a_report_is_wider_than_the_page(width: int) -> None:
    assert all(cell_len(part) <= width for part in render_report(SAMPLE, Page(width)).split("\n"))


@given(st.text(max_size=30), st.sampled_from([20, 60, 200]), st.sampled_from(["utf-8", "ascii"]))
@settings(max_examples=60, deadline=None)
def test_what_plugins_write_does_nothing_on_a_terminal(name: str, width: int, encoding: str) -> None:
    parts = (Text(name), Table(name, (Column(name), Column("n", "s")), ((name, 1.0), ("x", None))))
    shown = render_report(Report(name, parts), Page(width, encoding))
    assert {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} <= {"\n"}
    shown.encode(encoding)


def test_code_in_a_text_is_not_wrapped() -> None:
    code = "    " + "x = y; " * 40
    assert render_report(Report("", (Text(f"before:\n{code}"),)), Page(60)).split("\n") == [
        "before:",
        code.rstrip(),
        "",
    ]
