"""Vision networks of transformers with the face of crossgraft: images in, one vector of features (or logits) an image out."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.optional import require


@dataclass(frozen=True)
class VisionFamily:
    """Networks of one ``model_type``.

    Attributes:
        model: Class without a head.
        classifier: Class with a linear head; None where there is none.
        features: What the features of the class without a head are.
        has_optional_pooler: Whether a checkpoint may hold a trained pooler or not.
        is_tower: Whether ``config.json`` describes the image tower under ``vision_config``.
    """

    model: str
    classifier: str | None
    features: str
    has_optional_pooler: bool = False
    is_tower: bool = False


_CLASS_TOKEN = "the class token after the last norm"
_POOLER_OR_CLASS_TOKEN = "the pooler's output where the checkpoint has a trained pooler, else the class token"
_MEAN = "the mean of all positions, normalised"
_ATTENTION = "the output of the attention pooling"
_CLIP = VisionFamily("CLIPVisionModel", None, _CLASS_TOKEN)
_SIGLIP = VisionFamily("SiglipVisionModel", None, _ATTENTION)
_SIGLIP2 = VisionFamily("Siglip2VisionModel", None, _ATTENTION)
_METACLIP = VisionFamily("MetaClip2VisionModel", None, _CLASS_TOKEN)


FAMILIES: Mapping[str, VisionFamily] = {
    "beit": VisionFamily("BeitModel", "BeitForImageClassification", _POOLER_OR_CLASS_TOKEN, has_optional_pooler=True),
    "clip": replace(_CLIP, is_tower=True),
    "clip_vision_model": _CLIP,
    "convnext": VisionFamily("ConvNextModel", "ConvNextForImageClassification", _MEAN),
    "convnextv2": VisionFamily("ConvNextV2Model", "ConvNextV2ForImageClassification", _MEAN),
    "data2vec-vision": VisionFamily(
        "Data2VecVisionModel", "Data2VecVisionForImageClassification", _POOLER_OR_CLASS_TOKEN, has_optional_pooler=True
    ),
    "deit": VisionFamily("DeiTModel", "DeiTForImageClassification", _POOLER_OR_CLASS_TOKEN, has_optional_pooler=True),
    "dinov2": VisionFamily("Dinov2Model", "Dinov2ForImageClassification", _CLASS_TOKEN),
    "dinov2_with_registers": VisionFamily("Dinov2WithRegistersModel", "Dinov2WithRegistersForImageClassification", _CLASS_TOKEN),
    "dinov3_convnext": VisionFamily("DINOv3ConvNextModel", None, _MEAN),
    "dinov3_vit": VisionFamily("DINOv3ViTModel", None, _CLASS_TOKEN),
    "ijepa": VisionFamily("IJepaModel", "IJepaForImageClassification", "the mean of all tokens after the last norm"),
    "metaclip_2": replace(_METACLIP, is_tower=True),
    "metaclip_2_vision_model": _METACLIP,
    "resnet": VisionFamily("ResNetModel", "ResNetForImageClassification", "the mean of all positions"),
    "siglip": replace(_SIGLIP, is_tower=True),
    "siglip_vision_model": _SIGLIP,
    "siglip2": replace(_SIGLIP2, is_tower=True),
    "siglip2_vision_model": _SIGLIP2,
    "swin": VisionFamily("SwinModel", "SwinForImageClassification", _MEAN),
    "swinv2": VisionFamily("Swinv2Model", "Swinv2ForImageClassification", _MEAN),
    "vit": VisionFamily("ViTModel", "ViTForImageClassification", _POOLER_OR_CLASS_TOKEN, has_optional_pooler=True),
    "vit_mae": VisionFamily("ViTMAEModel", None, "the class token after the last norm, of the whole image (nothing is masked)"),
    "vit_msn": VisionFamily("ViTMSNModel", "ViTMSNForImageClassification", _CLASS_TOKEN),
}
"""Every ``model_type`` that can be named."""

POOLER = "add_pooling_layer"
"""The argument of transformers for a trained pooler."""
NUM_CLASSES = "num_classes"
"""The argument of crossgraft for a network with a head."""

_SHAPING = """
    num_channels image_size patch_size num_patches hidden_size hidden_sizes num_hidden_layers num_attention_heads
    intermediate_size mlp_ratio hidden_act layer_norm_eps hidden_dropout_prob attention_probs_dropout_prob attention_dropout
    drop_path_rate layerscale_value layer_scale_init_value qkv_bias query_bias key_bias value_bias proj_bias mlp_bias
    use_swiglu_ffn use_gated_mlp use_mask_token num_register_tokens rope_theta rope_parameters pos_embed_shift
    pos_embed_jitter pos_embed_rescale use_absolute_position_embeddings use_relative_position_bias
    use_shared_relative_position_bias use_absolute_embeddings use_mean_pooling embed_dim depths num_heads window_size
    pretrained_window_sizes num_stages embedding_size layer_type downsample_in_first_stage downsample_in_bottleneck
    vision_use_head pooler_output_size pooler_act initializer_range initializer_factor
