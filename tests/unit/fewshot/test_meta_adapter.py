"""What Meta-Adapter learns on base classes, and from which of their images."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from crossgraft.errors import DataError, UsageError
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


def test_weights_that_are_not_of_meta_fit_are_refused():
    features, labels = np.random.default_rng(0).standard_normal((10, 6)), np.repeat(["a", "b"], 5)
    learned = MetaAdapterHead(epochs=1).meta_fit(features, labels).adapter_weights
    for wrong in ({"q_proj.weight": learned["q_proj.weight"]}, {**learned, "q_proj.weight": np.ones(6)}):
        with pytest.raises(DataError, match=r"are not of meta_fit: they have .*q_proj\.weight"):
            MetaAdapterHead(adapter_weights=wrong).fit(features, labels)
    with pytest.raises(DataError, match="meta_fit has seen features of width 6, and these have 5"):
        MetaAdapterHead(adapter_weights=learned).fit(features[:, :5], labels)
    with pytest.raises(UsageError, match="must come from meta_fit"):
        MetaAdapterHead(adapter_weights=np.ones(6)).fit(features, labels)


def test_a_head_that_was_not_taught_says_so_whatever_it_is_asked():
    features, labels = np.random.default_rng(0).standard_normal((10, 6)), np.repeat(["a", "b"], 5)
    head = MetaAdapterHead()
    for ask in (lambda: head.predict_proba(features), lambda: head.predict(features), lambda: head.fit(features, labels)):
        with pytest.raises(NotFittedError, match="Call meta_fit"):
            ask()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        MetaAdapterHead(epochs=1).meta_fit(features, labels).predict(features)
