"""The run over time: seconds that add up, folding that loses none, and the page in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING

import advice_samples as samples
import html5lib
import numpy as np
import pytest
from browsers import start_chromium

from advisor.analysis import run_pictures
from advisor.analysis.run_pictures import ROWS, build_timeline
from advisor.model.records import Causes, Phase, Processor, Profile
from advisor.model.timeline import KINDS
from advisor.output.html.advice_page import render_advice_page
from advisor.output.html.figures import ROW, WIDTH, build_timeline_figure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver.chrome.webdriver import WebDriver

    from advisor.model.records import Advice

HTML = "{http://www.w3.org/1999/xhtml}"
SIZE_LIMIT = 1_000_000


def run(ranks: int = 4, iterations: int = 3, name: str = "sweep") -> Profile:
    """A run of two phases in turns, a second each: rank q works q / ranks of it, waits for the last rank, and sends."""
    share = (np.arange(ranks) + 1) / ranks
    work = np.broadcast_to(share[None, :, None], (1, ranks, iterations)) * 0.9
    arrays = {"wall_s": np.ones((1, ranks, iterations)), "wait_s": 0.9 - work, "transfer_s": np.full_like(work, 0.1)}
    phases = tuple(
        Phase(f"{name} {at}", "parallel", np.array([at]), arrays, None, np.arange(iterations) * 2.0 + at,
              np.ones(iterations))
        for at in range(2)
    )  # fmt: skip
    index = np.arange(ranks - 1)
    zeros = np.zeros(ranks - 1, dtype=int)
    causes = Causes(
        ("late sender",), (), zeros + 1, zeros, zeros, zeros, zeros - 1, index, zeros + ranks - 1, zeros - 1, zeros - 1,
        0.9 * (1 - share[:-1]) * iterations, zeros + iterations, zeros,
    )  # fmt: skip
    sample = samples.profile()
    return replace(
        sample, processors=tuple(Processor(rank) for rank in range(ranks)), phases=phases, causes=causes,
        actual_s=2.0 * iterations,
    )  # fmt: skip


def advice_of(profile: Profile) -> Advice:
    return run_pictures.attach_pictures(replace(samples.full(), profile=profile))


def test_each_instance_of_each_rank_is_a_cell() -> None:
    found = build_timeline(run())
    assert found is not None
    assert (len(found.rows), len(found.columns), found.seconds.shape[2]) == (4, 6, len(KINDS))
    assert [(column.start_s, column.phase, column.iteration) for column in found.columns] == [
        (float(at), f"sweep {at % 2}", at // 2) for at in range(6)
    ]  # fmt: skip
    assert found.seconds.sum(axis=2) == pytest.approx(np.ones((4, 6)))
    assert found.seconds[0, 0] == pytest.approx([0.225, 0.1, 0.0, 0.0, 0.675])
    first = found.causes[0]
    assert (found.rows[first.row], first.phase, first.partner) == ("rank 0", "sweep 0", "rank 3 (late sender)")
    assert first.seconds == pytest.approx(0.675 * 3)


def test_without_the_times_of_phases_there_is_none() -> None:
    profile = run()
    bare = tuple(replace(phase, start_s=None) for phase in profile.phases)
    assert build_timeline(replace(profile, phases=bare)) is None
    assert build_timeline(samples.profile()) is None
    assert build_timeline(replace(profile, phases=())) is None


@pytest.mark.parametrize(("ranks", "iterations"), [(64, 800), (100, 500), (1000, 50), (3, 17_000)])
def test_folding_loses_no_second(ranks: int, iterations: int) -> None:
    profile = run(ranks, iterations)
    found = build_timeline(profile)
    assert found is not None
    assert len(found.rows) <= ROWS
    assert len(found.rows) * len(found.columns) <= 12_000
    assert sum(column.instances for column in found.columns) == 2 * iterations
    means = found.seconds.sum(axis=(1, 2))
    assert means == pytest.approx(np.full(len(found.rows), 2.0 * iterations))
    assert found.columns[-1].start_s + found.columns[-1].duration_s == pytest.approx(2.0 * iterations)
    advice = advice_of(profile)
    page = render_advice_page(advice)
    assert len(page) <= SIZE_LIMIT
    assert ("are combined" in page) == (len(found.columns) < 2 * iterations)
    assert ("neighbouring ranks" in page) == (ranks > ROWS)


def test_the_paths_fill_what_the_seconds_say() -> None:
    found = build_timeline(run())
    assert found is not None
    drawn = build_timeline_figure(found)
    assert [name for _, name, _ in drawn.paths] == ["computation", "transfer", "waiting"]
    widths = {
        name: sum(int(width) for width in re.findall(r"M\d+ 0h(\d+)v", path)) for _, name, path in drawn.paths
    }  # fmt: skip
    assert widths["waiting"] / WIDTH == pytest.approx(0.675, abs=1e-3)
    assert widths["computation"] / WIDTH == pytest.approx(0.225, abs=1e-3)
    ends = [int(end) for _, _, path in drawn.paths for end in re.findall(r"M\d+ (\d+)h", path)]
    assert max(ends) == 3 * ROW


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "<!--", "&lt;", "\u2028", "]]>", "größer→"])
def test_names_do_not_leave_the_data(name: str) -> None:
    page = render_advice_page(advice_of(run(name=name)))
    document = html5lib.HTMLParser(strict=True).parse(page)
    scripts = document.findall(f".//{HTML}script")
    assert [script.get("type") for script in scripts] == ["application/json", None]
    data = json.loads(scripts[0].text or "")
    assert len(data["phases"]) == 2
    assert name.replace("\u2028", "\\u2028") in data["phases"][0]
    assert scripts[1].text == (files("advisor.output") / "html" / "timeline.js").read_text("utf-8")


def test_the_policy_lets_this_script_run_and_no_other() -> None:
    page = render_advice_page(advice_of(run()))
    script = (files("advisor.output") / "html" / "timeline.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert f"script-src 'sha256-{digest}'" in policy.replace("&#39;", "'")
    assert "unsafe" not in policy
    assert "script-src" not in render_advice_page(samples.full())


def test_regions_and_waits_are_maps() -> None:
    profile = run()
    regions, waits = run_pictures.build_region_map(profile), run_pictures.build_wait_map(profile)
    assert regions is not None
    assert regions.rows == tuple(region.name for region in profile.regions)
    assert regions.cells[0] == (3.0, 3.0, 3.0, 3.0)
    assert waits is not None
    assert waits.cells[0] == pytest.approx((0.0, 0.0, 0.0, 2.025))
    assert run_pictures.build_wait_map(replace(profile, causes=None)) is None
    assert run_pictures.build_region_map(samples.profile()) is not None


def test_waits_of_many_ranks_show_those_with_the_most_seconds() -> None:
    ranks = 2 * run_pictures.PROCESSORS
    waits = run_pictures.build_wait_map(run(ranks=ranks))
    assert waits is not None
    shown = [*range(run_pictures.PROCESSORS - 1), ranks - 1]  # who waits longest, and the last rank, for which all wait
    assert waits.rows == waits.columns == tuple(f"rank {rank}" for rank in shown)
    expected = np.zeros((len(shown), len(shown)))
    expected[:-1, -1] = [0.9 * 3 * (1 - (rank + 1) / ranks) for rank in shown[:-1]]
    assert np.array(waits.cells) == pytest.approx(expected)
    assert waits.title.endswith(f"; the {len(shown)} of {ranks} with the most seconds")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    with start_chromium(tmp_path_factory.mktemp("chromium"), browser="ALL") as started:
        yield started


def test_keys_and_mouse_move_and_zoom(browser: WebDriver, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    (tmp_path / "page.html").write_text(render_advice_page(advice_of(run(64, 80, "<b>sweep</b>"))), encoding="utf-8")
    for width in (380, 800, 1600):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        browser.get((tmp_path / "page.html").as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    picture = browser.find_element("css selector", "svg.time")
    words = browser.find_element("css selector", ".says")
    assert words.text.startswith("rank 0, <b>sweep</b> 0")
    ActionChains(browser).move_to_element(picture).click().perform()
    assert words.text.startswith(("rank 31,", "rank 32,"))
    before = words.text
    ActionChains(browser).send_keys("++", Keys.ARROW_DOWN, Keys.ARROW_RIGHT).perform()
    assert words.text != before
    assert picture.get_dom_attribute("viewBox").split()[2] == str(WIDTH // 4)
    ActionChains(browser).send_keys("0", Keys.HOME).perform()
    assert picture.get_dom_attribute("viewBox").split()[:3:2] == ["0", str(WIDTH)]
    browser.find_element("css selector", "button[value='+']").click()
    assert picture.get_dom_attribute("viewBox").split()[2] == str(WIDTH // 2)
    assert "Waits for rank 63 (late sender)" in words.text
    assert browser.get_log("browser") == []