"""
"""Names in a configuration that shape a network or its dropping; all others are names, labels and settings of training."""


def transformers() -> Any:
    """The package.

    Raises:
        MissingExtraError: It is not installed.
    """
    return require("transformers", extra="transformers", needed_for="A network of transformers")


def argument_names(family: VisionFamily) -> set[str]:
    """The arguments that a network of ``family`` takes here."""
    named = set(_configuration_class(family)().to_dict()) & set(_SHAPING.split())
    own = {NUM_CLASSES} if family.classifier is not None else set[str]()
    return named | own | ({POOLER} if family.has_optional_pooler else set())


def differences(family: VisionFamily, said: Mapping[str, object]) -> dict[str, object]:
    """What of ``config.json`` shapes the network and is not as in the configuration class of the family.

    Raises:
        Exception: As the class raises for a value that it cannot take.
    """
    named = argument_names(family) - {NUM_CLASSES, POOLER}
    configuration = _configuration_class(family)
    usual, stated = configuration().to_dict(), configuration(**{key: said[key] for key in said if key in named}).to_dict()
    return {key: stated[key] for key in sorted(named) if key in said and stated[key] != usual[key]}


def input_size(family: VisionFamily, kwargs: Mapping[str, object]) -> tuple[int, int, int]:
    """Channels, height and width that the network was made for."""
    configuration = _configuration(family, kwargs)
    channels = int(configuration.num_channels)
    if hasattr(configuration, "num_patches"):
        side = round(configuration.num_patches**0.5) * configuration.patch_size
        return channels, side, side
    size: Any = getattr(configuration, "image_size", 224)
    height, width = (size, size) if isinstance(size, int) else size
    return channels, int(height), int(width)


def build(family: VisionFamily, kwargs: Mapping[str, object]) -> nn.Module:
    """The network with random weights."""
    kind, arguments = class_and_arguments(family, kwargs)
    return _with_face(kind(_configuration(family, kwargs), **arguments))


def build_with(
    family: VisionFamily, kwargs: Mapping[str, object], state: Mapping[str, Tensor]
) -> tuple[nn.Module, Mapping[str, object]]:
    """The network with the tensors of ``state``, renamed as transformers renames those of its older versions.

    Returns:
        The network, and what transformers says of names that are missing, unexpected or of another shape.
    """
    kind, arguments = class_and_arguments(family, kwargs)
    model, told = with_tensors(kind, _configuration(family, kwargs), state, **arguments)
    return _with_face(model), told


def with_tensors(
    kind: Any, configuration: Any, state: Mapping[str, Tensor], **arguments: Any
) -> tuple[Any, Mapping[str, object]]:
    """A network of this class of transformers with these tensors, and what is told of names that do not fit."""
    with quietly():
        return kind.from_pretrained(
            None,
            config=configuration,
            state_dict=dict(state),
            dtype=torch.float32,
            local_files_only=True,
            ignore_mismatched_sizes=True,  # they are told, and refused with all others
            output_loading_info=True,
            **arguments,
        )


def told_names(told: Mapping[str, object], key: str) -> list[str]:
    """Sorted names; where shapes are told beside a name, the name alone."""
    items = cast("Iterable[object]", told.get(key) or ())
    return sorted(item if isinstance(item, str) else str(cast("Sequence[object]", item)[0]) for item in items)


def class_and_arguments(family: VisionFamily, kwargs: Mapping[str, object]) -> tuple[Any, dict[str, Any]]:
    """The class of transformers, and what its constructor takes beside the configuration."""
    if kwargs.get(NUM_CLASSES):
        return getattr(transformers(), str(family.classifier)), {}
    arguments = {POOLER: bool(kwargs.get(POOLER, False))} if family.has_optional_pooler else {}
    return getattr(transformers(), family.model), arguments


def _configuration_class(family: VisionFamily) -> Any:
    return getattr(transformers(), family.model).config_class


def _configuration(family: VisionFamily, kwargs: Mapping[str, object]) -> Any:
    shape = {key: value for key, value in kwargs.items() if key not in (NUM_CLASSES, POOLER)}
    labels = {"num_labels": kwargs[NUM_CLASSES]} if kwargs.get(NUM_CLASSES) else {}
    configuration = _configuration_class(family)(**shape, **labels)
    if hasattr(configuration, "mask_ratio"):
        configuration.mask_ratio = 0.0
    return configuration


@contextmanager
def quietly() -> Generator[None]:
    """Without the progress bar and the table of transformers; what it tells comes back as values."""
    logging = transformers().logging
    level, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bar:
            logging.enable_progress_bar()


Images = Float[Tensor, "batch channels height width"]


class TransformersNetwork(nn.Module):
    """A vision network of transformers.

    Attributes:
        model: Network of transformers.
        interpolates: Whether it is told to fit its position embeddings to the size of the images.
        masks: Whether it is made to leave out patches, and has to be told to leave out none.
        embed_dim: Width of its last tokens or feature map.
        num_prefix_tokens: Number of class, distillation and register tokens in front of the patches.
        has_class_token: Whether the first of them is a class token.
    """

    model: nn.Module

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.interpolates = False
        self.embed_dim = _width(model.config)
        self.masks = hasattr(model.config, "mask_ratio")
        self._side: int = getattr(model.config, "patch_size", 1)
        places = _prefix_tokens(model)
        self.num_prefix_tokens = sum(places.values())
        self.has_class_token = bool(places)

    @property
    def cls_token(self) -> bool | None:
        """Something where there is a class token, else None, as in a network of timm."""
        return True if self.has_class_token else None

    @property
    def can_interpolate(self) -> bool:
        """Whether it must be told about images of another size, and can be."""
        return "interpolate_pos_encoding" in inspect.signature(self.model.forward).parameters

    def run(self, images: Images) -> Any:
        """What the network of transformers gives."""
        arguments = self.arguments(images)
        if not torch.is_inference_mode_enabled():
            return self.model(**arguments)
        with torch.inference_mode(False), torch.no_grad():  # it keeps positions, which training would refuse from that mode
            return self.model(**arguments)

    def arguments(self, images: Images) -> dict[str, Any]:
        """What the network of transformers takes."""
        found: dict[str, Any] = {"pixel_values": images}
        if self.interpolates:
            found["interpolate_pos_encoding"] = True
        if self.masks:
            side = self._side
            number = (images.shape[2] // side) * (images.shape[3] // side)
            order = torch.arange(number, device=images.device, dtype=images.dtype) / number
            found["noise"] = order.expand(len(images), number)  # by which it sorts the tokens
        return found

    def extra_repr(self) -> str:
        """What the layers do not show."""
        return f"interpolates={self.interpolates}"


class TransformersEncoder(TransformersNetwork):
    """One without a head: its features are the pooled output, else the class token, else the mean of the tokens."""

    def forward_features(self, images: Images) -> Float[Tensor, "batch num_features"]:
        """Features (n, d)."""
        output = self.run(images)
        pooled: Tensor | None = getattr(output, "pooler_output", None)
        if pooled is not None:
            return pooled.flatten(1)
        tokens = cast(Tensor, output.last_hidden_state)
        return tokens[:, 0] if self.has_class_token else tokens.mean(dim=1)

    def forward(self, images: Images) -> Float[Tensor, "batch num_features"]:
        """As ``forward_features``."""
        return self.forward_features(images)


class TransformersPatchEncoder(TransformersEncoder):
    """One that takes rows of patches instead of images (SigLIP 2 of any aspect)."""

    def arguments(self, images: Images) -> dict[str, Any]:
        """The patches of the whole image."""
        side = self._side
        batch, channels, height, width = images.shape
        rows, columns = height // side, width // side
        cells = images.reshape(batch, channels, rows, side, columns, side)
        patches = cells.permute(0, 2, 4, 3, 5, 1).reshape(batch, rows * columns, side * side * channels)
        mask = torch.ones(batch, rows * columns, dtype=torch.int32, device=images.device)
        shapes = torch.tensor([[rows, columns]]).expand(batch, 2)
        return {"pixel_values": patches, "pixel_attention_mask": mask, "spatial_shapes": shapes}


class TransformersClassifier(TransformersNetwork):
    """One with a linear head: its features are what goes into the head."""

    def forward(self, images: Images) -> Float[Tensor, "batch num_classes"]:
        """Logits."""
        return self.run(images).logits

    def get_classifier(self) -> nn.Module:
        """The head."""
        return self.model.get_submodule("classifier")


def _with_face(model: Any) -> nn.Module:
    if hasattr(model, "classifier"):
        return TransformersClassifier(model)
    return (TransformersPatchEncoder if hasattr(model.config, "num_patches") else TransformersEncoder)(model)


def _width(configuration: Any) -> int:
    sizes: Any = getattr(configuration, "hidden_sizes", None)
    return int(sizes[-1] if sizes else configuration.hidden_size)


_PREFIX_TOKENS = ("cls_token", "class_embedding", "distillation_token")


def _prefix_tokens(model: Any) -> dict[str, int]:
    """Name of each kind of tokens in front of the patches → how many."""
    layers = cast("Iterable[tuple[str, nn.Module]]", model.named_modules())
    embeddings = next((layer for name, layer in layers if name.rpartition(".")[2] == "embeddings"), None)
    found = {name: 1 for name in _PREFIX_TOKENS if isinstance(getattr(embeddings, name, None), Tensor)}
    registers = getattr(embeddings, "register_tokens", None)
    return found | ({"register_tokens": registers.shape[1]} if isinstance(registers, Tensor) else {})
