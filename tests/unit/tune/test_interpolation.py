"""Networks between two others: exact ends, mixed weights, statistics of BatchNorm estimated literally, alpha picked on val."""

import copy
import inspect

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import update_bn

from crossgraft.data import dataset_from_arrays
from crossgraft.errors import UsageError
from crossgraft.geometry.batch_norm import with_estimated_statistics
from crossgraft.geometry.parameter_distance import parameter_distance
from crossgraft.interpolate import interpolation
from crossgraft.interpolate.interpolation import interpolate, interpolation_curve, moved_batch_norms, pick_alpha, with_body_of
from crossgraft.interpolate.record import InterpolationPoint
from crossgraft.metrics import auc
from crossgraft.metrics.record import MetricRecord
from crossgraft.seeding import torch_generator
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.drift import Compared, similarity_to_source
from crossgraft.tune.parts import FoldRows
from support.small_classifiers import SIZE, small_classifier, wrap

NAMES = ("cnn", "dropout", "vit", "convnext")


def squares(n=90):
    """Noise whose brightness tells one of three classes, class by class as in folders."""
    labels = np.sort(np.arange(n) % 3)
    noise = np.random.default_rng(0).integers(0, 120, (n, SIZE, SIZE, 3))
    return dataset_from_arrays((noise + 60 * labels[:, None, None, None]).astype(np.uint8), labels)


def moved(name, *, seed=1, scale=0.3):
    """The same network after all its floating tensors were moved, and its whole numbers, too."""
    network = small_classifier(name)
    draw = torch.Generator().manual_seed(seed)
    state = network.state_dict()
    for key, value in state.items():
        noise = scale * torch.randn(value.shape, generator=draw)
        state[key] = value + noise.abs() if value.is_floating_point() else value + 7
    network.load_state_dict(state)
    return network


def images_of(dataset, classifier):
    return TrainingImages(dataset, classifier.preprocessing)


@pytest.mark.parametrize("name", NAMES)
def test_the_ends_are_those_given_bit_for_bit_and_stay_as_they_were(name):
    start, end = small_classifier(name), moved(name)
    before = [copy.deepcopy(network.state_dict()) for network in (start, end)]
    for alpha, network in ((0, start), (1, end)):
        found = interpolate(start, end, alpha)
        assert all(torch.equal(found.state_dict()[key], value) for key, value in network.state_dict().items())
        assert found is not network
        assert not any(module.training for module in found.modules())
        with torch.no_grad():
            found.head.weight.add_(1)
    interpolate(start, end, 0.3, images=images_of(squares(), start))
    for network, state in zip((start, end), before, strict=True):
        assert all(torch.equal(network.state_dict()[key], value) for key, value in state.items())


@pytest.mark.parametrize("batch_norm", ["estimate", "mix"])
@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_the_mixture_and_whole_numbers_are_those_of_the_end(name, batch_norm):
    start, end = small_classifier(name), moved(name)
    found = interpolate(start, end, 0.3, images=images_of(squares(), start), batch_norm=batch_norm).state_dict()
    for key, after in end.state_dict().items():
        before = start.state_dict()[key]
        if not after.is_floating_point():
            assert torch.equal(found[key], after)
            assert not torch.equal(before, after)
        elif batch_norm == "mix" or "running" not in key:
            expected = 0.7 * before.double() + 0.3 * after.double()
            torch.testing.assert_close(found[key], expected.float(), rtol=1e-6, atol=1e-7)


def test_what_both_ends_share_stays_bit_for_bit_even_infinite():
    start = small_classifier("vit")
    with torch.no_grad():
        start.body.cls_token.fill_(0.1)
        start.body.pos_embed[0, 0, 0] = -torch.inf
    end = copy.deepcopy(start)
    with torch.no_grad():
        end.head.weight.add_(1)
    found = interpolate(start, end, 0.37)
    assert torch.equal(found.body.cls_token, start.body.cls_token)
    assert torch.equal(found.body.pos_embed, start.body.pos_embed)
    torch.testing.assert_close(found.head.weight, start.head.weight + 0.37)


def test_statistics_are_the_plain_average_over_batches_of_the_training_images():
    start, end, data = small_classifier("dropout"), moved("dropout"), squares(150)
    found = interpolate(start, end, 0.5, images=images_of(data, start))
    order = torch.randperm(150, generator=torch_generator(0, "statistics of BatchNorm"))
    images = images_of(data, start)
    means, variances = [], []
    with torch.no_grad():
        for rows in (order[:75], order[75:]):
            maps = found.body.stem(images.normalise(images.read(rows)))
            means.append(maps.mean((0, 2, 3)))
            variances.append(maps.var((0, 2, 3)))
    torch.testing.assert_close(found.body.norm.running_mean, torch.stack(means).mean(0), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.body.norm.running_var, torch.stack(variances).mean(0), rtol=1e-5, atol=1e-6)
    assert found.body.norm.momentum == end.body.norm.momentum == 0.1
    assert torch.equal(found.body.norm.num_batches_tracked, end.body.norm.num_batches_tracked)
    again = interpolate(start, end, 0.5, images=images_of(data, start))
    assert torch.equal(again.body.norm.running_var, found.body.norm.running_var)


