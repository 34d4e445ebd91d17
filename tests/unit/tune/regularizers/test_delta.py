"""DELTA: feature maps near the pretrained ones, and channels weighed by what they matter."""

import copy

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from crossgraft.choice import choose
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.tune.regularizers import DELTA, REGULARIZERS
from crossgraft.tune.regularizers.delta import channel_attention
from support.regularizing import PlainImages, context_of, moved
from support.small_classifiers import small_classifier
from support.training import build_feed, same_bits, train_one

IMAGES = torch.rand(5, 3, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Labelled(PlainImages):
    """Images whose brightness in one colour tells the class."""

    def __init__(self, count=24):
        labels = torch.arange(count) % 3
        noise = torch.rand(count, 3, 32, 32, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        super().__init__(noise + 2 * torch.eye(3, dtype=torch.float64)[labels][:, :, None, None])
        self.targets = torch.eye(3, dtype=torch.float64)[labels]


def attached(classifier, training_set=None, **options):
    regularizer = DELTA(**options)
    regularizer.attach(classifier, training_set)
    return regularizer


def map_of(classifier, layer, images):
    found = []
    handle = classifier.get_submodule(layer).register_forward_hook(lambda _m, _i, output: found.append(output))
    classifier.features(images)
    handle.remove()
    return found[0]


def test_it_is_chosen_by_name():
    assert choose(REGULARIZERS, "delta:0.1,layers=stem+block") == DELTA(alpha=0.1, layers="stem+block")
    assert DELTA().task_weight == 1 and DELTA.keeps_reference
    for options in ({"alpha": -1.0}, {"beta": float("nan")}, {"attention": True, "layers": "a+b"}):
        with pytest.raises(UsageError):
            DELTA(**options)
    with pytest.raises(UsageError, match="reduction"):
        choose(REGULARIZERS, "delta:reduction=sum")


@pytest.mark.parametrize("reduction", ["mean", "tllib"])
@pytest.mark.parametrize(
    ("name", "layers", "expected"),
    [("cnn", "", ["body.block"]), ("cnn", "stem+body.block", ["body.stem", "body.block"]), ("vit", "", ["body.blocks.2"])],
)
def test_the_terms_are_those_of_the_formula(name, layers, expected, reduction):
    classifier = small_classifier(name).double()
    start = copy.deepcopy(classifier)
    regularizer = attached(classifier, alpha=0.2, beta=0.6, layers=layers, reduction=reduction)
    moved(classifier)
    terms = regularizer.loss(context_of(classifier, IMAGES))
    squares = sum(((map_of(classifier, x, IMAGES) - map_of(start, x, IMAGES)) ** 2).sum().item() for x in expected)
    assert terms["maps"].item() == pytest.approx(0.1 * squares / (5 if reduction == "mean" else 1), rel=1e-12)
    head = sum((p**2).sum().item() for p in classifier.head.parameters())
    assert terms["head"].item() == pytest.approx(0.3 * head, rel=1e-12)


def test_the_gradient_reaches_the_layer_and_what_is_before_it():
    classifier = small_classifier("cnn").double()
    regularizer = attached(classifier, beta=0.0, layers="stem")
    moved(classifier)
    sum(regularizer.loss(context_of(classifier, IMAGES)).values()).backward()
    assert classifier.body.stem.weight.grad.any()
    assert classifier.body.block.weight.grad is None


def test_the_copy_is_in_eval_mode_and_evaluations_are_not_kept():
    classifier = small_classifier("dropout").double()
    regularizer = attached(classifier)
    classifier.body.norm.train()
    context = context_of(classifier, IMAGES)  # other statistics, so other maps
    with torch.no_grad():
        classifier.eval()(IMAGES)
    term = regularizer.loss(context)["maps"]
    assert term > 1e-6 and term.requires_grad
    with pytest.raises(UsageError, match="not used in this step"):  # each map is for one step
        regularizer.loss(context)


def test_it_leaves_no_hook():
    classifier = small_classifier("cnn")
    regularizer = attached(classifier)
    assert classifier.body.block._forward_hooks
    regularizer.detach()
    assert not classifier.body.block._forward_hooks
    with pytest.raises(UsageError, match="attach"):
        regularizer.loss(context_of(classifier))


def test_a_layer_that_is_none_is_refused():
    classifier = small_classifier("cnn")
    with pytest.raises(UnknownNameError, match="block"):
        attached(classifier, layers="blok")
    with pytest.raises(UnknownNameError):
        attached(classifier, layers="stem+")


def test_channels_are_weighed_by_what_the_loss_rises_without_them():
    classifier = small_classifier("cnn").double()
    training_set = Labelled()
    with torch.no_grad():
        classifier.body.block.weight[5] = 0
        classifier.body.block.bias[5] = -1  # always 0 behind the rectifier
    weights = channel_attention(classifier, training_set, training_set.targets)
    assert weights.shape == (8,) and weights.sum().item() == pytest.approx(1, rel=1e-12)
    assert weights.argmin() == 5 and weights.max() > 1.2 * weights.min()
    features = classifier.features(training_set.images).detach()
    spread = [features[training_set.targets[:, c] == 1].mean(0) for c in range(3)]
    assert torch.stack(spread).std(0)[weights.argmax()] > torch.stack(spread).std(0).median()


def test_weights_of_channels_are_those_of_filters_set_to_zero_one_after_the_other():
    """The head by another solver, the loss by another library, each filter of the last layer really at zero."""
    classifier, training_set = small_classifier("cnn").double(), Labelled()
    found = channel_attention(classifier, training_set, training_set.targets)
    targets = training_set.targets.numpy()
    with torch.no_grad():
        features = classifier.features(training_set.images).numpy()
    solvers = [
        LogisticRegression(C=1 / (2e-3 * len(targets)), tol=1e-9, max_iter=10_000).fit(features, targets[:, label])
        for label in range(3)
    ]

    def loss(network):
        with torch.no_grad():
            seen = network.features(training_set.images).numpy()
        return sum(log_loss(targets[:, k], solver.predict_proba(seen)) for k, solver in enumerate(solvers))

    rises = []
    for channel in range(8):
        without = copy.deepcopy(classifier)
        without.body.block.weight.data[channel] = 0
        without.body.block.bias.data[channel] = 0
        rises.append(loss(without) - loss(classifier))
    z = (np.array(rises) - np.mean(rises)) / np.std(rises, ddof=1)
    np.testing.assert_allclose(found.numpy(), np.exp(z / 5) / np.exp(z / 5).sum(), rtol=1e-3)


def test_equal_channels_have_equal_weights():
    classifier = small_classifier("cnn").double()
    with torch.no_grad():
        classifier.body.block.weight.zero_()
        classifier.body.block.bias.zero_()
    training_set = Labelled()
    weights = channel_attention(classifier, training_set, training_set.targets)
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / 8))


