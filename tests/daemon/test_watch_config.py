"""The configuration file: every mistake named at once, and what is shown can be written back."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.daemon import config
from advisor.daemon.config import DaemonConfig
from advisor.model.errors import DocumentError, UsageError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / config.NAME
    path.write_text(text, encoding="utf-8")
    return path


def test_a_configuration_is_read(tmp_path: Path) -> None:
    found = config.read_config(
        written(
            tmp_path, 'roots = ["runs", "/scratch/runs"]\nscan = "2 min"\nmemory = "1 GiB"\njobs = 4\nquiet = 0.5\n'
        )
    )
    assert found.roots == (tmp_path / "runs", Path("/scratch/runs"))
    assert (found.scan_s, found.memory_B, found.jobs, found.quiet_s) == (120.0, 1 << 30, 4, 0.5)
    assert found.poll_s == DaemonConfig().poll_s


def test_every_mistake_is_named(tmp_path: Path) -> None:
    text = 'root = ["a"]\njobs = 0\nscan = "soon"\nmemory = true\nrules = "a"\nmachine = ""\nnice = 2.5\n'
    with pytest.raises(DocumentError) as caught:
        config.read_config(written(tmp_path, text))
    assert [problem.line for problem in caught.value.problems] == [1, 2, 3, 4, 5, 6, 7]
    assert caught.value.problems[0].message == "'root' is not a setting (did you mean 'roots'?)"
    assert caught.value.problems[1].message == "expected a whole number from 1 to 1,024, found 0"


@pytest.mark.parametrize("text", ["jobs = ", "jobs = 1\njobs = 2", "\x00"])
def test_what_is_no_toml_is_named_with_its_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="gapwatch"):
        config.read_config(written(tmp_path, text))


def test_flags_come_on_top(tmp_path: Path) -> None:
    assert config.with_flags(DaemonConfig(jobs=3), {"jobs": None, "cores": 8}) == DaemonConfig(jobs=3, cores=8)


def test_what_is_shown_can_be_read_again(tmp_path: Path) -> None:
    first = DaemonConfig(roots=(Path("/data"),), machine="host", cores=8, quiet_s=0.25)
    lines = [f"{name} = {value}" for name, value in config.format_settings(first).items() if value]
    assert config.read_config(written(tmp_path, "\n".join(lines))) == first
