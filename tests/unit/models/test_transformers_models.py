"""``transformers:``: each network gives what transformers gives, from a folder or the hub's cache, and nothing in it is run."""

import json
import pickle

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from PIL import Image
from safetensors.torch import load_file, save_file

from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import CrossgraftError, DataError, MissingWeightsError, UnknownNameError, UsageError, WeightsMismatchError
from crossgraft.geometry import attention_map
from crossgraft.models import load_backbone, read_zoo
from crossgraft.models.adapters import adapters_of
from crossgraft.models.classifier import make_classifier, rebuild_classifier
from crossgraft.models.layers import building_blocks
from crossgraft.models.preprocessing import resolve_preprocessing
from crossgraft.models.recipe import build_network
from crossgraft.models.sources import described_places
from crossgraft.models.sources.transformers_images import preprocessing_of
from crossgraft.models.sources.transformers_networks import FAMILIES
from crossgraft.models.spec import ModelSpec
from crossgraft.models.zoo import random_weights_control
from crossgraft.tune.methods.adaptformer import AdaptFormer
from crossgraft.tune.methods.lora import LoRA
from support.transformers_folders import CLASSIFIERS, NETWORKS, SIZE, make_network, transformers, write_folder

PICTURES = np.random.default_rng(0).integers(0, 256, (3, SIZE, SIZE, 3), dtype=np.uint8)
IMAGES = (torch.from_numpy(PICTURES).permute(0, 3, 1, 2) / 255 - 0.5) / 0.5
"""As every processor of the folders prepares them, which have their size already."""
PRE_NORM = [
    f"{name}Model" for name in ("Beit", "CLIPVision", "Data2VecVision", "Dinov2", "DINOv3ViT", "SiglipVision", "Swin", "ViT")
]
PLAIN_ATTENTION = [
    f"{name}Model"
    for name in ("Beit", "CLIPVision", "DeiT", "Dinov2", "Dinov2WithRegisters", "IJepa", "SiglipVision", "ViT", "ViTMAE")
]
FIRST_PATCH = {"CLIPVisionModel": 1, "DINOv3ViTModel": 3, "Dinov2WithRegistersModel": 5, "DeiTModel": 2, "SwinModel": 0}


