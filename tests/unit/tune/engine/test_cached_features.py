"""Features that are computed once are those of every forward pass."""

import pytest
import torch

from crossgraft.tune.augmentations import Light
from crossgraft.tune.batch_transforms import Mixup
from crossgraft.tune.engine.cached_features import EvaluationLogits, FeatureFeed, HeadOnly, features_of, shows_plain_images
from support.training import build_classifier, build_data, build_feed


@pytest.fixture
def images():
    return build_data()[0]


def direct(classifier, images):
    with torch.no_grad():
        return classifier.eval()(images.normalise(images.read(torch.arange(len(images)))).to(classifier.head.weight.dtype))


def test_features_come_from_eval_mode_in_order_and_leave_the_modes(images):
    classifier = build_classifier("cnn").double().train()
    classifier.body.norm.eval()
    before = {name: value.clone() for name, value in classifier.state_dict().items()}
    found = features_of(classifier, images, batch_size=5, device="cpu")
    assert classifier.training and not classifier.body.norm.training
    assert all(torch.equal(before[name], value) for name, value in classifier.state_dict().items())
    assert torch.allclose(classifier.head(found), direct(classifier, images), atol=1e-12, rtol=0)


def test_a_feed_of_features_keeps_plan_and_targets(images):
    feed, classifier = build_feed(), build_classifier()
    features = features_of(classifier, images, batch_size=7, device="cpu")
    cached = FeatureFeed(feed, features)
    assert cached.steps_per_epoch == feed.steps_per_epoch
    for whole, short in zip(feed.batches(2, start=1), cached.batches(2, start=1), strict=True):
        assert torch.equal(whole.rows, short.rows) and torch.equal(whole.targets, short.targets)
        with torch.no_grad():
            expected = classifier.features_and_logits(whole.images)
            found_features, logits = HeadOnly(classifier)(short.images)
        assert torch.allclose(found_features, expected.features, atol=1e-6)
        assert torch.allclose(logits, expected.logits, atol=1e-6)


def test_only_unvaried_images_are_plain():
    assert shows_plain_images(build_feed())
    assert not shows_plain_images(build_feed(augmentation=Light()))
    assert not shows_plain_images(build_feed(transforms=[Mixup()]))


def test_evaluation_follows_the_network_and_keeps_features_only_when_told(images):
    classifier, logits = build_classifier(), EvaluationLogits(images, batch_size=5)
    assert torch.allclose(logits(classifier), direct(classifier, images), atol=1e-6)
    logits.keep_features(True)
    logits(classifier)
    with torch.no_grad():
        classifier.head.bias.add_(1.0)
        expected = direct(classifier, images)
        assert torch.allclose(logits(classifier), expected, atol=1e-6)
        classifier.body.stem.weight.mul_(2.0)
        assert torch.allclose(logits(classifier), expected, atol=1e-6)
        logits.keep_features(False)
        assert torch.allclose(logits(classifier), direct(classifier, images), atol=1e-6)
        assert not torch.allclose(logits(classifier), expected, atol=1e-3)
