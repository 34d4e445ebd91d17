"""Mixup and CutMix give targets the weights that the pixels have."""

import numpy as np
import pytest
import torch
from scipy import stats

from crossgraft.tune.batch_transforms import CutMix, Mixup
from crossgraft.tune.batch_transforms._mixing import draw_partners, draw_share


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def self_describing(num_images, height=7, width=9):
    """Image k is one in channel k and zero in the others: a mixed pixel tells what it was mixed from."""
    targets = torch.eye(num_images)
    return targets[:, :, None, None].expand(-1, -1, height, width).clone(), targets


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_shares_follow_the_beta_distribution(alpha):
    source = generator()
    shares = [draw_share(alpha, source) for _ in range(2000)]
    # A false alarm once in a thousand seeds; this one is fixed.
    assert stats.kstest(shares, stats.beta(alpha, alpha).cdf).pvalue > 1e-3


def test_partners_are_a_permutation():
    partners = draw_partners(50, generator())
    assert sorted(partners.tolist()) == list(range(50)) != partners.tolist()


def test_mixup_blends_images_and_targets_alike():
    images, targets = self_describing(8)
    shares = []
    for seed in range(40):
        mixed, soft = Mixup(1.0)(images, targets, generator(seed))
        torch.testing.assert_close(mixed, soft[:, :, None, None].expand_as(mixed))
        own = soft.diagonal()[soft.diagonal() < 1 - 1e-6]  # an image may be its own partner
        assert own.numel() >= 4
        torch.testing.assert_close(own, own[:1].expand_as(own))
        shares.append(own[0].item())
    assert min(shares) < 0.2 and max(shares) > 0.8


def test_cutmix_weighs_targets_by_the_pixels_that_were_pasted():
    images, targets = self_describing(8)
    for seed in range(40):
        mixed, soft = CutMix()(images, targets, generator(seed))
        torch.testing.assert_close(mixed.mean((2, 3)), soft)
        assert set(mixed.unique().tolist()) <= {0.0, 1.0}


def test_cutmix_pastes_one_box_with_sides_that_follow_the_share():
    height, width = 40, 60
    images, targets = self_describing(2, height, width)
    centres, areas = [], []
    for seed in range(300):
        mixed, _ = CutMix()(images, targets, generator(seed))
        pasted = mixed[0, 1] == 1
        if not pasted.any() or pasted.all():
            continue
        rows, columns = pasted.any(1).nonzero(), pasted.any(0).nonzero()
        tall, wide = int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1
        assert pasted.sum() == tall * wide  # one full rectangle
        areas.append(tall * wide / height / width)
        if rows[0] > 0 and rows[-1] < height - 1 and columns[0] > 0 and columns[-1] < width - 1:
            assert tall / height == pytest.approx(wide / width, abs=1.1 / 40)
            centres.append(((rows[0] + rows[-1]) / 2 / height, (columns[0] + columns[-1]) / 2 / width))
    places = np.array(centres)
    assert places.min() < 0.2 and places.max() > 0.8
    assert min(areas) < 0.05 and max(areas) > 0.7


def test_cutmix_leaves_the_stated_share_of_batches_alone():
    images, targets = self_describing(6)
    for probability in (0.0, 0.3, 1.0):
        transform = CutMix(probability=probability)
        untouched = [torch.equal(transform(images, targets, generator(seed))[0], images) for seed in range(300)]
        # A box may round to nothing, and a permutation of 6 images is never the identity for long.
        assert np.mean(untouched) == pytest.approx(1 - probability, abs=0.12)
        if probability == 0:
            assert all(untouched)


def test_several_labels_are_weighed_like_their_images():
    targets = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    images = torch.stack([torch.zeros(1, 6, 6), torch.ones(1, 6, 6)])
    for transform in (Mixup(1.0), CutMix()):
        for seed in range(10):
            mixed, soft = transform(images, targets, generator(seed))
            of_second = mixed.mean((1, 2, 3))
            expected = (1 - of_second)[:, None] * targets[0] + of_second[:, None] * targets[1]
            torch.testing.assert_close(soft, expected)
