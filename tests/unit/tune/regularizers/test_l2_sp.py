"""L2-SP: the pull to the starting point and of the head to zero."""

import pytest
import torch

from crossgraft.choice import choose, spell
from crossgraft.errors import UsageError
from crossgraft.losses import CrossEntropy
from crossgraft.tune.engine.step import apply_selection
from crossgraft.tune.methods import Linear, Partial
from crossgraft.tune.regularizers import L2SP, REGULARIZERS, Regularizer, StepContext, StepUpdate
from support.small_classifiers import small_classifier
from support.training import DoubleFeed, build_classifier, largest_difference, only_head, train_one


def context_of(classifier, images=None):
    images = torch.rand(2, 3, 32, 32) if images is None else images
    features, logits = classifier.features_and_logits(images)
    return StepContext(
        classifier=classifier,
        images=images,
        targets=torch.eye(3)[:2],
        rows=torch.arange(2),
        features=features,
        logits=logits,
        step=0,
        num_processes=1,
        generator=torch.Generator(),
        num_images=2,
        num_images_of_all=2,
    )


def moved(classifier, by=0.5):
    with torch.no_grad():
        for parameter in classifier.parameters():
            parameter.add_(by)
    return classifier


def count(classifier, prefix):
    return sum(p.numel() for name, p in classifier.named_parameters() if name.startswith(prefix))


def test_it_is_a_regularizer():
    assert isinstance(L2SP(), Regularizer)
    assert REGULARIZERS.get("l2_sp") is L2SP
    assert choose(REGULARIZERS, "l2_sp") == L2SP(alpha=0.01, beta=0.01)
    assert choose(REGULARIZERS, "l2_sp:0.2,beta=0.3") == L2SP(alpha=0.2, beta=0.3)
    assert spell(L2SP(beta=0.5)) == "l2_sp:beta=0.5"
    assert L2SP().task_weight == 1
    assert L2SP().parameter_groups() == L2SP().modules() == []


def test_both_terms_by_hand():
    classifier = small_classifier("cnn").double()
    regularizer = L2SP(alpha=0.2, beta=0.6)
    regularizer.attach(classifier)
    at_start = regularizer.loss(context_of(classifier, torch.rand(2, 3, 32, 32, dtype=torch.float64)))
    assert at_start["body"] == 0
    head = torch.cat([p.detach().flatten() for p in classifier.head.parameters()])
    assert at_start["head"].item() == pytest.approx(0.3 * (head**2).sum().item(), rel=1e-12)
    moved(classifier, 0.5)  # clones stay behind
    terms = regularizer.loss(context_of(classifier, torch.rand(2, 3, 32, 32, dtype=torch.float64)))
    assert terms["body"].item() == pytest.approx(0.1 * 0.25 * count(classifier, "body."), rel=1e-12)
    assert terms["head"].item() == pytest.approx(0.3 * ((head + 0.5) ** 2).sum().item(), rel=1e-12)


def test_gradients_are_those_of_the_formula():
    classifier = small_classifier("cnn").double()
    regularizer = L2SP(alpha=0.2, beta=0.6)
    regularizer.attach(classifier)
    moved(classifier, 0.5)
    context = context_of(classifier, torch.rand(2, 3, 32, 32, dtype=torch.float64))
    sum(regularizer.loss(context).values()).backward()
    for name, parameter in classifier.named_parameters():
        expected = 0.6 * parameter if name.startswith("head.") else torch.full_like(parameter, 0.1)
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-12, atol=1e-12)


def test_only_what_is_trained_counts():
    classifier = small_classifier("vit")
    regularizer = L2SP(alpha=2.0, beta=0.0)
    regularizer.attach(classifier)
    moved(classifier, 1.0)
    selection = Partial(names="blocks.1").select(classifier)
    apply_selection(classifier, selection)
    terms = regularizer.loss(context_of(classifier))
    assert terms["body"].item() == pytest.approx(count(classifier, "body.blocks.1."), rel=1e-5)
    assert terms["head"] == 0
    apply_selection(classifier, Linear().select(classifier))
    assert regularizer.loss(context_of(classifier))["body"] == 0


def test_a_head_trained_first_does_not_move_the_starting_point():
    classifier = small_classifier("cnn")
    apply_selection(classifier, Linear().select(classifier))
    regularizer = L2SP(alpha=2.0)
    regularizer.attach(classifier)
    moved(classifier, 1.0)
    for parameter in classifier.parameters():
        parameter.requires_grad_(True)
    terms = regularizer.loss(context_of(classifier))
    assert terms["body"].item() == pytest.approx(count(classifier, "body."), rel=1e-5)


def test_a_resumed_run_starts_where_the_first_did():
    classifier = small_classifier("cnn")
    first = L2SP()
    first.attach(classifier)
    state = {name: tensor.clone() for name, tensor in first.state_dict().items()}
    moved(classifier)
    expected = first.loss(context_of(classifier))
    second = L2SP()
    second.attach(classifier)  # too late: the weights have moved
    assert second.loss(context_of(classifier))["body"] == 0
    second.load_state_dict(state)
    assert second.loss(context_of(classifier)) == expected
    for tensor in state.values():
        tensor.zero_()
    assert second.loss(context_of(classifier)) == expected
    with pytest.raises(UsageError, match="another network"):
        second.load_state_dict({"body.other": torch.zeros(1)})


