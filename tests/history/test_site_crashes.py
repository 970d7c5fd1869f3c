"""Nothing is lost or twice where daemons and their server are killed; all 5,000 runs are in tests/site_crashes.py."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest
from patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path


def test_st18_killed_daemons_and_servers_lose_nothing(tmp_path: Path) -> None:
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed (the extra postgres)")
    from site_crashes import check_site

    found = check_site(tmp_path, 30, seed=3, patience_s=6 * PATIENCE_S)
    assert min(found["daemon"], found["server"]) >= 1
