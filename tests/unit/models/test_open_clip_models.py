"""``open_clip:``: image towers from folders against CLIP's own tower written out, and names of published ones in timm."""

import json

import pytest
import timm
import torch
from huggingface_hub import constants
from safetensors.torch import save_file
from timm.models import list_pretrained
from torch import nn

from crossgraft.errors import DataError, MissingWeightsError, UnknownNameError, UsageError, WeightsMismatchError
from crossgraft.models import load_backbone, read_zoo
from crossgraft.models.adapters import adapters_of
from crossgraft.models.classifier import make_classifier
from crossgraft.models.recipe import build_network
from crossgraft.models.sources import described_places
from crossgraft.models.sources.open_clip_models import published_towers
from crossgraft.tune.methods.adaptformer import AdaptFormer

WIDTH, HEADS, LAYERS, PATCH, SIZE, EMBEDDING = 32, 2, 2, 8, 32, 12
TOWER = {"image_size": SIZE, "layers": LAYERS, "width": WIDTH, "head_width": WIDTH // HEADS, "patch_size": PATCH}
SAID = {
    "model_cfg": {"embed_dim": EMBEDDING, "vision_cfg": TOWER, "text_cfg": {"width": 16}},
    "preprocess_cfg": {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6], "resize_mode": "squash"},
}
TRUNK = {"timm_model_name": "test_vit", "timm_model_pretrained": False, "timm_pool": "", "timm_proj": "linear", "image_size": 160}
IMAGES = torch.randn(2, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))


