"""docs/monitoring: the metrics that it names exist, and its queries are valid."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from advisor.output.open_metrics import FAMILIES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
DASHBOARD = json.loads((ROOT / "docs" / "monitoring" / "dashboard.json").read_text(encoding="utf-8"))
ALERTS = ROOT / "docs" / "monitoring" / "alerts.yml"
NAMES = {family.name for family in FAMILIES}


def test_the_page_names_every_metric() -> None:
    assert set(re.findall(r"`(gapwatch_\w+)`", PAGE)) == NAMES


def test_every_query_is_on_a_metric_that_exists() -> None:
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    queries += [
        rule["expr"] for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"] for rule in group["rules"]
    ]
    for query in queries:
        assert set(re.findall(r"gapwatch_\w+", query)) <= NAMES, query
    assert len(queries) == 8


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool")
def test_promtool_accepts_the_alerts() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
