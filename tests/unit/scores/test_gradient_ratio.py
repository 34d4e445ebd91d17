from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from crossgraft.errors import NotApplicable, UnknownNameError, UsageError
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.scores import SCORES, ScoreInputs, gradient_ratio
from crossgraft.scores._gradients import TripletLoss
from crossgraft.types import Preprocessing

GOLDEN = Path(__file__).parents[2] / "golden" / "gradient_ratio.npz"


class GlobalMean(nn.Module):
    def forward(self, maps):
        return maps.mean(dim=(2, 3))


@pytest.fixture(scope="module")
def arrays():
    with np.load(GOLDEN, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def network(arrays):
    layers = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(), GlobalMean(), nn.Linear(16, 12)
    )
    with torch.no_grad():
        for index, number in ((0, 1), (2, 2), (5, 3)):
            layers[index].weight.copy_(torch.tensor(arrays[f"w{number}"]))
            layers[index].bias.copy_(torch.tensor(arrays[f"b{number}"]))
    return layers


def test_a_random_resnet_of_timm_has_a_value_as_a_control_and_none_where_branches_are_closed():
    """The weight of the last norm of each block is 0 when a training begins."""
    spec = ModelSpec("r", "resnet18", "random")
    rng = np.random.default_rng(0)
    images, labels = rng.standard_normal((12, 3, 32, 32)).astype(np.float32), np.arange(12) % 2
    control, start = (load_backbone(spec, image_size=32, for_training=value) for value in (False, True))
    assert gradient_ratio(model=control, images=images, labels=labels, batches=1) > 0
    parts = SCORES.get("nca_gradient").parts(ScoreInputs(features=images[:, 0, 0], labels=labels, model=control, images=images))
    assert parts["gradient_ratio"] > 0
    closed = ScoreInputs(features=images[:, 0, 0], labels=labels, model=start, images=images)
    for score in (SCORES.get("gradient_ratio").evaluate, SCORES.get("nca_gradient").parts):
        with pytest.raises(NotApplicable, match=r"No gradient reaches layer1\.0\.conv1.* multiplied by exactly 0"):
            score(closed)


@pytest.mark.parametrize(("batch_size", "expected"), [(16, 1.488427285), (40, 1.580200944), (96, 1.913593516)])
def test_equals_the_authors_code(arrays, batch_size, expected):
    value = gradient_ratio(network(arrays), arrays["x"], arrays["y"], batch_size=batch_size, order="file")
    assert value == pytest.approx(expected, abs=1e-6)


def test_one_batch_has_the_published_loss_and_norms(arrays):
    parts = gradient_ratio(network(arrays), arrays["x"], arrays["y"], batches=1, order="file").parts
    assert parts["loss"] == pytest.approx(0.11769028, abs=1e-7)
    assert parts["first"] == pytest.approx(0.09698393, abs=1e-7)
    assert parts["second"] == pytest.approx(0.18558782, abs=1e-7)


def test_six_batches_by_default_and_shuffling_moves_it_a_little(arrays):
    in_file_order = gradient_ratio(network(arrays), arrays["x"], arrays["y"], order="file")
    assert in_file_order == pytest.approx(1.488427285, abs=1e-6)
    shuffled = gradient_ratio(network(arrays), arrays["x"], arrays["y"])
    assert shuffled != in_file_order
    assert shuffled == pytest.approx(in_file_order, abs=0.15)


def literal_loss(embedded, labels, margin):
    losses = [
        (embedded[a] - embedded[p]).norm() - (embedded[a] - embedded[n]).norm() + margin
        for a in range(len(labels))
        for p in range(len(labels))
        for n in range(len(labels))
        if a != p and labels[a] == labels[p] and labels[a] != labels[n]
    ]
    above = [loss for loss in losses if loss > 0]
    return torch.stack(above).mean() if above else embedded.sum() * 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.integers(2, 4), st.floats(0, 1), st.booleans())
def test_loss_is_the_mean_over_all_triplets_above_zero(seed, num_classes, margin, normalize):
    rng = np.random.default_rng(seed)
    labels = rng.integers(num_classes, size=9)
    points = torch.tensor(rng.standard_normal((9, 3)), requires_grad=True)
    ours = TripletLoss(margin, normalize).of(points, labels)
    rows = nn.functional.normalize(points, dim=1) if normalize else points
    theirs = literal_loss(rows, labels, margin)
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), abs=1e-9)
    mine, other = (torch.autograd.grad(loss, points)[0] for loss in (ours, theirs))
    torch.testing.assert_close(mine, other, atol=1e-8, rtol=1e-6)


def test_model_is_left_as_it_was(arrays):
    model = network(arrays)
    model[0].weight.requires_grad_(False)
    model.train()
    model[3].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    with torch.inference_mode():
        gradient_ratio(model, arrays["x"], arrays["y"])
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert [part.training for part in model.children()] == [True, True, True, False, True, True]
    assert [layer.weight.requires_grad for layer in (model[0], model[2])] == [False, True]


def test_it_is_left_as_it_was_after_an_error(arrays):
    model = network(arrays).train()
    with pytest.raises(UsageError, match=r"must return features \(n, d\)"):
        gradient_ratio(model[:4], arrays["x"], arrays["y"])
    assert all(part.training for part in model.modules())


@pytest.mark.parametrize("form", ["tensor", "list", "float64"])
def test_images_in_any_form(arrays, form):
    expected = gradient_ratio(network(arrays), arrays["x"], arrays["y"])
    images = {
        "tensor": lambda: torch.tensor(arrays["x"]),
        "list": lambda: list(arrays["x"]),
        "float64": lambda: arrays["x"].astype(np.float64),
    }[form]()
    assert gradient_ratio(network(arrays), images, arrays["y"]) == expected


