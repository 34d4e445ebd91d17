"""Where a vision transformer looks: attention of the class token to the patches, and its rollout over all blocks.

Source: Figure 5 of RepSim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn
from torch.nn import functional

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.features.passes import collect, run_pass, through_taps
from crossgraft.geometry._inputs import AnyImages, Network, NetworkImages, module_of, weight_of
from crossgraft.geometry.record import AttentionRecord, AttentionRow, Matrix, drawn_cells
from crossgraft.models.taps import Tap, named_layer
from crossgraft.statistics.exact_tests import mean_interval

BATCH_SIZE = 16
TOP_MASS = 0.2
"""Share of the attention that the compared patches hold."""
_SAME_OUTPUT = 1e-3
_KEPT_ITSELF = 0.5  # share of the residual path in a rollout

Patches = Float64[np.ndarray, "num_images rows columns"]
Maps = Float64[np.ndarray, "num_images height width"]


@dataclass(frozen=True)
class AttentionMaps:
    """Attention to the patches of each image.

    Attributes:
        attention: (n, rows, columns) mean over heads; register tokens are left out, so that the sum may be below 1.
        maps: (n, height, width) the same from 0 to 1 within each image, at its size.
        layer: Name of the last attention layer.
        asked: What asks: ``class token``, or ``mean of patches`` where there is none.
        is_rollout: Whether all blocks were multiplied.
    """

    attention: Patches
    maps: Maps
    layer: str
    asked: str
    is_rollout: bool


def attention_map(network: Network, images: AnyImages, *, rollout: bool = False, batch_size: int = BATCH_SIZE) -> AttentionMaps:
    """Attention of the last block, softmax(q kᵀ · scale) of the class token to each patch, mean over heads.

    A layer with fused attention never forms this matrix. It is computed again from what the layer takes, with the layer's own
    projections and norms, and the layer's output from it: where that is not what the layer gives (rotary or relative positions,
    windows), there is no map. No setting of the network is changed.

    Args:
        network: A vision transformer in the form of timm or transformers, with or without a new head.
        images: Prepared images, or a data set.
        rollout: Multiply ½ A + ½ I of all blocks (rows with a sum of 1), which follows information from the input to the end.
        batch_size: Images at once.

    Raises:
        UsageError: The network has no attention layer.
        NotApplicable: Its attention is of another kind, or its tokens are no grid of patches.
        DataError: There is no image, or attention is not finite.

    Cost: a forward pass per image; with ``rollout`` a product of tokens × tokens per block.

    Source: Dosovitskiy et al., ICLR 2021; rollout: Abnar and Zuidema, ACL 2020, eq. 1.
    """
    module = module_of(network)
    names = attention_layers(module)
    used = names if rollout else names[-1:]
    taps = [(Tap(name, of="input"), Tap(name)) for name in used]
    layers = [named_layer(module, name) for name in used]
    tapped = through_taps(module, [tap for pair in taps for tap in pair])
    tokens = _Tokens(module)

    def read(batch: Tensor) -> Tensor:
        outputs = tapped(batch)
        matrices = [
            _checked_attention(name, layer, outputs[taken], outputs[given], num_images=len(batch))
            for name, layer, (taken, given) in zip(used, layers, taps, strict=True)
        ]
        return tokens.to_patches(_rolled_out(matrices) if rollout else matrices[-1], batch)

    prepared = NetworkImages(images, network, fewest=1)
    passes = run_pass(module, prepared.batches(batch_size), read=read, like=weight_of(module), full_precision=True)
    attention = collect(passes).double()
    if not bool(torch.isfinite(attention).all()):
        raise DataError("Attention holds NaN or infinite numbers. Check the weights of the network.")
    size = tuple(prepared.prepared(torch.arange(1)).shape[2:])
    return AttentionMaps(attention.numpy(), _at_size(attention, size), names[-1], tokens.asked, rollout)


def attention_overlap(one: AttentionMaps, other: AttentionMaps, *, mass: float = TOP_MASS) -> Float64[np.ndarray, " n"]:
    """Intersection over union, image by image, of the fewest patches that hold ``mass`` of the attention.

    Raises:
        UsageError: The maps are of other images or grids, or ``mass`` is not in (0, 1].

    Source: this project's, so that "retained" is a number.
    """
    if one.attention.shape != other.attention.shape:
        raise UsageError(
            f"Maps of {one.attention.shape} and {other.attention.shape} cannot be compared; take the same images at one size."
        )
    if not 0 < mass <= 1:
        raise UsageError(f"The share of attention that is compared lies above 0 and up to 1; it is {mass:g}.")
    first, second = (_top(maps.attention.reshape(len(maps.attention), -1), mass) for maps in (one, other))
    return (first & second).sum(axis=1) / (first | second).sum(axis=1)


def attention_record(found: Mapping[str, AttentionMaps], *, reference: str, images: str, drawn: Sequence[int]) -> AttentionRecord:
    """Attention of several networks to the same images, of which those at ``drawn`` are shown; overlaps of all of them."""
    home = found[reference]
    rows: list[AttentionRow] = []
    for name, maps in found.items():
        overlaps = attention_overlap(maps, home)
        is_home = name == reference
        mean, low, high, reason = (None,) * 4 if is_home else mean_interval(overlaps, limits=(0.0, 1.0))
        rows.append(
            AttentionRow(
                network=name,
                attention=[drawn_cells(_from_0_to_1(maps.attention[row])) for row in drawn],
                overlap=mean,
                overlap_low=low,
                overlap_high=high,
                no_interval_reason=reason,
                drawn_overlaps=[] if is_home else [float(overlaps[row]) for row in drawn],
            )
        )
    return AttentionRecord(
        reference=reference,
        images=images,
        layer=home.layer,
        asked=home.asked,
        is_rollout=home.is_rollout,
        top_mass=TOP_MASS,
        num_images=len(home.attention),
        drawn=list(drawn),
        networks=rows,
    )


def _from_0_to_1(matrix: Matrix) -> Matrix:
    """0 everywhere where all is the same."""
    span = float(matrix.max() - matrix.min())
    return (matrix - matrix.min()) / (span or 1.0)


def attention_layers(module: nn.Module) -> list[str]:
    """Names of the self-attention layers with linear projections to queries, keys and values, first to last.

    Raises:
        UsageError: There are none.
    """
    names = [name for name, layer in module.named_modules() if name and _is_attention(layer)]
    if not names:
        raise UsageError(
            f"The network has no attention layer with queries, keys and values (a {type(module).__name__}), so there is no "
            "attention to map. Take a vision transformer, such as vit or deit of timm."
        )
    return names


_SEPARATE = (("q_proj", "k_proj", "v_proj"), ("query", "key", "value"))
_OUTPUTS = ("proj", "o_proj", "out_proj")
_HEADS, _SCALES = ("num_heads", "num_attention_heads"), ("scale", "scaling")


def _is_attention(layer: nn.Module) -> bool:
    return bool(_projections(layer)) and _attribute(layer, _HEADS, int) is not None


def _projections(layer: nn.Module) -> list[nn.Linear]:
    """To queries, keys and values: one layer, or three (as in transformers); empty where there are none."""
    for names in (("qkv",), *_SEPARATE):
        parts = [part for name in names if isinstance(part := getattr(layer, name, None), nn.Linear)]
        if len(parts) == len(names):
            return parts
    return []


def _attribute(layer: nn.Module, names: Sequence[str], kind: type | UnionType) -> Any:
    return next((value for name in names if isinstance(value := getattr(layer, name, None), kind)), None)


def _checked_attention(
    name: str, layer: nn.Module, taken: Tensor, given: Tensor, *, num_images: int
) -> Float[Tensor, "batch t t"]:
    """Mean over heads of softmax(q kᵀ · scale), once it gives what the layer gave."""
    refusal = NotApplicable(
        f"the attention of {name} ({type(layer).__name__}) is not the plain softmax of queries and keys over all tokens, so it "
        "cannot be drawn"
    )
    if taken.ndim != 3 or len(taken) != num_images:
        raise refusal
    parts: Mapping[str, nn.Module] = dict(layer.named_children())
    batch, length, _ = taken.shape
    heads = _attribute(layer, _HEADS, int)
    projected = torch.cat([projection(taken) for projection in _projections(layer)], dim=-1)
    q, k, v = projected.reshape(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
    same = nn.Identity()
    q, k = parts.get("q_norm", same)(q), parts.get("k_norm", same)(k)
    scale = _attribute(layer, _SCALES, float | Tensor)
    matrix = ((q * (q.shape[-1] ** -0.5 if scale is None else scale)) @ k.transpose(-2, -1)).softmax(dim=-1)
    mixed = parts.get("norm", same)((matrix @ v).transpose(1, 2).reshape(batch, length, -1))
    if "gate" in parts:
        mixed = mixed * parts["gate"](taken).sigmoid()
    out = next((parts[each] for each in _OUTPUTS if each in parts), same)(mixed)
    tolerance = _SAME_OUTPUT * max(float(given.abs().max()), torch.finfo(given.dtype).tiny)
    if out.shape != given.shape or not torch.allclose(out, given, rtol=0, atol=tolerance, equal_nan=True):
        raise refusal
    return matrix.mean(dim=1)


def _rolled_out(matrices: list[Tensor]) -> Tensor:
    """Â_L … Â_1 with Â = ½ A + ½ I, rows with a sum of 1 (eq. 1 of Abnar and Zuidema)."""
    identity = torch.eye(matrices[0].shape[-1], dtype=torch.float64, device=matrices[0].device)
    product = identity
    for matrix in matrices:
        step = (1 - _KEPT_ITSELF) * matrix.double() + _KEPT_ITSELF * identity
        product = (step / step.sum(dim=-1, keepdim=True)) @ product
    return product


class _Tokens:
    """Which tokens are patches, and where these lie."""

    def __init__(self, module: nn.Module) -> None:
        body = getattr(module, "body", module)
        self._num_prefix = int(getattr(body, "num_prefix_tokens", 0))
        self._has_class = getattr(body, "cls_token", None) is not None and self._num_prefix > 0
        self._grid = getattr(getattr(body, "patch_embed", None), "grid_size", None)
        self.asked = "class token" if self._has_class else "mean of patches"

    def to_patches(self, matrix: Tensor, images: Tensor) -> Float[Tensor, "batch rows columns"]:
        """What asks attends to each patch."""
        to_patches = matrix[:, :, self._num_prefix :]
        attention = to_patches[:, 0] if self._has_class else to_patches[:, self._num_prefix :].mean(dim=1)
        rows, columns = self._size(attention.shape[1], images)
        return attention.reshape(len(attention), rows, columns)

    def _size(self, number: int, images: Tensor) -> tuple[int, int]:
        if self._grid is not None and int(self._grid[0]) * int(self._grid[1]) == number:
            return int(self._grid[0]), int(self._grid[1])
        height, width = images.shape[2:]
        rows = round((number * height / width) ** 0.5)
        if rows == 0 or number % rows:
            raise NotApplicable(f"the {number} tokens of the network are no grid of patches")
        return rows, number // rows


def _at_size(attention: Tensor, size: tuple[int, ...]) -> Maps:
    """From 0 to 1 within each image; 0 everywhere where attention is flat."""
    low, high = attention.amin(dim=(1, 2), keepdim=True), attention.amax(dim=(1, 2), keepdim=True)
    span = high - low
    shares = torch.where(span > 0, (attention - low) / torch.where(span > 0, span, torch.ones_like(span)), 0.0)
    return functional.interpolate(shares[:, None], size=size, mode="bilinear", align_corners=False)[:, 0].numpy()


def _top(rows: Float64[np.ndarray, "num_images patches"], mass: float) -> np.ndarray:
    """Marks of the fewest patches that hold ``mass`` of each row."""
    order = np.argsort(-rows, axis=1, kind="stable")
    held = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
    needed = held - np.take_along_axis(rows, order, axis=1) < mass * held[:, -1:]
    marks = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(marks, order, needed, axis=1)
    return marks