@torch.no_grad()
def theirs(network, name):
    """Features by the network's own call, and the logits of a head."""
    if name.startswith("Siglip2"):
        processor = transformers.Siglip2ImageProcessor(max_num_patches=16, patch_size=8)
        return network(**processor(images=list(PICTURES), return_tensors="pt")).pooler_output, None
    if name == "ViTMAEModel":
        network.config.mask_ratio = 0.0
    output = network(IMAGES)
    if "Classification" in name:
        return None, output.logits
    pooled = getattr(output, "pooler_output", None)
    if pooled is None:
        tokens = output.last_hidden_state
        pooled = tokens.mean(1) if name == "IJepaModel" else tokens[:, 0]
    return pooled.flatten(1), None


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """Folder and network of a class; each is written once."""
    made = {}

    def give(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            made[name] = folder, write_folder(folder, name)
        return made[name]

    return give


def features_of(module):
    return getattr(module, "forward_features", module)(IMAGES)


@pytest.mark.parametrize("name", [*NETWORKS, *CLASSIFIERS])
def test_features_are_those_of_the_networks_own_call(name, folder_of):
    folder, network = folder_of(name)
    backbone = load_backbone(f"transformers:{folder}")
    features, logits = theirs(network, name)
    found = backbone(IMAGES)
    if logits is None:
        torch.testing.assert_close(found.features, features, rtol=0, atol=1e-6)
    else:
        torch.testing.assert_close(found.source_logits, logits, rtol=0, atol=1e-6)
        torch.testing.assert_close(backbone.linear_head(found.features), logits, rtol=0, atol=1e-6)
    assert backbone.architecture.startswith(f"transformers:{network.config.model_type} (")
    assert str(folder) not in json.dumps(backbone.network.kwargs)
    again = build_network(backbone.network, backbone.preprocessing)  # from the recipe alone
    again.load_state_dict(backbone.module.state_dict(), strict=True)
    with torch.no_grad():
        torch.testing.assert_close(features_of(again.eval()), features_of(backbone.module), rtol=0, atol=1e-6)
    assert 2 <= len(building_blocks(backbone.module)) <= 5


@pytest.mark.parametrize("name", FIRST_PATCH)
def test_tokens_in_front_of_the_patches_are_counted(name, folder_of):
    assert load_backbone(f"transformers:{folder_of(name)[0]}").module.num_prefix_tokens == FIRST_PATCH[name]


@pytest.mark.parametrize("name", [*PRE_NORM, "Swinv2Model"])
def test_adapters_stand_where_they_belong(name, folder_of):
    backbone = load_backbone(f"transformers:{folder_of(name)[0]}")
    classifier = make_classifier(backbone, 3, seed=0)
    LoRA(r=2).add_adapters(classifier, seed=0)
    num_blocks = len(classifier.blocks)
    assert len(adapters_of(classifier)) == 2 * num_blocks
    assert {host.rpartition(".")[2] for host in (each.rpartition(".")[0] for each in adapters_of(classifier))} <= {
        *("q_proj", "v_proj", "query", "value")
    }
    classifier(IMAGES).sum().backward()
    assert all(part.B.grad is not None and part.B.grad.any() for _, part in adapters_of(classifier).values())
    classifier = make_classifier(backbone, 3, seed=0)
    if name not in PRE_NORM:
        with pytest.raises(UsageError, match=r"AdaptFormer needs transformer blocks"):
            AdaptFormer(bottleneck=4).add_adapters(classifier, seed=0)
        return
    AdaptFormer(bottleneck=4, dropout=0).add_adapters(classifier, seed=0)
    assert len(adapters_of(classifier)) == num_blocks
    before = classifier(IMAGES).detach()
    torch.testing.assert_close(before, make_classifier(backbone, 3, seed=0)(IMAGES).detach())
    with torch.no_grad():
        for _, part in adapters_of(classifier).values():
            part.up.weight.normal_()
    changed = classifier(IMAGES).detach()
    assert not torch.allclose(before, changed)
    restored = rebuild_classifier(classifier.recipe.to_json())
    restored.load_state_dict(classifier.state_dict())
    torch.testing.assert_close(restored(IMAGES).detach(), changed)


@pytest.mark.parametrize("name", PLAIN_ATTENTION)
def test_attention_is_the_networks_own(name, folder_of):
    folder, _ = folder_of(name)
    backbone = load_backbone(f"transformers:{folder}")
    found = attention_map(backbone.module, IMAGES)
    eager = load_backbone(f"transformers:{folder}").module
    eager.model.set_attn_implementation("eager")
    with torch.no_grad():
        last = eager.model(**eager.arguments(IMAGES), output_attentions=True).attentions[-1].mean(1)
    prefix = eager.num_prefix_tokens
    expected = last[:, 0, prefix:] if prefix else last.mean(1)
    np.testing.assert_allclose(found.attention.reshape(3, -1), expected, atol=1e-5)
    assert found.asked == ("class token" if prefix else "mean of patches")


def test_attention_of_a_layer_that_states_no_scale(folder_of):
    found = attention_map(load_backbone(f"transformers:{folder_of('Data2VecVisionModel')[0]}").module, IMAGES)
    assert found.attention.shape == (3, 4, 4)  # the layer's own output was found again, else there is none


def test_a_pooler_counts_where_the_checkpoint_has_one(tmp_path, folder_of):
    folder, network = folder_of("ViTModel")
    state = {key: value for key, value in load_file(folder / "model.safetensors").items() if "pooler" not in key}
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_text((folder / name).read_text())
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    without, with_pooler = load_backbone(f"transformers:{tmp_path}"), load_backbone(f"transformers:{folder}")
    with torch.no_grad():
        expected = network(IMAGES).last_hidden_state[:, 0]
    torch.testing.assert_close(without(IMAGES).features, expected, rtol=0, atol=1e-6)
    assert "add_pooling_layer=True" in with_pooler.architecture and "add_pooling_layer" not in without.architecture


@pytest.mark.parametrize("whole", ["CLIPModel", "SiglipModel"])
def test_the_image_tower_of_a_whole_model(whole, tmp_path):
    towers = {"CLIPModel": "CLIPVisionModel", "SiglipModel": "SiglipVisionModel"}
    tower = make_network(towers[whole])
    text = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16, "vocab_size": 9}
    configuration = getattr(transformers, whole.replace("Model", "Config"))(vision_config=tower.config, text_config=text)
    model = getattr(transformers, whole)(configuration).eval()
    model.vision_model.load_state_dict(tower.state_dict())
    model.save_pretrained(tmp_path)
    transformers.SiglipImageProcessor(size={"height": SIZE, "width": SIZE}).save_pretrained(tmp_path)
    backbone = load_backbone(f"transformers:{tmp_path}")
    torch.testing.assert_close(backbone(IMAGES).features, theirs(tower, "")[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["ViTModel", "CLIPVisionModel", "Dinov2Model", "SwinModel", "ConvNextModel", "Siglip2VisionModel"]
)
def test_another_image_size(name, folder_of):
    backbone = load_backbone(f"transformers:{folder_of(name)[0]}", image_size=48)
    network = make_network(name)  # one that has seen nothing: Swin remembers a smaller image
    images = torch.randn(2, 3, 48, 48)
    found = backbone(images).features
    if name.startswith("Siglip2"):
        return
    arguments = {"interpolate_pos_encoding": True} if backbone.module.interpolates else {}
    with torch.no_grad():
        torch.testing.assert_close(found, network(images, **arguments).pooler_output, rtol=0, atol=1e-6)


def test_the_random_control_is_the_same_network_without_training(folder_of):
    (spec,) = read_zoo([f"transformers:{folder_of('Dinov2Model')[0]}"])
    control = random_weights_control(spec)
    first, same, other = load_backbone(control), load_backbone(control), load_backbone(control, seed=1)
    assert first.weights_fingerprint == same.weights_fingerprint != other.weights_fingerprint
    assert first.preprocessing == load_backbone(spec).preprocessing
    assert control.name == "transformers:dinov2 · random"


def test_a_checkpoint_without_a_description_beside_it(folder_of, tmp_path):
    folder, network = folder_of("ViTForImageClassification")
    torch.save({"state_dict": network.state_dict()}, tmp_path / "mine.pth")
    kwargs = read_zoo([f"transformers:{folder}"])[0].kwargs
    shape = {key: value for key, value in kwargs.items() if key != "num_classes"}
    spec = ModelSpec(name="x", source="transformers:vit", weights=str(tmp_path / "mine.pth"), kwargs=shape)
    mean = {"mean": [0.5] * 3, "std": [0.5] * 3}
    backbone = load_backbone(ModelSpec(**{**vars(spec), "preprocessing": mean}))
    torch.testing.assert_close(backbone(IMAGES).source_logits, theirs(network, "Classification")[1], rtol=0, atol=1e-6)


# Where the files are


def fill_cache(cache, folder, repository="ward/rays"):
    home = cache / ("models--" + repository.replace("/", "--"))
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("0" * 40)
    (home / "snapshots" / ("0" * 40)).parent.mkdir()
    (home / "snapshots" / ("0" * 40)).symlink_to(folder, target_is_directory=True)


def test_a_repository_in_the_cache_and_in_the_folder_of_weights(folder_of, tmp_path, monkeypatch):
    folder, _ = folder_of("Dinov2Model")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    fill_cache(tmp_path / "hub", folder)
    here = load_backbone(f"transformers:{folder}")
    assert load_backbone("transformers:ward/rays").weights_fingerprint == here.weights_fingerprint
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "ward--chest").symlink_to(folder, target_is_directory=True)
    there = load_backbone("transformers:ward/chest", weights_dir=tmp_path / "weights")
    assert there.weights_fingerprint == here.weights_fingerprint


