"""The page of a run: sound HTML, the right seconds, and names that start nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

import advice_samples as samples
import html5lib
import numpy as np
import pytest
from defusedxml import ElementTree
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import EVERYTHING, draw_pictures

from advisor.analysis import run_pictures
from advisor.history import program_views
from advisor.model.records import Advice, Phase, Profile
from advisor.model.reports import Axis, Bar, Bars, Code, Column, HeatMap, Line, Report, Series, Table, Text
from advisor.output import numbers
from advisor.output.html import figures, index, report_page, templates
from advisor.output.html.advice_page import render_advice_page
from advisor.output.html.charts import DARK, LIGHT, draw_picture
from advisor.output.wording import select_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.etree.ElementTree import Element


HTML = "{http://www.w3.org/1999/xhtml}"
HOSTILE = ("operator[]", "</script><img src=x onerror=alert(1)>", "[/]", "\x1b[2J", "x" * 5000, "größer→", "$x^2$",
           "{{ 7 * 7 }}", "'\"><svg onload=alert(1)>", "javascript:alert(1)")  # fmt: skip
SIZE_LIMIT = 1_000_000


def parsed(text: str) -> Element:
    """Return the document of a page that the parser finds no fault with."""
    parser = html5lib.HTMLParser(strict=True)
    document: Element = parser.parse(text)
    return document


@pytest.mark.parametrize("sample", [samples.full, samples.expected, samples.nothing, samples.insufficient,
                                    samples.without_phases])  # fmt: skip
def test_every_verdict_is_sound_html(sample: Callable[[], Advice]) -> None:
    document = parsed(render_advice_page(replace(sample(), pictures=draw_pictures())))
    assert not document.findall(f".//{HTML}script")
    assert [tag.get("lang") for tag in document.iter(f"{HTML}html")] == ["en"]


def test_golden_pages(golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "__version__", "VERSION")
    advice = samples.full()
    golden(render_advice_page(advice), "advice.html")
    later = replace(advice, profile=replace(advice.profile, build="8ab03d"))
    seen = [
        program_views.build_run_overview(advice, (), "run-0001.html"),
        program_views.build_run_overview(later, (advice,), "run-0002.html"),
    ]
    monkeypatch.setattr(figures, "draw_picture", lambda part, theme: "data:image/svg+xml;base64,")
    golden(index.render_index_page(program_views.group_by_program(seen), ("one is damaged",)), "index.html")


def test_nothing_is_fetched_and_nothing_may_run() -> None:
    text = render_advice_page(replace(samples.full(), pictures=draw_pictures()))
    document = parsed(text)
    (policy,) = [tag.get("content") or "" for tag in document.iter(f"{HTML}meta") if tag.get("http-equiv")]
    style = next(document.iter(f"{HTML}style")).text or ""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    for tag in document.iter():
        for name, value in tag.attrib.items():
            assert not name.startswith("on"), (tag.tag, name)
            assert name not in ("style", "href")
            if name in ("src", "srcset"):
                assert value.startswith("data:image/svg+xml;base64,")
    assert len(text) < SIZE_LIMIT


def test_the_waterfall_has_one_bar_for_each_known_bound() -> None:
    advice = samples.full()
    rows = [tag for tag in parsed(render_advice_page(advice)).iter(f"{HTML}details") if tag.get("data-bound")]
    known = [bound for bound in advice.bounds if bound.seconds is not None]
    assert [row.get("data-bound") for row in rows] == [bound.name for bound in known]
    assert [float(row.get("data-seconds") or "") for row in rows] == [bound.seconds for bound in known]
    scale = max(bound.seconds or 0.0 for bound in known)
    end = 0.0
    for row, bound in zip(rows, known, strict=True):
        *_, bar = row.iter("{http://www.w3.org/2000/svg}rect")
        first, width = float(bar.get("x") or ""), float(bar.get("width") or "")
        assert first == pytest.approx(end, abs=3.1)
        end = 1000 * (bound.seconds or 0.0) / scale
        assert first + width == pytest.approx(end, abs=3.1)


def test_gaps_hold_their_regions_and_items_their_code() -> None:
    advice = samples.full()
    text = " ".join("".join(parsed(render_advice_page(advice)).itertext()).split())
    for gap in advice.gaps:
        for share in gap.regions:
            assert " ".join(share.name.split()) in text
    for item in advice.recommendations:
        assert item.title in text
        assert f"at most {numbers.format_duration(item.ceiling_s)}" in text
        assert item.fingerprint in text


@given(st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=60)))
@settings(deadline=None, max_examples=15)
def test_names_are_text_and_nothing_else(name: str) -> None:
    plain, hostile = (parsed(render_advice_page(samples.hostile(text))) for text in ("name", name))
    if len(name) > 240:  # what is shortened stands in full at the end
        assert {tag.tag for tag in hostile.iter()} == {tag.tag for tag in plain.iter()}
    else:
        assert [tag.tag for tag in hostile.iter()] == [tag.tag for tag in plain.iter()]
        assert [sorted(tag.attrib) for tag in hostile.iter()] == [sorted(tag.attrib) for tag in plain.iter()]
    if name.strip() and name.isprintable():
        assert name.strip() in "".join(hostile.itertext())


def test_a_page_stays_small_and_has_long_names_in_full_once() -> None:
    name = "y" * 5000
    many = tuple(HeatMap(f"map {at}", "", ("a",) * 30, ("b",) * 30, ((0.1, 0.9) * 15,) * 30) for at in range(2))
    text = render_advice_page(replace(samples.hostile(name), pictures=many))
    assert len(text.encode()) < SIZE_LIMIT
    document = parsed(text)
    assert [tag.text for tag in document.iter(f"{HTML}p") if tag.get("class") == "name-in-full"] == [name]
    drawn = sum(1 for _ in document.iter(f"{HTML}img"))
    assert drawn == 2


def test_axes_have_numbers_with_units() -> None:
    curve = Series("", Axis("ranks", scale="log"), Axis("time", "s", "log"), (Line("", (1.0, 100.0), (0.01, 10.0)),))
    drawn = base64.b64decode(figures.build_figure(curve).light.partition(",")[2]).decode()
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert {"10.0 ms", "100 ms", "1.00 s", "10.0 s", "1", "10", "100"} <= set(shown)


@pytest.mark.parametrize("part", [
    HeatMap("関数 🚀", "", ("関数 🚀",), ("b",), ((1.0,),)), HeatMap("", "", (), (), ()),
    HeatMap("", "", ("a",), ("b",), ((None,),), neutral=1.0), Bars("", "s", ()), Bars("", "s", (Bar("_x", None),)),
    Series("", Axis("関数", scale="log"), Axis("y", "s", "log"), (Line("_", (1.0, 2.0), (-1.0, 0.0)),)),
    Series("", Axis("x"), Axis("y"), ()), Series("", Axis("x", scale="log"), Axis("y"), (Line("", (), ()),)),
])  # fmt: skip
def test_whatever_there_is_to_draw_makes_a_page(part: Bars | Series | HeatMap) -> None:
    parsed(report_page.render_report_page(Report("", (part,))))


def test_what_has_no_room_is_a_table() -> None:
    shown = figures.build_figures(draw_pictures(), 75_000)
    assert [bool(figure.light) for figure in shown] == [True, True, False, True]
    assert [bool(figure.table.rows) for figure in shown] == [True] * 4
    assert figures.build_figure(HeatMap("", "", ("a",) * 100, ("b",) * 100, ((1.0,) * 100,) * 100)).omitted_rows > 0


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2, section on contrast."""
    digits = colour.lstrip("#")
    digits = "".join(2 * one for one in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_and_lines_stand_out_on_light_and_dark_paper() -> None:
    style = (files("advisor.output") / "html" / "page.css").read_text("utf-8")
    themes = [dict(re.findall(r"--(\w+): (#\w+)", rows)) for rows in style.splitlines()[:2]]
    for colours, theme in zip(themes, (LIGHT, DARK), strict=True):
        for text in ("ink", "faint", "gap", "bad"):
            for ground in ("paper", "card"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["base"], colours["paper"]) >= 3
        assert contrast(theme.ink, colours["paper"]) >= 4.5
        assert all(contrast(line, colours["paper"]) >= 3 for line in theme.lines)


def test_headings_go_down_one_step_and_everything_that_scrolls_can_be_reached() -> None:
    document = parsed(render_advice_page(replace(samples.full(), pictures=draw_pictures())))
    levels = [int(tag.tag[-1]) for tag in document.iter() if re.fullmatch(r".*}h[1-6]", tag.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for tag in document.iter():
        if tag.get("class") in ("scroll", "drawing") or tag.tag == f"{HTML}pre":
            assert tag.get("tabindex") == "0"
        if tag.tag == f"{HTML}img":
            assert tag.get("alt")
        if tag.get("aria-labelledby"):
            assert any(other.get("id") == tag.get("aria-labelledby") for other in document.iter())


def test_pictures_of_plugins_stand_on_the_page() -> None:
    advice = samples.full()
    curve = Series("Over P", Axis("P", scale="log"), Axis("seconds", "s", "log"), (Line("L", (1.0, 2.0), (3.0, 4.0)),))
    found = replace(advice.findings[0], pictures=(curve, draw_pictures()[0]))
    document = parsed(render_advice_page(replace(advice, findings=(found,))))
    titles = ["".join(tag.itertext()) for tag in document.iter(f"{HTML}h2")]
    assert {"scaling: Over P", "scaling: coupling"} <= set(titles)
    assert "3.00 s" in "".join(document.itertext())


@pytest.mark.parametrize("name", HOSTILE)
def test_pages_of_reports_hold_text_and_nothing_else(name: str) -> None:
    bars, table = Bars(name, "s", (Bar(name, 1.0, note=name),)), Table(name, (Column(name),), ((name,), (None,)))
    texts = (Text(f"{name}\n    {name}"), Code(name, "c", name))
    document = parsed(
        report_page.render_report_page(Report(name, (*texts, bars, table, Table("", (Column("x"),), ()))))
    )
    assert not {tag.tag.rpartition("}")[2] for tag in document.iter()} & {"script", "svg", "a"}
    assert all(tag.get("onerror") is None for tag in document.iter())


def test_a_report_with_every_part_is_a_page() -> None:
    document = parsed(report_page.render_report_page(EVERYTHING))
    assert [tag.text for tag in document.iter(f"{HTML}h1")] == ["Everything"]
    assert sum(1 for _ in document.iter(f"{HTML}img")) == 5
    text = "".join(document.itertext()).replace("\N{NO-BREAK SPACE}", " ")
    assert "[bold]as it is[/bold]" in text
    assert "3.26 GiB/s" in text or "3.50 GB/s" in text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_pictures_are_text(name: str) -> None:
    part = HeatMap(name, "", (name,), (name,), ((1.0,),), neutral=1.0)
    page = parsed(render_advice_page(replace(samples.full(), pictures=(part,))))
    images = [tag.get("src") or "" for tag in page.iter(f"{HTML}img")]
    (drawn,) = [base64.b64decode(image.partition(",")[2]) for image in images]
    picture = ElementTree.fromstring(drawn)
    tags = {tag.tag.rpartition("}")[2] for tag in picture.iter()}
    assert not tags & {"script", "a", "foreignObject"}
    assert all(not name.startswith("on") for tag in picture.iter() for name in tag.attrib)
    if len(name) < 30 and name.isprintable():
        assert name in "".join(picture.itertext())


def test_pictures_show_who_works_more() -> None:
    arrays = {"wall_s": np.array([[[3.0, 3.0], [1.0, 1.0]]]), "wait_s": np.array([[[0.0, 0.0], [0.5, 0.5]]])}
    profile = samples.profile()
    made = Profile(**{name: getattr(profile, name) for name in Profile.__slots__} | {
        "processors": profile.processors[:2], "phases": (Phase("loop", "parallel", np.array([0]), arrays),)
    })  # fmt: skip
    balance, imbalance = run_pictures.build_balance_map(made), run_pictures.build_imbalance_series(made)
    assert balance is not None
    assert balance.cells == ((6.0 / 3.5,), (1.0 / 3.5,))
    assert imbalance is not None
    assert imbalance.lines[0].y == (3.0 / 1.75, 3.0 / 1.75)


def test_without_its_libraries_the_page_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from advisor.model.errors import AdvisorError

    templates._load_environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(AdvisorError, match=re.escape('pip install "gapwatch[html]"')):
        render_advice_page(samples.full())


def test_the_index_has_no_column_of_changes_where_nothing_was_compared() -> None:
    first = program_views.build_run_overview(samples.full(), (), "run-0001.html")
    page = index.render_index_page(program_views.group_by_program([first]))
    assert ">to do first<" in page
    assert "since the build before" not in page


def test_the_seventh_line_of_a_picture_is_told_from_the_first() -> None:
    axis = Axis("x")
    lines = tuple(Line(f"line {number}", (0.0, 1.0), (0.0, float(number))) for number in range(7))
    address = draw_picture(Series("Seven", axis, axis, lines), LIGHT)
    drawn = base64.b64decode(address.partition(",")[2]).decode()
    assert drawn.count("stroke-dasharray") >= 1


def test_a_number_and_its_unit_stay_on_one_line() -> None:
    text = "".join(parsed(report_page.render_report_page(EVERYTHING)).itertext())
    assert re.search(r"\d\N{NO-BREAK SPACE}GB/s", text)


def test_the_page_of_a_run_without_times_names_no_seconds() -> None:
    timed = samples.insufficient()
    document = parsed(
        render_advice_page(replace(timed, profile=replace(timed.profile, actual_s=float("nan")), gaps=(), bounds=()))
    )
    text = "".join(document.itertext())
    assert "not a number" not in text
    assert "without times, on" in text
    assert [tag.text for tag in document.iter(f"{HTML}h2") if (tag.text or "").startswith("Where")] == []


def test_the_legend_tells_only_of_marks_that_stand_there() -> None:
    advice = samples.full()
    measured = replace(advice, gaps=tuple(replace(gap, status="measured") for gap in advice.gaps))
    measured = replace(measured, bounds=tuple(replace(bound, status="measured") for bound in advice.bounds))
    estimated = replace(measured, gaps=tuple(replace(gap, status="estimated") for gap in advice.gaps))
    texts = ["".join(parsed(render_advice_page(each)).itertext()) for each in (measured, estimated)]
    assert [("~ estimated" in text, "^ modelled" in text) for text in texts] == [(False, False), (True, False)]


@pytest.mark.parametrize("sample", [samples.full, samples.nothing, samples.without_phases])
def test_the_page_names_the_command_that_the_screen_names(sample: Callable[[], Advice]) -> None:
    advice = sample()
    command = select_command(advice)
    codes = [code.text for code in parsed(render_advice_page(advice)).findall(f".//{HTML}p/{HTML}code")]
    assert codes == ([command] if command else [])
