"""CoPA + TSA: the two heads of CoPA behind a network whose middle has task-specific adapters."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch

from crossgraft.errors import CrossgraftWarning
from crossgraft.fewshot.heads._head import Classes, Logits, Members, Rows, cosines, scaled_cosines, unit_rows
from crossgraft.fewshot.heads._in_backbone import MIDDLE, Images, WithAdapters, descend, find_layers
from crossgraft.fewshot.heads.copa import symmetric_loss
from crossgraft.fewshot.look import GapShift, gap_of
from crossgraft.seeding import torch_generator


@dataclass(eq=False, repr=False)
class CopaTsa(WithAdapters):
    """CoPA whose features are trained, too: prototypes are made anew in each step, and the gradient flows through them.

    With one image per class both heads get the same gradient and stay equal; a warning says so.

    Args:
        learning_rate: Learning rate of Adam for both heads; the authors set 5e-3 on Traffic Sign, MNIST and CIFAR, and a tenth of
            either in five-way one-shot tasks.
        adapter_learning_rate: Learning rate for the adapters; by default a tenth of that of the heads, as the authors set it,
            except where theirs is 5e-3: there they take half.
        weight_decay: L2 term of Adam, coupled; the authors set 0 on Traffic Sign and MNIST.
        steps: Steps on the whole support set.
        logit_scale: What cosines are multiplied by in the loss: 1/temperature; e² in the authors' code.
        layers: Layers that are adapted: ``middle`` (convolutions larger than one pixel in the second and third stage, ``layer2``
            and ``layer3`` of a ResNet, as in the authors' code; without three or four stages in the second and third quarter of
            the building blocks), ``auto`` (in all blocks), names, globs and types with ``+`` between them, or in Python a
            function of name and module.

    Attributes:
        adapters_: Layer → weights of its adapter.
        instance_weights_: (d, d) W_I, applied to images as X Wᵀ.
        prototype_weights_: (d, d) W_P, applied to prototypes.
        prototypes_: (C, d) of the features of the adapted network.
        loss_curve_: (steps,) loss before each step.
        gap_: Distance between images and prototypes, in the features as they come, and behind the heads.

    Cost: per step a forward and a backward pass of the support set, from the first adapted layer on.

    Source: Tian, Liu, Zhou, Liu, Zhang and Han, Mind the Gap Between Prototypes and Images in Cross-domain Finetuning,
    NeurIPS 2024.
    """

    name: ClassVar[str] = "copa_tsa"
    title: ClassVar[str] = "CoPA + TSA"
    reference: ClassVar[str] = (
        "Tian, Liu, Zhou, Liu, Zhang and Han, Mind the Gap Between Prototypes and Images in Cross-domain Finetuning, NeurIPS 2024"
    )

    learning_rate: float = 1e-3
    adapter_learning_rate: float | None = None
    weight_decay: float = 0.1
    steps: int = 40
    logit_scale: float = math.exp(2.0)
    layers: Any = MIDDLE

    def check(self) -> None:
        """Refuse numbers out of their range."""
        super().check()
        self.check_numbers("learning_rate", above=True)
        if self.adapter_learning_rate is not None:
            self.check_numbers("adapter_learning_rate", above=True)
        self.check_numbers("weight_decay")
        self.check_numbers("logit_scale", above=True)
        self.check_counts("steps")

    def adapt(self, support: Images, classes: Classes, num_classes: int) -> None:
        """Adam on the whole support set."""
        if num_classes == len(support):
            warnings.warn(
                "CoPA + TSA with one image per class: images are their prototypes, so that both heads stay equal, and only a "
                "shared head and the adapters learn. Use tsa, or more images.",
                CrossgraftWarning,
                stacklevel=4,
            )
        with self.frozen():
            before = self.features_in_chunks(support)
            members = Members.of(classes.to(before.device), num_classes, before)
            eye = torch.eye(before.shape[1], dtype=before.dtype, device=before.device)
            of_images, of_prototypes = torch.nn.Parameter(eye), torch.nn.Parameter(eye.clone())

            def loss_of(rows: Rows) -> torch.Tensor:
                images, centres = unit_rows(rows @ of_images.T), unit_rows(members.means(rows) @ of_prototypes.T)
                return symmetric_loss(self.logit_scale * cosines(images, centres), members)

            hosts = find_layers(self.network, self.layers, "residual")
            look = partial(self.features, support[:1])
            with self.trained_adapters(hosts, look, torch_generator(0, "tsa")) as alpha:
                adapter_rate = self.adapter_learning_rate or 0.1 * self.learning_rate
                groups = [{"params": alpha, "lr": adapter_rate}, {"params": [of_images, of_prototypes], "lr": self.learning_rate}]
                optimizer = torch.optim.Adam(groups, weight_decay=self.weight_decay)
                self.loss_curve_ = descend(self.features, support, loss_of, optimizer, self.steps)
                rows = self.features_in_chunks(support)
        w_i, w_p, prototypes = of_images.detach(), of_prototypes.detach(), members.means(rows)
        self.instance_weights_, self.prototype_weights_ = w_i.cpu().numpy(), w_p.cpu().numpy()
        self.prototypes_ = prototypes.cpu().numpy()
        self.gap_ = GapShift(
            gap_of(before, members.means(before), members.classes), gap_of(rows @ w_i.T, prototypes @ w_p.T, members.classes)
        )

    def logits_of(self, query: Images) -> Logits:
        """10 · cos(W_I q, W_P p_c), q from the adapted network."""
        rows = self.adapted_features(query)
        prototypes = torch.from_numpy(self.prototypes_) @ torch.from_numpy(self.prototype_weights_).T
        return scaled_cosines(rows @ torch.from_numpy(self.instance_weights_).T, prototypes)
