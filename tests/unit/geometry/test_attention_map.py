"""Attention of tiny transformers against softmax(q kᵀ · scale) written out, and of networks that have none."""

import copy

import numpy as np
import pytest
import torch
from timm.models import VisionTransformer
from timm.models.eva import Eva
from timm.models.swin_transformer import SwinTransformer
from torch import nn

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.geometry import AttentionMaps, attention_map, attention_overlap
from support.small_classifiers import small_classifier, wrap

SIZE, PATCH = (16, 24), 8
IMAGES = torch.randn(5, 3, *SIZE, generator=torch.Generator().manual_seed(0))


def transformer(**changes):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = VisionTransformer(img_size=SIZE, patch_size=PATCH, embed_dim=16, depth=3, num_heads=2, num_classes=3, **changes)
        for weight in network.parameters():  # attention that is far from flat
            nn.init.normal_(weight, std=0.5)
    return network.eval()


@torch.no_grad()
def literal(network, images):
    """Mean over heads of each block's softmax, one image and one head at a time."""
    tokens = network.norm_pre(network.patch_drop(network._pos_embed(network.patch_embed(images))))
    matrices = []
    for block in network.blocks:
        attn, taken = block.attn, block.norm1(tokens)
        number, length, width = taken.shape
        size = width // attn.num_heads
        total = torch.zeros(number, length, length)
        for image in range(number):
            qkv = attn.qkv(taken[image])
            for head in range(attn.num_heads):
                part = slice(head * size, (head + 1) * size)
                q, k = attn.q_norm(qkv[:, :width][:, part]), attn.k_norm(qkv[:, width : 2 * width][:, part])
                total[image] += torch.softmax(q @ k.T / size**0.5, dim=1) / attn.num_heads
        matrices.append(total)
        tokens = block(tokens)
    return matrices


KINDS = {
    "plain": {},
    "norms and registers": {"qk_norm": True, "reg_tokens": 2},
    "layer scale, no class token": {"class_token": False, "global_pool": "avg", "init_values": 0.5},
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_explicit_softmax_and_its_product(kind):
    network = transformer(**KINDS[kind])
    prefix = network.num_prefix_tokens
    fused, before = [block.attn.fused_attn for block in network.blocks], copy.deepcopy(network.state_dict())
    matrices = literal(network, IMAGES)
    rolled = torch.eye(matrices[0].shape[1])
    for matrix in matrices:
        rolled = (0.5 * matrix + 0.5 * torch.eye(matrix.shape[1])) @ rolled
    for is_rollout, expected in ((False, matrices[-1]), (True, rolled)):
        found = attention_map(network, IMAGES, rollout=is_rollout, batch_size=2)
        rows = expected[:, 0, prefix:] if prefix else expected.mean(1)
        np.testing.assert_allclose(found.attention.reshape(5, -1), rows, atol=2e-6)
        assert found.attention.shape == (5, 2, 3) and found.maps.shape == (5, *SIZE)
        assert found.maps.min() >= 0 and found.maps.max() <= 1
        assert found.asked == ("class token" if prefix else "mean of patches")
    assert [block.attn.fused_attn for block in network.blocks] == fused
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in network.modules())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_a_new_head_changes_nothing_and_one_image_is_enough():
    images = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    network = small_classifier("vit")
    found = attention_map(network, images)
    np.testing.assert_array_equal(found.attention, attention_map(network.body, images).attention)
    assert found.layer == "body.blocks.2.attn"


def test_a_network_without_attention_or_with_another_kind_of_it_is_refused_by_name():
    images = torch.randn(2, 3, 32, 32)
    with pytest.raises(UsageError, match="no attention layer"):
        attention_map(small_classifier("cnn"), images)
    windows = SwinTransformer(img_size=32, patch_size=4, embed_dim=8, depths=(1,), num_heads=(2,), window_size=4, num_classes=5)
    with pytest.raises(NotApplicable, match=r"\(WindowAttention\) is not the plain softmax"):
        attention_map(windows, images)
    rotary = Eva(img_size=32, patch_size=8, embed_dim=16, depth=1, num_heads=2, use_rot_pos_emb=True, num_classes=5)
    for weight in rotary.parameters():
        nn.init.normal_(weight, std=0.5)
    with pytest.raises(NotApplicable, match=r"blocks.0.attn \(EvaAttention\) is not the plain softmax"):
        attention_map(wrap(rotary), images)


def maps(attention):
    return AttentionMaps(np.asarray(attention, dtype=float), np.zeros((1, 2, 2)), "attn", "class token", False)


def test_overlap_is_that_of_the_fewest_patches_with_a_fifth_of_the_mass():
    peak = maps([[[0.15, 0.1], [0.1, 0.65]]])
    spread = maps([[[0.3, 0.3], [0.2, 0.2]]])
    assert attention_overlap(peak, peak)[0] == 1
    assert attention_overlap(peak, spread)[0] == 0
    assert attention_overlap(peak, spread, mass=0.7)[0] == pytest.approx(1 / 4)  # {4, 1} and {1, 2, 3}
    with pytest.raises(UsageError, match="cannot be compared"):
        attention_overlap(peak, maps([[[0.5, 0.5]]]))
