"""The files of a LoRA adapter of PEFT: ``adapter_config.json`` and ``adapter_model.safetensors``.

What they mean is PEFT's (github.com/huggingface/peft); the package itself is not needed to read or write them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import safetensors.torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from timm.layers.conv2d_same import Conv2dSame
from torch import Tensor, nn

from crossgraft.errors import DataError, MissingWeightsError, UsageError
from crossgraft.models.adapters.lora import Convolution, TransposedConvolution
from crossgraft.paths import shortened

# The keys of ``rank_pattern`` and ``alpha_pattern`` of PEFT: regular expressions, of which only the simple ones are read.
#
# A file of somebody else is never compiled as an expression: Python's may take forever. What is here goes along the name once
# for each part of the pattern, and remembers all places that were reached.

_DEEPEST = 20
_TOKEN = re.compile(r"\.\*|\.|\\d\+|\\d|\\[^A-Za-z0-9]|\(\?:|[()|^$]|[^\\\[\]{}*+?()|^$.]")
_OPENING, _QUANTIFIERS = ("(", "(?:"), "*+?{"
_READ = r"names, '.', '.*', '\d', '\d+', '|', '^', '$', groups, and a backslash before a sign"


def of_pattern(pattern: Mapping[str, Any], name: str, default: Any) -> Any:
    """The value of the first key that is, as a regular expression, the name or its last words."""
    starts = {0, *(index + 1 for index, letter in enumerate(name) if letter == ".")}
    return next((value for key, value in pattern.items() if len(name) in _ends(iter(_tokens(key)), name, starts)), default)


def refuse_unread_patterns(pattern: Mapping[str, Any], where: str) -> None:
    """Raise if a key is more than the simple expressions that are read here.

    Args:
        pattern: Pattern made of such keys.
        where: The file and the setting, for the message.

    Raises:
        DataError: The first such key is quoted.
    """
    for key in pattern:
        try:
            _tokens(key)
        except ValueError as error:
            raise DataError(
                f"{where} holds a pattern that cannot be read: {shortened(key)} ({error}). Write {_READ} only, or the full "
                "names of the layers."
            ) from error


def _tokens(key: str) -> list[str]:
    """What the pattern consists of; ValueError says what is not read."""
    tokens: list[str] = []
    at = depth = 0
    while at < len(key):
        token = _TOKEN.match(key, at)
        if token is None:
            raise ValueError(f"it has {key[at]} where that is not read")
        at = token.end()
        tokens.append(token[0])
        depth += (token[0] in _OPENING) - (token[0] == ")")
        if depth > _DEEPEST:
            raise ValueError("its groups are nested too deeply")
        if depth < 0:
            raise ValueError("a group is closed that was not opened")
        if token[0] == ")" and key[at : at + 1] in tuple(_QUANTIFIERS):
            raise ValueError("it repeats a group")
    if depth:
        raise ValueError("a group is not closed")
    return tokens


def _ends(tokens: Iterator[str], name: str, starts: set[int]) -> set[int]:
    """Where a match of the tokens up to the end of their group may end that begins at one of ``starts``."""
    ends: set[int] = set()
    reached = starts
    for token in tokens:
        if token == ")":
            break
        if token == "|":
            ends, reached = ends | reached, starts
        elif token in _OPENING:
            reached = _ends(tokens, name, reached)
        else:
            reached = _after(token, name, reached)
    return ends | reached


def _after(token: str, name: str, starts: set[int]) -> set[int]:
    if token == "^":
        return starts & {0}
    if token == "$":
        return starts & {len(name)}
    if token == ".*":
        return set(range(min(starts), len(name) + 1)) if starts else starts
    if token == r"\d+":
        reached: set[int] = set()
        while not (step := _after(r"\d", name, reached or starts)) <= reached:
            reached |= step
        return reached
    return {start + 1 for start in starts if start < len(name) and _is_one(token, name[start])}


def _is_one(token: str, letter: str) -> bool:
    """Whether it is a letter that a token of one letter stands for."""
    if token == ".":
        return True
    return letter.isdecimal() if token == r"\d" else letter == token[-1]


CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
"""In front of the name of every tensor; PEFT wraps the network twice."""
_PICKLE = "adapter_model.bin"

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, Conv2dSame)
_STARTS = ("gaussian", "orthogonal", "eva")
_WITHOUT_EFFECT = {
    # what the adapter was made for, and how it began
    "auto_mapping", "base_model_name_or_path", "revision", "task_type", "inference_mode", "peft_version", "runtime_config",
    "init_lora_weights", "loftq_config", "eva_config", "corda_config", "lora_ga_config", "megatron_core",
    # which layers: the names of the tensors say it
    "target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "modules_to_save",
    # only with use_qalora
    "qalora_group_size",
}  # fmt: skip

_Rank = Annotated[int, Field(ge=1, le=2**31 - 1)]


class PeftConfig(BaseModel):
    """What of ``adapter_config.json`` decides about the outputs."""

    model_config = ConfigDict(extra="allow", strict=False)

    peft_type: str
    r: _Rank
    lora_alpha: float = Field(default=8, allow_inf_nan=False)
    lora_dropout: float = Field(default=0.0, ge=0, lt=1)
    use_rslora: bool = False
    bias: str = "none"
    init_lora_weights: bool | str | None = True
    rank_pattern: dict[str, _Rank] | None = None
    alpha_pattern: dict[str, float] | None = None

    def rank(self, name: str) -> int:
        """The rank of the layer called ``name``."""
        return of_pattern(self.rank_pattern or {}, name, self.r)

    def alpha(self, name: str) -> float:
        """α of the layer called ``name``, by which α / r is the factor in front of B A, also where PEFT says α / √r."""
        alpha = of_pattern(self.alpha_pattern or {}, name, self.lora_alpha)
        return alpha * math.sqrt(self.rank(name)) if self.use_rslora else alpha


@dataclass(frozen=True, eq=False)
class PeftFiles:
    """An adapter as it lies in a folder.

    Attributes:
        config: Checked: nothing in it that is not computed here.
        tensors: Tensors by their names without ``base_model.model.``.
        fingerprint: SHA-256 of both files; says nothing of where they lie.
    """

    config: PeftConfig
    tensors: Mapping[str, Tensor]
    fingerprint: str


def pattern_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keys by which each name finds its own value first: a name may end like another one; dots stay, as everybody writes them."""
    longest_first = sorted(values, key=lambda name: (-len(name), name.count("."), name))
    return {re.escape(name).replace(r"\.", "."): values[name] for name in longest_first}


