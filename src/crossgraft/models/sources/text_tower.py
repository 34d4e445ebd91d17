"""The text tower of a network that was trained on images with texts: what turns a prompt into a vector among those of images."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn

from crossgraft.compute import is_out_of_memory
from crossgraft.errors import CrossgraftError, DataError, UsageError
from crossgraft.models.device import explain_lost_device
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.models.layers import count_parameters
from crossgraft.models.sources.architecture_arguments import WRONG_VALUES
from crossgraft.paths import shortened

AT_ONCE = 64
"""Prompts of one forward pass."""
TextVectors = Float32[np.ndarray, "num_texts width"]


@runtime_checkable
class Tokenizer(Protocol):
    """The library's own tokenizer, which cuts nothing off."""

    def numbers(self, text: str) -> list[int]:
        """All tokens of a text, with those of beginning and end."""
        ...

    def batch(self, texts: Sequence[str]) -> Mapping[str, Tensor]:
        """What the network takes, (n, t) each."""
        ...


@runtime_checkable
class ImageTower(Protocol):
    """What is asked of a backbone."""

    architecture: str

    @property
    def linear_head(self) -> nn.Linear | None:
        """The pretrained head, where it is one linear layer."""
        ...


@dataclass(frozen=True, eq=False)
class TextTower:
    """A text tower, and what leads the features of its image tower to the same space.

    Attributes:
        name: Name of the model.
        architecture: Class of the network, for people.
        module: Network, in eval mode.
        run: Function from the network and tokens to vectors (n, d), not normalised.
        tokenizer: Tokenizer that belongs to it.
        context_length: Most tokens of a text, those of beginning and end among them.
        num_tokens: Number of tokens that the network knows.
        image_projection: From penultimate features to the joint space; None: the head of the image tower does that.
        logit_scale: What the library multiplies cosines of images and texts by.
        logit_bias: What it adds.
        device: Where the network is.
    """

    name: str
    architecture: str
    module: nn.Module
    run: Callable[[nn.Module, Mapping[str, Tensor]], Tensor]
    tokenizer: Tokenizer
    context_length: int
    num_tokens: int
    image_projection: nn.Module | None
    logit_scale: float
    logit_bias: float = 0.0
    device: str = "cpu"

    @property
    def num_parameters(self) -> int:
        """All of the text tower."""
        return count_parameters(self.module)

    @property
    def weights_fingerprint(self) -> str:
        """SHA-256 of the state dict of the text tower."""
        return weights_fingerprint(self.module)

    def tokens_of(self, text: str) -> tuple[int, ...]:
        """Numbers of the tokens of one text.

        Raises:
            UsageError: There are more than the network takes.
            DataError: A number is none of the network's: the tokenizer is of another one.
        """
        with self._reading(text):
            numbers = self.tokenizer.numbers(text)
        if len(numbers) > self.context_length:
            raise UsageError(
                f"The prompt {shortened(text)!r} has {len(numbers)} tokens, and the text tower of {self.name} takes "
                f"{self.context_length}. Shorten the template or the text of the class; nothing is cut off."
            )
        if numbers and not 0 <= min(numbers) <= max(numbers) < self.num_tokens:
            raise DataError(
                f"The tokenizer of {self.name} gives the token {max(numbers)}, and its text tower knows {self.num_tokens}: they "
                "do not belong together. Copy both from one place."
            )
        return tuple(numbers)

    def encode(self, texts: Sequence[str]) -> TextVectors:
        """Vectors (n, d) of texts as the library gives them, not normalised.

        Raises:
            UsageError, DataError: As of ``tokens_of``.
            DataError: The description of the network makes no sense to it, or a vector is not finite.

        Cost: one forward pass of the text tower per text.
        """
        for text in texts:
            self.tokens_of(text)
        parts: list[np.ndarray] = []
        with torch.inference_mode():
            for first in range(0, len(texts), AT_ONCE):
                with self._reading(texts[first]):
                    tokens = self.tokenizer.batch(texts[first : first + AT_ONCE])
                try:
                    with explain_lost_device(self.device):
                        vectors = self.run(self.module, {name: each.to(self.device) for name, each in tokens.items()})
                except CrossgraftError:
                    raise
                except WRONG_VALUES as error:
                    if is_out_of_memory(error):
                        raise
                    raise DataError(
                        f"The text tower of {self.name} cannot be run: {error}. Copy or download its description again."
                    ) from error
                parts.append(vectors.float().cpu().numpy())
        found = np.concatenate(parts)
        if not np.isfinite(found).all():
            raise DataError(f"The text tower of {self.name} gives NaN or infinite values: its weights are damaged.")
        return found

    @contextmanager
    def _reading(self, text: str) -> Generator[None]:
        """A tokenizer is data of somebody, whose patterns may fail on a text, in Rust with what is no Exception."""
        try:
            yield
        except (CrossgraftError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            reason = shortened(" ".join(str(error).split()))
            raise DataError(
                f"The tokenizer of {self.name} fails on {shortened(text)!r}: {reason}. Copy or download its files again."
            ) from error

    def tokens_fingerprint(self, texts: Sequence[str]) -> str:
        """SHA-256 of the tokens of texts, by which another tokenizer shows."""
        return hashlib.sha256(repr([self.tokens_of(text) for text in texts]).encode()).hexdigest()

    def project(self, features: Float[np.ndarray, "num_images num_features"], backbone: ImageTower) -> TextVectors:
        """Vectors (n, d) of images in the joint space, not normalised, from penultimate features of the image tower.

        Raises:
            UsageError: The features are of another network.
        """
        head = backbone.linear_head if self.image_projection is None else self.image_projection
        if head is None:
            raise UsageError(
                f"The image tower of {self.name} has lost the head that leads to the space of texts: {backbone.architecture} has "
                "none. Name the folder or repository of both towers as the model."
            )
        rows = torch.from_numpy(np.array(features, dtype=np.float32))
        try:
            with torch.inference_mode():
                return head.to("cpu")(rows).numpy() if head is self.image_projection else _apply(head, rows)
        except RuntimeError as error:
            raise UsageError(
                f"Features of width {rows.shape[1]} are not of the image tower that {self.name}'s texts belong to."
            ) from error

    def logits(
        self, images: Float[np.ndarray, "num_images width"], texts: Float[np.ndarray, "num_classes width"]
    ) -> Float32[np.ndarray, "num_images num_classes"]:
        """Logits of the library's zero-shot classifier: ``logit_scale`` · cos + ``logit_bias``.

        Args:
            images: (n, d) as of ``project``.
            texts: (C, d) as of ``encode``, or class weights.
        """
        cosines = unit_vectors(images) @ unit_vectors(texts).T
        return (self.logit_scale * cosines + self.logit_bias).astype(np.float32)


def logit_numbers(state: Mapping[str, Tensor | None], *, file: str) -> tuple[float, float]:
    """What the weights say that cosines are multiplied by, and what is added: 100 and 0 where they are silent.

    Raises:
        DataError: One of them is no such number.
    """
    for key in ("logit_scale", "logit_bias"):
        stated = state.get(key)
        if stated is not None and not (stated.numel() == 1 and bool(stated.float().exp().isfinite().all())):
            raise DataError(f"{key} in {file} must be one number that networks have. Copy or download the file again.")
    scale, bias = state.get("logit_scale"), state.get("logit_bias")
    return 100.0 if scale is None else float(scale.float().exp()), 0.0 if bias is None else float(bias)


def _apply(head: nn.Module, rows: Tensor) -> np.ndarray:
    """By a head that stays where it is."""
    device = next(head.parameters()).device
    return head(rows.to(device)).cpu().numpy()


def unit_vectors(rows: np.ndarray) -> np.ndarray:
    """Each row divided by its length, or by 1e-12 if it is shorter."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