class TwoNorms(nn.Module):
    """What the second normalises depends on statistics of the first."""

    def __init__(self):
        super().__init__()
        self.stem, self.first = nn.Conv2d(3, 6, 3, 2), nn.BatchNorm2d(6)
        self.block, self.second = nn.Conv2d(6, 8, 3, 2), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, images):
        maps = torch.relu(self.second(self.block(torch.relu(self.first(self.stem(images))))))
        return self.fc(maps.mean((2, 3)))


def test_it_is_the_literal_recipe_average_the_weights_and_estimate_the_statistics_anew():
    """With torch's own ``update_bn``, which resets all statistics and averages them over batches in train mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        start = wrap(TwoNorms())
    end, images = copy.deepcopy(start), images_of(squares(150), start)
    draw = torch.Generator().manual_seed(1)
    end.load_state_dict(
        {
            name: value + torch.rand(value.shape, generator=draw) if value.is_floating_point() else value
            for name, value in end.state_dict().items()
        }
    )
    found = interpolate(start, end, 0.25, images=images)
    literal = copy.deepcopy(start)
    for name, weight in literal.named_parameters():
        weight.data = 0.75 * start.get_parameter(name).data + 0.25 * end.get_parameter(name).data
    order = torch.randperm(150, generator=torch_generator(0, "statistics of BatchNorm"))
    update_bn([images.normalise(images.read(rows)) for rows in order.split(75)], literal)
    for name, value in literal.state_dict().items():
        if "num_batches" not in name:
            torch.testing.assert_close(found.state_dict()[name], value, rtol=1e-5, atol=1e-5)
    ends = torch.stack([start.body.second.running_var, end.body.second.running_var])
    assert (found.body.second.running_var - torch.lerp(*ends, 0.25)).abs().max() > 0.01


def test_dropout_is_off_and_no_random_state_is_touched():
    start = small_classifier("dropout")
    end, data = copy.deepcopy(start), squares()
    state = torch.get_rng_state()
    seen = []
    end.body.drop.register_forward_hook(lambda module, given, made: seen.append(torch.equal(given[0], made)))
    with torch.no_grad():
        end.body.norm.running_mean.add_(1)
    interpolate(start, end, 0.5, images=images_of(data, start))
    assert seen == [True]
    assert torch.equal(torch.get_rng_state(), state)


def test_statistics_that_never_moved_are_kept_without_any_image():
    start, end = small_classifier("cnn"), small_classifier("cnn")
    with torch.no_grad():
        end.body.stem.weight.add_(1)
    assert moved_batch_norms(start, end) == []
    found = interpolate(start, end, 0.5)
    assert torch.equal(found.body.norm.running_var, start.body.norm.running_var)
    with torch.no_grad():
        end.body.norm.running_var.mul_(2)
    assert moved_batch_norms(start, end) == ["body.norm"]
    with pytest.raises(UsageError, match=r"1 BatchNorm layers have other statistics .* Give the training images"):
        interpolate(start, end, 0.5)


def test_other_networks_alphas_and_words_are_refused():
    start, end = small_classifier("cnn"), small_classifier("vit")
    with pytest.raises(
        UsageError, match=r"not built alike.*body.stem.weight is 6×3×3×3 at the start and missing at the end.*tensors differ"
    ):
        interpolate(start, end, 0.5)
    for alpha in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match="alpha must lie between 0"):
            interpolate(start, start, alpha)
    with pytest.raises(UsageError, match="estimate or mix, not 'none'"):
        inspect.unwrap(interpolate)(start, start, 0.5, batch_norm="none")  # tests check types before
    with pytest.raises(UsageError, match=r"given: none"):
        interpolation_curve(start, start, squares(), parts_of(), alphas=[])


def test_the_pretrained_body_under_the_tuned_head():
    pretrained, end = small_classifier("cnn"), moved("cnn")
    start = with_body_of(end, pretrained)
    assert torch.equal(start.head.weight, end.head.weight)
    assert not torch.equal(start.head.weight, pretrained.head.weight)
    assert all(torch.equal(start.body.state_dict()[k], v) for k, v in pretrained.body.state_dict().items())
    start.body.stem.weight.data.add_(1)
    assert not torch.equal(start.body.stem.weight, end.body.stem.weight)


def parts_of(n=90):
    rows = np.random.default_rng(1).permutation(n)
    return FoldRows(np.sort(rows[:50]), np.sort(rows[50:70]), np.sort(rows[70:]))


def test_the_curve_measures_each_network_as_it_is():
    start, end, data, parts = small_classifier("cnn"), moved("cnn", scale=0.1), squares(), parts_of()
    said = []
    record = interpolation_curve(start, end, data, parts, alphas=[1, 0.5, 0, 0.5], on_point=said.append)
    assert [point.alpha for point in record.points] == [0, 0.5, 1]
    middle, temperature = record.points[1], said[1].temperature.value or 1.0
    network = interpolate(start, end, 0.5, images=images_of(data.take(parts.train), start))
    images = images_of(data.take(parts.test), start)
    with torch.no_grad():
        logits = network(images.normalise(images.read(torch.arange(len(images)))))
    found = middle.metric("auc")
    assert found.value == pytest.approx(auc((logits.double() / temperature).softmax(1).numpy(), data.labels[parts.test]).value)
    assert found.low <= found.value <= found.high
    assert (found.num_images, middle.metric("auc", split="val").num_images) == (20, 20)
    distance = parameter_distance(end, start).l2
    squares_of = [
        float((after - before).detach().square().sum())
        for before, after in zip(start.body.parameters(), end.body.parameters(), strict=True)
    ]
    assert distance == pytest.approx(np.sqrt(sum(squares_of)), rel=1e-5)
    assert [point.parameter_distance for point in record.points] == pytest.approx([0, distance / 2, distance])
    assert {name: record.points[0].similarity[name] for name in ("cka", "cka_debiased")} == pytest.approx(
        {"cka": 1, "cka_debiased": 1}
    )
    assert record.points[2].similarity["cka"] < 0.999
    assert (record.num_batch_norms, record.batch_norm) == (1, "estimate")


def test_features_and_weights_are_compared_with_the_pretrained_network_that_is_given():
    start, end, data, parts = moved("vit", scale=0.1), moved("vit"), squares(), parts_of()
    pretrained = small_classifier("vit")
    (first,) = interpolation_curve(start, end, data, parts, pretrained=pretrained, alphas=[0]).points
    compared = [Compared(start, parts.test, pretrained)]
    expected = similarity_to_source(compared, data, device="cpu", num_threads=1)
    assert first.similarity == pytest.approx(expected)
    assert first.similarity["cka"] < 0.999
    assert first.parameter_distance == pytest.approx(parameter_distance(start, pretrained).l2)
    assert first.parameter_distance > 1


def test_batch_norm_adds_what_its_statistics_do_which_are_estimated_once(monkeypatch):
    start, end, data, parts = small_classifier("cnn"), moved("cnn", scale=0.1), squares(), parts_of()
    images = images_of(data.take(parts.train), start)
    adapted = with_estimated_statistics(start, images, device="cpu")
    asked = []

    def counted(*given, **options):
        asked.append(given)
        return with_estimated_statistics(*given, **options)

    monkeypatch.setattr(interpolation, "with_estimated_statistics", counted)
    points = interpolation_curve(start, end, data, parts, alphas=[0, 0.5, 1]).points
    assert len(asked) == 1
    for point in points:
        network = interpolate(start, end, point.alpha, images=images)
        compared = [Compared(network, parts.test, start, adapted)]
        expected = similarity_to_source(compared, data, device="cpu", num_threads=1)
        assert point.similarity == pytest.approx(expected)
    assert points[0].similarity["cka_debiased_adapted"] == pytest.approx(points[0].similarity["cka_debiased_untouched"])
    plain = interpolation_curve(small_classifier("vit"), moved("vit", scale=0.1), data, parts, alphas=[1]).points[0]
    assert set(plain.similarity) == {"cka", "cka_debiased"}


def test_test_rows_decide_nothing():
    start, end, data, parts = small_classifier("vit"), moved("vit", scale=0.1), squares(), parts_of()
    first = interpolation_curve(start, end, data, parts, alphas=[0, 0.5, 1])
    labels = data.labels.copy()
    labels[parts.test] = (labels[parts.test] + 1) % 3
    pixels = [data.read(row) for row in range(90)]
    poisoned = interpolation_curve(start, end, dataset_from_arrays(pixels, labels), parts, alphas=[0, 0.5, 1])
    assert poisoned.picked_alpha == first.picked_alpha
    for one, other in zip(first.points, poisoned.points, strict=True):
        of_val = [[row for row in point.metrics if row.split == "val"] for point in (one, other)]
        assert of_val[0] == of_val[1]
        assert one.metric("auc") != other.metric("auc")


def point(alpha, value, *, test=0.5, higher=True):
    known = {"metric": "m", "title": "M", "low": None, "high": None, "num_images": 9, "higher_is_better": higher}
    rows = [MetricRecord(**known, num_groups=None, split=split, value=v) for split, v in (("test", test), ("val", value))]
    return InterpolationPoint(alpha=alpha, metrics=rows, similarity={}, parameter_distance=0)


def test_of_equal_values_on_val_the_smallest_alpha_is_picked():
    points = [point(1.0, 0.9, test=0.1), point(0.2, 0.9), point(0.0, 0.8, test=0.99)]
    assert pick_alpha(points, "m")[0] == 0.2
    assert pick_alpha([point(0.0, 0.3, higher=False), point(0.5, 0.1, higher=False)], "m")[0] == 0.5
    assert pick_alpha([point(0.0, None), point(1.0, 0.2)], "m")[0] == 1.0
    assert pick_alpha([point(0.0, None)], "m") == (None, "no alpha was picked: val has no rows, or the metric has no value there")
