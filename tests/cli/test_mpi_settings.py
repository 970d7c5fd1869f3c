"""Settings of MPI libraries: they fit the messages of the run, and the libraries do what they say."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from native_documents import PROFILES, changed, written
from recorded_runs import LIBRARIES, compile_program

from advisor.experiments.mpi_settings import choose_eager_limit, iterate_mpi_variables
from advisor.model.records import Share
from gapwatch import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from advisor.experiments.settings import Launcher
    from advisor.model.records import Advice


def build_advice(folder: Path, *sizes: int) -> Advice:
    """The advice on a run whose communication is messages of these bytes."""
    document = changed("regions", 1, to={"name": "MPI_Send"})
    causes = {name: np.repeat(column, len(sizes)).tolist() for name, column in document["causes"].items()}
    document["causes"] = causes | {
        "kinds": ["late receiver"], "targets": [], "size_class": [size.bit_length() for size in sizes],
    }  # fmt: skip
    advice = load(PROFILES / "fig4.json").advise()
    gap = replace(advice.gaps[0], name="C'", members=("C'",), regions=(Share("MPI_Send", 1.0),))
    return replace(advice, profile=load(written(folder, document)).advise().profile, gaps=(gap,))


@pytest.mark.parametrize(
    ("sizes", "least_B"), [((24_000, 240_000), 240_000), ((100, 5_000_000), 100), ((5_000_000,), None), ((0,), 0)]
)
def test_messages_that_may_be_sent_at_once_are(tmp_path: Path, sizes: tuple[int, ...], least_B: int | None) -> None:
    limit_B = choose_eager_limit(build_advice(tmp_path, *sizes))
    assert limit_B is None if least_B is None else limit_B is not None and least_B < limit_B < 5_000_000


@pytest.mark.parametrize(("library", "launcher"), [("Open MPI", "openmpi"), ("MPICH", "hydra")])
def test_messages_are_sent_before_their_receiver_asks_for_them(
    tmp_path: Path, library: str, launcher: Launcher
) -> None:
    compiler, _, words, _ = LIBRARIES[library]
    program = compile_program(tmp_path, [compiler], "eager.c")
    advice = build_advice(tmp_path, 240_000)
    [variables] = [found for why, found in iterate_mpi_variables(launcher, advice, crowded=False) if "receiver" in why]
    assert send_message([*words, "-n", "2", str(program), str(tmp_path / "sent"), "240000"], variables) == 0


def send_message(words: list[str], variables: Mapping[str, str]) -> int:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(words, env={**os.environ, **root, **variables}, timeout=300, check=False).returncode