def test_without_consent_nothing_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(described_places, "hf_hub_download", lambda *_, **__: pytest.fail("nobody allowed it"))
    with pytest.raises(
        MissingWeightsError, match=r"preprocessor_config\.json and model\.safetensors.*ward--rays.*--allow-download"
    ):
        read_zoo(["transformers:ward/rays"])


def test_a_gate_is_said(tmp_path, monkeypatch):
    def closed(*_, **__):
        raise described_places.GatedRepoError.__new__(described_places.GatedRepoError, "closed")

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(described_places, "hf_hub_download", closed)
    with pytest.raises(MissingWeightsError, match="accepted its terms"):
        read_zoo(["transformers:ward/rays"], allow_download=True)


@pytest.mark.parametrize("name", ["transformers:nowhere", "transformers:a/b/c", "transformers:vit"])
def test_names_of_no_place(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingWeightsError, match="transformers:FOLDER"):
        load_backbone(name)


# What a folder may not do


def edited(folder_of, tmp_path, said=None, name="ViTModel", file="config.json"):
    """A copy of a folder whose description is changed; a value of None is taken out."""
    folder, _ = folder_of(name)
    for each in folder.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    if isinstance(said, str):
        (tmp_path / file).write_text(said)
    elif said is not None:
        changed = json.loads((folder / file).read_text()) | said
        (tmp_path / file).write_text(json.dumps({key: value for key, value in changed.items() if value is not None}))
    return f"transformers:{tmp_path}"


