"""Text towers of open_clip, as the package open_clip builds and computes them."""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from timm.layers.mlp import Mlp
from torch import Tensor, nn

from crossgraft.errors import DataError, MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models.random_weights import build_seeded
from crossgraft.models.sources.architecture_arguments import (
    WRONG_VALUES,
    building_limits,
    refuse_large_numbers,
    refuse_nested_values,
)
from crossgraft.models.sources.described_places import DescribedPlace, Repository
from crossgraft.models.sources.hub_description import CONFIG as HUB_CONFIG
from crossgraft.models.sources.hub_description import mapping_in, read_json
from crossgraft.models.sources.local_checkpoint import load_weights, read_state_dict
from crossgraft.models.sources.text_tower import TextTower, logit_numbers
from crossgraft.models.sources.tokenizer_files import SETTINGS, read_tokenizer
from crossgraft.models.sources.transformers_networks import quietly
from crossgraft.optional import require
from crossgraft.types import shown_value

_TEXT, _PROJECTION = "text.", "visual.head."
_TRAINING_STATE = ("position_ids", "token_type_ids", "attn_mask")
_REPOSITORY = re.compile(r"([A-Za-z0-9][\w-]*(\.[\w-]+)*/)?[A-Za-z0-9][\w-]*(\.[\w-]+)*")
_CLEANING = ("lower", "whitespace", "canonicalize")
_HF_KINDS = ("bert", "roberta", "xlm-roberta")
_HF_SHAPING = """
    vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act max_position_embeddings
    type_vocab_size layer_norm_eps pad_token_id bos_token_id eos_token_id position_embedding_type
"""


@dataclass(frozen=True)
class OpenClipTokenizer:
    """A tokenizer of open_clip: its own, or one around a tokenizer of transformers.

    Attributes:
        own: ``SimpleTokenizer`` or ``HFTokenizer``.
    """

    own: Any

    def numbers(self, text: str) -> list[int]:
        """All tokens."""
        if hasattr(self.own, "encode"):
            return [self.own.sot_token_id, *self.own.encode(text), self.own.eot_token_id]
        with quietly():
            return [int(number) for number in self.own.tokenizer(self.own.clean_fn(text)).input_ids]

    def batch(self, texts: Sequence[str]) -> Mapping[str, Tensor]:
        """As open_clip makes it."""
        return {"text": self.own(list(texts))}


def open_clip() -> Any:
    """The package.

    Raises:
        MissingExtraError: It is not installed.
    """
    return require("open_clip", extra="text", needed_for="A text tower of open_clip")


def open_clip_text_tower(
    model: Mapping[str, object], place: DescribedPlace, file: Path, *, where: str, name: str, device: str
) -> TextTower:
    """The text tower of a description, with tensors of ``file``.

    Args:
        model: ``model_cfg`` of the description.
        place: Where further files are.
        file: Weights of both towers.
        where: Name of the description, for messages.
        name: Name of the model.
        device: As torch writes it.

    Raises:
        MissingWeightsError: The tokenizer, or the description of a text tower of transformers, is missing.
        UsageError: There is no text tower, or a setting is not one of open_clip's.
        WeightsMismatchError: The tensors are of another network.
        DataError: A file is damaged.
    """
    settings = _settings(model, where)
    kind, configuration = _of_transformers(settings, place)
    tower = _build(model, settings, configuration, where=where)
    state = open_clip().model.convert_to_custom_text_state_dict(dict(read_state_dict(file)))
    texts = {key.removeprefix(_TEXT): tensor for key, tensor in state.items() if key.startswith(_TEXT)}
    texts = {key: tensor for key, tensor in texts.items() if not key.endswith(_TRAINING_STATE)}
    if not texts:
        raise UsageError(
            f"{file.name} of {name} holds no text tower, only images. Take the weights that open_clip saved of both towers."
        )
    load_weights(tower, texts, file=file.name, model=f"the text tower of {name}")
    length = int(settings["context_length"])
    tokenizer = OpenClipTokenizer(_tokenizer(settings, place, kind, length))
    scale, bias = logit_numbers(state, file=file.name)
    return TextTower(
        name=name,
        architecture=str(settings.get("hf_model_name") or type(tower).__name__),
        module=tower.eval().to(device),
        run=lambda network, tokens: network(tokens["text"]),
        tokenizer=tokenizer,
        context_length=length,
        num_tokens=int(tower.vocab_size),
        image_projection=_image_projection(state, mapping_in(model, "vision_cfg", where), where),
        logit_scale=scale,
        logit_bias=bias,
        device=device,
    )