def targets_of(names: Iterable[str], network: nn.Module) -> list[str] | str:
    """``target_modules`` that means these layers only: their names, or a regular expression where another name ends like one."""
    names = sorted(names)
    endings = tuple(f".{name}" for name in names)
    if any(layer.endswith(endings) for layer, _ in network.named_modules() if layer not in names):
        return "|".join(map(re.escape, names))
    return names


def why_peft_differs(layer: nn.Module) -> str | None:
    """Why PEFT's LoRA of this layer is another than ours, or there is none; None: they are the same.

    PEFT makes A as a layer of the same class, from its channels, kernel, stride and padding alone.
    """
    if isinstance(layer, TransposedConvolution):
        return "PEFT has no LoRA for a transposed convolution"
    if not isinstance(layer, Convolution):
        return None
    if type(layer) not in _CONVOLUTIONS:
        return f"PEFT would build another {type(layer).__name__} beside it, from arguments that it may not take"
    if any(step != 1 for step in layer.dilation):
        return f"its dilation is {max(layer.dilation)}, and that of PEFT's convolution beside it would be 1"
    if layer.padding_mode != "zeros":
        return f"it is padded by {layer.padding_mode}, PEFT's convolution beside it with zeros"
    return None


def read_files(folder: str | Path) -> PeftFiles:
    """Both files, checked for everything that can be told without the network.

    Raises:
        DataError: There is no adapter in ``folder``, or a file is damaged.
        MissingWeightsError: Only the file of weights is missing.
        UsageError: It is no LoRA, or one that computes something else.
    """
    folder = Path(folder)
    text = _read_config(folder)
    path = folder / WEIGHTS_FILE
    if not path.is_file():
        if (folder / _PICKLE).is_file():
            raise UsageError(
                f"{folder} holds its weights as {_PICKLE}, a pickle, which may run any code when read. If you trust it, let "
                "PEFT load it and save it again: save_pretrained(folder, safe_serialization=True)."
            )
        raise MissingWeightsError(f"The weights of the adapter are missing: {path}. Copy the whole folder.")
    content = path.read_bytes()
    try:
        stored = safetensors.torch.load(content)
    except SafetensorError as error:
        raise DataError(f"{path} cannot be read as safetensors: {error}. Copy it again.") from error
    config = _check_config(text, folder / CONFIG_FILE)
    tensors = {name.removeprefix(PREFIX): tensor for name, tensor in stored.items()}
    if len(tensors) < len(stored):
        raise DataError(f"{path} holds a tensor twice, with and without {PREFIX}. Save the adapter again.")
    return PeftFiles(config, tensors, hashlib.sha256(hashlib.sha256(text).digest() + content).hexdigest())