HEAD = {"architectures": ["ViTForImageClassification"], "id2label": None}


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({"auto_map": {"AutoModel": "code.Model"}}, UsageError, "auto_map"),
        ({"architecture": "resnet18"}, UsageError, r"of timm \('resnet18'\)\. Write hf-hub:"),
        ({"model_type": "llama"}, UnknownNameError, "Unknown model_type"),
        ({"model_type": ["vit"]}, UnknownNameError, "Unknown model_type"),
        ({"quantization_config": {"quant_method": "bitsandbytes_8bit"}}, UsageError, "quantised"),
        ({"hidden_size": 10**9}, UsageError, "no architecture has one above"),
        ({"num_hidden_layers": 10**30}, UsageError, "no architecture has one above"),
        ({**HEAD, "num_labels": 10**9}, UsageError, "no architecture has one above"),
        ({**HEAD, "num_labels": -5}, DataError, "must be a whole number"),
        ({**HEAD, "num_labels": "5"}, DataError, "must be a whole number"),
        ({"hidden_size": "wide"}, DataError, "transformers refuses"),
        ({"hidden_size": [[[[32]]]]}, UsageError, "no number, word or short list"),
        ({"hidden_act": "os.system"}, UsageError, "cannot build"),
        ({"num_attention_heads": 0}, CrossgraftError, "zero|num_attention_heads"),
        ({"image_size": 0}, CrossgraftError, "image"),
        ("not json", DataError, "not JSON"),
        ("[" * 100_000, DataError, "not JSON"),
        ("[1]", DataError, "mapping"),
    ],
)
def test_a_description_is_data(said, error, words, folder_of, tmp_path):
    with pytest.raises(error, match=words):
        load_backbone(edited(folder_of, tmp_path, said))


def test_names_without_effect_have_none(folder_of, tmp_path):
    attacks = {
        "_attn_implementation": "kernels-community/flash-attn",
        "attn_implementation": "somebody/kernel",
        "transformers_weights": "/etc/passwd",
        "fusion_config": {"patch_embeddings": True},
        "surprise": {"a": [1]},
        "_name_or_path": "/etc",
        "dtype": "float16",
        "use_kernels": True,
    }
    backbone = load_backbone(edited(folder_of, tmp_path, attacks))
    assert backbone.weights_fingerprint == load_backbone(f"transformers:{folder_of('ViTModel')[0]}").weights_fingerprint
    assert not attacks.keys() & backbone.network.kwargs.keys()


def test_code_in_the_folder_never_runs(folder_of, tmp_path):
    name = edited(folder_of, tmp_path)
    for file in ("modeling_vit.py", "configuration_vit.py", "image_processing_vit.py", "__init__.py"):
        (tmp_path / file).write_text("raise SystemExit('ran')")
    load_backbone(name)


class Attack:
    def __reduce__(self):
        return pytest.fail, ("it ran",)


def test_pickled_weights_run_nothing(folder_of, tmp_path):
    name = edited(folder_of, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Attack()}))
    with pytest.raises(DataError):
        load_backbone(name)


def test_pickled_tensors_are_read(folder_of, tmp_path):
    name = edited(folder_of, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(load_file(folder_of("ViTModel")[0] / "model.safetensors"), tmp_path / "pytorch_model.bin")
    torch.testing.assert_close(load_backbone(name)(IMAGES).features, theirs(folder_of("ViTModel")[1], "ViTModel")[0])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"num_hidden_layers": 1}, "unexpected"),
        ({"num_hidden_layers": 3}, "missing"),
        ({"intermediate_size": 48}, "of another shape"),
        ({"model_type": "dinov2"}, "missing"),
    ],
)
def test_weights_of_another_network_are_refused_by_name(said, words, folder_of, tmp_path):
    with pytest.raises(WeightsMismatchError, match=words):
        load_backbone(edited(folder_of, tmp_path, said))


@pytest.mark.parametrize(("files", "words"), [((), "has none of"), (("model.safetensors.index.json",), "in several files")])
def test_weights_that_are_missing_or_in_parts(files, words, folder_of, tmp_path):
    name = edited(folder_of, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    for file in files:
        (tmp_path / file).write_text("{}")
    with pytest.raises((MissingWeightsError, UsageError), match=words):
        load_backbone(name)


# How images are prepared


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({"image_mean": None}, UsageError, r"no image_mean.*preprocessing: \{"),
        ({"image_mean": ["a", "b", "c"]}, DataError, "no meaning"),
        ({"image_processor_type": "Surprise"}, UnknownNameError, "Surprise"),
        ({"size": {"longest_edge": 10}}, CrossgraftError, "longest_edge"),
        ({"do_resize": False}, UsageError, "does not resize"),
        ({"resample": 4}, UsageError, "filter 4 of Pillow"),
        ({"auto_map": {"AutoImageProcessor": "code.Processor"}}, UsageError, "auto_map"),
        ({"size": {"height": 10**9, "width": 32}}, UsageError, "input_size"),
        ({"image_std": [0.0, 0.0, 0.0]}, UsageError, "std"),
    ],
)
def test_a_processor_that_cannot_be_repeated(said, error, words, folder_of, tmp_path):
    with pytest.raises(error, match=words):
        load_backbone(edited(folder_of, tmp_path, said, file="preprocessor_config.json"))


