"""Distances of weights: a published value, heads and statistics left out, centres by hand."""

import copy
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.data import dataset_from_arrays
from crossgraft.errors import DataError, UsageError
from crossgraft.geometry import centre_quality, distances_to_centre, parameter_distance, with_body_at_centre
from crossgraft.metrics import balanced_accuracy
from support.small_classifiers import SIZE, small_classifier

GOLDEN = Path(__file__).parents[2] / "golden"


def is_still(before, network):
    """Whether every tensor has the bits that it had."""
    return all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def moved(name, seed, scale=0.1):
    network = small_classifier(name)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(scale * torch.randn(weight.shape, generator=draw))
    return network


def flat(network):
    return torch.cat([each.detach().double().flatten() for each in network.body.parameters()])


def test_it_is_the_length_of_the_difference_without_heads_and_statistics():
    start, end = small_classifier("cnn"), moved("cnn", 1)
    difference = flat(end) - flat(start)
    found = parameter_distance(end, start)
    assert found.l2 == pytest.approx(float(difference.norm()), rel=1e-12)
    assert found.rms == pytest.approx(float(difference.square().mean().sqrt()), rel=1e-12)
    assert found.relative == pytest.approx(float(difference.norm() / flat(start).norm()), rel=1e-12)
    assert found.num_weights == len(difference)
    end.body.norm.running_mean.add_(5)
    with torch.no_grad():
        end.head.weight.add_(5)
    assert parameter_distance(end, start) == found
    assert parameter_distance(start, start).l2 == 0


def test_the_centre_is_the_mean_of_all_runs_and_every_distance_is_from_it():
    start = small_classifier("vit")
    runs = {f"task {seed}": moved("vit", seed) for seed in (1, 2, 3)}
    centre = torch.stack([flat(run) for run in runs.values()]).mean(0)
    found = distances_to_centre(runs, start)
    for name, run in runs.items():
        assert found.to_centre[name].l2 == pytest.approx(float((flat(run) - centre).norm()), rel=1e-12)
        assert found.to_centre[name].relative == pytest.approx(found.to_centre[name].l2 / float(flat(start).norm()))
        assert found.to_start[name] == parameter_distance(run, start)
    assert found.centre_to_start.l2 == pytest.approx(float((centre - flat(start)).norm()), rel=1e-12)
    before = copy.deepcopy(runs["task 1"].state_dict())
    network = with_body_at_centre(runs["task 1"], runs)
    torch.testing.assert_close(flat(network), centre, rtol=1e-6, atol=1e-7)
    assert torch.equal(network.head.weight, runs["task 1"].head.weight)
    assert is_still(before, runs["task 1"])


def test_other_architectures_zero_runs_and_broken_weights_are_refused_by_name():
    with pytest.raises(UsageError, match=r"different architectures: .* is missing in the other|missing"):
        parameter_distance(small_classifier("cnn"), small_classifier("vit"))
    one, other = nn.Sequential(), nn.Sequential()
    one.add_module("stem", nn.Conv2d(3, 4, 3))
    other.add_module("stems", nn.Conv2d(3, 4, 3))
    with pytest.raises(UsageError, match=r"stem.weight is 4×3×3×3 in one and missing in the other .*Nearest there: stems.weight"):
        parameter_distance(one, other)
    for runs, said in (({}, "there are none"), ({"one": one}, "there is one")):
        with pytest.raises(UsageError, match=said):
            distances_to_centre(runs)
    with torch.no_grad():
        one.stem.bias[0] = math.inf
    with pytest.raises(DataError, match=r"stem\.bias holds NaN, infinite"):
        parameter_distance(one, one)


def test_half_the_square_is_the_value_of_the_authors_of_l2_sp():
    values = json.loads((GOLDEN / "l2_sp.json").read_text())["values"]
    arrays = np.load(GOLDEN / "l2_sp.npz")
    networks = []
    for side in ("m0", "m1"):
        network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3)).double()
        network.load_state_dict({key: torch.from_numpy(arrays[f"{side}.{key}"]) for key in network.state_dict()})
        networks.append(network)
    assert parameter_distance(*networks).l2 ** 2 / 2 == pytest.approx(values["start"], rel=1e-12)


@pytest.mark.parametrize("rule", ["estimate", "mix"])
def test_the_centre_is_measured_under_the_head_of_each_task(rule):
    labels = np.sort(np.arange(40) % 3)
    pixels = np.random.default_rng(0).integers(0, 120, (40, SIZE, SIZE, 3)) + 60 * labels[:, None, None, None]
    data = {name: dataset_from_arrays(pixels.astype(np.uint8) // (1 + seed), labels) for seed, name in enumerate(("a", "b"))}
    runs = {"a": moved("cnn", 1, 0.5), "b": moved("cnn", 2, 0.5)}
    same = centre_quality({"a": runs["a"], "b": copy.deepcopy(runs["a"])}, data, batch_norm=rule)
    assert same["a"].own == same["a"].centre and same["a"].accuracy_change.value == 0
    runs["b"].body.norm.running_mean.add_(0.5)
    found = centre_quality(runs, data, train=data, batch_norm=rule)
    if rule == "mix":
        network = with_body_at_centre(runs["b"], runs)
        network.body.norm.running_mean.copy_((runs["a"].body.norm.running_mean + runs["b"].body.norm.running_mean) / 2)
        images = torch.stack([torch.tensor(data["b"].read(row)) for row in range(40)]).permute(0, 3, 1, 2) / 255
        p = network.preprocessing
        images = (images - torch.tensor(p.mean)[:, None, None]) / torch.tensor(p.std)[:, None, None]
        decided = network(images).argmax(1).numpy()
        assert found["b"].centre.value == pytest.approx(balanced_accuracy(decided, labels, class_names=("0", "1", "2")).value)
    else:
        with pytest.raises(UsageError, match="1 BatchNorm layers have other statistics"):
            centre_quality(runs, data)
    with pytest.raises(UsageError, match="no test images of b"):
        centre_quality(runs, {"a": data["a"]})
