"""Fine-tuning of the whole network on the support set: the baseline for everything that trains inside it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

import torch

from crossgraft.fewshot.heads._head import COSINE_SCALE, Classes, Logits, Members, Rows, cosines, scaled_cosines, unit_rows
from crossgraft.fewshot.heads._in_backbone import Images, InBackbone, descend


@dataclass(eq=False, repr=False)
class FineTuningHead(InBackbone):
    """All weights of a copy of the network, and a row per class that starts as the class's prototype, under cross-entropy.

    Args:
        learning_rate: Learning rate of Adam.
        steps: Steps on the whole support set.

    Attributes:
        class_weights_: (C, d) rows that features are compared with, by cosine.
        loss_curve_: (steps,) loss before each step.

    Cost: per step a forward and a backward pass of the support set through the whole network; a second set of weights.
    BatchNorm keeps its statistics.

    Source: Dhillon, Chaudhari, Ravichandran and Soatto, A Baseline for Few-Shot Image Classification, ICLR 2020, without its
    transductive term, and on penultimate features.
    """

    name: ClassVar[str] = "fine_tuning"
    title: ClassVar[str] = "Fine-tuning"
    reference: ClassVar[str] = (
        "Dhillon, Chaudhari, Ravichandran and Soatto, A Baseline for Few-Shot Image Classification, ICLR 2020"
    )

    learning_rate: float = 5e-5
    steps: int = 25

    def check(self) -> None:
        """Refuse numbers out of their range."""
        super().check()
        self.check_numbers("learning_rate", above=True)
        self.check_counts("steps")

    def adapt(self, support: Images, classes: Classes, num_classes: int) -> None:
        """Adam on the whole support set."""
        tuned = self.on_a_copy()
        with tuned.frozen():
            before = tuned.features_in_chunks(support)
            members = Members.of(classes.to(before.device), num_classes, before)
            rows_of_classes = torch.nn.Parameter(unit_rows(members.means(before)).rows)
            trained = [p.requires_grad_(True) for p in tuned.network.parameters() if p.is_floating_point()]
            optimizer = torch.optim.Adam([*trained, rows_of_classes], lr=self.learning_rate)

            def loss_of(rows: Rows) -> torch.Tensor:
                logits = COSINE_SCALE * cosines(unit_rows(rows), unit_rows(rows_of_classes))
                return torch.nn.functional.cross_entropy(logits, members.classes)

            self.loss_curve_ = descend(tuned.features, support, loss_of, optimizer, self.steps)
        self._tuned = tuned
        self.class_weights_ = rows_of_classes.detach().cpu().numpy()

    def logits_of(self, query: Images) -> Logits:
        """10 · cos(f, w_c), f from the fine-tuned copy."""
        with self._tuned.frozen():
            rows = self._tuned.features_in_chunks(query).cpu()
        return scaled_cosines(rows, torch.from_numpy(self.class_weights_))

    def on_a_copy(self) -> FineTuningHead:
        """The same head, unfitted, on a network of its own."""
        network = copy.deepcopy(self.network)
        backbone = network if self.backbone is self.network else self.backbone.around(network)
        return FineTuningHead(learning_rate=self.learning_rate, steps=self.steps, backbone=backbone)
