"""The example of one program and all sets of evidence: the first item of each is that of its page, and is right."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

    from advisor.model.records import Advice

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "study"


def load_study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("study", FOLDER / "study.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


STUDY = load_study()
(TABLE,) = re.findall(r"```text\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Advice]:
    """The advice on every set of evidence; nothing of the user's is seen."""
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
    patch.chdir(tmp_path_factory.getbasetemp())
    found = {chosen: STUDY.advise_on(chosen, tmp_path_factory.mktemp("study")) for chosen in STUDY.list_sets()}
    patch.undo()
    return found


def test_the_page_shows_the_first_item_for_every_set(advised: dict[tuple[str, ...], Advice]) -> None:
    assert len(advised) == 16
    shown = [f"{' + '.join(['trace', *chosen]):46} {STUDY.describe_first(each)}" for chosen, each in advised.items()]
    assert TABLE.splitlines() == shown


def test_no_evidence_displaces_what_was_measured(advised: dict[tuple[str, ...], Advice]) -> None:
    """In every order of evidence the coupling is first from the experiment on, and the stride from the loops on."""
    for chosen, each in advised.items():
        first: Any = next(iter(each.recommendations), None)
        if "coupling" in chosen:
            assert (first.action, first.region, first.basis) == ("K-1", "flux and update", "experiment")
            assert first.interval_s[0] <= 2.0 <= first.interval_s[1]
        elif "in-core" in chosen:
            assert (first.action, first.region) == ("P-3", "limiter")
        else:
            assert first is None or first.action == "A-21"


def test_the_account_of_the_caches_is_the_truth(advised: dict[tuple[str, ...], Advice]) -> None:
    accounts = {one.gap: one for one in advised["coupling", "counts", "in-core", "scaling"].accounts}
    parts = {part.cause: part.seconds for part in accounts["$"].parts}
    assert parts == {"coupling": pytest.approx(2.0, rel=0.05), "stride": pytest.approx(1.3, rel=0.05)}
    assert accounts["$"].unexplained_s == pytest.approx(3.8 - 3.3, abs=0.1)
