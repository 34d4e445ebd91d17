"""Text towers from towers: what they compute is what open_clip and transformers compute with the same files."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from crossgraft.errors import (
    DataError,
    DeviceLostError,
    MissingExtraError,
    MissingWeightsError,
    UnknownNameError,
    UsageError,
    WeightsMismatchError,
)
from crossgraft.models import ModelSpec, load_backbone, load_text_tower, read_zoo
from support import text_towers as made
from support.text_towers import open_clip, transformers

TEXTS = ["a photo of a cat", "a photo of the dog", "an image of a red cell"]
SMALL, LARGE = (torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(0)) for side in (32, 160))


@pytest.fixture(scope="module")
def towers(tmp_path_factory):
    return tmp_path_factory.mktemp("towers")


def of_open_clip(network, tokenizer, images):
    ids = tokenizer(TEXTS, context_length=made.CONTEXT)
    vectors, texts, scale, *bias = network(images, ids)
    logits = scale * vectors @ texts.T + (bias[0] if bias else 0)
    return network.encode_image(images), network.encode_text(ids), logits


def of_transformers(folder, network, **padding):
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(TEXTS, return_tensors="pt", **padding)
    texts, images = network.get_text_features(**tokens), network.get_image_features(SMALL)
    return images.pooler_output, texts.pooler_output, network(pixel_values=SMALL, **tokens).logits_per_image


def clip_of_open_clip(folder):
    return f"open_clip:{folder}", of_open_clip(made.write_open_clip(folder), open_clip.SimpleTokenizer(), SMALL)


def projected_trunk(folder):
    network = made.write_open_clip(folder, custom=True, vision=made.TRUNK | {"timm_proj": "mlp"}, init_logit_bias=-10.0)
    return f"open_clip:{folder}", of_open_clip(network, open_clip.SimpleTokenizer(), LARGE)


def biomedclip(folder):
    network = made.write_biomedclip(folder, folder.parent)
    return f"open_clip:{folder}", of_open_clip(network, open_clip.tokenizer.HFTokenizer(str(folder)), LARGE)


def clip_of_transformers(folder):
    return f"transformers:{folder}", of_transformers(folder, made.write_transformers_clip(folder), padding=True)


def trunk_with_a_head(folder):
    network = made.write_open_clip(folder, custom=True, vision=made.TRUNK | {"timm_proj": "", "timm_pool": "token"})
    return f"open_clip:{folder}", of_open_clip(network, open_clip.SimpleTokenizer(), LARGE)


def metaclip_of_transformers(folder):
    return f"transformers:{folder}", of_transformers(folder, made.write_transformers_metaclip(folder), padding=True)


def medsiglip_of_transformers(folder):
    return siglip_of_transformers(folder, made.sentencepiece_tokenizer(folder.parent))


def siglip_of_transformers(folder, tokenizer=None):
    network = made.write_transformers_siglip(folder, tokenizer)
    return f"transformers:{folder}", of_transformers(folder, network, padding="max_length", max_length=made.CONTEXT)


@pytest.mark.parametrize(
    "write",
    [
        clip_of_open_clip,
        projected_trunk,
        trunk_with_a_head,
        biomedclip,
        clip_of_transformers,
        metaclip_of_transformers,
        siglip_of_transformers,
        medsiglip_of_transformers,
    ],
)
@torch.no_grad()
def test_vectors_and_zero_shot_logits_are_those_of_the_library(write, tmp_path):
    source, (of_images, of_texts, logits) = write(tmp_path / "both")
    tower, backbone = load_text_tower(source), load_backbone(source)
    images = SMALL if backbone.preprocessing.height_pixels == SMALL.shape[2] else LARGE
    found = tower.project(backbone(images).features.numpy(), backbone)
    np.testing.assert_allclose(tower.encode(TEXTS), of_texts, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found, of_images, rtol=0, atol=1e-6)
    np.testing.assert_allclose(tower.logits(found, tower.encode(TEXTS)), logits, rtol=1e-6, atol=1e-5)
    assert np.ptp(tower.encode(TEXTS), axis=0).max() > 0.01, "texts differ"


@pytest.fixture(scope="module")
def clip(towers):
    made.write_transformers_clip(towers / "clip")
    return towers / "clip"


def copy_of(folder, target, *, without=()):
    target.mkdir()
    for file in folder.iterdir():
        if file.name not in without:
            (target / file.name).write_bytes(file.read_bytes())
    return target


def test_a_batch_does_not_change_a_text(clip):
    tower = load_text_tower(f"transformers:{clip}")
    np.testing.assert_allclose(tower.encode(TEXTS)[:1], tower.encode(TEXTS[:1]), rtol=0, atol=1e-6)
    assert tower.tokens_of("a cat") != tower.tokens_of("a dog")


def test_a_text_that_is_too_long_is_not_cut(clip):
    tower = load_text_tower(f"transformers:{clip}")
    longest = "a" * 30  # letters, and the tokens of beginning and end
    assert len(tower.tokens_of(longest)) == tower.context_length == 32
    with pytest.raises(UsageError, match=r"has 33 tokens, and the text tower of .* takes 32"):
        tower.encode([longest + "a"])


@pytest.mark.parametrize(
    ("source", "words"), [("test_resnet", "has no text tower"), ("open_clip:ViT-B-32/openai", r"open_clip:timm/vit_base_patch32")]
)
def test_a_network_that_does_not_read(source, words):
    spec = read_zoo([source])[0] if source.startswith("open") else ModelSpec("resnet", source, weights="random")
    with pytest.raises(UsageError, match=words):
        load_text_tower(spec)


def test_random_weights_do_not_read(clip):
    with pytest.raises(UsageError, match="random weights"):
        load_text_tower(read_zoo([ModelSpec("clip", f"transformers:{clip}", weights="random")])[0])


def test_an_image_tower_alone(clip, tmp_path):
    folder = copy_of(clip, tmp_path / "images")
    network = transformers.CLIPModel.from_pretrained(clip)
    made.save(network.vision_model, folder / "model.safetensors")
    with pytest.raises(UsageError, match="holds no text tower, only images"):
        load_text_tower(f"transformers:{folder}")


@pytest.mark.parametrize("missing", ["tokenizer.json", "everything"])
def test_a_tokenizer_that_is_missing(missing, clip, tmp_path):
    names = [file.name for file in clip.iterdir() if "token" in file.name or file.name in ("vocab.json", "merges.txt")]
    folder = copy_of(clip, tmp_path / "clip", without=names if missing == "everything" else [missing])
    load_backbone(f"transformers:{folder}")
    with pytest.raises(MissingWeightsError, match=r"tokenizer of clip is not on this machine.*tokenizer\.json"):
        load_text_tower(f"transformers:{folder}")


def test_a_tokenizer_of_another_network(clip, tmp_path):
    folder = copy_of(clip, tmp_path / "clip", without=["tokenizer.json"])
    said = json.loads((clip / "tokenizer.json").read_text())
    said["model"]["vocab"]["cat</w>"] = 90_000
    said["model"]["vocab"]["ca"] = 90_001
    said["model"]["merges"] = [["c", "a"], ["ca", "t</w>"]]
    (folder / "tokenizer.json").write_text(json.dumps(said))
    with pytest.raises(DataError, match=r"gives the token 90000, and its text tower knows"):
        load_text_tower(f"transformers:{folder}").encode(["cat"])


def test_weights_of_another_text_tower(clip, tmp_path):
    folder = copy_of(clip, tmp_path / "clip")
    said = json.loads((clip / "config.json").read_text())
    said["text_config"]["intermediate_size"] = 128
    (folder / "config.json").write_text(json.dumps(said))
    with pytest.raises(WeightsMismatchError, match=r"text tower .*mismatched"):
        load_text_tower(f"transformers:{folder}")


@pytest.mark.parametrize(
    ("key", "tensor", "error", "words"),
    [
        ("logit_scale", torch.ones(2), DataError, "logit_scale in model.safetensors must be one number"),
        ("logit_scale", torch.tensor(1e9), DataError, "logit_scale in model.safetensors must be one number"),
        ("logit_bias", torch.tensor(float("nan")), DataError, "logit_bias in model.safetensors must be one number"),
        ("visual_projection.weight", torch.ones(3), WeightsMismatchError, r"is \(3,\), and images need 12 rows"),
        ("visual_projection.weight", torch.ones(32, 32), WeightsMismatchError, r"is \(32, 32\), and images need 12 rows"),
        ("visual_projection.weight", None, WeightsMismatchError, "visual_projection.weight in model.safetensors is missing"),
    ],
)
def test_numbers_and_projection_of_the_weights_are_looked_at(key, tensor, error, words, clip, tmp_path):
    folder = copy_of(clip, tmp_path / "clip", without=["model.safetensors"])
    state = {name: each for name, each in {**load_file(clip / "model.safetensors"), key: tensor}.items() if each is not None}
    save_file(state, folder / "model.safetensors")
    with pytest.raises(error, match=words):
        load_text_tower(f"transformers:{folder}")


def test_a_description_that_the_network_cannot_follow(clip, tmp_path):
    folder = copy_of(clip, tmp_path / "clip")
    said = json.loads((clip / "config.json").read_text())
    said["text_config"]["eos_token_id"] = None
    (folder / "config.json").write_text(json.dumps(said))
    with pytest.raises(DataError, match="cannot be run"):
        load_text_tower(f"transformers:{folder}").encode(TEXTS)


def test_a_card_that_fails_says_nothing_of_the_description(clip):
    def lost(*_):
        raise RuntimeError("CUDA error: unspecified launch failure")

    tower = replace(load_text_tower(f"transformers:{clip}"), run=lost, device="meta")  # any device but the CPU
    with pytest.raises(DeviceLostError, match="The device meta failed"):
        tower.encode(TEXTS)


def test_the_description_of_a_bert_comes_from_beside_the_weights_or_from_its_own_folder(tmp_path):
    made.write_biomedclip(tmp_path / "weights" / "org--clip", tmp_path)
    folder, named = tmp_path / "weights" / "org--clip", tmp_path / "weights" / "some--bert"
    expected = load_text_tower("open_clip:org/clip", weights_dir=tmp_path / "weights").encode(TEXTS)
    named.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).rename(named / name)
    found = load_text_tower("open_clip:org/clip", weights_dir=tmp_path / "weights")
    assert np.array_equal(found.encode(TEXTS), expected)
    (named / "tokenizer.json").unlink()
    with pytest.raises(MissingWeightsError, match=r"tokenizer of org--clip is that of some/bert.*some--bert"):
        load_text_tower("open_clip:org/clip", weights_dir=tmp_path / "weights")
    (named / "config.json").unlink()
    with pytest.raises(MissingWeightsError, match=r"is a some/bert, whose config\.json .*--allow-download"):
        load_text_tower("open_clip:org/clip", weights_dir=tmp_path / "weights")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        (None, UsageError, "describes no text tower"),
        ({"hf_model_name": "../../etc"}, DataError, "no name of a repository"),
        ({"hf_tokenizer_name": "/etc"}, DataError, "no name of a repository"),
        ({"context_length": "long"}, DataError, "context_length"),
        ({"width": 10**9}, UsageError, "no architecture has one above"),
        ({"pool_type": "guess"}, DataError, "describes no text tower of open_clip"),
        ({"cache_dir": "/tmp"}, UnknownNameError, "cache_dir"),
        ({"tokenizer_kwargs": {"reduction_mask": "syntax"}}, UsageError, "reduction_mask"),
        ({"tokenizer_mode": "clips"}, UsageError, "tokenizer_mode"),
        ({"layers": 1}, WeightsMismatchError, "unexpected"),
    ],
)
def test_a_description_of_open_clip_is_data(changes, error, words, towers):
    folder = towers / "open"
    if not folder.is_dir():
        made.write_open_clip(folder)
        (folder / "said.json").write_text((folder / "open_clip_config.json").read_text())
    said = json.loads((folder / "said.json").read_text())
    said["model_cfg"]["text_cfg"] = {} if changes is None else said["model_cfg"]["text_cfg"] | changes
    (folder / "open_clip_config.json").write_text(json.dumps(said))
    with pytest.raises(error, match=words):
        load_text_tower(f"open_clip:{folder}")


def test_a_package_that_is_missing(clip, tmp_path, monkeypatch):
    from crossgraft.models.sources import open_clip_texts

    made.write_open_clip(tmp_path / "clip")
    monkeypatch.setitem(__import__("sys").modules, "open_clip", None)
    with pytest.raises(MissingExtraError, match=r"crossgraft\[text\]"):
        open_clip_texts.open_clip()
    with pytest.raises(MissingExtraError, match=r"crossgraft\[text\]"):
        load_text_tower(f"open_clip:{tmp_path / 'clip'}")
    load_backbone(f"open_clip:{tmp_path / 'clip'}")
