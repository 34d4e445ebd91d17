"""Text towers of transformers: CLIP, MetaCLIP 2, SigLIP and SigLIP 2, as its own classes compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from crossgraft.errors import DataError, UsageError, WeightsMismatchError
from crossgraft.models.sources.architecture_arguments import building_limits, refuse_large_numbers, refuse_nested_values
from crossgraft.models.sources.described_places import DescribedPlace
from crossgraft.models.sources.hub_description import CONFIG, mapping_in
from crossgraft.models.sources.local_checkpoint import read_state_dict
from crossgraft.models.sources.text_tower import TextTower, logit_numbers
from crossgraft.models.sources.tokenizer_files import read_tokenizer
from crossgraft.models.sources.transformers_networks import quietly, told_names, transformers, with_tensors


@dataclass(frozen=True)
class TextFamily:
    """Text towers of one ``model_type``.

    Attributes:
        model: Class.
        output: Name of its output in the joint space.
        is_padded: Whether it was trained with texts of full length, and reads its last token.
    """

    model: str
    output: str
    is_padded: bool = False


TEXT_FAMILIES: Mapping[str, TextFamily] = {
    "clip": TextFamily("CLIPTextModelWithProjection", "text_embeds"),
    "metaclip_2": TextFamily("MetaClip2TextModelWithProjection", "text_embeds"),
    "siglip": TextFamily("SiglipTextModel", "pooler_output", is_padded=True),
    "siglip2": TextFamily("Siglip2TextModel", "pooler_output", is_padded=True),
}
"""Every ``model_type`` with a text tower."""

_SHAPING = """
    vocab_size hidden_size intermediate_size projection_dim projection_size num_hidden_layers num_attention_heads
    max_position_embeddings hidden_act layer_norm_eps attention_dropout pad_token_id bos_token_id eos_token_id
"""
_PROJECTION, _PROJECTION_DIM = "visual_projection.weight", "projection_dim"
_PARTS = ("text_model.", "text_projection.")
_USUAL_PROJECTION = 512
"""What transformers takes where ``config.json`` is silent."""


@dataclass(frozen=True)
class TransformersTokenizer:
    """A tokenizer of transformers.

    Attributes:
        own: Tokenizer.
        length: Length to which texts are filled up; None: that of the longest.
    """

    own: Any
    length: int | None

    def numbers(self, text: str) -> list[int]:
        """All tokens."""
        with quietly():
            return [int(number) for number in self.own(text).input_ids]

    def batch(self, texts: Sequence[str]) -> Mapping[str, Tensor]:
        """As the pipeline of transformers for images and texts."""
        padding: dict[str, Any] = (
            {"padding": True} if self.length is None else {"padding": "max_length", "max_length": self.length}
        )
        with quietly():
            return dict(self.own(list(texts), return_tensors="pt", **padding))


def transformers_text_tower(
    kind: str, said: Mapping[str, object], place: DescribedPlace, file: Path, *, name: str, device: str
) -> TextTower:
    """The text tower that ``config.json`` describes, with tensors of ``file``.

    Args:
        kind: ``model_type``.
        said: Content of ``config.json``.
        place: Where the files of the tokenizer are.
        file: Weights of both towers.
        name: Name of the model.
        device: As torch writes it.

    Raises:
        MissingWeightsError: The tokenizer is missing.
        UsageError: This kind has no text tower, or the file has none.
        WeightsMismatchError: The tensors are of another network.
        DataError: A file is damaged.
    """
    if kind not in TEXT_FAMILIES:
        raise UsageError(f"{name} is a {kind}, which has no text tower. Kinds that have one: {', '.join(TEXT_FAMILIES)}.")
    family = TEXT_FAMILIES[kind]
    configuration = _configuration(kind, said, of=place.name)
    state = read_state_dict(file)
    texts = {key: tensor for key, tensor in state.items() if key.startswith(_PARTS)}
    if not texts:
        raise UsageError(
            f"{file.name} of {name} holds no text tower, only images. Save both: CLIPModel.save_pretrained, not CLIPVisionModel."
        )

    def make(folder: Path) -> Any:
        return transformers().AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)

    tokenizer = read_tokenizer(place, make, kind=kind)
    with building_limits(name):
        try:
            module, told = with_tensors(getattr(transformers(), family.model), configuration, texts)
        except (TypeError, ValueError, RuntimeError) as error:
            raise DataError(f"text_config in {CONFIG} of {place.name} describes no text tower: {error}") from error
    _refuse_misfit(told, file=file.name, name=name)
    length = int(configuration.max_position_embeddings)
    scale, bias = logit_numbers(state, file=file.name)
    return TextTower(
        name=name,
        architecture=family.model,
        module=module.eval().to(device),
        run=lambda network, tokens: getattr(network(**tokens), family.output),
        tokenizer=TransformersTokenizer(tokenizer, length if family.is_padded else None),
        context_length=length,
        num_tokens=int(configuration.vocab_size),
        image_projection=_projection(state, getattr(configuration, _PROJECTION_DIM, None), file=file.name),
        logit_scale=scale,
        logit_bias=bias,
        device=device,
    )


def _configuration(kind: str, said: Mapping[str, object], *, of: str) -> Any:
    where = f"{CONFIG} of {of}"
    stated = {**mapping_in(said, "text_config", where), **mapping_in(said, "text_config_dict", where)}  # as in transformers
    configuration = getattr(transformers(), TEXT_FAMILIES[kind].model).config_class
    known = set(configuration().to_dict()) & set(_SHAPING.split())
    arguments = {key: value for key, value in stated.items() if key in known}
    if _PROJECTION_DIM in known:
        arguments[_PROJECTION_DIM] = said.get(_PROJECTION_DIM) or _USUAL_PROJECTION
    for key, value in arguments.items():
        refuse_nested_values(key, value, where=f"text_config in {where}")
    refuse_large_numbers(arguments, where=f"text_config in {where}")
    try:
        with quietly():
            return configuration(**arguments)
    except Exception as error:  # its checks have classes of their own
        raise DataError(f"text_config in {where} holds a value that transformers refuses: {error}. Copy it again.") from error


def _projection(state: Mapping[str, Tensor], width: int | None, *, file: str) -> nn.Module:
    """From the pooled output of the image tower to the joint space of this width; None: SigLIP's is there already.

    Raises:
        WeightsMismatchError: It is missing, or leads elsewhere.
    """
    if width is None:
        return nn.Identity()
    weight = state.get(_PROJECTION)
    if weight is None or weight.ndim != 2 or len(weight) != width:
        found = "is missing" if weight is None else f"is {tuple(weight.shape)}"
        raise WeightsMismatchError(f"{_PROJECTION} in {file} {found}, and images need {width} rows of it. Check {CONFIG}.")
    layer = cast("nn.Linear", nn.utils.skip_init(nn.Linear, weight.shape[1], weight.shape[0], bias=False))
    layer.load_state_dict({"weight": weight.float()})
    return layer


def _refuse_misfit(told: Mapping[str, Any], *, file: str, name: str) -> None:
    listed: list[str] = []
    for kind in ("missing", "mismatched"):
        names = told_names(told, f"{kind}_keys")
        listed += [f"{kind}: {', '.join(names[:8])}"] if names else []
    if listed:
        raise WeightsMismatchError(
            f"The weights {file} do not fit the text tower of {name} ({'; '.join(listed)}). Check {CONFIG}."
        )
