from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from advisor import cli
from advisor.analysis import machines
from advisor.support import bundled

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [name for name in machines.list_model_names() if name != "host"]


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "gapwatch" / "machine_models"


def test_all_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["machines", "list", "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["parts"]
    assert [row[0] for row in table["rows"]] == [*NAMES, "host"]
    assert all(row[1] for row in table["rows"])


@pytest.mark.parametrize("name", [*NAMES, "host"])
def test_a_model_is_shown_with_the_source_of_every_number(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["machines", "show", name, "--width", "200"]) == 0
    out = capsys.readouterr().out
    model = machines.load_machine(name)
    assert out.startswith(f"{name}: {model.title}\n")
    for source in model.sources:
        assert f"\n  {source}: " in out
    assert "\n  sources" not in out.partition("\nSources\n")[0]
    assert "{" not in out
    if model.frequency:
        assert model.frequency.source in next(row for row in out.split("\n") if row.startswith("  frequency "))


def test_a_model_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["machines", "show", NAMES[0], "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(json.dumps(machines.to_document(machines.load_machine(NAMES[0]))))


def test_an_unknown_model_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["machines", "show", "nonesuch"]) == 2
    err = capsys.readouterr().err
    assert "no machine model 'nonesuch'" in err
    assert err.count("\n") == 1


def test_a_user_has_models_of_his_own(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.mkdir(parents=True)
    source = next(file for file in bundled.list_documents("machine_models") if file.name == f"{NAMES[0]}.yaml")
    text = source.read_text("utf-8").replace(f"name: {NAMES[0]}\n", "name: ours\n")
    (config / "ours.yaml").write_text(text, "utf-8")
    assert cli.main(["machines", "list"]) == 0
    assert "\nours " in capsys.readouterr().out
    assert cli.main(["machines", "show", "ours"]) == 0
    assert capsys.readouterr().out.startswith("ours: ")
    shutil.rmtree(config)
