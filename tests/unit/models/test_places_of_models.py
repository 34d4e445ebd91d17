"""``local-dir:`` and ``hf-hub:``: what timm has written there is the network here; what else stands there is refused."""

import json

import pytest
import timm
import torch
from huggingface_hub import constants
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, LocalEntryNotFoundError
from safetensors.torch import save_file

from crossgraft.errors import DataError, MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models import load_backbone, read_zoo
from crossgraft.models.recipe import build_network
from crossgraft.models.sources import described_places
from crossgraft.models.zoo import random_weights_control
from crossgraft.progress import Reporter

TINY = "test_resnet"
REVISION = "0" * 40
SAID = {
    "architecture": TINY,
    "num_classes": 7,
    "model_args": {"drop_rate": 0.1},
    "pretrained_cfg": {
        "input_size": [3, 64, 64],
        "mean": [0.1, 0.2, 0.3],
        "std": [0.5, 0.6, 0.7],
        "interpolation": "bilinear",
        "crop_pct": 0.9,
        "crop_mode": "squash",
        "license": "cc-by-nc-4.0",
    },
}


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return timm.create_model(TINY, num_classes=7).eval()


def fill(folder, network, said=SAID, weights="model.safetensors"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(said if isinstance(said, str) else json.dumps(said), encoding="utf-8")
    if weights.endswith(".safetensors"):
        save_file(network.state_dict(), folder / weights)
    elif weights:
        torch.save(network.state_dict(), folder / weights)
    return folder


def fill_cache(cache, repository, network, revision=REVISION):
    home = cache / ("models--" + repository.replace("/", "--"))
    fill(home / "snapshots" / revision, network)
    (home / "refs").mkdir(exist_ok=True)
    (home / "refs" / "main").write_text(revision)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def assert_is(network, backbone):
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = network.forward_head(network.forward_features(images), pre_logits=True)
        found = backbone(images)
    torch.testing.assert_close(found.features, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(found.source_logits, network(images).detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_a_folder_of_timm_is_the_network_that_it_describes(weights, network, tmp_path, monkeypatch):
    fill(tmp_path / "mine", network, weights=weights)
    monkeypatch.chdir(tmp_path)
    backbone = load_backbone("local-dir:mine")
    assert_is(network, backbone)
    prepared = backbone.preprocessing
    assert (prepared.height_pixels, prepared.resize_policy, prepared.crop_fraction) == (64, "squash", 0.9)
    assert prepared.mean == (0.1, 0.2, 0.3) and backbone.licence == "cc-by-nc-4.0"
    assert build_network(backbone.network, prepared).state_dict().keys() == network.state_dict().keys()
    assert (backbone.name, backbone.family) == ("local-dir:mine", "test")


def test_timm_loads_the_same_folder_to_the_same_network(network, tmp_path):
    folder = fill(tmp_path / "mine", network)
    theirs = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    assert_is(theirs, load_backbone(f"local-dir:{folder}"))


@pytest.mark.parametrize("name", ["hf-hub:ward/lesions", "hf_hub:ward/lesions", f"hf-hub:ward/lesions@{REVISION}"])
def test_a_repository_in_the_cache_of_the_hub(name, network, cache):
    fill_cache(cache, "ward/lesions", network)
    assert_is(network, load_backbone(name))


def test_another_revision_is_another_file(network, cache):
    fill_cache(cache, "ward/lesions", network)
    with pytest.raises(MissingWeightsError, match="is not on this machine"):
        load_backbone(f"hf-hub:ward/lesions@{'1' * 40}")


def test_a_folder_of_the_weights_folder(network, cache, tmp_path):
    fill(tmp_path / "weights" / "ward--lesions", network)
    assert_is(network, load_backbone("hf-hub:ward/lesions", weights_dir=tmp_path / "weights"))


def test_a_folder_that_may_be_another_revision_is_said_to_be(network, cache, tmp_path, capsys):
    fill(tmp_path / "weights" / "ward--lesions", network)
    load_backbone(f"hf-hub:ward/lesions@{REVISION}", weights_dir=tmp_path / "weights", reporter=Reporter())
    assert f"nothing there says whether they are of revision {REVISION}" in " ".join(capsys.readouterr().err.split())


def test_what_timm_publishes_there_is_its_own(cache):
    (spec,) = read_zoo(["hf-hub:timm/resnet18.a1_in1k"])
    assert (spec.name, spec.source, spec.weights) == ("hf-hub:timm/resnet18.a1_in1k", "resnet18.a1_in1k", "pretrained")


def test_random_weights_need_the_description_alone(network, tmp_path):
    folder = fill(tmp_path / "mine", network, weights="")
    with pytest.raises(MissingWeightsError, match="no weights"):
        read_zoo([f"local-dir:{folder}"])
    fill(folder, network)
    (spec,) = read_zoo([f"local-dir:{folder}"])
    control = load_backbone(random_weights_control(spec))
    assert control.num_source_classes == 7 and control.licence is None
    assert control.weights_fingerprint != load_backbone(spec).weights_fingerprint


def test_without_consent_nothing_is_fetched(cache, monkeypatch):
    monkeypatch.setattr(described_places, "hf_hub_download", lambda *_, **__: pytest.fail("nobody allowed it"))
    with pytest.raises(MissingWeightsError, match=r"ward--lesions.*--allow-download"):
        read_zoo(["hf-hub:ward/lesions"])


def answer(kind):
    def download(*_, **__):
        raise kind.__new__(kind, "closed")  # whose own constructor takes the answer of a server

    return download


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (GatedRepoError, "accepted its terms"),
        (LocalEntryNotFoundError, "could not be downloaded"),
        (EntryNotFoundError, "has none of"),
    ],
)
def test_a_repository_that_gives_nothing(kind, said, cache, monkeypatch):
    monkeypatch.setattr(described_places, "hf_hub_download", answer(kind))
    with pytest.raises(MissingWeightsError, match=said):
        read_zoo(["hf-hub:ward/lesions"], allow_download=True)


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({**SAID, "auto_map": {"AutoModel": "code.Model"}}, UsageError, "auto_map"),
        ({**SAID, "model_args": {"pretrained": True}}, UsageError, "would load weights"),
        ({**SAID, "model_args": {"checkpoint_path": "/etc/passwd"}}, UsageError, "would load weights"),
        ({**SAID, "model_args": {"surprise": 1}}, UnknownNameError, "surprise"),
        ({**SAID, "model_args": [1]}, DataError, "mapping"),
        ({**SAID, "architecture": "resnet_of_nobody"}, UnknownNameError, "resnet_of_nobody"),
        ({"model_type": "dinov2"}, UsageError, "transformers:"),
        ({}, UsageError, "names no architecture"),
        ("not json", DataError, "not JSON"),
        ("[1]", DataError, "mapping"),
        ("[" * 100_000, DataError, "not JSON"),
        ('{"a": "' + "x" * 2_000_000 + '"}', DataError, "bytes"),
    ],
)
def test_a_description_is_data(said, error, words, network, tmp_path):
    folder = fill(tmp_path / "mine", network, said)
    with pytest.raises(error, match=words):
        load_backbone(f"local-dir:{folder}")


def test_numbers_that_no_network_has(network, tmp_path):
    folder = fill(tmp_path / "mine", network, {**SAID, "num_classes": 10**12})
    with pytest.raises(UsageError, match="no architecture has one above"):
        load_backbone(f"local-dir:{folder}")


@pytest.mark.parametrize("name", ["hf-hub:lesions", "hf-hub:", "hf-hub:a/b/c", "local-dir:nowhere"])
def test_names_of_no_place(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((UnknownNameError, MissingWeightsError)):
        read_zoo([name])
