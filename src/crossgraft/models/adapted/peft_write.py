"""``write_peft_adapter``: LoRA of ours as a folder that PEFT loads."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
from torch import Tensor, nn

from crossgraft.errors import UsageError
from crossgraft.models.adapters.insertion import adapters_of
from crossgraft.models.adapters.lora import Convolution, LoraAdapter, LoraLinear
from crossgraft.models.adapters.peft_format import (
    CONFIG_FILE,
    PREFIX,
    WEIGHTS_FILE,
    pattern_of,
    targets_of,
    why_peft_differs,
)
from crossgraft.models.classifier import Classifier
from crossgraft.models.head_place import with_head_in_place
from crossgraft.models.sources.checkpoint_header import MARK, is_header_of_ours
from crossgraft.models.spec import without_folders
from crossgraft.storage.atomic import replace_folder
from crossgraft.storage.replacing import refuse_to_replace_folder


@dataclass(frozen=True, eq=False)
class _Layer:
    """One adapted layer in PEFT's words: one A, one B, a rank and an α."""

    A: Tensor
    B: Tensor
    rank: int
    alpha: float
    dropout: float


def write_peft_adapter(classifier: Classifier, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write the LoRA adapters and the head of ``classifier`` so that PEFT loads them into the pretrained network.

    ``PeftModel.from_pretrained(network, folder)`` takes the network as it was pretrained, built for as many classes:
    ``timm.create_model(NAME, pretrained=True, num_classes=C)``. Parts of a fused layer, and groups of a convolution, become
    blocks of one larger A and B with zeros between them, so that the outputs are the same and the file may be larger.

    Args:
        classifier: Classifier with LoRA adapters, all else of its body as it was pretrained.
        folder: New, or empty.
        overwrite: Replace an adapter that this function has written; no other files are replaced.

    Returns:
        ``folder``.

    Raises:
        UsageError: There is nothing to write, or PEFT would compute something else; the message names the layer.
        RunDirectoryError: ``folder`` holds such an adapter and ``overwrite`` is off, or other files.
        StorageError: It cannot be written; an older adapter stays as it was.

    Cost: a copy of the weights and two forward passes of two images.
    """
    folder = Path(folder)
    refuse_to_replace_folder(folder, (CONFIG_FILE, WEIGHTS_FILE), _is_ours, what="an adapter", overwrite=overwrite)
    adapters = _lora_adapters(classifier)
    network, heads = with_head_in_place(classifier)
    _refuse_mistaken_heads(adapters, heads, network)
    layers = {name: _layer(classifier, name, host, lora) for name, (host, lora) in adapters.items()}
    tensors: dict[str, Tensor] = {}
    for name, layer in layers.items():
        tensors |= {f"{name}.lora_A.weight": layer.A, f"{name}.lora_B.weight": layer.B}
    for head in heads:
        tensors |= {f"{head}.{name}": tensor for name, tensor in classifier.head.state_dict().items()}
    state = {f"{PREFIX}{name}": tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    config = _config(classifier.recipe.name, layers, heads, targets_of(layers, network))
    content = {
        WEIGHTS_FILE: safetensors.torch.save(state, metadata={"format": "pt", **MARK}),
        CONFIG_FILE: json.dumps(config, indent=2, ensure_ascii=False) + "\n",
    }
    replace_folder(folder, content, what="the adapter", advice="Free some space or choose another folder.")
    return folder


def _lora_adapters(classifier: Classifier) -> dict[str, tuple[nn.Module, LoraAdapter]]:
    """By the names of their hosts in the original network."""
    found: dict[str, tuple[nn.Module, LoraAdapter]] = {}
    model = classifier.recipe.name
    for name, (host, adapter) in adapters_of(classifier).items():
        layer = name.removesuffix(f".{adapter.kind}").removeprefix("body.")
        if not isinstance(adapter, LoraAdapter):
            raise UsageError(
                f"{layer} of {model} has an adapter of the kind {adapter.kind}; PEFT's format holds LoRA only."
            )
        if adapter.merged:
            raise UsageError(f"The adapters of {model} are merged into its weights. Call unmerge_adapters first.")
        reason = why_peft_differs(host)
        if reason is not None:
            raise UsageError(
                f"PEFT cannot hold the LoRA of {layer} in {model}: {reason}. Name other layers with targets=."
            )
        found[layer] = (host, adapter)
    if not found:
        raise UsageError(
            f"{model} has no LoRA adapters, so there is nothing to write for PEFT. Train it with --method lora."
        )
    return found


def _refuse_mistaken_heads(adapted: Collection[str], heads: Sequence[str], network: nn.Module) -> None:
    """PEFT finds the head by how its name ends, and leaves all alone whose name contains it."""
    model = type(network).__name__
    for head in heads:
        for name in adapted:
            if re.match(rf"(^|.*\.){head}($|\..*)", name):
                raise UsageError(
                    f"PEFT would take {name} for a part of the head, which is called {head}, and would not adapt it. Name other "
                    "layers with targets=."
                )
        for name, _ in network.named_modules():
            if name.endswith(head) and name not in heads:
                raise UsageError(
                    f"PEFT would take {name} of the {model} for its head, which is called {head}, and miss its weights. "
                    "Hand on merged weights instead: crossgraft export."
                )


def _layer(classifier: Classifier, name: str, host: nn.Module, lora: LoraAdapter) -> _Layer:
    options = next(each.options for each in classifier.recipe.adapters if each.host == f"body.{name}")
    alpha = float(options["alpha"])
    if isinstance(lora, LoraLinear) and isinstance(host, nn.Linear):
        ranges = len(lora.rows)
        wide = lora.B.new_zeros(host.out_features, ranges * lora.r)
        for i, (outputs, _, of_range) in enumerate(lora.factors()):
            wide[outputs.start : outputs.stop, i * lora.r : (i + 1) * lora.r] = of_range.detach()
        return _Layer(lora.A, wide, ranges * lora.r, ranges * alpha, lora.dropout)
    groups = int(host.groups) if isinstance(host, Convolution) else 1
    return _Layer(_without_groups(lora.A.detach(), groups), lora.B, lora.r, alpha, lora.dropout)


def _without_groups(A: Tensor, groups: int) -> Tensor:
    """The same convolution as one that sees all channels; most of its weights are zero."""
    per_group, channels = len(A) // groups, A.shape[1]
    whole = A.new_zeros(len(A), groups * channels, *A.shape[2:])
    for i, part in enumerate(A.split(per_group)):
        whole[i * per_group : (i + 1) * per_group, i * channels : (i + 1) * channels] = part
    return whole


def _config(
    model: str, layers: Mapping[str, _Layer], heads: Sequence[str], targets: list[str] | str
) -> dict[str, object]:
    """In the words of PEFT; rank and α of single layers only where they differ from those of the first."""
    first = next(iter(layers.values()))
    dropouts = sorted({layer.dropout for layer in layers.values()})
    if len(dropouts) > 1:
        raise UsageError(f"PEFT knows one dropout for all layers; these have {dropouts[0]} and {dropouts[-1]}.")
    ranks = {name: layer.rank for name, layer in layers.items()}
    alphas = {name: _number(layer.alpha) for name, layer in layers.items()}
    return {
        "peft_type": "LORA",
        "task_type": None,
        "auto_mapping": None,
        "base_model_name_or_path": str(without_folders(model)),
        "inference_mode": True,
        "r": first.rank,
        "lora_alpha": _number(first.alpha),
        "lora_dropout": first.dropout,
        "target_modules": targets,
        "rank_pattern": pattern_of(ranks) if len(set(ranks.values())) > 1 else {},
        "alpha_pattern": pattern_of(alphas) if len(set(alphas.values())) > 1 else {},
        "modules_to_save": list(heads),
        "bias": "none",
        "fan_in_fan_out": False,
        "init_lora_weights": True,
        "use_rslora": False,
        "use_dora": False,
    }


def _number(value: float) -> float | int:
    """PEFT says α as a whole number where it is one."""
    return int(value) if value.is_integer() else value


def _is_ours(folder: Path) -> bool:
    weights = folder / WEIGHTS_FILE
    return weights.is_file() and is_header_of_ours(weights.read_bytes())
