"""HCS: the similarity of each batch's features to the pretrained ones, from a frozen copy or looked up by row."""

import copy
import warnings
from unittest.mock import Mock

import pytest
import torch

from crossgraft.choice import choose, spell
from crossgraft.errors import DivergedError, UsageError
from crossgraft.losses import CrossEntropy
from crossgraft.models.classifier import Classifier
from crossgraft.similarity.linear_cka import linear_cka
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.step_cost import measure_step
from crossgraft.tune.regularizers import DELTA, HCS, REGULARIZERS, StepUpdate
from support.regularizing import PlainImages, context_of, moved
from support.small_classifiers import small_classifier
from support.training import DoubleFeed, build_classifier, build_feed, everything, same_bits, train_one


def images_of(count, dtype=torch.float32):
    return torch.rand(count, 3, 32, 32, generator=torch.Generator().manual_seed(3), dtype=dtype)


def attached(classifier, training_set=None, **options):
    regularizer = HCS(**options)
    regularizer.attach(classifier, training_set)
    return regularizer


def test_it_is_chosen_with_lambda_first():
    assert choose(REGULARIZERS, "hcs:0.6,debiased=true") == HCS(lam=0.6, debiased=True)
    assert choose(REGULARIZERS, "hcs:cache=false") == HCS(cache=False)
    assert spell(HCS(lam=0.5)) == "hcs:lam=0.5"
    assert HCS(lam=0.3).task_weight == 0.3
    assert HCS.keeps_reference


@pytest.mark.parametrize("lam", [-0.1, 1.1, float("nan")])
def test_lambda_is_a_share(lam):
    with pytest.raises(UsageError, match="lam of hcs"):
        HCS(lam=lam)


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("name", ["dropout", "vit"])
def test_the_term_compares_with_the_starting_weights_in_eval_mode(name, debiased):
    classifier = small_classifier(name).double()
    start, regularizer = copy.deepcopy(classifier), attached(classifier, lam=0.6, debiased=debiased)
    moved(classifier).train()
    images = images_of(7, torch.float64)
    context = context_of(classifier, images)
    term = regularizer.loss(context)["cka"]
    pretrained = start.features(images).detach().numpy()
    expected = linear_cka(context.features.detach().numpy(), pretrained, debiased=debiased)
    assert term.item() == pytest.approx(0.4 * (1 - expected), rel=1e-10)
    assert term.item() > 1e-4


def test_its_gradient_moves_the_features_towards_the_pretrained_ones():
    classifier = small_classifier("vit").double()
    regularizer = attached(classifier, lam=0.0)
    moved(classifier)
    values = []
    for _ in range(20):
        classifier.zero_grad()
        term = regularizer.loss(context_of(classifier))["cka"]
        term.backward()
        assert all(p.grad is None or not p.grad.any() for p in classifier.head.parameters())
        with torch.no_grad():
            for parameter in classifier.body.parameters():
                parameter -= 0.02 * (parameter.grad if parameter.grad is not None else 0)
        values.append(term.item())
    assert values[-1] < 0.7 * values[0]


def test_the_frozen_copy_belongs_to_no_module():
    classifier = small_classifier("cnn")
    before = set(classifier.state_dict())
    regularizer = attached(classifier)
    assert set(classifier.state_dict()) == before
    assert regularizer.modules() == regularizer.parameter_groups() == [] and regularizer.state_dict() == {}
    moved(classifier).train()
    statistics = copy.deepcopy(classifier.state_dict())
    first = regularizer.loss(context_of(classifier))["cka"]
    assert torch.equal(first, regularizer.loss(context_of(classifier))["cka"])
    moving = [name for name, value in statistics.items() if not torch.equal(value, classifier.state_dict()[name])]
    assert all("running" in name or "num_batches" in name for name in moving)


def test_looking_features_up_by_row_is_the_frozen_copy():
    classifier = small_classifier("dropout").double().train()
    images = images_of(10, torch.float64)
    looked_up = attached(classifier, PlainImages(images))
    asked = attached(classifier, PlainImages(images), cache=True)
    anew = attached(classifier, PlainImages(images), cache=False)
    assert classifier.training and classifier.body.norm.training
    moved(classifier)
    rows = torch.tensor([8, 0, 3, 9, 5, 2])
    context = context_of(classifier, images[rows], rows=rows)
    expected = anew.loss(context)["cka"].item()
    assert looked_up.loss(context)["cka"].item() == pytest.approx(expected, rel=1e-10)
    assert asked.loss(context)["cka"].item() == pytest.approx(expected, rel=1e-10)
    shown = context_of(classifier, images[:6], rows=rows)  # rows of other images
    assert looked_up.loss(shown)["cka"].item() != pytest.approx(expected, rel=1e-3)


