"""Checkpoints of CLIP (OpenAI, open_clip): the image tower as timm names its tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

_TOWER = "visual."
_CLASS_TOKEN = "visual.class_embedding"
_NEW_NAMES = (
    ("conv1.", "patch_embed.proj."),
    ("transformer.resblocks.", "blocks."),
    ("ln_pre.", "norm_pre."),
    ("ln_post.", "norm."),
    ("ln_1.", "norm1."),
    ("ln_2.", "norm2."),
    ("attn.in_proj_", "attn.qkv."),
    ("attn.out_proj.", "attn.proj."),
    ("mlp.c_fc.", "mlp.fc1."),
    ("mlp.c_proj.", "mlp.fc2."),
)


def is_of_clip(state: Mapping[str, Tensor]) -> bool:
    """Whether there is a vision transformer of CLIP among the tensors."""
    return _CLASS_TOKEN in state


def image_tower_of_clip(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of the image tower alone; its projection becomes a head without a shift."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if not name.startswith(_TOWER):
            continue
        name = name.removeprefix(_TOWER)
        if name == "class_embedding":
            renamed["cls_token"] = tensor.reshape(1, 1, -1)
        elif name == "positional_embedding":
            renamed["pos_embed"] = tensor.unsqueeze(0)
        elif name == "proj":
            renamed["head.weight"], renamed["head.bias"] = tensor.T.contiguous(), torch.zeros(tensor.shape[1])
        else:
            for old, new in _NEW_NAMES:
                name = name.replace(old, new)
            renamed[name] = tensor
    return renamed
