"""A step follows the gradient that its docstring states, and stops before a number that is none spreads."""

import math
from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from crossgraft.errors import DivergedError
from crossgraft.losses import CrossEntropy, Focal
from crossgraft.tune.engine.launch import make_fabric
from crossgraft.tune.engine.optimizers import make_optimizer
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import Network, TrainingStep, apply_modes, apply_selection, refuse_non_finite, step_randomness
from support.training import DoubleFeed, PullToStart, build_classifier, everything, largest_difference


class HalfTask(PullToStart):
    """Weighs the task, and looks at a term that is a mean over images."""

    task_weight = 0.25

    def loss(self, context):
        return {**super().loss(context), "spread": context.features.pow(2).sum(1).mean()}


def build(name="plain", *, loss=None, regularizers=(), **settings):
    """Classifier in float64 and its step."""
    said = {
        "device": "cpu",
        "precision": "64-true",
        "learning_rate": 0.1,
        "optimizer": "sgd",
        "momentum": 0.0,
        "weight_decay": 0.0,
    }
    settings = TrainerSettings(**{**said, **settings})
    fabric, classifier = make_fabric(settings), build_classifier(name).double()
    for regularizer in regularizers:
        regularizer.attach(classifier)
    selection = everything(classifier)
    apply_selection(classifier, selection)
    apply_modes(classifier, selection)
    named = make_optimizer(classifier, selection, regularizers, settings)
    network, optimizer = fabric.setup(Network(classifier, regularizers), named.optimizer)
    parts = {"named": named, "classifier": classifier, "loss": loss or CrossEntropy(), "regularizers": regularizers}
    return classifier, TrainingStep(fabric, network, optimizer, settings=settings, **parts)


def the_batch(size=7):
    return next(iter(DoubleFeed(size).batches(0)))


def test_a_step_of_plain_descent_by_hand():
    start, (classifier, step) = build_classifier("plain").double(), build(loss=Focal(2.0))
    terms = step.run(the_batch(), 0).numbers
    loss = Focal(2.0)(start(the_batch().images), the_batch().targets).mean()
    loss.backward()
    with torch.no_grad():
        for parameter in start.parameters():
            parameter -= 0.1 * parameter.grad
    assert largest_difference(start, classifier) < 1e-15
    assert terms == pytest.approx({"loss": float(loss.detach()), "task": float(loss.detach())}, abs=1e-15)


@pytest.mark.parametrize("accumulate", [2, 3, 7, 50])
def test_parts_give_the_gradient_of_the_whole_batch(accumulate):
    whole, step = build(regularizers=[HalfTask()])
    expected = [step.run(the_batch(), k).numbers for k in range(3)]
    parted, step = build(regularizers=[HalfTask()], accumulate=accumulate)
    found = [step.run(the_batch(), k).numbers for k in range(3)]
    assert largest_difference(whole, parted) < 1e-12
    for one, other in zip(expected, found, strict=True):
        assert one == pytest.approx(other, abs=1e-12)
    assert largest_difference(whole, build_classifier("plain").double()) > 1e-3


def test_terms_are_named_and_add_up():
    _, step = build(regularizers=[HalfTask()])
    terms = step.run(the_batch(), 0).numbers
    assert list(terms) == ["loss", "task", "pull/distance", "pull/factor", "pull/spread"]
    assert terms["loss"] == pytest.approx(0.25 * terms["task"] + terms["pull/factor"] + terms["pull/spread"], abs=1e-12)


@pytest.mark.parametrize(("rank", "counts"), [(0, 1), (1, 0)])
def test_a_process_without_a_share_looks_at_an_image_that_counts_nothing(rank, counts):
    _, step = build()
    step.fabric = SimpleNamespace(world_size=2, global_rank=rank, device=torch.device("cpu"))
    (part,) = step._parts(the_batch(1))
    assert len(part.images) == part.num_images_of_all == 1
    assert (part.num_images, part.image_weight, part.term_weight) == (counts, counts, counts)


