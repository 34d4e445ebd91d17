"""MixStyle: each image keeps what it shows, in a style between its own and that of another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from crossgraft.compute import sent
from crossgraft.conflicts import Situation
from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.models.taps import modes_kept, named_layer, watch
from crossgraft.tune.protocols import FeatureTransform, TransformStart
from crossgraft.words.formatting import joined

_BETWEEN_NAMES = "+"
_BODY = "body."
_NUM_STAGES = 2
_SMALLEST_VARIANCE = 1e-6


@dataclass
class MixStyle(FeatureTransform):
    """x̃ = σ_mix (x − μ) / σ + μ_mix, with σ_mix = λσ + (1 − λ)σ′ and μ_mix = λμ + (1 − λ)μ′ (eqs. 4–6).

    μ and σ are mean and standard deviation of each channel of one image over its positions (unbiased, variance + 1e-6), those
    with a prime of its partner; no gradient goes through them. λ is drawn from Beta(α, α) for each image. Partners are those
    of the paper's second form: images are reversed and cut into halves, and each half is shuffled. Where batches come domain by
    domain (``--sampler domains``) the first half gets partners from the domains of the second.

    In each step each layer does it with probability p. Several processes share the statistics of partners, so that the result
    does not depend on their number. Evaluation, and the saved model, know nothing of it.

    Cost: mean and variance of each map, and one pass over it.

    Attributes:
        p: Probability, in (0, 1], that a layer mixes in a step.
        alpha: α > 0; small values mostly keep one of the two styles.
        layers: ``auto``: behind the first two stages, each a row of building blocks whose maps are of one size; or names of
            layers, with or without ``body.``, separated by ``+``.

    Raises:
        UsageError: A value has no meaning.

    Reference: Zhou, Yang, Qiao and Xiang 2021, section 2; p and α of the released code.
    """

    name: ClassVar[str] = "mixstyle"
    title: ClassVar[str] = "MixStyle"
    citation: ClassVar[str] = "Zhou, Yang, Qiao and Xiang, Domain Generalization with MixStyle, ICLR 2021"

    p: float = 0.5
    alpha: float = 0.1
    layers: str = "auto"

    def __post_init__(self) -> None:
        if not 0 < self.p <= 1:
            raise UsageError(f"mixstyle: p must lie above 0 and at most at 1, not {self.p}. Leave mixstyle out to mix nothing.")
        if not 0 < self.alpha < float("inf"):
            raise UsageError(f"mixstyle: alpha must be above 0, not {self.alpha}.")
        if not self.layers.strip():
            raise UsageError("mixstyle: layers is empty. Leave it out, or name layers, separated by +.")
        self._names: tuple[str, ...] = ()
        self._hooks = ExitStack()
        self._start: TransformStart | None = None

    def conflicts(self, situation: Situation) -> str | None:
        """Tokens have no style."""
        if situation.is_convolutional:
            return None
        return (
            "--feature-transform mixstyle changes mean and deviation of feature maps, and this network has none: it works on "
            "tokens. Leave it out, or choose a convolutional network."
        )

    def attach(self, classifier: Classifier) -> None:
        """Behind the layers; errors as in ``FeatureTransform``."""
        self.detach()
        names = self._layers_of(classifier)
        self._names = tuple(name.removeprefix(_BODY) for name in names)
        for name in names:
            handle = named_layer(classifier, name).register_forward_hook(self._mix)
            self._hooks.callback(handle.remove)

    def findings(self) -> list[str]:
        """Which layers."""
        return [f"MixStyle mixes styles behind {joined(self._names)}."] if self._names else []

    def before_forward(self, start: TransformStart) -> None:
        """From now on layers mix."""
        self._start = start

    def after_forward(self) -> None:
        """No more."""
        self._start = None

    def detach(self) -> None:
        """Take the hooks away."""
        self._hooks.close()
        self._names, self._start = (), None

    def _layers_of(self, classifier: Classifier) -> Sequence[str]:
        if self.layers != "auto":
            names = [name.strip() for name in self.layers.split(_BETWEEN_NAMES)]
            known = {name for name, _ in classifier.named_modules()}
            return [f"{_BODY}{name}" if f"{_BODY}{name}" in known else name for name in names]
        stages = _ends_of_stages(classifier)[:_NUM_STAGES]
        if not stages:
            raise UsageError(
                f"mixstyle finds no feature map in {classifier.recipe.name}. Name layers that give some (mixstyle:layers=NAME), "
                "or leave it out."
            )
        return stages

    def _mix(self, _module: nn.Module, _arguments: Any, output: Any) -> Tensor | None:
        """What torch calls behind a layer; None leaves what it gives."""
        start = self._start
        if start is None:
            return None
        if not isinstance(output, Tensor) or output.ndim != 4 or output.shape[2:].numel() < 2:
            what = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise UsageError(
                f"mixstyle changes feature maps (images, channels, height, width), and a layer of it gives {what}. Name others: "
                "mixstyle:layers=NAME."
            )
        if torch.rand((), generator=start.generator).item() >= self.p:
            return None
        shares, partners = self._drawn(start)
        return mixed(output, shares, partners, start)

    def _drawn(self, start: TransformStart) -> tuple[Float[Tensor, " batch_size"], Int64[Tensor, " batch_size"]]:
        """λ and the partner of each image of the batch; torch draws Beta numbers from its global generator only."""
        seed = int(torch.randint(2**63 - 1, (), generator=start.generator))
        shares = torch.from_numpy(np.random.default_rng(seed).beta(self.alpha, self.alpha, start.batch_size))
        return shares, partners_across(start.batch_size, start.generator)


def partners_across(num_images: int, generator: torch.Generator) -> Int64[Tensor, " num_images"]:
    """Images in reverse, cut into halves, each half shuffled."""
    halves = torch.arange(num_images - 1, -1, -1).chunk(2)
    return torch.cat([half[torch.randperm(len(half), generator=generator)] for half in halves])


def mixed(
    maps: Float[Tensor, "batch channels height width"],
    shares: Float[Tensor, " batch_size"],
    partners: Int64[Tensor, " batch_size"],
    start: TransformStart,
) -> Float[Tensor, "batch channels height width"]:
    """Maps of this process with mixed styles, in their number type."""
    seen = maps.detach().to(torch.promote_types(maps.dtype, torch.float32))
    mean, deviation = seen.mean((2, 3)), (seen.var((2, 3)) + _SMALLEST_VARIANCE).sqrt()
    of_all = start.of_whole_batch(torch.stack([mean, deviation], dim=1))
    others = of_all[sent(partners[start.places], maps.device)]
    share = sent(shares[start.places], maps.device).to(mean.dtype)[:, None]
    factor = torch.lerp(others[:, 1], deviation, share) / deviation
    shift = torch.lerp(others[:, 0], mean, share) - factor * mean
    return maps * factor[:, :, None, None].to(maps.dtype) + shift[:, :, None, None].to(maps.dtype)


def _ends_of_stages(classifier: Classifier) -> list[str]:
    """Names of the last block of each row of blocks that give maps of one size, first to last; one image is looked at."""
    sizes: dict[str, tuple[int, ...]] = {}

    def note(name: str, output: Any) -> None:
        if isinstance(output, Tensor) and output.ndim == 4 and output.shape[2:].numel() > 1:
            sizes[name] = tuple(output.shape[2:])

    look, like = classifier.preprocessing, classifier.head.weight
    blocks = {name: named_layer(classifier, name) for name in classifier.blocks}
    with modes_kept(classifier), watch(blocks, note), torch.no_grad():
        classifier.eval().features(like.new_zeros(1, look.channels, look.height_pixels, look.width_pixels))
    names = [name for name in classifier.blocks if name in sizes]
    return [name for name, after in zip(names, [*names, None][1:], strict=True) if after is None or sizes[after] != sizes[name]]
