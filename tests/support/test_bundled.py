from pathlib import Path
from typing import Literal

import pytest

from advisor.support import bundled

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["rules", "machine_models"])
def test_the_folder_is_the_installed_one_or_that_of_the_checkout(name: Literal["rules", "machine_models"]) -> None:
    folder = bundled.find_data_folder(name)
    assert folder.is_dir()
    assert {entry.name for entry in folder.iterdir()} >= {path.name for path in (CHECKOUT / name).glob("*.yaml")}


def test_documents_are_the_yaml_files_in_the_order_of_their_names() -> None:
    names = [document.name for document in bundled.list_documents("machine_models")]
    assert names == sorted(names)
    assert len(names) >= 10
    assert all(name.endswith(".yaml") for name in names)


def test_an_installed_folder_goes_before_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "_data" / "rules"
    installed.mkdir(parents=True)
    monkeypatch.setattr(bundled, "_INSTALLED", tmp_path / "_data")
    assert bundled.find_data_folder("rules") == installed
    assert bundled.find_data_folder("machine_models") == CHECKOUT / "machine_models"
