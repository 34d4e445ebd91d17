"""Adapters in a network: which layers are found, how they are switched off, merged, copied and built again."""

import copy
import pickle

import pytest
import torch
from timm.models import VisionTransformer
from timm.models.swin_transformer import SwinTransformer
from timm.models.swin_transformer_v2 import SwinTransformerV2
from torch import nn
from torchvision.models import VisionTransformer as TorchvisionTransformer

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.adapted import add_adapters, merged_copy
from crossgraft.models.adapters import AdapterRecipe, adapters_of, merge_adapters, unmerge_adapters, without_adapters
from crossgraft.models.classifier import read_recipe
from crossgraft.tune.methods import AdaptFormer, LoRA
from support.small_classifiers import small_classifier, wrap

IMAGES = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(5))


def built(kind, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return wrap(kind(num_classes=5, **options))


def adapted(classifier, method):
    """With adapters whose weights were moved."""
    method.add_adapters(classifier, seed=0)
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, adapter in adapters_of(classifier).values():
            for parameter in adapter.parameters():
                parameter += 0.1 * torch.randn(parameter.shape, generator=random)
    return classifier


def hosts(classifier):
    return [recipe.host for recipe in classifier.recipe.adapters]


def small_vit(**options):
    size = {"img_size": 32, "patch_size": 16, "embed_dim": 16, "depth": 2, "num_heads": 2}
    return built(VisionTransformer, **{**size, **options})


def small_swin(kind=SwinTransformer):
    return built(kind, img_size=32, patch_size=4, embed_dim=8, depths=(1, 1), num_heads=(1, 2), window_size=2)


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("auto", ["blocks.0.attn.qkv", "blocks.1.attn.qkv"]),
        ("qkv", ["blocks.0.attn.qkv", "blocks.1.attn.qkv"]),
        ("blocks.1.attn.proj", ["blocks.1.attn.proj"]),
        ("body.blocks.1.attn.*", ["blocks.1.attn.qkv", "blocks.1.attn.proj"]),
        ("blocks.1.mlp", ["blocks.1.mlp.fc1", "blocks.1.mlp.fc2"]),
        ("Conv2d", ["patch_embed.proj"]),
        ("fc2 + patch_embed", ["patch_embed.proj", "blocks.0.mlp.fc2", "blocks.1.mlp.fc2"]),
        ("mlp.fc1", ["blocks.0.mlp.fc1", "blocks.1.mlp.fc1"]),
    ],
)
def test_layers_are_named_in_several_ways(targets, expected):
    classifier = small_vit()
    LoRA(targets=targets).add_adapters(classifier, seed=0)
    assert hosts(classifier) == [f"body.{name}" for name in expected]


@pytest.mark.parametrize(("fused", "rows"), [("q+v", [[0, 16], [32, 48]]), ("q+k+v", [[0, 16], [16, 32], [32, 48]])])
def test_queries_and_values_of_a_fused_layer(fused, rows):
    classifier = small_vit()
    LoRA(r=2, fused=fused).add_adapters(classifier, seed=0)
    assert [recipe.options["rows"] for recipe in classifier.recipe.adapters] == [rows, rows]
    adapter = classifier.body.blocks[0].attn.qkv.lora
    assert adapter.A.shape == (2 * len(rows), 16) and adapter.B.shape == (16 * len(rows), 2)


def test_the_fused_rows_are_queries_keys_and_values():
    """Keys that all move alike change no attention; queries and values that do change it."""
    classifier = small_vit()
    before = classifier(IMAGES)
    bias = classifier.body.blocks[0].attn.qkv.bias
    moved = []
    for start in (0, 16, 32):
        with torch.no_grad():
            bias[start : start + 16] += 1.0
            moved.append(float((classifier(IMAGES) - before).abs().max()))
            bias[start : start + 16] -= 1.0
    assert moved[1] < 1e-6 < 1e-4 < min(moved[0], moved[2])


def test_a_network_without_attention_has_its_convolutions_adapted():
    classifier = small_classifier("convnext")
    LoRA().add_adapters(classifier, seed=0)
    layers = dict(classifier.named_modules())
    expected = [n for n, layer in layers.items() if isinstance(layer, nn.Conv2d) and layer.groups == 1]
    assert hosts(classifier) == expected and expected