def _settings(model: Mapping[str, object], where: str) -> dict[str, Any]:
    """``text_cfg`` with open_clip's defaults; names and values that it has, and nothing to load from elsewhere."""
    said = mapping_in(model, "text_cfg", where)
    if not said:
        raise UsageError(f"{where} describes no text tower (text_cfg). Without one, give class weights: class_weights=FILE.")
    usual = dataclasses.asdict(open_clip().model.CLIPTextCfg())
    for key, value in said.items():
        if key not in usual:
            raise UnknownNameError(f"text_cfg in {where}", key, usual)
        refuse_nested_values(key, value, where=f"text_cfg in {where}")
    refuse_large_numbers(dict(said), where=f"text_cfg in {where}")
    settings: dict[str, Any] = {**usual, **said, "hf_model_pretrained": False, "output_tokens": False}
    if settings["tokenizer_mode"]:
        raise UsageError(
            f"tokenizer_mode in {where} is {shown_value(settings['tokenizer_mode'])}, which crossgraft does not know."
        )
    for key in ("hf_model_name", "hf_tokenizer_name"):
        if (value := settings[key]) and not (isinstance(value, str) and _REPOSITORY.fullmatch(value)):
            raise DataError(f"{key} in {where} is {shown_value(value)}, which is no name of a repository.")
    if not isinstance(settings["context_length"], int) or settings["context_length"] < 1:
        raise DataError(f"context_length in {where} must be a whole number, found {shown_value(settings['context_length'])}.")
    return settings


def _build(
    model: Mapping[str, object], settings: Mapping[str, Any], configuration: Mapping[str, object] | None, *, where: str
) -> Any:
    """By open_clip's own function; what it reads of transformers lies in a folder for as long as that takes."""

    def make() -> Any:
        with tempfile.TemporaryDirectory(prefix="crossgraft-") as folder, building_limits(where), quietly():
            told = dict(settings)
            if configuration is not None:
                (Path(folder) / HUB_CONFIG).write_text(json.dumps(dict(configuration)), encoding="utf-8")
                told["hf_model_name"] = folder
            build: Any = open_clip().model._build_text_tower
            return build(model.get("embed_dim"), told, quick_gelu=bool(model.get("quick_gelu")))

    try:
        return build_seeded(make, 0)
    except (*WRONG_VALUES, OSError) as error:
        raise DataError(f"text_cfg in {where} describes no text tower of open_clip: {error}") from error


def _of_transformers(settings: Mapping[str, Any], place: DescribedPlace) -> tuple[str | None, Mapping[str, object] | None]:
    """``model_type`` and configuration, where the text tower is a network of transformers."""
    name = settings["hf_model_name"]
    if not name:
        return None, None
    for each in (place, _repository(name, place)):
        file = each.find((HUB_CONFIG,))
        said = {} if file is None else read_json(file, of=each.name)
        kind = said.get("model_type")
        if kind in _HF_KINDS:
            stated = {key: said[key] for key in _HF_SHAPING.split() if key in said}
            for key, value in stated.items():
                refuse_nested_values(key, value, where=f"{HUB_CONFIG} of {each.name}")
            refuse_large_numbers(stated, where=f"{HUB_CONFIG} of {each.name}")
            return str(kind), {"model_type": kind, **stated}
    raise MissingWeightsError(
        f"The text tower of {place.name} is a {name}, whose {HUB_CONFIG} (of {', '.join(_HF_KINDS)}) is not on this machine. Put "
        f"it beside the weights of {place.name}, or into a folder {Repository(name).folder_name} of --weights-dir; or pass "
        "--allow-download."
    )


