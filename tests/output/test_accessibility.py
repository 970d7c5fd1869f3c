"""Pages under axe-core, the checker of accessibility: no violation, on light and dark, narrow and wide.

axe-core is not part of the project: ``npm install --prefix build axe-core`` puts it where this looks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import advice_samples as samples
import pytest
from browsers import start_chromium
from patience import PATIENCE_S
from report_samples import EVERYTHING
from test_timeline import run

from advisor.analysis.run_pictures import attach_pictures
from advisor.history import program_views
from advisor.output.html import index, report_page
from advisor.output.html.advice_page import render_advice_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver.chrome.webdriver import WebDriver

ROOT = Path(__file__).parents[2]
CHECKER = ROOT / "build" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(
  found => done(found.violations.map(one => `${one.id}: ${one.help}: ${one.nodes.map(node => node.html).slice(0, 3)}`)),
  error => done([String(error)]));
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    if not CHECKER.is_file():
        pytest.skip("no axe-core here: npm install --prefix build axe-core")
    with start_chromium(tmp_path_factory.mktemp("chromium"), browser="ALL") as started:
        started.set_script_timeout(PATIENCE_S)
        yield started


def list_pages() -> dict[str, str]:
    advice = attach_pictures(replace(samples.full(), profile=run(64, 8)))
    runs = [program_views.build_run_overview(samples.full(), (), "run.html")]
    return {
        "run": render_advice_page(advice, home="index.html"),
        "nothing": render_advice_page(samples.nothing()),
        "insufficient": render_advice_page(samples.insufficient()),
        "index": index.render_index_page(program_views.group_by_program(runs)),
        "report": report_page.render_report_page(EVERYTHING),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["run", "nothing", "insufficient", "index", "report"])
def test_the_checker_finds_nothing(browser: WebDriver, tmp_path: Path, page: str, scheme: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(list_pages()[page], encoding="utf-8")
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    for width in (380, 800, 1600):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(file.as_uri())
        browser.execute_script(CHECKER.read_text(encoding="utf-8"))
        assert browser.execute_async_script(RUN) == [], width
    assert browser.get_log("browser") == []
