"""What can be used here is listed without building anything."""

import pytest

from crossgraft.models import DEFAULT_ZOO, list_available_models
from crossgraft.models.sources import timm_models, wheel_weights
from crossgraft.models.sources.wheel_weights import PackageIndexLibrary

from .conftest import TINY, save_checkpoint, tiny_timm


@pytest.fixture(autouse=True)
def own_hub_cache(tmp_path, monkeypatch):
    """An empty cache of the Hugging Face hub, and no weights from the package index."""
    monkeypatch.setattr(timm_models, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(timm_models.hub_constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(wheel_weights, "find_spec", lambda _: None)


def test_nothing_is_here_and_the_rows_say_where_to_get_it():
    rows = list_available_models()
    assert [row.name for row in rows] == [*DEFAULT_ZOO, *PackageIndexLibrary.offers]
    assert not any(row.available for row in rows)
    assert "huggingface.co/timm/" in rows[0].where


def test_weights_that_no_hub_has_are_where_timm_has_them():
    (row,) = (row for row in list_available_models(search="legacy_seresnet18") if row.name == "legacy_seresnet18.in1k")
    assert row.where.startswith("https://github.com/") and row.where.endswith("seresnet18-4bb0ce65.pth")


def test_files_come_first_with_their_parameters(tmp_path):
    module = tiny_timm(num_classes=2)
    save_checkpoint(tmp_path / "own.safetensors", module.state_dict(), architecture=TINY)
    save_checkpoint(tmp_path / "foreign.safetensors", module.state_dict(), architecture="nobody_knows")
    save_checkpoint(tmp_path / "silent.safetensors", module.state_dict())
    save_checkpoint(tmp_path / "resnet18.safetensors", module.state_dict())
    rows = {row.name: row for row in list_available_models(tmp_path)}
    first, second = list(rows.values())[:2]
    assert {first.name, second.name} == {"resnet18", "own.safetensors"}
    assert rows["own.safetensors"].num_parameters == sum(p.numel() for p in module.parameters())
    assert rows["own.safetensors"].where.endswith("own.safetensors")
    assert "nobody_knows is not in timm" in rows["foreign.safetensors"].where
    assert not rows["silent.safetensors"].available


def test_cached_weights_of_other_timm_models_are_listed(tmp_path, monkeypatch):
    (tmp_path / "hub" / "models--timm--resnet10t.c3_in1k").mkdir(parents=True)
    (tmp_path / "hub" / "models--timm--no_such_net.x").mkdir()
    file = tmp_path / "model.bin"
    file.touch()
    monkeypatch.setattr(
        timm_models,
        "try_to_load_from_cache",
        lambda repository, name: str(file) if repository == "timm/resnet10t.c3_in1k" else None,
    )
    first = list_available_models()[0]
    assert (first.name, first.available, first.num_parameters) == ("resnet10t.c3_in1k", True, None)
