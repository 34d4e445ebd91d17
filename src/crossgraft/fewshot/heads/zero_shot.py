"""Zero-shot: the class weights alone, as if there were no support set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from crossgraft.errors import UsageError
from crossgraft.fewshot.heads._class_weights import ClassWeights, class_weights_of
from crossgraft.fewshot.heads._head import Classes, Head, Logits, Members, Rows, unit_rows

_SCALE = 100.0


@dataclass(eq=False, repr=False)
class ZeroShotHead(Head):
    """100 · u(x)·W: the nearest class weight; of the support set it takes which classes there are, and nothing else.

    What every head that starts from class weights has to be above.

    Args:
        class_weights: As of ``TipAdapterHead``; it has to be given.

    Attributes:
        class_weights_: (C, d) W, of unit length.

    Cost: a prediction takes m·C·d.

    Source: Radford, Kim, Hallacy and others, Learning Transferable Visual Models From Natural Language Supervision, ICML 2021,
    where W are features of the names of classes.
    """

    name: ClassVar[str] = "zero_shot"
    title: ClassVar[str] = "Zero-shot"
    reference: ClassVar[str] = (
        "Radford, Kim, Hallacy and others, Learning Transferable Visual Models From Natural Language Supervision, ICML 2021"
    )
    needs_class_weights: ClassVar[bool] = True

    class_weights: Any = None

    def check(self) -> None:
        """Refuse to have none."""
        if self.class_weights is None:
            raise UsageError(
                "zero_shot is class weights alone, and none were given. Give some: zero_shot:class_weights=FILE, or --prompts "
                "for a network that reads; without any take ncc, whose class weights are means of the support set."
            )

    def adapt(self, support: Rows, classes: Classes, num_classes: int) -> None:
        """Take the weights of the classes of the task."""
        given: ClassWeights = self.class_weights
        means = Members.of(classes, num_classes, support).means(support)
        self.class_weights_ = class_weights_of(given, self.classes_, means).numpy()

    def logits_of(self, query: Rows) -> Logits:
        """100 · cos(q, w_c)."""
        return _SCALE * unit_rows(query).rows @ torch.from_numpy(self.class_weights_).T