@pytest.mark.parametrize("accumulate", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("world", [2, 3])
def test_the_same_images_belong_together_whatever_the_number_of_processes(accumulate, world):
    """A covariance of a part, or BatchNorm over all processes, is then of the same images."""

    def parts(world, rank):
        _, step = build(accumulate=accumulate)
        step.fabric = SimpleNamespace(world_size=world, global_rank=rank, device=torch.device("cpu"))
        return step._parts(the_batch())

    for whole, *shares in zip(parts(1, 0), *(parts(world, rank) for rank in range(world)), strict=True):
        counted = [share.places[: share.num_images] for share in shares]
        assert torch.equal(torch.cat(counted), whole.places)
        assert {share.num_images_of_all for share in shares} == {len(whole.places)}
        assert sum(share.term_weight for share in shares) == pytest.approx(whole.term_weight)
        assert all(set(share.places.tolist()) <= set(whole.places.tolist()) for share in shares)


def test_weights_of_the_task_are_multiplied():
    class Tenth(HalfTask):
        name = "tenth"
        task_weight = 0.1

    _, step = build(regularizers=[HalfTask(), Tenth()])
    terms = step.run(the_batch(), 0).numbers
    rest = sum(value for name, value in terms.items() if "/" in name)
    assert terms["loss"] == pytest.approx(0.025 * terms["task"] + rest, abs=1e-12)


def test_every_part_of_every_step_has_random_numbers_of_its_own_for_each_regularizer():
    class Drawing(PullToStart):
        def loss(self, context):
            drawn.append(torch.rand((), generator=context.generator).item())
            return super().loss(context)

    class Other(Drawing):
        name = "other"

    seen = []
    for _ in range(2):
        drawn = []
        _, step = build(regularizers=[Drawing(), Other()], accumulate=2)
        for number in (0, 1):
            step.run(the_batch(), number)
        seen.append(drawn)
    assert seen[0] == seen[1] and len(set(seen[0])) == 8


def test_clipping_bounds_the_whole_gradient():
    start, (classifier, step) = build_classifier("plain").double(), build(clip_norm=0.01)
    step.run(the_batch(), 0)
    moved = [(a - b).detach() for a, b in zip(classifier.parameters(), start.parameters(), strict=True)]
    assert math.sqrt(sum(float((m**2).sum()) for m in moved)) == pytest.approx(0.1 * 0.01, rel=1e-4)


class BrokenTerm(PullToStart):
    def loss(self, context):
        value = float("nan") if context.step == 1 else 0.0
        return {"broken": context.logits.sum() * value}


def test_a_term_that_is_not_finite_stops_by_name_and_moves_nothing():
    classifier, step = build(regularizers=[BrokenTerm()])
    step.run(the_batch(), 0)
    before = {name: value.clone() for name, value in classifier.state_dict().items()}
    with pytest.raises(DivergedError, match=r"step 1: pull/broken is nan\. Try a smaller learning rate"):
        step.run(the_batch(), 1)
    assert all(torch.equal(before[name], value) for name, value in classifier.state_dict().items())


def test_a_gradient_that_is_not_finite_stops_where_it_is_clipped():
    classifier, step = build(clip_norm=1.0)
    classifier.head.weight.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(DivergedError, match=r"norm of the gradient is (inf|nan)"):
        step.run(the_batch(), 0)
    assert largest_difference(classifier, build_classifier("plain").double()) == 0


def test_the_sum_is_named_only_when_no_term_is_broken():
    with pytest.raises(DivergedError, match="step 3: loss is inf"):
        refuse_non_finite({"loss": math.inf, "task": 1.0}, 3)
    refuse_non_finite({"loss": 1e300}, 3)


def test_dropout_draws_from_its_own_stream_and_leaves_the_global_one():
    drop, ones, cpu = nn.Dropout(0.5), torch.ones(100), torch.device("cpu")

    def draw(*names):
        with step_randomness(*names, cpu):
            return drop(ones)

    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first, again, other_step, other_process = draw(0, 5, 0), draw(0, 5, 0), draw(0, 6, 0), draw(0, 5, 1)
    with suppress(ZeroDivisionError), step_randomness(0, 5, 0, cpu):
        drop(ones) / (1 // 0)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first, again)
    assert not torch.equal(first, other_step) and not torch.equal(first, other_process)


def test_mixed_precision_computes_in_bfloat16_and_keeps_float32_weights():
    classifier, step = build(precision="bf16-mixed")
    classifier.float()
    seen = []
    classifier.body.block.register_forward_hook(lambda _m, _i, output: seen.append(output.dtype))
    terms = step.run(the_batch(), 0).numbers
    assert seen == [torch.bfloat16]
    assert classifier.head.weight.dtype == torch.float32 and math.isfinite(terms["loss"])


class Watching(PullToStart):
    """Notes what it is told before each forward pass."""

    def attach(self, classifier, training_set=None):
        super().attach(classifier, training_set)
        self.started, self.runs = [], 0

    def before_forward(self, start):
        self.started.append((start.places.tolist(), start.batch_size, torch.rand(1, generator=start.generator).item()))

    def loss(self, context):
        self.runs += 1
        assert len(self.started) == self.runs  # once for each forward pass, and before it
        return super().loss(context)


def test_who_watches_layers_is_told_of_each_forward_pass_and_draws_alike_in_all_parts():
    watching = Watching()
    (_, step), batch = build(regularizers=[watching], accumulate=3), the_batch()
    step.run(batch, 0)
    step.run(batch, 1)
    places, sizes, drawn = zip(*watching.started, strict=True)
    whole = list(range(len(batch.rows)))
    assert [place for part in places[:3] for place in part] == whole == [place for part in places[3:] for place in part]
    assert set(sizes) == {len(whole)}
    assert len(set(drawn[:3])) == len(set(drawn[3:])) == 1 and drawn[0] != drawn[3]
