"""Objects that only a program can give as an option.

This floor lies below the packages that define them: a type checker sees the classes, a running program one that stands for
all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING


class FromProgram:
    """An object that no command line and no file can hold."""


if TYPE_CHECKING:
    from torch.nn import Module as Module

    from crossgraft.losses import Loss as Loss
    from crossgraft.models import ModelSpec as ModelSpec
    from crossgraft.progress import Reporter as Reporter
    from crossgraft.scores import AnyScore as AnyScore
    from crossgraft.tune.augmentations import Augmentation as Augmentation
    from crossgraft.tune.batch_transforms import BatchTransform as BatchTransform
    from crossgraft.tune.methods._method import Method as Method
    from crossgraft.tune.regularizers._regularizer import Regularizer as Regularizer
else:
    Augmentation = BatchTransform = Loss = Method = ModelSpec = Module = Regularizer = Reporter = AnyScore = FromProgram
