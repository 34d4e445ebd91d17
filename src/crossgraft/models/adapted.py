"""Classifiers with adapters: adding, merging and removing them, and reading and writing those of PEFT."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from crossgraft.errors import UnknownNameError, UsageError, WeightsMismatchError
from crossgraft.models.adapters._adapter import AdapterRecipe
from crossgraft.models.adapters.insertion import adapters_of, insert_adapter, make_adapter, merge_adapters, take_out_adapter
from crossgraft.models.adapters.lora import Convolution, LoraAdapter, LoraLinear, why_no_lora
from crossgraft.models.adapters.peft_format import (
    CONFIG_FILE,
    PREFIX,
    WEIGHTS_FILE,
    PeftConfig,
    PeftFiles,
    pattern_of,
    read_files,
    targets_of,
    why_peft_differs,
)
from crossgraft.models.classifier import Classifier, head_places, with_head_in_place
from crossgraft.models.sources.local_checkpoint import MARK, is_header_of_ours
from crossgraft.models.spec import without_folders
from crossgraft.models.taps import modes_kept, watch
from crossgraft.seeding import torch_generator
from crossgraft.storage.atomic import refuse_to_replace_folder, replace_folder
from crossgraft.storage.tensors import tensor_bytes


def add_adapters(classifier: Classifier, recipes: Sequence[AdapterRecipe], *, seed: int) -> None:
    """Insert adapters with their first weights; ``classifier`` gives what it gave, and its recipe names them.

    Args:
        classifier: Classifier, changed in place.
        recipes: One per adapter.
        seed: Random seed of their weights, one stream each.

    Raises:
        UsageError: There is nothing to insert, a host has such an adapter already, or cannot have it.
    """
    if not recipes:
        raise UsageError(f"There is no layer of {classifier.recipe.name} to adapt.")
    adapters = [make_adapter(classifier, recipe) for recipe in recipes]
    for recipe, adapter in zip(recipes, adapters, strict=True):
        adapter.draw(torch_generator(seed, "adapter", recipe.kind, recipe.host))
        insert_adapter(classifier.get_submodule(recipe.host), adapter)
    classifier.recipe = replace(classifier.recipe, adapters=(*classifier.recipe.adapters, *recipes))
    classifier.eval()


@torch.no_grad()
def merged_copy(classifier: Classifier) -> Classifier:
    """A classifier without adapters that gives the same up to rounding: the pretrained architecture with other weights.

    Raises:
        UsageError: One of them cannot be merged.

    Cost: a second set of weights.
    """
    twin = copy.deepcopy(classifier)
    merge_adapters(twin)
    return _take_all_out(twin)  # hosts keep the weights that they have now


def base_model(classifier: Classifier) -> Classifier:
    """A classifier without adapters: the pretrained weights and the head as it is.

    Raises:
        UsageError: They are part of its weights now.

    Cost: a second set of weights.
    """
    if any(adapter.merged for _, adapter in adapters_of(classifier).values()):
        raise UsageError("The adapters are merged into the weights. Call unmerge_adapters first.")
    return _take_all_out(copy.deepcopy(classifier))


def _take_all_out(classifier: Classifier) -> Classifier:
    for name, (host, _) in adapters_of(classifier).items():
        take_out_adapter(host, name.rpartition(".")[2])
    classifier.recipe = replace(classifier.recipe, adapters=())
    return classifier


def called_modules(classifier: Classifier) -> set[str]:
    """Names of the modules that a forward pass calls; a layer whose weight is taken from outside is not among them.

    Cost: one forward pass of one image.
    """
    called: set[str] = set()
    with watch(dict(classifier.named_modules()), lambda name, _: called.add(name), of="input"):
        look(classifier)
    return called


@torch.no_grad()
def look(classifier: Classifier) -> Tensor:
    """The features (1, d) of one drawn image: one forward pass in eval mode; modes stay."""
    p, weight = classifier.preprocessing, classifier.head.weight
    image = torch.randn(1, p.channels, p.height_pixels, p.width_pixels, generator=torch_generator(0, "look"))
    with modes_kept(classifier):
        return classifier.eval().features(image.to(weight))


# A LoRA adapter that PEFT saved becomes one of ours, and ours one of PEFT.

_FACTOR = re.compile(r"(?P<layer>.+)\.lora_(?P<factor>[AB])\.weight")
_OTHER_FACTOR = re.compile(r"\.lora_\w+")


@dataclass(frozen=True)
class PeftAdapter:
    """What was read.

    Attributes:
        recipes: Recipes of the adapters, in the order of the network.
        why_no_head: Reason why the head was not read; None: it was read, too.
        fingerprint: SHA-256 of the files.
    """

    recipes: tuple[AdapterRecipe, ...]
    why_no_head: str | None
    fingerprint: str


@dataclass(frozen=True, eq=False)
class _Factors:
    """The checked factors of one layer: they fit a ``LoraAdapter`` beside it."""

    recipe: AdapterRecipe
    A: Tensor
    B: Tensor


def read_peft_adapter(classifier: Classifier, source: str | Path | PeftFiles) -> PeftAdapter:
    """Put the adapters of a folder that PEFT saved into ``classifier``, and its head where it has as many classes.

    Each layer gets one A and one B for all of its outputs, those of a fused layer included. Names of tensors may begin with
    ``base_model.model.`` or not.

    Args:
        classifier: Without adapters, of the network that the adapter was trained on; changed in place, or not at all.
        source: A folder, or what ``read_files`` found in it.

    Raises:
        DataError: There is no adapter, or a file is damaged.
        MissingWeightsError: Only the file of weights is missing.
        UnknownNameError: A layer is none of the network; the message gives the nearest names.
        UsageError: It is no LoRA, or a LoRA that computes something else; the message says what.
        WeightsMismatchError: Tensors are missing, have wrong shapes, or are not finite.

    Cost: one forward pass of one image.
    """
    files = source if isinstance(source, PeftFiles) else read_files(source)
    by_layer, others = _sorted_tensors(files.tensors)
    heads, why_no_head = _find_head(classifier, others)
    fitted = _fit_all(classifier, by_layer, files.config)
    add_adapters(classifier, [factors.recipe for factors in fitted], seed=0)
    with torch.no_grad():
        for factors in fitted:
            lora = cast(LoraAdapter, classifier.get_submodule(f"{factors.recipe.host}.{LoraAdapter.kind}"))
            lora.A.copy_(factors.A)
            lora.B.copy_(factors.B)
        for name, tensor in heads.items():
            classifier.head.get_parameter(name).copy_(tensor)
    return PeftAdapter(tuple(factors.recipe for factors in fitted), why_no_head, files.fingerprint)


def _sorted_tensors(tensors: Mapping[str, Tensor]) -> tuple[dict[str, dict[str, Tensor]], dict[str, Tensor]]:
    """Those of LoRA by layer and factor; all others by name."""
    by_layer: dict[str, dict[str, Tensor]] = {}
    others: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise WeightsMismatchError(f"{name} in {WEIGHTS_FILE} holds NaN or infinite values. Train the adapter again.")
        match = _FACTOR.fullmatch(name)
        if match is not None:
            by_layer.setdefault(match["layer"], {})[match["factor"]] = tensor
        elif _OTHER_FACTOR.search(name):
            raise UsageError(f"The adapter holds {name}, which is no matrix of a plain LoRA; crossgraft does not compute it.")
        else:
            others[name] = tensor
    if not by_layer:
        raise WeightsMismatchError(f"{WEIGHTS_FILE} holds no matrices of LoRA. Save the adapter again.")
    return by_layer, others


def _find_head(classifier: Classifier, others: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], str | None]:
    """What of the other tensors is the new head; equal heads of one network are one."""
    places = head_places(classifier, classifier.body)
    strangers = [name for name in others if name.rpartition(".")[0] not in places]
    if strangers:
        raise UsageError(
            f"The adapter replaces {strangers[0].rpartition('.')[0]}, which is not the head of {classifier.recipe.name} "
            f"({', '.join(places) or 'a head that cannot be exchanged'}). Only LoRA and the head can be read."
        )
    heads = [{name: others[f"{place}.{name}"] for name in ("weight", "bias") if f"{place}.{name}" in others} for place in places]
    heads = [named for named in heads if named]
    if not heads:
        return {}, "it holds none"
    head = heads[0]
    if len(heads) > 1 and any(not torch.equal(named[name], head[name]) for named in heads for name in head if name in named):
        raise UsageError(f"The heads {' and '.join(places)} of the adapter differ; crossgraft has one head for both.")
    expected = {name: tuple(parameter.shape) for name, parameter in classifier.head.named_parameters()}
    shapes = {name: tuple(tensor.shape) for name, tensor in head.items()}
    rows, columns = (*shapes.get("weight", ()), 0, 0)[:2]
    if columns == expected["weight"][1] and rows != expected["weight"][0]:
        return {}, f"it has {rows} classes, not {expected['weight'][0]}"
    if shapes != expected:
        raise WeightsMismatchError(
            f"The head {places[0]} of the adapter does not fit {classifier.recipe.name}: {_in_words(shapes)} in the file, "
            f"{_in_words(expected)} in the model."
        )
    return head, None


def _in_words(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items())


def _fit_all(classifier: Classifier, by_layer: Mapping[str, Mapping[str, Tensor]], config: PeftConfig) -> list[_Factors]:
    """In the order of the network."""
    layers = dict(classifier.body.named_modules())
    model, called = classifier.recipe.name, called_modules(classifier)
    places = head_places(classifier, classifier.body)
    for name in by_layer:
        if name in places:
            raise UsageError(
                f"The adapter has a LoRA on {name}, the head of {model}, which is new for each data set here. Train one with the "
                f"head in modules_to_save, as a whole."
            )
        if name not in layers:
            raise UnknownNameError(f"layer of {model}", name, [n for n, layer in layers.items() if why_no_lora(layer) is None])
        reason = why_no_lora(layers[name]) or why_peft_differs(layers[name])
        if reason is None and (f"body.{name}" not in called or f"body.{name}.weight" in classifier.untrainable):
            reason = "the features do not go through this layer"
        if reason is not None:
            raise UsageError(f"The adapter's LoRA of {name} cannot be put into {model}: {reason}.")
    return [_fit(name, layer, by_layer[name], config) for name, layer in layers.items() if name in by_layer]


def _fit(name: str, layer: nn.Module, factors: Mapping[str, Tensor], config: PeftConfig) -> _Factors:
    """Compare with what PEFT makes for such a layer, and take groups apart."""
    missing = [factor for factor in ("A", "B") if factor not in factors]
    if missing:
        raise WeightsMismatchError(f"{WEIGHTS_FILE} holds no {name}.lora_{missing[0]}.weight. Copy the file again.")
    A, B, rank = factors["A"], factors["B"], config.rank(name)
    expected_A, expected_B = _shapes(layer, rank)
    wrong = [
        f"{name}.lora_{factor}.weight is {tuple(tensor.shape)} in the file and {expected} in the model"
        for factor, tensor, expected in (("A", A, expected_A), ("B", B, expected_B))
        if tuple(tensor.shape) != expected
    ]
    if wrong:
        raise WeightsMismatchError(
            f"The adapter does not fit: {'; '.join(wrong)}. Is it of another network, or was {WEIGHTS_FILE} exchanged?"
        )
    groups = layer.groups if isinstance(layer, Convolution) else 1
    options = {"r": rank, "alpha": config.alpha(name), "dropout": config.lora_dropout}
    return _Factors(AdapterRecipe(LoraAdapter.kind, f"body.{name}", options), _into_groups(A, groups, name), B)


def _shapes(layer: nn.Module, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of PEFT's A, which is never in groups, and of its B."""
    if isinstance(layer, nn.Linear):
        return (rank, layer.in_features), (layer.out_features, rank)
    convolution = cast(Convolution, layer)
    ones = (1,) * len(convolution.kernel_size)
    return (
        (rank, convolution.in_channels, *convolution.kernel_size),
        (convolution.out_channels, rank // convolution.groups, *ones),
    )


def _into_groups(A: Tensor, groups: int, name: str) -> Tensor:
    """The blocks of A that stay in one group.

    Raises:
        UsageError: There is more in it than these blocks.
    """
    if len(A) % groups == 0:
        group = torch.arange(groups)
        blocks = A.unflatten(0, (groups, -1)).unflatten(2, (groups, -1))[group, :, group].flatten(0, 1)
        if torch.count_nonzero(blocks) == torch.count_nonzero(A):
            return blocks
    raise UsageError(
        f"The A of {name} mixes its {groups} groups of channels, as PEFT trains it; a convolution in groups cannot hold "
        "that, so crossgraft does not compute it. Train an adapter without this layer."
    )


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
        WEIGHTS_FILE: tensor_bytes(state, {"format": "pt", **MARK}),
        CONFIG_FILE: json.dumps(config, indent=2, ensure_ascii=False) + "\n",
    }
    replace_folder(folder, content, what="the adapter", advice="Free some space or choose another folder.")
    return folder