def _read_config(folder: Path) -> bytes:
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise DataError(f"The folder of the adapter {folder} {what}. Give the folder that holds {CONFIG_FILE}.")
    try:
        return (folder / CONFIG_FILE).read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{folder} holds no adapter of PEFT: there is no {CONFIG_FILE} in it.") from error
    except OSError as error:
        raise DataError(f"Cannot read {folder / CONFIG_FILE}: {error.strerror or error}.") from error


def _check_config(text: bytes, path: Path) -> PeftConfig:
    try:
        values: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is damaged: {error}. Copy it again.") from error
    kind = cast("dict[str, object]", values).get("peft_type") if isinstance(values, dict) else None
    if kind != "LORA":
        what = f"peft_type is {shortened(kind)}" if isinstance(kind, str) else "it says no peft_type"
        raise UsageError(f"{path} is not of a LoRA adapter: {what}. Only LORA can be read.")
    try:
        config = PeftConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DataError(f"{path} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
    for setting in ("rank_pattern", "alpha_pattern"):
        refuse_unread_patterns(getattr(config, setting) or {}, f"{setting} in {path}")
    _refuse_other_computations(config, path)
    return config


def _refuse_other_computations(config: PeftConfig, path: Path) -> None:
    """Also settings of a later PEFT that nobody here knows, unless they are switched off."""
    if config.bias != "none":
        raise UsageError(
            f"{path} says bias={shortened(config.bias)}: biases of the network were trained too, which lora does not. Only "
            "bias=none can be read."
        )
    if isinstance(config.init_lora_weights, str) and config.init_lora_weights not in _STARTS:
        raise UsageError(
            f"{path} says init_lora_weights={shortened(config.init_lora_weights)}: such an adapter began by changing the "
            "network's own weights. Let PEFT convert it: save_pretrained(…, path_initial_model_for_weight_conversion=…)."
        )
    for name, value in (config.model_extra or {}).items():
        if value and name not in _WITHOUT_EFFECT:
            raise UsageError(f"{path} says {shortened(name)}={_shown(value)}, which crossgraft does not compute.")


def _shown(value: object) -> str:
    """A setting for a message; of a list or an object, which may be of any depth, only that it is one."""
    if isinstance(value, list | dict):
        return "[…]" if isinstance(value, list) else "{…}"
    return shortened(json.dumps(value))