class QuickGELU(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class Block(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.mlp = nn.Sequential()
        self.mlp.c_fc, self.mlp.gelu, self.mlp.c_proj = nn.Linear(WIDTH, 4 * WIDTH), act(), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        normed = self.ln_1(x)
        x = x + self.attn(normed, normed, normed, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class Tower(nn.Module):
    """As in the published code of CLIP."""

    def __init__(self, act=nn.GELU):
        super().__init__()
        self.conv1 = nn.Conv2d(3, WIDTH, PATCH, PATCH, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(WIDTH))
        self.positional_embedding = nn.Parameter(torch.randn((SIZE // PATCH) ** 2 + 1, WIDTH))
        self.ln_pre, self.ln_post = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.transformer = nn.Module()
        self.transformer.resblocks = nn.ModuleList([Block(act) for _ in range(LAYERS)])
        self.proj = nn.Parameter(torch.randn(WIDTH, EMBEDDING))

    def forward(self, images):
        tokens = self.conv1(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.class_embedding.expand(len(images), 1, -1), tokens], dim=1) + self.positional_embedding
        tokens = self.ln_pre(tokens)
        for block in self.transformer.resblocks:
            tokens = block(tokens)
        return self.ln_post(tokens[:, 0])


def fill(folder, tower, said=SAID, weights="open_clip_model.safetensors", prefix="visual."):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "open_clip_config.json").write_text(json.dumps(said), encoding="utf-8")
    state = {f"{prefix}{name}": tensor.contiguous() for name, tensor in tower.state_dict().items()}
    state |= {"logit_scale": torch.zeros(()), "token_embedding.weight": torch.zeros(4, 4)}
    (save_file if weights.endswith(".safetensors") else torch.save)(state, folder / weights)
    return f"open_clip:{folder}"


@pytest.fixture
def tower():
    torch.manual_seed(0)
    return Tower().eval()


@pytest.mark.parametrize("act", [nn.GELU, QuickGELU])
@torch.no_grad()
def test_the_vision_transformer_of_clip_is_timms(act, tmp_path):
    torch.manual_seed(0)
    tower = Tower(act).eval()
    said = {**SAID, "model_cfg": {**SAID["model_cfg"], "quick_gelu": act is QuickGELU}}
    backbone = load_backbone(fill(tmp_path / "clip", tower, said))
    found, expected = backbone(IMAGES), tower(IMAGES)
    torch.testing.assert_close(found.features, expected, rtol=0, atol=2e-6)
    torch.testing.assert_close(found.source_logits, expected @ tower.proj, rtol=0, atol=1e-5)
    prepared = backbone.preprocessing
    assert (prepared.mean, prepared.std, prepared.resize_policy) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), "squash")
    assert build_network(backbone.network, prepared).state_dict().keys() == backbone.module.state_dict().keys()
    classifier = make_classifier(backbone, 3, seed=0)
    AdaptFormer(bottleneck=4).add_adapters(classifier, seed=0)
    assert len(adapters_of(classifier)) == LAYERS


@pytest.mark.parametrize("weights", ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"])
@torch.no_grad()
def test_a_trunk_of_timm_as_in_biomedclip(weights, tmp_path):
    trunk = timm.create_model("test_vit", num_classes=0).eval()
    said = {**SAID, "model_cfg": {"embed_dim": EMBEDDING, "vision_cfg": TRUNK}}
    backbone = load_backbone(fill(tmp_path / "trunk", trunk, said, weights, prefix="visual.trunk."))
    images = torch.randn(2, 3, 160, 160)
    torch.testing.assert_close(backbone(images).features, trunk(images), rtol=0, atol=1e-6)
    assert backbone.architecture == "test_vit"


def test_a_repository_in_the_folder_of_weights_and_out_of_reach(tower, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(described_places, "hf_hub_download", lambda *_, **__: pytest.fail("nobody allowed it"))
    fill(tmp_path / "weights" / "ward--clip", tower)
    load_backbone("open_clip:ward/clip", weights_dir=tmp_path / "weights")
    with pytest.raises(MissingWeightsError, match=r"open_clip_config\.json and open_clip_model\.safetensors.*ward--other"):
        read_zoo(["open_clip:ward/other"])


def testpublished_towers_names_are_networks_of_timm():
    assert {row["timm"] for row in published_towers().values()} <= set(list_pretrained())
    (spec,) = read_zoo(["open_clip:ViT-B-16-SigLIP2/webli"])
    assert (spec.source, spec.weights) == ("vit_base_patch16_siglip_224.v2_webli", "pretrained")
    assert spec.preprocessing == {"resize_policy": "squash", "crop_pct": 1.0}
    assert read_zoo(["open-clip:ViT-B-32/openai"])[0].source == "vit_base_patch32_clip_quickgelu_224.openai"


@pytest.mark.parametrize("name", ["ViT-B-32/laion2b", "ViT-B-32", "ViT-B-33/openai/x"])
def test_names_that_are_not_known(name):
    with pytest.raises((UnknownNameError, MissingWeightsError), match=r"ViT-B-32/|open_clip:FOLDER"):
        read_zoo([f"open_clip:{name}"])


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"attentional_pool": True}, UsageError, "attentional_pool"),
        ({"layers": [3, 4, 6, 3]}, UsageError, "no vision transformer of CLIP"),
        ({"width": "wide"}, DataError, "width"),
        ({"head_width": 0}, DataError, "head_width"),
        ({"layers": 10**9}, UsageError, "no architecture has one above"),
        ({"layers": 3}, WeightsMismatchError, "missing"),
        ({**TRUNK, "timm_pool": "rot_attn"}, UsageError, "rot_attn"),
        ({**TRUNK, "timm_model_name": "vit_of_nobody"}, UnknownNameError, "vit_of_nobody"),
        ({**TRUNK, "timm_model_name": "hf-hub:somebody/code"}, UnknownNameError, "somebody"),
        (TRUNK, UsageError, r"No tensor .* visual\.trunk\."),
    ],
)
def test_a_description_is_data(changes, error, words, tower, tmp_path):
    said = {**SAID, "model_cfg": {**SAID["model_cfg"], "vision_cfg": {**TOWER, **changes}}}
    with pytest.raises(error, match=words):
        load_backbone(fill(tmp_path / "clip", tower, said))


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({**SAID, "auto_map": {}}, UsageError, "auto_map"),
        ({**SAID, "model_cfg": [1]}, DataError, "model_cfg"),
        ({**SAID, "preprocess_cfg": {"resize_mode": "random"}}, UnknownNameError, "resize_mode"),
        ({**SAID, "preprocess_cfg": {"mean": "grey"}}, UsageError, "mean"),
        ({}, UsageError, "no vision transformer of CLIP"),
    ],
)
def test_a_file_that_is_no_description(said, error, words, tower, tmp_path):
    with pytest.raises(error, match=words):
        load_backbone(fill(tmp_path / "clip", tower, said))
