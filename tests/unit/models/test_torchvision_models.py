"""torchvision beside timm: names, weights that are found or asked for, preprocessing, sizes, heads."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision import models
from torchvision.models import ResNet18_Weights
from torchvision.models.maxvit import MaxVit
from torchvision.models.swin_transformer import SwinTransformer
from torchvision.models.vision_transformer import VisionTransformer

from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import MissingWeightsError, UnknownNameError, UsageError, WeightsMismatchError
from crossgraft.models import ModelSpec, list_available_models, load_backbone, random_weights_control, read_zoo
from crossgraft.models.sources.torchvision_models import TorchvisionLibrary, crop_fraction, torchvision_names
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing

from .conftest import save_checkpoint
from .test_backbone import wrap

SMALL = "torchvision:shufflenet_v2_x0_5"
PUBLISHED = "shufflenetv2_x0.5-f707e7126e.pth"


def small_network(**kwargs: object) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return models.shufflenet_v2_x0_5(weights=None, **kwargs)


@pytest.fixture(autouse=True)
def no_cache_and_no_network(tmp_path, monkeypatch):
    """The machine has nothing, and any use of the network fails the test."""

    def refuse(*_arguments, **_options):
        pytest.fail("the network was used")

    monkeypatch.setattr(torch.hub, "download_url_to_file", refuse)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))


@pytest.mark.parametrize("file", [PUBLISHED, "shufflenet_v2_x0_5.IMAGENET1K_V1.safetensors"])
def test_weights_dir(tmp_path, file):
    state = small_network().state_dict()
    if file.endswith("pth"):
        torch.save(state, tmp_path / file)
    else:
        save_checkpoint(tmp_path / file, state)
    backbone = load_backbone(SMALL, weights_dir=tmp_path, image_size=32)
    assert (backbone.name, backbone.source, backbone.architecture, backbone.family) == (
        SMALL,
        "torchvision",
        SMALL,
        "shufflenetv2",
    )
    assert torch.equal(backbone.module.fc.weight, state["fc.weight"])
    row = next(row for row in list_available_models(tmp_path) if row.available)
    assert (row.name, row.num_parameters) == (f"{SMALL}.IMAGENET1K_V1", backbone.num_parameters)
    load_backbone(row.name, weights_dir=tmp_path, image_size=32)  # what the list says can be asked for


def test_the_name_of_timms_weights_is_not_taken_for_torchvisions(tmp_path):
    torch.save({}, tmp_path / "resnet18.pth")
    with pytest.raises(MissingWeightsError, match="IMAGENET1K_V1 of torchvision:resnet18"):
        load_backbone("torchvision:resnet18", weights_dir=tmp_path)


def test_torchs_cache():
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    folder.mkdir(parents=True)
    torch.save(small_network().state_dict(), folder / PUBLISHED)
    assert load_backbone(SMALL, image_size=32).num_source_classes == 1000
    assert [row.where for row in list_available_models() if row.available] == [str(folder / PUBLISHED)]


def test_the_message_says_which_file_to_put_where(tmp_path):
    with pytest.raises(MissingWeightsError) as caught:
        load_backbone("torchvision:resnet50.IMAGENET1K_V1", weights_dir=tmp_path)
    message = str(caught.value)
    assert "https://download.pytorch.org/models/resnet50-0676ba61.pth" in message
    assert f"put it as resnet50-0676ba61.pth into {tmp_path}; or pass --allow-download" in message
    assert str(torch.hub.get_dir()) in message


def test_download_only_when_allowed_announced_and_with_its_hash(monkeypatch, capsys):
    asked = {}

    def download(url, target, hash_prefix, progress):
        asked.update(url=url, hash_prefix=hash_prefix)
        torch.save(small_network().state_dict(), target)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    load_backbone(SMALL, allow_download=True, reporter=Reporter(), image_size=32)
    assert asked == {"url": f"https://download.pytorch.org/models/{PUBLISHED}", "hash_prefix": "f707e7126e"}
    said = capsys.readouterr().err
    assert re.search(rf"5 MB from https://download\.pytorch\.org/models/{PUBLISHED} to .*checkpoints", said)


@pytest.mark.parametrize("error", [OSError("no route to host"), RuntimeError("invalid hash value")])
def test_a_download_that_fails_says_what_to_do(monkeypatch, error):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr(torch.hub, "download_url_to_file", fail)
    with pytest.raises(MissingWeightsError, match=rf"could not be downloaded from .*{error}.*put it as {PUBLISHED}"):
        load_backbone(SMALL, allow_download=True)


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        ("vit_b_16", "Did you mean torchvision:vit_b_16?"),
        ("torchvision:resnet51", "Did you mean torchvision:resnet"),
        ("torchvision:vit_tiny_patch16_224", "Did you mean vit_tiny_patch16_224?"),
        ("torchvision:resnet50.IMAGENET1K_V9", "Did you mean IMAGENET1K_V"),
        ("torchvision:fcn_resnet50", "Classification networks only"),
    ],
)
def test_unknown_names_get_the_nearest(asked, advice):
    with pytest.raises(UnknownNameError) as caught:
        read_zoo([asked])
    assert advice in str(caught.value)


def test_timm_and_torchvision_of_one_name_stand_beside_each_other():
    specs = read_zoo("resnet18,torchvision:resnet18")
    assert [spec.name for spec in specs] == ["resnet18", "torchvision:resnet18"]
    assert len({spec.architecture_key for spec in specs}) == 2
    controls = [random_weights_control(spec).name for spec in specs]
    assert controls == ["resnet18 · random", "torchvision:resnet18 · random"]


def test_torchvisions_function_is_still_a_factory():
    spec = ModelSpec("f", "torchvision.models:resnet18", "random", preprocessing={"input_size": 32})
    backbone = load_backbone(spec)
    assert backbone.source == "factory"


def test_preprocessing_is_that_of_the_weights():
    facts = ResNet18_Weights.IMAGENET1K_V1.transforms()
    said = load_backbone(ModelSpec("r", "torchvision:resnet18", "random")).preprocessing
    assert (said.height_pixels, said.width_pixels) == (224, 224) == tuple(facts.crop_size) * 2
    assert (list(said.mean), list(said.std), said.interpolation) == (facts.mean, facts.std, "bilinear")
    old = TorchvisionLibrary().describe("torchvision:resnet50.IMAGENET1K_V1", {})
    new = TorchvisionLibrary().describe("torchvision:resnet50", {})
    assert (old["crop_pct"], new["crop_pct"]) == (224 / 256, 224 / 232)
    assert TorchvisionLibrary().describe("torchvision:efficientnet_b0", {})["interpolation"] == "bicubic"


def test_an_image_is_prepared_as_torchvision_prepares_it():
    pixels = np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8)
    backbone = load_backbone(ModelSpec("r", "torchvision:resnet18", "random"))
    expected = ResNet18_Weights.IMAGENET1K_V1.transforms()(Image.fromarray(pixels))
    torch.testing.assert_close(prepare_batch([pixels], backbone.preprocessing)[0], expected, rtol=0, atol=1e-5)


def test_every_crop_fraction_gives_the_resize_size_back():
    for name in torchvision_names():
        for weights in models.get_model_weights(name):
            facts = weights.transforms()
            (crop,), (resize,) = facts.crop_size, facts.resize_size
            assert math.floor(crop / crop_fraction(crop, resize)) == resize


def test_a_local_checkpoint_brings_its_number_of_classes(tmp_path):
    state = {f"module.{name}": tensor for name, tensor in small_network(num_classes=4).state_dict().items()}
    torch.save({"state_dict": state}, tmp_path / "own.pth")
    backbone = load_backbone(ModelSpec("own", SMALL, str(tmp_path / "own.pth")), image_size=32)
    assert (backbone.num_source_classes, backbone.source, backbone.licence) == (4, "checkpoint", None)
    assert backbone.preprocessing.mean == (0.485, 0.456, 0.406)


def test_a_header_can_name_torchvision(tmp_path):
    save_checkpoint(tmp_path / "own.safetensors", small_network(num_classes=3).state_dict(), architecture=SMALL)
    assert load_backbone(str(tmp_path / "own.safetensors"), image_size=32).num_source_classes == 3
    assert [row.name for row in list_available_models(tmp_path) if row.available] == ["own.safetensors"]


def test_weights_with_another_head_are_refused(tmp_path):
    torch.save(small_network().state_dict(), tmp_path / PUBLISHED)
    with pytest.raises(WeightsMismatchError, match=r"fc\.weight is \(1000, 1024\) in the file and \(4, 1024\)"):
        load_backbone(ModelSpec("s", SMALL, kwargs={"num_classes": 4}), weights_dir=tmp_path)


def test_the_head_is_found_by_its_name():
    # one of every function of torchvision; names in alphabetical order, as a .safetensors file has them
    heads = {
        "alexnet": ["classifier.1", "classifier.4", "classifier.6"],
        "convnext_tiny": ["classifier.2"],
        "densenet121": ["classifier"],
        "maxvit_t": ["classifier.3", "classifier.5"],
        "regnet_y_400mf": ["fc"],
        "squeezenet1_1": ["classifier.1"],
        "swin_t": ["head"],
        "vgg11": ["classifier.0", "classifier.3", "classifier.6"],
        "vit_b_16": ["heads.head"],
    }
    for name, layers in heads.items():
        state = {f"{layer}.weight": torch.zeros(6 if layer == layers[-1] else 8, 2) for layer in layers}
        assert TorchvisionLibrary().infer_num_classes(f"torchvision:{name}", state) == 6


def test_auxiliary_heads_do_not_disturb(tmp_path):
    network = models.googlenet(weights=None, aux_logits=True, init_weights=False, num_classes=5)
    torch.save(network.state_dict(), tmp_path / "g.pth")
    backbone = load_backbone(ModelSpec("g", "torchvision:googlenet", str(tmp_path / "g.pth")), image_size=32)
    assert backbone.num_source_classes == 5
    assert backbone.module.transform_input  # as torchvision builds it around its weights
    assert not any(name.startswith("aux") for name in backbone.layer_names)


def test_names_of_old_densenets():
    old = {"features.denseblock1.denselayer1.norm.1.weight": torch.zeros(1), "features.norm0.weight": torch.zeros(1)}
    assert list(TorchvisionLibrary().adapt_state(old)) == [
        "features.denseblock1.denselayer1.norm1.weight",
        "features.norm0.weight",
    ]


def accept(module: nn.Module, source: str, size: int) -> None:
    TorchvisionLibrary().accept_input_size(module.eval(), Preprocessing(size, size), source=source, kwargs={})


def test_a_vit_takes_another_image_size():
    vit = VisionTransformer(32, 16, num_layers=1, num_heads=1, hidden_dim=12, mlp_dim=12, num_classes=3)
    accept(vit, "torchvision:vit_b_16", 64)
    assert vit(torch.zeros(1, 3, 64, 64)).shape == (1, 3)
    with pytest.raises(UsageError, match="multiple of 16 pixels, asked for 40×40"):
        accept(vit, "torchvision:vit_b_16", 40)


def test_networks_of_one_size_or_a_smallest_size_say_so():
    maxvit = MaxVit((64, 64), 8, 2, [8, 8], [1, 1], head_dim=4, stochastic_depth_prob=0.0)
    accept(maxvit, "torchvision:maxvit_t", 64)
    with pytest.raises(UsageError, match="64×64 pixels only"):
        accept(maxvit, "torchvision:maxvit_t", 32)
    with pytest.raises(UsageError, match="at least 75×75 pixels, asked for 32×32"):
        accept(nn.Identity(), "torchvision:inception_v3", 32)
    accept(nn.Identity(), "torchvision:swin_t", 64)  # padded to windows


@pytest.mark.parametrize(
    ("network", "head"),
    [
        (lambda: VisionTransformer(32, 16, 1, 1, 12, 12, num_classes=3), "heads.head"),
        (lambda: SwinTransformer([4, 4], 12, [1, 1], [1, 1], [2, 2], num_classes=3), "head"),
        (lambda: MaxVit((32, 32), 8, 2, [8, 8], [1, 1], head_dim=4, stochastic_depth_prob=0.0, num_classes=3), "classifier.5"),
        (lambda: models.DenseNet(8, (1, 1), 8, num_classes=3), "classifier"),
        (lambda: models.ConvNeXt([models.convnext.CNBlockConfig(8, None, 2)], num_classes=3), "classifier.2"),
    ],
    ids=["vit", "swin", "maxvit", "densenet", "convnext"],
)
def test_features_go_into_the_last_linear_layer(network, head):
    network = network()
    backbone = wrap(network, preprocessing=Preprocessing(32, 32))
    images = torch.randn(2, 3, 32, 32)
    output = backbone(images)
    with torch.inference_mode():
        torch.testing.assert_close(network.get_submodule(head)(output.features), network(images))
    assert not torch.allclose(output.features[0], output.features[1])


def test_squeezenets_features_go_into_its_last_convolution():
    backbone = load_backbone(ModelSpec("s", "torchvision:squeezenet1_1", "random"), image_size=64)
    images = torch.randn(2, 3, 64, 64)
    output = backbone(images)
    with torch.inference_mode():
        torch.testing.assert_close(output.features, backbone.module.features(images).mean((2, 3)))
        torch.testing.assert_close(output.source_logits, backbone.module(images))
    assert output.features.shape == (2, 512)


def test_arguments_that_have_no_meaning_are_refused():
    with pytest.raises(UsageError, match="always has a head"):
        load_backbone(ModelSpec("s", SMALL, "random", kwargs={"num_classes": 0}))
    with pytest.raises(UsageError, match=r"torchvision cannot build .* with width='red'"):
        load_backbone(ModelSpec("s", SMALL, "random", kwargs={"width": "red"}))


def test_random_weights_are_those_of_the_seed():
    spec = ModelSpec("s", SMALL, "random")
    first, again, other = (load_backbone(spec, seed=seed, image_size=32) for seed in (0, 0, 1))
    assert first.weights_fingerprint == again.weights_fingerprint != other.weights_fingerprint