def _repository(name: str, place: DescribedPlace) -> DescribedPlace:
    """A repository that a description names: a folder of ``weights_dir``, the cache of the hub, or downloaded with consent."""
    repository = Repository(name, library="transformers", needs=f"{HUB_CONFIG} and the files of its tokenizer")
    folder = repository.folder_in(place.places)
    return DescribedPlace(name, folder, None if folder is not None else repository, place.places)


def _tokenizer(settings: Mapping[str, Any], place: DescribedPlace, kind: str | None, length: int) -> Any:
    """``SimpleTokenizer``, whose vocabulary comes with open_clip, or one of transformers from the same place or the named one."""
    said = cast("Mapping[str, Any]", settings["tokenizer_kwargs"] or {})
    known = {key: said[key] for key in ("clean", "strip_sep_token") if key in said}
    if set(said) - set(known) or known.get("clean", _CLEANING[0]) not in _CLEANING:
        raise UsageError(
            f"tokenizer_kwargs of {place.name} are {shown_value(dict(said))}; crossgraft knows clean and strip_sep_token."
        )
    name = settings["hf_tokenizer_name"] or settings["hf_model_name"]
    if not name:
        return open_clip().SimpleTokenizer(context_length=length, **known)

    def make(folder: Path) -> Any:
        return open_clip().tokenizer.HFTokenizer(
            str(folder), context_length=length, local_files_only=True, trust_remote_code=False, **known
        )

    try:
        return read_tokenizer(place, make, kind=kind)
    except MissingWeightsError:
        pass  # open_clip's own folders have it beside the weights, others name where it is
    try:
        return read_tokenizer(_repository(name, place), make, kind=kind)
    except MissingWeightsError as error:
        raise MissingWeightsError(
            f"The tokenizer of {place.name} is that of {name}, which is not on this machine. Put its files (tokenizer.json or "
            f"vocab.txt, and {SETTINGS}) beside the weights of {place.name}, or into a folder {Repository(name).folder_name} of "
            "--weights-dir; or pass --allow-download."
        ) from error


def _image_projection(state: Mapping[str, Tensor], tower: Mapping[str, object], where: str) -> nn.Module | None:
    """What stands behind a trunk of timm; None: the head of the image tower is the projection."""
    if "timm_model_name" not in tower or tower.get("timm_proj", "linear") in (None, ""):
        return None
    kind = tower.get("timm_proj", "linear")
    if kind == "none":
        return nn.Identity()
    if kind not in ("linear", "mlp"):
        raise UnknownNameError(f"timm_proj in {where}", str(kind), ("linear", "mlp", "none"))
    layers = {key.removeprefix(_PROJECTION): each.float() for key, each in state.items() if key.startswith(_PROJECTION)}
    try:
        found = build_seeded(lambda: nn.Sequential(OrderedDict([_projection_layer(kind, layers)])), 0)
        found.load_state_dict(layers)
    except (KeyError, IndexError, RuntimeError) as error:
        raise DataError(f"The weights beside {where} have no {kind} projection of images ({_PROJECTION}…): {error}.") from error
    return found.eval()


def _projection_layer(kind: object, layers: Mapping[str, Tensor]) -> tuple[str, nn.Module]:
    """Name and layer, as in open_clip."""
    if kind == "linear":
        weight = layers["proj.weight"]
        return "proj", nn.Linear(weight.shape[1], weight.shape[0], bias="proj.bias" in layers)
    first, last = layers["mlp.fc1.weight"], layers["mlp.fc2.weight"]
    bias: Any = ("mlp.fc1.bias" in layers, "mlp.fc2.bias" in layers)
    return "mlp", Mlp(first.shape[1], first.shape[0], last.shape[0], bias=bias)