def test_only_the_first_ten_batches_are_looked_at():
    few, many = Labelled(40), Labelled(60)
    many.images[:40], many.targets[:40] = few.images, few.targets
    classifier = small_classifier("cnn").double()
    assert torch.equal(*(channel_attention(classifier, each, each.targets) for each in (few, many)))


@pytest.mark.parametrize("name", ["cnn", "vit"])
def test_weighed_maps_are_those_of_the_formula(name):
    classifier = small_classifier(name).double()
    start, training_set = copy.deepcopy(classifier), Labelled()
    regularizer = attached(classifier, training_set, alpha=0.2, attention=True)
    moved(classifier)
    found = regularizer.loss(context_of(classifier, IMAGES))["maps"].item()
    weights = channel_attention(start, training_set, training_set.targets)
    layer = start.blocks[-1]
    squares = (map_of(classifier, layer, IMAGES) - map_of(start, layer, IMAGES)) ** 2
    squares = squares if name == "cnn" else squares.transpose(1, 2)
    literal = sum(len(weights) * weights[c].item() * squares[b, c].mean().item() for b in range(5) for c in range(len(weights)))
    assert found == pytest.approx(0.1 * literal / 5, rel=1e-10)


def test_channels_that_can_not_be_weighed_are_refused():
    classifier = small_classifier("cnn").double()
    with pytest.raises(UsageError, match="no targets"):
        attached(classifier, PlainImages(IMAGES), attention=True)
    with pytest.raises(UsageError, match="attach"):
        attached(classifier, attention=True).loss(context_of(classifier, IMAGES))
    with pytest.raises(UsageError, match=r"weigh the 6 channels of .* by the 8 features"):
        attached(classifier, Labelled(), attention=True, layers="stem").loss(context_of(classifier, IMAGES))


@pytest.mark.parametrize("attention", [False, True])
def test_a_training_cut_short_ends_with_the_same_bits(attention, tmp_path):
    def stop(report):
        if report.step == 5:
            raise KeyboardInterrupt

    def common():
        return {"feed": build_feed(), "regularizers": [DELTA(attention=attention)], "checkpoint_every_steps": 1}

    whole, _ = train_one("dropout", **common())
    with pytest.raises(KeyboardInterrupt):
        train_one("dropout", **common(), checkpoint_folder=tmp_path, on_step=stop)
    resumed, result = train_one("dropout", **common(), checkpoint_folder=tmp_path)
    assert result.resumed and same_bits(whole, resumed)