@pytest.mark.parametrize(
    ("make", "method", "error", "message"),
    [
        (small_vit, LoRA(targets="blocks.0.attn.qvk"), UnknownNameError, "blocks.0.attn.qkv"),
        (small_vit, LoRA(targets="norm1"), UsageError, "it is a LayerNorm"),
        (small_vit, LoRA(fused="q"), UnknownNameError, "q\\+v"),
        (lambda: small_swin(SwinTransformerV2), LoRA(), UsageError, "takes its weight without calling the layer"),
        (lambda: small_swin(SwinTransformerV2), AdaptFormer(), UsageError, "SwinTransformerV2Block.*does not"),
        (lambda: small_classifier("cnn"), AdaptFormer(), UsageError, "--method lora"),
        (lambda: small_classifier("cnn"), LoRA(r=4, targets="stem+block+head"), UnknownNameError, "head"),
        (
            lambda: built(
                TorchvisionTransformer,
                image_size=32, patch_size=16, num_layers=1, num_heads=2, hidden_dim=16, mlp_dim=32,
            ),
            LoRA(),
            UsageError,
            "does not find the queries and values of body.encoder.layers.encoder_layer_0.self_attention",
        ),
    ],
)  # fmt: skip
def test_refusals(make, method, error, message):
    classifier = make()
    before = classifier(IMAGES)
    with pytest.raises(error, match=message):
        method.add_adapters(classifier, seed=0)
    assert not adapters_of(classifier) and not classifier.recipe.adapters
    assert torch.equal(classifier(IMAGES), before)


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (small_vit, 2),
        (lambda: small_vit(init_values=1e-6), 2),  # a learned scale, too small to see
        (lambda: small_vit(init_values=0.5), 2),
        (small_swin, 2),
        (
            lambda: built(
                TorchvisionTransformer,
                image_size=32, patch_size=16, num_layers=1, num_heads=2, hidden_dim=16, mlp_dim=32,
            ),
            1,
        ),
    ],
    ids=["vit", "tiny scale", "scale", "swin", "torchvision"],
)  # fmt: skip
def test_adaptformer_stands_beside_the_mlp_of_every_pre_norm_block(make, count):
    classifier = make()
    adapted(classifier, AdaptFormer(bottleneck=3))
    assert len(hosts(classifier)) == count
    host, adapter = next(iter(adapters_of(classifier).values()))
    seen = {}
    norm = next(part for name, part in host.named_children() if name in ("norm2", "ln_2"))
    handles = [norm.register_forward_pre_hook(lambda _m, given: seen.update(x1=given[0]))]
    handles.append(host.register_forward_hook(lambda _m, _i, output: seen.update(x2=output)))
    classifier.eval()(IMAGES)
    for handle in handles:
        handle.remove()
    with without_adapters(classifier):
        handle = host.register_forward_hook(lambda _m, _i, output: seen.update(plain=output))
        classifier(IMAGES)
        handle.remove()
    expected = adapter.addition(seen["x1"]).reshape(seen["plain"].shape)
    torch.testing.assert_close(seen["x2"] - seen["plain"], expected, rtol=0, atol=1e-5)
    assert expected.abs().max() > 1e-3


def test_adapters_are_copied_and_pickled_with_their_network():
    for method in (LoRA(r=2), AdaptFormer(bottleneck=3)):
        classifier = adapted(small_vit(), method)
        expected = classifier(IMAGES)
        for twin in (copy.deepcopy(classifier), pickle.loads(pickle.dumps(classifier))):
            assert torch.equal(twin(IMAGES), expected)
            with without_adapters(twin):
                assert not torch.equal(twin(IMAGES), expected)
            assert torch.equal(classifier(IMAGES), expected)


def test_the_recipe_survives_json():
    classifier = adapted(small_vit(), LoRA(r=2, dropout=0.5))
    assert read_recipe(classifier.recipe.to_json()) == classifier.recipe


def test_a_merged_copy_has_no_adapters_and_no_hooks():
    classifier = adapted(small_classifier("convnext"), LoRA(r=2))
    twin = merged_copy(classifier)
    torch.testing.assert_close(twin(IMAGES), classifier(IMAGES), rtol=0, atol=1e-5)
    assert set(twin.state_dict()) == set(small_classifier("convnext").state_dict())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in twin.modules())
    assert not twin.recipe.adapters and classifier.recipe.adapters


def test_what_can_not_be_merged_is_refused_before_anything_is():
    classifier = adapted(adapted(small_vit(), LoRA(r=2)), AdaptFormer(bottleneck=3))
    expected = classifier(IMAGES)
    with pytest.raises(UsageError, match="adaptformer: its bottleneck is not linear"):
        merge_adapters(classifier)
    assert torch.equal(classifier(IMAGES), expected)


def test_while_merged_there_is_no_network_without():
    classifier = adapted(small_vit(), LoRA(r=2))
    merge_adapters(classifier)
    with pytest.raises(UsageError, match="unmerge_adapters"), without_adapters(classifier):
        pass
    unmerge_adapters(classifier)
    with without_adapters(classifier):
        pass


def test_adapters_are_on_again_after_an_error():
    classifier = adapted(small_vit(), LoRA(r=2))
    expected = classifier(IMAGES)
    with pytest.raises(ZeroDivisionError), without_adapters(classifier):
        raise ZeroDivisionError
    assert torch.equal(classifier(IMAGES), expected)


def test_a_host_has_one_adapter_of_a_kind():
    classifier = adapted(small_vit(), LoRA(r=2))
    with pytest.raises(UsageError, match="has a part called lora already"):
        LoRA(r=2).add_adapters(classifier, seed=0)
    with pytest.raises(UsageError, match="no layer of own to adapt"):
        add_adapters(classifier, [], seed=0)
    with pytest.raises(UnknownNameError, match="adaptformer"):
        add_adapters(classifier, [AdapterRecipe("adaptforma", "body.norm")], seed=0)


def test_each_adapter_has_a_stream_of_its_own():
    first, second = (adapted_at_first(LoRA(r=2, targets=targets)) for targets in ("qkv", "qkv+fc1"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["body.blocks.0.attn.qkv.lora.A"], first["body.blocks.1.attn.qkv.lora.A"])


def adapted_at_first(method):
    classifier = small_vit()
    method.add_adapters(classifier, seed=0)
    state = classifier.state_dict()
    return {name: state[name] for name in sorted(classifier.adapter_parameters)}


def test_nothing_of_a_forward_pass_is_kept():
    classifier = adapted(small_vit(), AdaptFormer(bottleneck=3))
    classifier(IMAGES)
    assert all(adapter._x1 is None for _, adapter in adapters_of(classifier).values())
