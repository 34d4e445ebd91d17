"""Objectives are what their papers say, of whatever batch."""

import math

import pytest
import torch

from crossgraft.errors import UsageError
from crossgraft.losses import CrossEntropy, Focal
from crossgraft.tune.objectives import ERM, IRM, GroupDRO, ObjectiveContext, VREx
from support.training import DoubleFeed, build_classifier, largest_difference, train_one


def context_of(logits, targets, domains, *, step=0, loss=None, num_domains=None):
    loss = loss or CrossEntropy()
    domains = torch.as_tensor(domains)
    number = num_domains or int(domains.max()) + 1
    return ObjectiveContext(loss(logits, targets), logits, targets, domains, number, step, loss, torch.Generator())


def drawn(domains, *, seed=0, **changes):
    """A step on noise; soft targets, as after mixing."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(domains), 4, generator=generator, dtype=torch.float64).requires_grad_()
    targets = torch.randn(len(domains), 4, generator=generator, dtype=torch.float64).softmax(1)
    return context_of(logits, targets, domains, **changes)


def literal_irm(context):
    """One domain after the other, as the Transfer Learning Library writes it."""
    penalties = []
    for domain in range(context.num_domains):
        here = context.domains == domain
        logits, targets, gradients = context.logits[here], context.targets[here], []
        for half in (slice(0, None, 2), slice(1, None, 2)):
            scale = torch.ones((), dtype=logits.dtype, requires_grad=True)
            loss = context.loss(logits[half] * scale, targets[half]).mean()
            gradients.append(torch.autograd.grad(loss, scale, create_graph=True)[0])
        penalties.append(gradients[0] * gradients[1])
    return torch.stack(penalties).mean()


def means_of(context):
    return [context.losses[context.domains == domain].mean() for domain in range(context.num_domains)]


@pytest.mark.parametrize("domains", [[0] * 4 + [1] * 4, [0] * 5 + [1] * 3 + [2] * 2, [2, 0, 1, 0, 2, 1, 1, 0]])
@pytest.mark.parametrize("loss", [CrossEntropy(), Focal(2.0)])
def test_irm_is_the_product_of_gradients_on_the_halves_of_each_domain(domains, loss):
    context = drawn(domains, loss=loss)
    terms, expected = IRM()(context), literal_irm(context)
    torch.testing.assert_close(terms["penalty"], expected, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(terms["risk"], torch.stack(means_of(context)).mean(), rtol=1e-12, atol=0)
    found, wanted = (torch.autograd.grad(each, context.logits, retain_graph=True)[0] for each in (terms["penalty"], expected))
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-14)


def test_vrex_is_the_population_variance_of_the_domains_losses():
    context = drawn([0, 0, 1, 1, 1, 2])
    terms, losses = VREx(weight=3.0, anneal_steps=0)(context), torch.stack(means_of(context))
    torch.testing.assert_close(terms["risk"], losses.mean(), rtol=1e-12, atol=0)
    torch.testing.assert_close(terms["penalty"], 3 * losses.var(correction=0), rtol=1e-12, atol=0)


def test_a_domain_that_a_batch_lacks_counts_nothing():
    with_all, without = drawn([0, 0, 1, 1]), drawn([0, 0, 2, 2], num_domains=4)
    for objective in (IRM(), VREx()):
        first, second = objective(with_all), objective(without)
        for name in first:
            torch.testing.assert_close(first[name], second[name], rtol=1e-12, atol=0)


def test_a_domain_with_one_image_has_no_halves_and_no_penalty():
    one = drawn([0, 0, 0, 1])
    alone = context_of(one.logits[:3], one.targets[:3], [0, 0, 0])
    assert IRM()(one)["penalty"].item() == pytest.approx(literal_irm(alone).item() / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("objective", "later"), [(IRM(weight=7.0, anneal_steps=3), 7.0), (VREx(weight=0.5, anneal_steps=3), 0.5)]
)
def test_the_weight_jumps_once_and_the_optimiser_begins_anew_there(objective, later):
    penalties = [objective(drawn([0, 0, 1, 1], step=step))["penalty"].item() for step in range(5)]
    assert penalties == pytest.approx([penalties[0]] * 3 + [later * penalties[0]] * 2)
    assert objective.restarts_optimizer_at == 3
    assert type(objective)(anneal_steps=0).restarts_optimizer_at is None


@pytest.mark.parametrize("groups", ["domains", "domains_and_classes"])
def test_group_dro_is_algorithm_1(groups):
    """Groups one after the other, in plain numbers."""
    objective = GroupDRO(eta=0.3, groups=groups)
    objective.attach(num_domains=2, num_classes=4)
    number = 2 if groups == "domains" else 8
    weights = [1 / number] * number
    for step in range(4):
        context = drawn([0, 0, 0, 1, 1, 1], seed=step)
        classes = context.targets.argmax(1).tolist()
        members = [d if groups == "domains" else 4 * d + c for d, c in zip(context.domains.tolist(), classes, strict=True)]
        losses = []
        for group in range(number):
            of_group = [loss.item() for loss, member in zip(context.losses, members, strict=True) if member == group]
            losses.append(sum(of_group) / len(of_group) if of_group else 0.0)
        weights = [weight * math.exp(0.3 * loss) for weight, loss in zip(weights, losses, strict=True)]
        weights = [weight / sum(weights) for weight in weights]
        found = objective(context)["risk"]
        assert found.item() == pytest.approx(sum(w * loss for w, loss in zip(weights, losses, strict=True)), rel=1e-12)
        assert objective.weights.tolist() == pytest.approx(weights, rel=1e-12)
        assert not objective.weights.requires_grad


def test_weights_of_groups_go_on_from_a_checkpoint_and_begin_anew_when_attached():
    first, second = GroupDRO(eta=1.0), GroupDRO(eta=1.0)
    for each in (first, second):
        each.attach(num_domains=2, num_classes=4)
    first(drawn([0, 0, 1, 1]))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(drawn([0, 1], seed=1))["risk"], second(drawn([0, 1], seed=1))["risk"])
    first.attach(num_domains=2, num_classes=4)
    assert first.weights.tolist() == pytest.approx([0.5, 0.5])


def test_a_hard_group_gets_the_weight_and_never_all_of_it_at_once():
    objective = GroupDRO(eta=0.1)
    objective.attach(num_domains=2, num_classes=2)
    logits = torch.tensor([[5.0, 0.0], [0.0, 5.0]], dtype=torch.float64)
    targets = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    shares = []
    for _ in range(20):
        objective(context_of(logits, targets, [0, 1]))
        shares.append(objective.weights[1].item())
    assert shares == sorted(shares) and 0.5 < shares[0] < 0.7 and shares[-1] > 0.99


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: IRM(weight=-1.0), "irm: weight must be at least 0"),
        (lambda: VREx(weight=math.inf), "vrex: weight must be at least 0"),
        (lambda: IRM(anneal_steps=-1), "anneal_steps must be at least 0"),
        (lambda: GroupDRO(eta=0.0), "eta must be above 0"),
    ],
)
def test_options_without_a_meaning(make, says):
    with pytest.raises(UsageError, match=says):
        make()


def test_erm_is_the_mean_and_leaves_every_bit():
    context = drawn([0, 1, 1, 0])
    assert torch.equal(ERM()(context)["risk"], context.losses.mean())
    plain, named = train_one("dropout", epochs=1), train_one("dropout", epochs=1, objective=ERM(), num_domains=1)
    assert largest_difference(plain[0], named[0]) == 0


def test_terms_are_logged_and_add_up_beside_the_plain_mean():
    _, result = train_one("plain", feed=DoubleFeed(6, 2), precision="64-true", epochs=1, objective=VREx(), num_domains=2)
    terms = result.history[0].terms
    assert list(terms) == ["loss", "task", "vrex/risk", "vrex/penalty"]
    assert terms["loss"] == pytest.approx(terms["vrex/risk"] + terms["vrex/penalty"], rel=1e-12)
    assert terms["task"] == pytest.approx(terms["vrex/risk"], rel=1e-12)  # domains are alike in size


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"accumulate": 2, "num_domains": 2}, "looks at a whole batch at once"), ({"num_domains": 1}, "compares domains")],
)
def test_what_an_objective_cannot_be_trained_with(changes, says):
    with pytest.raises(UsageError, match=says):
        train_one("plain", feed=DoubleFeed(6, 2), precision="64-true", objective=IRM(), **changes)


def test_moments_of_the_optimiser_are_forgotten_where_the_weight_jumps():
    """With weight 1 nothing but that changes: an AdamW that begins anew makes a step of full size."""
    common = {"feed": DoubleFeed(6, 2), "precision": "64-true", "epochs": 2, "num_domains": 2}
    never, at_four = (train_one("plain", **common, objective=IRM(anneal_steps=steps))[0] for steps in (0, 4))
    behind = train_one("plain", **common, objective=IRM(anneal_steps=6))[0]
    assert largest_difference(never, behind) == 0
    assert largest_difference(never, at_four) > 1e-6
    assert largest_difference(never, build_classifier("plain").double()) > 1e-3