def test_only_plain_images_are_looked_up(monkeypatch):
    classifier, images, seen = small_classifier("cnn"), images_of(8), []
    features = Classifier.features
    monkeypatch.setattr(Classifier, "features", lambda self, x: seen.append(len(x)) or features(self, x))
    attached(classifier, PlainImages(images, is_plain=False))
    attached(classifier, PlainImages(images), cache=False)
    attached(classifier, PlainImages(images), lam=1.0)
    assert seen == []
    attached(classifier, PlainImages(images))
    assert seen == [4, 4]
    with pytest.raises(UsageError, match="augmentation or batch transforms change the images"):
        attached(classifier, PlainImages(images, is_plain=False), cache=True)


def test_without_attach_it_says_so():
    classifier = small_classifier("cnn")
    with pytest.raises(UsageError, match="attach"):
        HCS().loss(context_of(classifier))
    with pytest.raises(UsageError, match="needs the training set"):
        attached(classifier, cache=True).loss(context_of(classifier))
    regularizer = attached(classifier)
    regularizer.detach()
    with pytest.raises(UsageError, match="attach"):
        regularizer.loss(context_of(classifier))


def test_lambda_one_is_the_training_without_it_bit_for_bit():
    plain, alone = train_one("dropout", epochs=1)
    ours, with_it = train_one("dropout", epochs=1, regularizers=[HCS(lam=1.0)])
    other, _ = train_one("dropout", epochs=1, regularizers=[HCS(lam=0.8)])
    assert same_bits(plain, ours) and not same_bits(plain, other)
    assert with_it.history[-1].terms["hcs/cka"] == 0
    assert with_it.history[-1].terms["loss"] == alone.history[-1].terms["loss"]


def test_lambda_zero_trains_no_head_and_is_refused_by_the_plan():
    assert "above 0" in HCS(lam=0.0).conflicts(Mock(images_at_once=8))
    assert HCS(lam=0.1).conflicts(Mock(images_at_once=8)) is None


def test_lambda_zero_is_the_similarity_alone():
    _, result = train_one("dropout", regularizers=[HCS(lam=0.0)])
    terms = result.history[-1].terms
    assert terms["loss"] == pytest.approx(terms["hcs/cka"], rel=1e-6) and terms["task"] > 0


@pytest.mark.parametrize("constant", [False, True])
def test_equal_features_are_warned_about_once(constant):
    classifier = small_classifier("cnn")
    regularizer, update = attached(classifier, lam=0.5), StepUpdate(classifier, {})
    features = torch.ones(6, 8) * 3.3 if constant else torch.rand(6, 8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            term = regularizer.loss(context_of(classifier, features=features))["cka"]
            regularizer.after_step(update)
    assert [("same features" in str(each.message)) for each in caught] == ([True] if constant else [])
    assert (term.item() == 0.5) == constant


def test_a_broken_part_of_a_step_is_warned_about_too():
    classifier = small_classifier("cnn")
    regularizer = attached(classifier)
    for features in (torch.ones(6, 8), torch.rand(6, 8)):
        regularizer.loss(context_of(classifier, features=features))
    with pytest.warns(UserWarning, match="same features"):
        regularizer.after_step(StepUpdate(classifier, {}))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_is_never_hidden(bad):
    classifier = small_classifier("cnn")
    regularizer = attached(classifier)
    features = torch.rand(6, 8)
    features[1, 2] = bad
    assert regularizer.loss(context_of(classifier, features=features))["cka"].isnan()
    feed = DoubleFeed()
    feed.images[3] = bad
    with pytest.raises(DivergedError):
        train_one("plain", feed=feed, regularizers=[HCS()], precision="64-true")


def test_half_precision_is_computed_in_single():
    classifier = small_classifier("cnn")
    regularizer = attached(classifier)
    moved(classifier)
    context = context_of(classifier)
    half = context_of(classifier, features=context.features.detach().bfloat16())
    same = context_of(classifier, features=half.features.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        term = regularizer.loss(half)["cka"]
    assert term.dtype == torch.float32 and torch.equal(term, regularizer.loss(same)["cka"])


@pytest.mark.parametrize("debiased", [False, True])
def test_a_training_cut_short_ends_with_the_same_bits(debiased, tmp_path):
    def stop(report):
        if report.step == 5:
            raise KeyboardInterrupt

    def common():
        return {"feed": build_feed(), "regularizers": [HCS(debiased=debiased)], "checkpoint_every_steps": 1}

    whole, _ = train_one("dropout", **common())
    with pytest.raises(KeyboardInterrupt):
        train_one("dropout", **common(), checkpoint_folder=tmp_path, on_step=stop)
    resumed, result = train_one("dropout", **common(), checkpoint_folder=tmp_path)
    assert result.resumed and same_bits(whole, resumed)


def test_a_step_is_timed_on_the_images_that_were_looked_at():
    classifier = build_classifier("dropout")
    cost = measure_step(
        classifier,
        build_feed(count=40),
        everything(classifier),
        loss=CrossEntropy(),
        regularizers=[HCS(), DELTA(attention=True)],
        settings=TrainerSettings(epochs=2, batch_size=7, device="cpu"),
        features_are_fixed=False,
    )
    assert cost.seconds_per_image > 0
