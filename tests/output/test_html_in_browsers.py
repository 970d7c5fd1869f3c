"""The page of a run in a browser: no error, no request, and gaps that open."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import advice_samples as samples
import pytest
from browsers import start_chromium
from report_samples import EVERYTHING, draw_pictures

from advisor.history import program_views
from advisor.output.html import index, report_page
from advisor.output.html.advice_page import render_advice_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver.chrome.webdriver import WebDriver


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """Chromium without a window, whose console and requests are kept."""
    with start_chromium(tmp_path_factory.mktemp("chromium"), browser="ALL", performance="ALL") as started:
        yield started


@pytest.fixture
def shown(browser: WebDriver, tmp_path: Path) -> WebDriver:
    """The page of a run, open in the browser."""
    (tmp_path / "page.html").write_text(
        render_advice_page(replace(samples.full(), pictures=draw_pictures())), encoding="utf-8"
    )
    browser.get_log("performance")
    browser.get((tmp_path / "page.html").as_uri())
    return browser


def test_a_browser_loads_it_without_an_error_or_a_request(shown: WebDriver) -> None:
    assert [entry["message"] for entry in shown.get_log("browser")] == []
    sent = [
        entry["message"] for entry in shown.get_log("performance") if '"Network.requestWillBeSent"' in entry["message"]
    ]
    urls = re.findall(r'"url":"([^"]*)"', " ".join(sent))
    assert {url.partition(":")[0] for url in urls} <= {"file", "data"}
    assert sum(url.startswith("file:") and url.endswith("page.html") for url in set(urls)) == 1


def test_a_click_on_a_gap_shows_its_regions(shown: WebDriver) -> None:
    rows: list[Any] = shown.find_elements("css selector", "details.row")
    advice = samples.full()
    gap = max(advice.gaps, key=lambda gap: len(gap.regions))
    row = next(row for row in rows if row.get_attribute("data-gap") == gap.name)
    assert not row.find_element("css selector", "td").is_displayed()
    row.find_element("css selector", "summary").click()
    assert row.find_element("css selector", "td").is_displayed()
    assert gap.regions[0].name in row.text


def test_the_keyboard_opens_a_gap_too(shown: WebDriver) -> None:
    row = shown.find_element("css selector", "details.row[data-gap=L]")
    row.find_element("css selector", "summary").send_keys("\ue007")  # Enter
    assert row.find_element("css selector", "td").is_displayed()


def test_on_paper_everything_is_unfolded(shown: WebDriver) -> None:
    heights = "return [...document.querySelectorAll('details.row')].map(row => row.getBoundingClientRect().height)"
    folded = shown.execute_script(heights)
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    unfolded = shown.execute_script(heights)
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    tables = [len(row.find_elements("css selector", "table")) for row in shown.find_elements("css selector", ".row")]
    for before, after, many in zip(folded, unfolded, tables, strict=True):
        assert after > before + 50 * many


def test_the_index_and_reports_load_as_well(browser: WebDriver, tmp_path: Path) -> None:
    runs = [
        program_views.build_run_overview(samples.full(), (), "run-0001.html"),
        program_views.build_run_overview(samples.nothing(), (), "run-0002.html"),
    ]
    texts = {"index.html": index.render_index_page(program_views.group_by_program(runs)),
    "report.html": report_page.render_report_page(EVERYTHING),
             "run-0001.html": render_advice_page(samples.full(), home="index.html")}  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    for name in texts:
        browser.get((tmp_path / name).as_uri())
        assert browser.get_log("browser") == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    browser.find_element("link text", "All programs and builds").click()
    assert browser.title == "Programs and builds"


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_no_page_is_wider_than_its_window(shown: WebDriver, width: int) -> None:
    shown.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    assert shown.execute_script("return document.documentElement.scrollWidth") <= width