def test_a_folder_without_a_processor_gets_advice_that_works(folder_of, tmp_path):
    name = edited(folder_of, tmp_path)
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(MissingWeightsError, match=r"preprocessing: \{input_size"):
        load_backbone(name)
    stated = {"input_size": [3, SIZE, SIZE], "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
    backbone = load_backbone(ModelSpec(name="x", source=name, preprocessing=stated))
    torch.testing.assert_close(backbone(IMAGES).features, theirs(folder_of("ViTModel")[1], "ViTModel")[0], rtol=0, atol=1e-6)


SQUARE, SHORT, CROP = {"height": SIZE, "width": SIZE}, {"shortest_edge": 36}, {"height": SIZE, "width": SIZE}
PROCESSORS = {
    "ViT": ({"size": SQUARE}, "squash", 1.0),
    "CLIP": ({"size": SHORT, "crop_size": CROP}, "crop", SIZE / 36),
    "Bit": ({"size": {"shortest_edge": SIZE}, "crop_size": CROP}, "crop", 1.0),
    "ConvNext": ({"size": {"shortest_edge": SIZE}}, "crop", 0.875),
    "Siglip": ({"size": SQUARE}, "squash", 1.0),
    "DINOv3ViT": ({"size": SQUARE}, "squash", 1.0),
    "DeiT": ({"size": {"height": 36, "width": 36}, "crop_size": CROP}, "crop", SIZE / 36),
}
COLOURS = {
    "no rescaling": {"do_rescale": False, "image_mean": [100.0, 110.0, 120.0], "image_std": [50.0, 50.0, 50.0]},
    "another factor": {"rescale_factor": 1 / 127.5, "image_mean": [1.0, 1.0, 1.0], "image_std": [1.0, 1.0, 1.0]},
    "no normalising": {"do_normalize": False},
}


def difference_in_levels(processor, pixels):
    """Largest difference of prepared pixels, in grey levels from 0 to 255."""
    said = json.loads(processor.to_json_string())
    prepared = resolve_preprocessing({}, preprocessing_of(said, channels=3, of="x"), model="x")
    expected = processor(images=[Image.fromarray(pixels)], return_tensors="pt")["pixel_values"][0]
    difference = prepare_batch([pixels], prepared)[0] - expected
    return prepared, float((difference * torch.tensor(prepared.std)[:, None, None]).abs().max()) * 255


@pytest.mark.parametrize("kind", PROCESSORS)
def test_pixels_are_the_processors_within_a_grey_level(kind):
    arguments, policy, fraction = PROCESSORS[kind]
    processor = getattr(transformers, f"{kind}ImageProcessor")(**arguments)
    side = (64, 64) if kind == "DeiT" else (64, 80)  # it squashes before it crops: only the same aspect is the same
    pixels = np.random.default_rng(0).integers(0, 256, (*side, 3), dtype=np.uint8)
    prepared, difference = difference_in_levels(processor, pixels)
    assert (prepared.resize_policy, round(prepared.crop_fraction, 6)) == (policy, round(fraction, 6))
    assert difference < 1.001


@pytest.mark.parametrize("kind", COLOURS)
def test_colours_are_the_processors(kind):
    _, difference = difference_in_levels(transformers.ViTImageProcessor(size=SQUARE, **COLOURS[kind]), PICTURES[0])
    assert difference < 1e-3


def test_older_files_mean_what_they_meant():
    said = {"feature_extractor_type": "ViTFeatureExtractor", "size": 32, "image_mean": [0.5], "image_std": [0.5], "resample": 2}
    assert preprocessing_of(said, channels=3, of="x") | {"mean": 0, "std": 0} == {
        "interpolation": "bilinear",
        "input_size": [3, 32, 32],
        "resize_policy": "squash",
        "mean": 0,
        "std": 0,
    }
    said = {"feature_extractor_type": "CLIPFeatureExtractor", "size": 40, "crop_size": 32, "do_center_crop": True, "resample": 3}
    found = preprocessing_of(said | {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}, channels=3, of="x")
    assert (found["resize_policy"], found["crop_pct"]) == ("crop", 0.8)


def test_every_kind_is_tried():
    tried = {make_network(name).config.model_type for name in NETWORKS}
    assert {kind for kind, family in FAMILIES.items() if not family.is_tower} == tried
