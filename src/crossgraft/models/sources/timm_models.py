"""timm as a ``ModelLibrary``: a bare name, with or without the tag of its weights."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import timm
import torch
import torchvision
from huggingface_hub import constants as hub_constants
from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from timm.layers.mlp import GluMlp, Mlp, SwiGLU, SwiGLUPacked
from timm.models import get_pretrained_cfg, is_model, list_models, list_pretrained
from torch import Tensor, nn
from torchvision.models import list_models as list_torchvision_models

from crossgraft.errors import MissingWeightsError, UnknownNameError, UsageError, nearest_names
from crossgraft.models.published_names import licence_in_words
from crossgraft.models.sources.architecture_arguments import WRONG_VALUES, building_limits
from crossgraft.models.sources.library import AvailableModel, ModelLibrary
from crossgraft.models.sources.local_checkpoint import check_fit, infer_num_classes, read_state_dict
from crossgraft.models.spec import CHECKPOINT_SUFFIXES, TORCHVISION_PREFIX
from crossgraft.options.models import DEFAULT_ZOO
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import joined

# What timm's interpolation of relative positions makes torch say; the result is right.
_NOTHING_TO_DO = (r"torch\.searchsorted", "Using a non-tuple sequence for multidimensional indexing")


_HINT = "`crossgraft list models --search TEXT` lists every name that has a text in it."
_REPOSITORY = (
    "It looks like a repository of the Hugging Face hub: write hf-hub:{0} for a network of timm, "
    "transformers:{0} for one of transformers. `crossgraft list model-libraries` lists all forms."
)

_HUB_FILES = ("model.safetensors", "pytorch_model.bin")
_OF_TORCHXRAYVISION = re.compile(r"densenet121-res\d+-\w+")


def _inside(folder: Path) -> str:
    """The folders in a folder, such as the runs in ``runs``."""
    names = sorted(each.name for each in folder.iterdir() if each.is_dir())
    return f"Folders in {folder}: {joined(names)}." if names else f"{folder} has no folders."


class TimmLibrary(ModelLibrary):
    """Ross Wightman's PyTorch image models."""

    name: ClassVar[str] = "timm"
    title: ClassVar[str] = "PyTorch image models (timm)"
    form: ClassVar[str] = "NAME or NAME.TAG"
    offers: ClassVar[tuple[str, ...]] = DEFAULT_ZOO

    def knows(self, source: str) -> bool:
        """Whether the architecture exists, whatever its tag."""
        return is_model(source.partition(".")[0])

    def check(self, source: str) -> None:
        """Refuse unknown architectures and tags with the nearest names."""
        architecture, _, tag = source.partition(".")
        if not is_model(architecture):
            in_torchvision = architecture in list_torchvision_models(module=torchvision.models)
            if _OF_TORCHXRAYVISION.fullmatch(source):
                raise UsageError(
                    f"{source} is a file of torchxrayvision that holds a whole network, which is not opened. Write its weights "
                    "into a safetensors file as examples/own_models/torchxrayvision_densenet.py in the repository says; type "
                    "--models examples/own_models/chest_xrays.yaml --code examples/own_models --weights-dir FOLDER."
                )
            stem, dot, suffix = source.rpartition(".")
            is_file = bool(stem and nearest_names(dot + suffix, [".safetensors"]))
            if (folder := Path(source).parent) != Path() and folder.is_dir() and not Path(source).exists():
                raise UsageError(f"There is no {source}. {_inside(folder)}")
            raise UnknownNameError(
                "model",
                source,
                list_models(),
                hint=_HINT if "/" not in source else _REPOSITORY.format(source),
                meant=f"{TORCHVISION_PREFIX}{source}" if in_torchvision else f"{stem}.safetensors" if is_file else None,
            )
        if tag and source not in (known := list_pretrained(f"{architecture}.*")):
            raise UnknownNameError("pretrained model", source, known)

    def names(self) -> list[str]:
        """All with published weights, as ``architecture.tag``."""
        return list_pretrained()

    def available(self, weights_dir: Path | None, search: str | None) -> list[AvailableModel]:
        """Without a search, the default zoo and what is in the cache of the hub."""
        if search is not None:
            return super().available(weights_dir, search)
        default_weights = {f"{name}.{pretrained_config(name).get('tag')}" for name in self.offers}
        folders = sorted(Path(hub_constants.HF_HUB_CACHE).glob("models--timm--*/"))
        names = [folder.name.removeprefix("models--timm--") for folder in folders]
        cached = [name for name in names if self.knows(name) and name not in default_weights]
        return [self.row(name, weights_dir) for name in (*self.offers, *cached)]

    def where_to_get(self, source: str) -> str:
        """On the hub; a few old weights are elsewhere, and nothing downloads them."""
        config = pretrained_config(source)
        repository = config.get("hf_hub_id")
        return f"huggingface.co/{repository} (--allow-download)" if repository else str(config.get("url"))

    def describe(self, source: str, kwargs: Mapping[str, object]) -> dict[str, object]:
        """The arguments ``img_size`` and ``in_chans`` of an architecture change the input that timm states."""
        config = pretrained_config(source)
        channels, height, width = cast("Sequence[int]", config.get("input_size", (3, 224, 224)))
        size = kwargs.get("img_size", (height, width))
        height, width = (size, size) if isinstance(size, int) else cast("Sequence[int]", size)
        return {**config, "input_size": (kwargs.get("in_chans", channels), height, width)}

    def create(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """The architecture without its tag's weights."""
        return timm.create_model(source, **with_layers(kwargs))

    def build_pretrained(self, source: str, kwargs: Mapping[str, object], file: Path) -> nn.Module:
        """The network with the published weights; timm adapts them to other classes or channels."""
        self.refuse_arguments(source, kwargs)
        state = read_state_dict(file)
        try:
            return with_published_weights(source, kwargs, state)
        except TypeError as error:
            raise self.cannot_build(source, kwargs, error) from error
        except (RuntimeError, KeyError):
            check_fit(self.build(source, kwargs), state, file=file.name, model=source)
            raise

    def find_weights(self, source: str, weights_dir: Path | None = None) -> Path | None:
        """In ``weights_dir``, Hugging Face's cache or torch's cache."""
        return next((path for path in _candidates(source, weights_dir) if path.is_file()), None)

    def require_weights(
        self, source: str, weights_dir: Path | None = None, *, allow_download: bool, reporter: Reporter | None
    ) -> Path:
        """The published weights, or the message that says where to get them."""
        path = self.find_weights(source, weights_dir)
        if path is not None:
            return path
        config = pretrained_config(source)
        repository, file = config.get("hf_hub_id"), config.get("hf_hub_filename") or _HUB_FILES[0]
        if not isinstance(repository, str) or not isinstance(file, str):
            raise MissingWeightsError(
                f"timm publishes no weights for {source}. Give weights: a file, or weights: random, in a zoo file."
            )
        if allow_download:
            return _download(source, repository, file, reporter or Reporter())
        suffix = Path(file).suffix
        folder = str(weights_dir) if weights_dir is not None else "a folder that you name with --weights-dir"
        raise MissingWeightsError(
            f"The weights of {source} are not on this machine. Download "
            f"https://huggingface.co/{repository}/resolve/main/{file} and put it as {source}{suffix} into {folder}; or pass "
            f"--allow-download, which stores it in {hub_constants.HF_HUB_CACHE}.{_terms(source)}"
        )

    def adapt_state(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The image tower of a checkpoint of CLIP becomes timm's."""
        return _image_tower_of_clip(state) if f"{_TOWER}class_embedding" in state else dict(state)

    def infer_num_classes(self, source: str, state: Mapping[str, Tensor]) -> int | None:
        """Read off the shape of the head's weights."""
        return infer_num_classes(self.adapt_state(state), pretrained_config(source).get("classifier"))

    def accept_input_size(
        self, module: nn.Module, preprocessing: Preprocessing, *, source: str, kwargs: Mapping[str, object]
    ) -> None:
        """Fit position embeddings to the size, or refuse it."""
        config = cast("Mapping[str, Any]", getattr(module, "pretrained_cfg", {}))
        if not config.get("fixed_input_size", False):
            return
        stated = cast("tuple[int, int, int]", self.describe(source, kwargs)["input_size"])
        size = (preprocessing.height_pixels, preprocessing.width_pixels)
        built_for = getattr(getattr(module, "patch_embed", None), "img_size", None) or stated[1:]
        if tuple(built_for) == size:
            return
        set_input_size = getattr(module, "set_input_size", None)
        if not callable(set_input_size):
            raise UsageError(
                f"{source} takes images of {built_for[0]}×{built_for[1]} pixels only. Leave --image-size out, or choose a "
                "convolutional network."
            )
        with warnings.catch_warnings():
            for message in _NOTHING_TO_DO:
                warnings.filterwarnings("ignore", message=message, category=UserWarning)
            try:
                set_input_size(img_size=size)
            except WRONG_VALUES as error:
                raise UsageError(
                    f"{source} takes no images of {size[0]}×{size[1]} pixels: {error}. Check input_size and --image-size."
                ) from error


def pretrained_config(name: str) -> dict[str, object]:
    """What timm says about the weights of ``name``: sizes, mean, where they are published. Builds nothing."""
    config = get_pretrained_cfg(name)
    return cast("dict[str, object]", config.to_dict()) if config is not None else {}


def _candidates(name: str, weights_dir: Path | None) -> Iterator[Path]:
    """Files named ``<name>.safetensors`` (or ``.pth``, ``.pt``, ``.bin``) of ``weights_dir``, then those of the caches."""
    config = pretrained_config(name)
    if weights_dir is not None:
        tag = config.get("tag")
        for stem in dict.fromkeys((name, f"{name.partition('.')[0]}.{tag}")):
            yield from (weights_dir / f"{stem}{suffix}" for suffix in CHECKPOINT_SUFFIXES)
    repository = config.get("hf_hub_id")
    if isinstance(repository, str):
        stated = config.get("hf_hub_filename")
        for file in (stated,) if isinstance(stated, str) else _HUB_FILES:
            cached = try_to_load_from_cache(repository, file)
            if isinstance(cached, str):
                yield Path(cached)
    url = config.get("url")
    if isinstance(url, str) and url.endswith(CHECKPOINT_SUFFIXES):
        yield Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]


def _terms(name: str) -> str:
    """What its licence forbids or limits; nothing of one that does neither."""
    licence = pretrained_config(name).get("license")
    if not isinstance(licence, str) or (in_words := licence_in_words(licence, name)) == licence:
        return ""
    return f" Its licence is {in_words}."


def _download(name: str, repository: str, file: str, reporter: Reporter) -> Path:
    try:
        size = get_hf_file_metadata(hf_hub_url(repository, file)).size or 0
        reporter.say(
            f"Downloading the weights of {name}: {size / 1e6:.0f} MB from huggingface.co/{repository} to "
            f"{hub_constants.HF_HUB_CACHE}.{_terms(name)}"
        )
        return Path(hf_hub_download(repository, file))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise MissingWeightsError(
            f"The weights of {name} could not be downloaded from huggingface.co/{repository} (--allow-download): {first_line}. "
            f"On a machine with network, download {file} and put it as {name}{Path(file).suffix} into --weights-dir."
        ) from error


def with_published_weights(source: str, kwargs: Mapping[str, object], state: Mapping[str, Tensor]) -> nn.Module:
    """Timm's network with weights as timm publishes them: it adapts them to other classes or channels."""
    overlay = {"state_dict": dict(state)}
    with building_limits(source):
        arguments = with_layers(kwargs)
        module = timm.create_model(source, pretrained=True, pretrained_cfg_overlay=overlay, **arguments)
    cast("dict[str, object]", module.pretrained_cfg).pop("state_dict", None)  # a second copy of all weights
    return module


_MLP_LAYERS = {"Mlp": Mlp, "GluMlp": GluMlp, "SwiGLU": SwiGLU, "SwiGLUPacked": SwiGLUPacked}


def with_layers(kwargs: Mapping[str, object]) -> dict[str, Any]:
    """Arguments with the class of an MLP that a file can only name; of activations and norms timm takes the names.

    Raises:
        UnknownNameError: timm has no such MLP.
    """
    name = kwargs.get("mlp_layer")
    if not isinstance(name, str):
        return dict(kwargs)
    if name not in _MLP_LAYERS:
        raise UnknownNameError("mlp_layer", name, _MLP_LAYERS)
    return {**kwargs, "mlp_layer": _MLP_LAYERS[name]}


_TOWER = "visual."  # in checkpoints of CLIP
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


def _image_tower_of_clip(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The image tower of a CLIP (OpenAI, open_clip) as timm names its tensors; its projection becomes a head without a shift."""
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
