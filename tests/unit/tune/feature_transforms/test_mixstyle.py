"""MixStyle is what its authors released, in training alone, and leaves nothing behind."""

import copy
import pickle

import pytest
import torch

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.tune.feature_transforms import MixStyle, TransformStart
from crossgraft.tune.feature_transforms.mixstyle import mixed, partners_across
from support.training import DoubleFeed, build_classifier, largest_difference, only_head, same_bits, train_one


def start_of(batch_size, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return TransformStart(generator, torch.arange(batch_size), batch_size, batch_size)


def literal(x, lmda, perm):
    """As released (KaiyangZhou/mixstyle-release), with the numbers given."""
    mu = x.mean(dim=[2, 3], keepdim=True)
    var = x.var(dim=[2, 3], keepdim=True)
    sig = (var + 1e-6).sqrt()
    mu, sig = mu.detach(), sig.detach()
    x_normed = (x - mu) / sig
    lmda = lmda[:, None, None, None]
    mu2, sig2 = mu[perm], sig[perm]
    return x_normed * (sig * lmda + sig2 * (1 - lmda)) + mu * lmda + mu2 * (1 - lmda)


def test_maps_and_gradients_are_those_of_the_released_code():
    generator = torch.Generator().manual_seed(0)
    maps = torch.randn(7, 3, 4, 5, generator=generator, dtype=torch.float64).requires_grad_()
    shares, partners = torch.rand(7, generator=generator, dtype=torch.float64), partners_across(7, generator)
    found, expected = mixed(maps, shares, partners, start_of(7)), literal(maps, shares, partners)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    weights = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    gradients = [torch.autograd.grad((each * weights).sum(), maps)[0] for each in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("num_images", [2, 6, 7])
def test_partners_of_the_first_half_are_in_the_second(num_images):
    partners = partners_across(num_images, torch.Generator().manual_seed(1))
    assert sorted(partners.tolist()) == list(range(num_images))
    first = -(-num_images // 2)
    assert all(partner >= num_images - first for partner in partners[:first].tolist())
    assert all(partner < num_images - first for partner in partners[first:].tolist())


def outputs(classifier, transform, images, *, seed=0, batch_size=None):
    """Logits of a step."""
    transform.before_forward(start_of(batch_size or len(images), seed=seed))
    logits = classifier(images)
    transform.after_forward()
    return logits


@pytest.fixture
def images():
    return torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_it_acts_in_the_forward_pass_of_a_step_alone(images):
    classifier, transform = build_classifier("plain").double().eval(), MixStyle(p=1.0, alpha=1.0)
    plain = classifier(images)
    transform.attach(classifier)
    assert torch.equal(classifier(images), plain)
    first, again, other = (outputs(classifier, transform, images, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other) and not torch.allclose(first, plain)
    assert torch.equal(classifier(images), plain)
    transform.detach()
    assert torch.equal(outputs(classifier, transform, images), plain)
    assert not any(module._forward_hooks for module in classifier.modules())


def test_a_layer_mixes_with_its_probability(images):
    classifier, transform = build_classifier("plain").double().eval(), MixStyle(p=0.3, alpha=1.0, layers="stem")
    plain = classifier(images)
    transform.attach(classifier)
    with torch.no_grad():
        share = sum(not torch.equal(outputs(classifier, transform, images, seed=s), plain) for s in range(200)) / 200
    assert 0.2 < share < 0.4  # standard error 0.032


def test_layers_are_the_ends_of_the_first_stages_or_named():
    classifier, transform = build_classifier("convnext").train(), MixStyle()
    transform.attach(classifier)
    assert transform.findings() == ["MixStyle mixes styles behind stages.0.blocks.0 and stages.1.blocks.0."]
    assert all(module.training for module in classifier.modules())  # as it was
    named = MixStyle(layers="stages.2.blocks.0+body.stem")
    named.attach(classifier)
    assert named.findings() == ["MixStyle mixes styles behind stages.2.blocks.0 and stem."]
    with pytest.raises(UnknownNameError, match=r"stages\.9"):
        MixStyle(layers="stages.9").attach(classifier)


def test_a_network_of_tokens_has_no_style(images):
    classifier = build_classifier("vit")
    with pytest.raises(UsageError, match="finds no feature map in vit"):
        MixStyle().attach(classifier)
    transform = MixStyle(p=1.0, layers="blocks.0")
    transform.attach(classifier)
    with pytest.raises(UsageError, match=r"a layer of it gives \(6, 5, 16\)"):
        outputs(classifier, transform, images.float())


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"p": 0.0}, "p must lie above 0"), ({"p": 1.1}, "at most at 1"), ({"alpha": 0.0}, "alpha"), ({"layers": " "}, "is empty")],
)
def test_options_without_a_meaning(changes, says):
    with pytest.raises(UsageError, match=says):
        MixStyle(**changes)


def test_a_trained_network_knows_nothing_of_it(images):
    common = {"feed": DoubleFeed(6, 2), "precision": "64-true", "epochs": 1}
    trained, result = train_one("plain", **common, feature_transforms=[MixStyle(p=1.0, alpha=1.0)])
    without, _ = train_one("plain", **common)
    assert largest_difference(trained, without) > 1e-4
    assert trained.state_dict().keys() == without.state_dict().keys()
    assert set(result.history[0].terms) == {"loss", "task"}
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in trained.modules())
    copies = [copy.deepcopy(trained), pickle.loads(pickle.dumps(trained)), build_classifier("plain").double().eval()]
    copies[-1].load_state_dict(trained.state_dict())
    assert all(torch.equal(each(images), trained(images)) for each in copies)


def test_the_head_alone_is_trained_without_it():
    common = {"epochs": 1, "head_first": True, "head_epochs": 2}
    _, plain = train_one("plain", **common)
    _, mixing = train_one("plain", **common, feature_transforms=[MixStyle(p=1.0, alpha=1.0)])
    of_head, of_all = ([row.terms for row in each.history if row.phase == "head"] for each in (plain, mixing))
    assert of_head == of_all
    assert plain.history[-1].terms != mixing.history[-1].terms


def test_features_that_it_varies_are_not_computed_once():
    found, plain = (
        train_one("plain", selection=only_head, epochs=1, features_are_fixed=True, feature_transforms=transforms)[0]
        for transforms in ([MixStyle(p=1.0, alpha=1.0)], [])
    )
    assert not same_bits(found, plain)


def test_parts_of_a_batch_have_no_partners():
    with pytest.raises(UsageError, match="mixes images of a whole batch"):
        train_one("plain", accumulate=2, feature_transforms=[MixStyle()])