def _lora_adapters(classifier: Classifier) -> dict[str, tuple[nn.Module, LoraAdapter]]:
    """By the names of their hosts in the original network."""
    by_name: dict[str, tuple[nn.Module, LoraAdapter]] = {}
    model = classifier.recipe.name
    for name, (host, adapter) in adapters_of(classifier).items():
        layer = name.removesuffix(f".{adapter.kind}").removeprefix("body.")
        if not isinstance(adapter, LoraAdapter):
            raise UsageError(f"{layer} of {model} has an adapter of the kind {adapter.kind}; PEFT's format holds LoRA only.")
        if adapter.merged:
            raise UsageError(f"The adapters of {model} are merged into its weights. Call unmerge_adapters first.")
        reason = why_peft_differs(host)
        if reason is not None:
            raise UsageError(f"PEFT cannot hold the LoRA of {layer} in {model}: {reason}. Name other layers with targets=.")
        by_name[layer] = (host, adapter)
    if not by_name:
        raise UsageError(f"{model} has no LoRA adapters, so there is nothing to write for PEFT. Train it with --method lora.")
    return by_name


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
    options = next(recipe.options for recipe in classifier.recipe.adapters if recipe.host == f"body.{name}")
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
    group = torch.arange(groups)
    whole = A.new_zeros(groups, len(A) // groups, groups, *A.shape[1:])
    whole[group, :, group] = A.unflatten(0, (groups, -1))
    return whole.flatten(2, 3).flatten(0, 1)


def _config(model: str, layers: Mapping[str, _Layer], heads: Sequence[str], targets: list[str] | str) -> dict[str, object]:
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
