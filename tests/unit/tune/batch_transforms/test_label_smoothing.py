"""ε of the probability goes to all classes alike."""

import torch

from crossgraft.tune.batch_transforms import LabelSmoothing

IMAGES = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
TARGETS = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]])


def test_targets_become_the_stated_mixture():
    images, targets = LabelSmoothing(0.1)(IMAGES, TARGETS, torch.Generator())
    torch.testing.assert_close(targets, torch.tensor([[0.925, 0.025, 0.025, 0.025], [0.475, 0.475, 0.025, 0.025]]))
    assert torch.equal(images, IMAGES)


def test_nothing_changes_at_zero():
    assert torch.equal(LabelSmoothing(0.0)(IMAGES, TARGETS, torch.Generator())[1], TARGETS)
