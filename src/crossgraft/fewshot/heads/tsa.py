"""TSA: small adapters beside the convolutions of a frozen network, and a linear head, trained on the support set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.fewshot.heads._head import RATES, Classes, Logits, Members, Rows, scaled_cosines
from crossgraft.fewshot.heads._in_backbone import AUTO, Images, WithAdapters, descend, find_layers
from crossgraft.fewshot.look import GapShift, gap_of
from crossgraft.seeding import torch_generator

_SERIAL_MATRIX, _VECTOR_UNSEEN, _OTHERWISE = 0.01, 1.0, 0.5
"""Learning rate of the adapters as a share of that of the head, in the authors' code."""
BOTH, ADAPTERS, HEAD = "both", "adapters", "head"


@dataclass(eq=False, repr=False)
class TsaAdapter(WithAdapters):
    """Task-specific adapters α in the network and a linear head β behind it, under the loss of URL.

    Args:
        learning_rate: Learning rate of Adadelta for the head; ``seen`` (0.1) for a domain that the backbone was trained on,
            ``unseen`` (1.0) for any other, as the authors set it. It is never guessed.
        adapter_learning_rate: Learning rate for the adapters; by default half of that of the head, one hundredth for serial
            matrices, all of it for vectors in an unseen domain, as the authors set it.
        steps: Steps on the whole support set.
        layers: Layers that are adapted: ``auto`` (convolutions larger than one pixel in the building blocks; in a network without
            them its linear layers), ``middle`` (of these the second and third stage, as in ``CopaTsa``), names, globs and types
            with ``+`` between them, or in Python a function of name and module.
        connection: ``residual``, h(x) + α x, or ``serial``, α h(x) + b.
        form: ``matrix``, or ``vector``, one number per channel; a layer that changes the number of channels or positions gets
            a matrix all the same, if it is residual.
        init: ``identity`` (residual: 1e-4 of it), or ``random``: normal numbers of standard deviation 1e-3.
        trained: ``both``, ``adapters`` or ``head``.
        seed: Random seed, of ``init=random``.

    Attributes:
        adapters_: Layer → weights of its adapter.
        weights_: (d, d) β, applied as X βᵀ.
        prototypes_: (C, d) of the features of the adapted network.
        loss_curve_: (steps,) loss before each step.
        gap_: Distance between images and prototypes, in the features as they come, and behind the head.
        num_adapter_parameters_: Trained numbers, but those of the head.

    Cost: per step a forward and a backward pass of the support set, from the first adapted layer on; BatchNorm keeps its
    statistics. A support set that does not fit into memory with what its gradient needs is looked at twice per step.

    Source: Li, Liu and Bilen, Cross-domain Few-shot Learning with Task-specific Adapters, CVPR 2022.
    """

    name: ClassVar[str] = "tsa"
    title: ClassVar[str] = "TSA"
    reference: ClassVar[str] = "Li, Liu and Bilen, Cross-domain Few-shot Learning with Task-specific Adapters, CVPR 2022"

    learning_rate: float | str = "seen"
    adapter_learning_rate: float | None = None
    steps: int = 40
    layers: Any = AUTO
    connection: str = "residual"
    form: str = "matrix"
    init: str = "identity"
    trained: str = BOTH
    seed: int = 0

    def check(self) -> None:
        """Refuse rates that are neither a name nor above 0, and an unknown choice of what is trained."""
        super().check()
        self.check_rate(self.learning_rate)
        if self.adapter_learning_rate is not None:
            self.check_numbers("adapter_learning_rate", above=True)
        self.check_counts("steps")
        self.check_seed()
        if self.trained not in (BOTH, ADAPTERS, HEAD):
            raise UsageError(f"trained of tsa must be {BOTH}, {ADAPTERS} or {HEAD}, got {self.trained!r}.")

    def adapt(self, support: Images, classes: Classes, num_classes: int) -> None:
        """Adadelta on the whole support set."""
        with self.frozen():
            before = self.features_in_chunks(support)
            members = Members.of(classes.to(before.device), num_classes, before)
            head = torch.nn.Parameter(torch.eye(before.shape[1], dtype=before.dtype, device=before.device))
            hosts = [] if self.trained == HEAD else find_layers(self.network, self.layers, self.connection)
            look = partial(self.features, support[:1])
            with self.trained_adapters(hosts, look, torch_generator(self.seed, "tsa")) as alpha:
                head_rate, adapter_rate = self._rates()
                groups = [{"params": alpha, "lr": adapter_rate}] if alpha else []
                groups += [{"params": [head], "lr": head_rate}] if self.trained != ADAPTERS else []
                optimizer = torch.optim.Adadelta(groups, rho=0.9, eps=1e-6)
                self.loss_curve_ = descend(
                    self.features, support, lambda rows: ncc_loss(rows @ head.T, members), optimizer, self.steps
                )
                rows, weights = self.features_in_chunks(support), head.detach()
        self.num_adapter_parameters_ = sum(parameter.numel() for parameter in alpha)
        prototypes = members.means(rows)
        self.weights_, self.prototypes_ = weights.cpu().numpy(), prototypes.cpu().numpy()
        self.gap_ = GapShift(
            gap_of(before, members.means(before), members.classes),
            gap_of(rows @ weights.T, prototypes @ weights.T, members.classes),
        )

    def logits_of(self, query: Images) -> Logits:
        """10 · cos(β q, β p_c), q from the adapted network."""
        rows = self.adapted_features(query)
        weights = torch.from_numpy(self.weights_)
        return scaled_cosines(rows @ weights.T, torch.from_numpy(self.prototypes_) @ weights.T)

    @property
    def adapter_options(self) -> dict[str, str]:
        """Form and start of the adapters."""
        return {"connection": self.connection, "form": self.form, "init": self.init}

    def _rates(self) -> tuple[float, float]:
        head = RATES[self.learning_rate] if isinstance(self.learning_rate, str) else self.learning_rate
        if self.adapter_learning_rate is not None:
            return head, self.adapter_learning_rate
        if self.connection == "serial" and self.form == "matrix":
            return head, _SERIAL_MATRIX * head
        return head, head * (_VECTOR_UNSEEN if (self.form, self.learning_rate) == ("vector", "unseen") else _OTHERWISE)


def ncc_loss(transformed: Rows, members: Members) -> Tensor:
    """Cross-entropy of the support set against its own prototypes, part of the graph through both."""
    logits = scaled_cosines(transformed, members.means(transformed))
    return torch.nn.functional.cross_entropy(logits, members.classes)