def test_without_a_starting_point_it_says_so():
    classifier = small_classifier("cnn")
    regularizer = L2SP()
    with pytest.raises(UsageError, match="attach"):
        regularizer.loss(context_of(classifier))
    regularizer.attach(classifier)
    regularizer.detach()
    assert regularizer.state_dict() == {}
    with pytest.raises(UsageError, match="attach"):
        regularizer.loss(context_of(classifier))


@pytest.mark.parametrize("option", ["alpha", "beta"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_strengths_are_finite_and_not_negative(option, value):
    with pytest.raises(UsageError, match=f"{option} of l2_sp"):
        L2SP(**{option: value})


def test_decoupled_pulls_each_weight_by_the_share_of_its_learning_rate():
    classifier = small_classifier("cnn").double()
    regularizer = L2SP(alpha=0.3, beta=0.7, decoupled=True)
    regularizer.attach(classifier)
    start = {name: weight.detach().clone() for name, weight in classifier.named_parameters()}
    moved(classifier, 0.5)
    classifier.body.stem.weight.requires_grad_(False)
    names = [name for name, weight in classifier.named_parameters() if weight.requires_grad]
    rates = {name: 0.01 * (1 + place % 3) for place, name in enumerate(names)}
    before = {name: weight.detach().clone() for name, weight in classifier.named_parameters()}
    regularizer.after_step(StepUpdate(classifier, rates))
    for name, weight in classifier.named_parameters():
        rate = rates.get(name, 0.0)
        for now, was, first in zip(*(x.flatten().tolist() for x in (weight, before[name], start[name])), strict=True):
            pull = 0.7 * was if name.startswith("head.") else 0.3 * (was - first)
            assert now == pytest.approx(was - rate * pull, rel=1e-13, abs=1e-15)
    assert torch.equal(before["body.stem.weight"], classifier.body.stem.weight)
    assert all(weight.grad is None and weight.grad_fn is None for weight in classifier.parameters())


def test_decoupled_logs_the_same_terms_without_a_graph():
    classifier = small_classifier("cnn")
    coupled, decoupled = L2SP(), L2SP(decoupled=True)
    for regularizer in (coupled, decoupled):
        regularizer.attach(classifier)
    moved(classifier)
    context = context_of(classifier)
    terms = decoupled.loss(context)
    assert terms == coupled.loss(context) and terms["body"] > 0
    assert not any(term.requires_grad for term in terms.values())
    before = {name: weight.clone() for name, weight in classifier.state_dict().items()}
    coupled.after_step(StepUpdate(classifier, dict.fromkeys(before, 0.1)))
    assert all(torch.equal(weight, before[name]) for name, weight in classifier.state_dict().items())


def sgd(regularizers, rate, **changes):
    common = {"optimizer": "sgd", "momentum": 0.0, "weight_decay": 0.0, "warmup_epochs": 0.0, "precision": "64-true"}
    facts = {**common, "epochs": 1, "schedule": "constant", "learning_rate": rate, "feed": DoubleFeed(7), **changes}
    return train_one("plain", regularizers=regularizers, **facts)[0]


def test_decoupled_is_the_loss_to_first_order_of_the_learning_rate():
    both = {"alpha": 0.5, "beta": 0.3}
    apart = [largest_difference(sgd([L2SP(**both)], rate), sgd([L2SP(**both, decoupled=True)], rate)) for rate in (1e-2, 1e-3)]
    plain = largest_difference(sgd([L2SP(**both)], 1e-3), sgd([], 1e-3))
    assert 50 < apart[0] / apart[1] < 200  # of second order: a tenth of the rate, a hundredth of the difference
    assert apart[1] < 0.02 * plain


def test_decoupled_moves_nothing_that_is_frozen():
    start = build_classifier("plain").double()
    trained = sgd([L2SP(alpha=0.5, beta=0.5, decoupled=True)], 0.1, selection=only_head)
    for name, weight in trained.named_parameters():
        assert torch.equal(weight, dict(start.named_parameters())[name]) == name.startswith("body.")


def test_decoupled_in_a_training_is_the_literal_loop_over_weights():
    """Each step: plain descent on the loss of the task, then w ← w − lr α (w − w⁰), of the head w ← w − lr β w."""
    rate, alpha, beta, feed = 0.05, 0.4, 0.7, DoubleFeed(7)
    literal = build_classifier("plain").double().train()
    start = {name: weight.detach().clone() for name, weight in literal.named_parameters()}
    for batch in feed.batches(0):
        literal.zero_grad()
        CrossEntropy()(literal(batch.images), batch.targets).mean().backward()
        with torch.no_grad():
            for name, weight in literal.named_parameters():
                weight -= rate * weight.grad
                weight -= rate * (beta * weight if name.startswith("head.") else alpha * (weight - start[name]))
    trained = sgd([L2SP(alpha=alpha, beta=beta, decoupled=True)], rate, feed=feed)
    assert largest_difference(trained, literal) < 1e-14 < 1e-4 < largest_difference(trained, sgd([], rate, feed=feed))