class WithHead(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.fc = nn.Linear(12, 4)

    def forward(self, images):
        return self.fc(self.body(images))


def test_a_backbone_is_asked_for_what_goes_into_its_head(arrays):
    preprocessing = Preprocessing(16, 16)
    backbone = Backbone(
        WithHead(network(arrays)), name="tiny", architecture="tiny", source="factory", preprocessing=preprocessing, family="tiny"
    )
    value = gradient_ratio(backbone, arrays["x"], arrays["y"], order="file")
    assert value == pytest.approx(1.488427285, abs=1e-6)


def test_layers_by_name(arrays):
    options = {"images": arrays["x"], "labels": arrays["y"]}
    forwards = gradient_ratio(network(arrays), **options, first="0", second="2")
    backwards = gradient_ratio(network(arrays), **options, first="2", second="0")
    assert forwards == gradient_ratio(network(arrays), **options)
    assert backwards == pytest.approx(1 / forwards)
    with pytest.raises(UnknownNameError, match="layer"):
        gradient_ratio(network(arrays), **options, first="conv1")
    with pytest.raises(UsageError, match="has no weight"):
        gradient_ratio(network(arrays), **options, first="1")


def test_batches_of_one_class_are_skipped_and_said(arrays):
    order = np.argsort(arrays["y"], kind="stable")
    images, labels = arrays["x"][order], arrays["y"][order]
    value = gradient_ratio(network(arrays), images, labels, batch_size=32, order="file")
    assert value.parts["batches"] == 3
    value = gradient_ratio(network(arrays), images, labels, batch_size=16, order="file")
    assert "4 of 6 batches" in value.warnings[0]
    with pytest.raises(NotApplicable, match="order='shuffled'"):
        gradient_ratio(network(arrays), images, labels, batch_size=24, order="file")


def test_no_violated_triplet_has_no_ratio(arrays):
    class Separated(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

        def forward(self, images):
            side = images[:, :2, 0, 0]
            return side + 0 * self.two(self.one(images)).mean(dim=(2, 3))[:, :2]

    images = np.zeros((12, 3, 2, 2), dtype=np.float32)
    images[:6, 0], images[6:, 1] = 1, 1
    value = gradient_ratio(Separated(), images, np.repeat([0, 1], 6))
    assert np.isnan(value) and "not defined" in value.warnings[-1]


def test_networks_without_two_convolutions_have_no_value(arrays):
    with pytest.raises(NotApplicable, match="needs two convolutions, and Flatten has 0"):
        gradient_ratio(nn.Flatten(), arrays["x"], arrays["y"])
    with pytest.raises(UsageError, match="Backbone or a torch module"):
        gradient_ratio("resnet18", arrays["x"], arrays["y"])


@pytest.mark.parametrize("options", [{"batches": 0}, {"batch_size": 2}, {"margin": -0.1}])
def test_settings_out_of_range(arrays, options):
    with pytest.raises(UsageError, match=next(iter(options))):
        gradient_ratio(network(arrays), arrays["x"], arrays["y"], **options)


def test_product_with_the_nca_score(arrays):
    score = SCORES.get("nca_gradient")
    features = network(arrays)(torch.tensor(arrays["x"])).detach().numpy()
    given_ = {"features": features, "labels": arrays["y"], "model": network(arrays), "images": arrays["x"]}
    parts = score.parts(**given_, order="file")
    assert parts["gradient_ratio"] == pytest.approx(1.488427285, abs=1e-6)
    assert parts["nca"] == SCORES.get("nca_score")(features=features, labels=arrays["y"])
    assert score(**given_) == 0.25  # a zoo of one: both parts count one half


def test_the_product_takes_the_ratio_that_the_same_inputs_gave(arrays, monkeypatch):
    """A pass of all images is costly; other labels, fewer images and other settings are other passes."""
    from crossgraft.scores import _gradients

    passes, measure = [], _gradients.gradient_norms
    monkeypatch.setattr(_gradients, "gradient_norms", lambda *given: passes.append(given) or measure(*given))
    features = network(arrays)(torch.tensor(arrays["x"])).detach().numpy()
    inputs = ScoreInputs(features=features, labels=arrays["y"], model=network(arrays), images=arrays["x"])
    ratio, product = SCORES.get("gradient_ratio"), SCORES.get("nca_gradient")
    value = ratio.evaluate(inputs, batches=6)
    once = len(passes)
    assert product.parts(inputs)["gradient_ratio"] == value and len(passes) == once
    assert product.parts(inputs, seed=1)["gradient_ratio"] != value and len(passes) > once
    shuffled = np.random.default_rng(0).permutation(arrays["y"])
    for other in (inputs.without([0, 1]), inputs.with_labels(shuffled)):
        fresh = ScoreInputs(features=other.features, labels=other.labels, model=other.model, images=other.images)
        assert product.parts(other) == product.parts(fresh) != product.parts(inputs)


def test_a_large_batch_in_pieces_gives_the_same_value(monkeypatch):
    from crossgraft.scores import _gradients

    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.Flatten())
        images = torch.rand(30, 1, 8, 8).numpy()
    labels = np.arange(30) % 3
    whole = gradient_ratio(model=network, images=images, labels=labels, batches=1)
    most = []
    network.register_forward_hook(lambda _network, inputs, _output: most.append(len(inputs[0])))
    monkeypatch.setattr(_gradients, "IMAGES_AT_ONCE", 7)
    pieces = gradient_ratio(model=network, images=list(images), labels=labels, batches=1)
    assert max(most) == 7
    assert float(pieces) == pytest.approx(float(whole), rel=1e-5)
    assert pieces.parts == pytest.approx(whole.parts, rel=1e-5)
