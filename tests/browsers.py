"""Chromium without a window, for tests of pages."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver.chrome.webdriver import WebDriver


@contextmanager
def start_chromium(home: Path, **logs: str) -> Iterator[WebDriver]:
    """Give a browser whose profile lies in ``home`` and that keeps ``logs``; skips where there is none."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if not driver or not chromium:
        pytest.skip("no Chromium with its driver: apt-get install chromium chromium-driver")
    pytest.importorskip("selenium", reason="selenium, which drives Chromium, is not installed")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--user-data-dir={home}"):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", logs)
    started = Chrome(options=options, service=Service(driver))
    yield started
    started.quit()
