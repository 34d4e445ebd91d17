"""What Meta-Adapter learns on base classes, and from which of their images."""

import numpy as np
import torch

from crossgraft.fewshot import MetaAdapterHead


def test_images_that_choose_the_epoch_teach_nothing():
    """With one epoch nothing is chosen, so that one image in five of each class may be any other without a change."""
    random = np.random.default_rng(0)
    labels = np.repeat(["a", "b"], 5)
    features = random.standard_normal((10, 6))

    def learned(rows):
        weights = MetaAdapterHead(epochs=1).meta_fit(rows, labels).adapter_weights
        return np.concatenate([each.ravel() for each in weights.values()])

    changed = features + 3 * np.eye(10)[:, :, None] * random.standard_normal((1, 10, 6))  # one row of each is another
    before = learned(features)
    without_effect = [np.array_equal(before, learned(rows)) for rows in changed]
    assert [sum(without_effect[:5]), sum(without_effect[5:])] == [1, 1]


def test_the_global_random_state_stays_as_it_is():
    random = np.random.default_rng(0)
    features, labels = random.standard_normal((10, 6)), np.repeat(["a", "b"], 5)
    before = torch.random.get_rng_state()
    MetaAdapterHead(epochs=1).meta_fit(features, labels).fit(features, labels)
    assert torch.equal(torch.random.get_rng_state(), before)
