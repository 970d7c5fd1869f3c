"""Inputs that gave an answer of their own when ``tests/fuzz.py`` made them are read and advised on again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fuzz import CORPUS, read_corpus, try_input, write_input

from advisor.extension.host import load_plugins

if TYPE_CHECKING:
    from pathlib import Path

HOST = load_plugins()


@pytest.mark.parametrize("reader", sorted(path.stem for path in CORPUS.glob("*.zip")))
def test_what_is_nearly_a_profile_is_read_or_refused(reader: str, tmp_path: Path) -> None:
    inputs = read_corpus(reader)
    assert inputs
    for files in inputs:
        assert try_input(HOST, reader, write_input(files, tmp_path / "input"))
