"""Training adapters: with every regulariser and batch transform, head first, resumed, saved, compared with themselves off."""

import copy

import pytest
import torch

from crossgraft import fine_tune, predict
from crossgraft.choice import choose
from crossgraft.errors import UsageError
from crossgraft.models.adapted import merged_copy
from crossgraft.models.adapters import adapters_of, without_adapters
from crossgraft.tune.augmentations import Light
from crossgraft.tune.batch_transforms import Mixup
from crossgraft.tune.methods import METHODS
from crossgraft.tune.planning.plan import Plan
from crossgraft.tune.regularizers import REGULARIZERS, _moment_terms, _reference
from crossgraft.tune.saving.saved_model import load_saved_model
from support.training import build_classifier, build_data, build_feed, train_one

ADAPTED = {"lora": ("lora:4,alpha=8", "cnn"), "lora vit": ("lora:2,dropout=0.2", "vit"), "adaptformer": ("adaptformer:3", "vit")}
KEEPERS = [
    "hcs:0.5",
    "hcs:0.5,cache=false",
    "repsim",
    "repsim:preset=paper",
    "repsim:mode=cka",
    "repsim:mode=procrustes",
    "l2_sp",
    "delta",
    "bss",
]


def train_adapted(name, regularizers=(), **changes):
    choice, network = ADAPTED[name]
    method = choose(METHODS, choice)

    def select(classifier):
        method.add_adapters(classifier, seed=0)
        return method.select(classifier)

    chosen = [choose(REGULARIZERS, each) for each in regularizers]
    return train_one(network, selection=select, regularizers=chosen, warmup_epochs=0.0, **changes)


@pytest.mark.parametrize("regularizer", KEEPERS)
@pytest.mark.parametrize("name", ["lora", "adaptformer"])
def test_every_regularizer_goes_with_adapters(name, regularizer):
    feed = build_feed(batch_size=11, augmentation=Light(), transforms=(Mixup(),))
    classifier, result = train_adapted(name, [regularizer], feed=feed, batch_size=11)
    terms = result.history[-1].terms
    assert all(value == value for value in terms.values())
    images = build_data(4)[0].normalise(build_data(4)[0].read(torch.arange(4)))
    with torch.no_grad(), without_adapters(classifier):
        off = classifier.features(images)
    pretrained = build_classifier(ADAPTED[name][1])
    with torch.no_grad():
        assert torch.equal(off, pretrained.features(images))
        assert not torch.equal(classifier.features(images), off)


@pytest.mark.parametrize(
    "regularizer", ["hcs:0.5,cache=false", "repsim:preset=paper", "repsim", "repsim:mode=cka", "repsim:mode=procrustes"]
)
def test_the_reference_is_the_same_network_with_adapters_off(regularizer, monkeypatch):
    """The terms are those of a frozen copy, and there is no copy."""
    of_copy = {}
    with monkeypatch.context() as patch:
        patch.setattr(_reference, "adapters_of", lambda _network: {})
        of_copy = train_adapted("lora vit", [regularizer])[1].history[-1].terms

    def no_copy(_classifier):
        raise AssertionError("the network was copied")

    monkeypatch.setattr(_reference, "frozen_copy", no_copy)
    found = train_adapted("lora vit", [regularizer])[1].history[-1].terms
    assert found == of_copy


@pytest.mark.parametrize("regularizer", [each for each in KEEPERS if each != "bss"])
def test_where_training_goes_on_from_an_adapter_the_start_has_it(regularizer, monkeypatch, tmp_path):
    """With features that never change no term that keeps them is above 0, whatever the adapter has made of them."""
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path))
    method = choose(METHODS, "lora:2")

    def select(classifier):
        method.add_adapters(classifier, seed=0)
        with torch.no_grad():
            for _, adapter in adapters_of(classifier).values():
                adapter.B.fill_(0.05)
        return method.select(classifier)

    said = {"regularizers": [choose(REGULARIZERS, regularizer)], "epochs": 1, "learning_rate": 1e-12}
    _, result = train_one("vit", selection=select, warmup_epochs=0.0, feed=build_feed(batch_size=22), **said)
    kept = {name: term for name, term in result.history[0].terms.items() if "/" in name and not name.endswith("/head")}
    assert kept and all(abs(term) < 1e-5 for term in kept.values())


def test_moments_of_a_start_with_an_adapter_are_not_those_without(monkeypatch, tmp_path):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path))
    classifier = build_classifier("vit")
    choose(METHODS, "lora:2").add_adapters(classifier, seed=0)
    fresh = _moment_terms._path(classifier, "data")
    with torch.no_grad():
        for _, adapter in adapters_of(classifier).values():
            adapter.B.fill_(0.05)
    with monkeypatch.context() as patch:
        patch.setattr(_moment_terms, "weights_fingerprint", lambda _body: "weights")
        trained = _moment_terms._path(classifier, "data")
        with without_adapters(classifier):
            assert _moment_terms._path(classifier, "data") != trained
    assert trained != fresh


@pytest.mark.parametrize("name", ADAPTED)
def test_head_first_keeps_adapters_as_nothing(name):
    seen = []

    def remember(classifier):
        seen.append({n: value.clone() for n, value in classifier.state_dict().items() if n in classifier.adapter_parameters})
        return {"loss": 1.0}

    train_adapted(name, head_first=True, head_epochs=2, evaluate=remember, epochs=1)
    first = build_classifier(ADAPTED[name][1])
    choose(METHODS, ADAPTED[name][0]).add_adapters(first, seed=0)
    assert all(torch.equal(seen[0][n], first.state_dict()[n]) for n in seen[0])
    assert any(not torch.equal(seen[-1][n], seen[0][n]) for n in seen[0])


def test_batch_norm_and_dropout_of_the_frozen_network_stay_in_eval_mode():
    classifier, _ = train_adapted("lora")
    assert torch.equal(classifier.body.norm.running_mean, build_classifier("cnn").body.norm.running_mean)


FAST = {"model": "tiny_models:tiny", "epochs": 2, "workers": 1, "device": "cpu", "method": "lora:2"}


def squares():
    return build_data(40)[0].dataset


def test_the_whole_way(tiny_models):
    data = squares()
    tuned = fine_tune(data, **FAST, image_size=16, regularizer="repsim", out=tiny_models / "run")
    record = tuned.record
    pairs = [(4, 3 * 9, 4), (8, 4 * 9, 8)]  # inputs of A, and channels, of both convolutions
    expected = sum(2 * fan_in + 2 * channels for _, fan_in, channels in pairs)
    assert record.plan.num_adapter_parameters == expected and record.plan.adapter_bytes == 4 * expected
    assert f"Adapters: {expected} parameters" in Plan(record.plan).summary()
    assert record.similarity["cka"] < 1
    page = (tiny_models / "run" / "report.html").read_text(encoding="utf-8")
    assert "LoRA of rank 2" in page and "Memory of training" in page
    saved = load_saved_model(tiny_models / "run", allow_code="tiny_models:tiny")
    assert len(adapters_of(saved.classifier)) == 2
    images = torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    assert torch.equal(saved.logits(images), tuned.classifier(images).detach())
    torch.testing.assert_close(merged_copy(saved.classifier)(images).detach(), saved.logits(images), rtol=0, atol=1e-5)
    with without_adapters(saved.classifier):
        assert not torch.equal(saved.logits(images), tuned.classifier(images).detach())
    first = predict(tiny_models / "run", data, allow_code="tiny_models:tiny")
    again = fine_tune(data, **FAST, image_size=16, regularizer="repsim", out=tiny_models / "run")
    assert again.record.metrics == record.metrics
    assert predict(tiny_models / "run", data, allow_code="tiny_models:tiny").to_frame().equals(first.to_frame())


def test_a_network_without_a_place_for_adapters_is_refused_before_anything_is_trained(tiny_models):
    with pytest.raises(UsageError, match="AdaptFormer needs transformer blocks"):
        fine_tune(squares(), **{**FAST, "method": "adaptformer"}, image_size=16, out=tiny_models / "run")
    assert not (tiny_models / "run" / "model").exists()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("lora:0", "r of lora must be at least 1"),
        ("lora:alpha=-1", "alpha of lora must be a positive number"),
        ("lora:dropout=1", "dropout of lora must be at least 0 and below 1"),
        ("adaptformer:0", "bottleneck of adaptformer"),
        ("adaptformer:scale=0", "scale of adaptformer"),
        ("adaptformer:norm=inn", "norm of adaptformer"),
        ("adaptformer:dropout=-0.1", "dropout of adaptformer"),
    ],
)
def test_options_without_a_meaning(choice, message):
    with pytest.raises(UsageError, match=message):
        choose(METHODS, choice)


def test_selecting_needs_adapters():
    for name in ("lora", "adaptformer"):
        with pytest.raises(UsageError, match="add_adapters"):
            METHODS.get(name)().select(copy.deepcopy(build_classifier("vit")))


@pytest.mark.parametrize("choice", ["lora:99999", "adaptformer:99999"])
def test_an_adapter_that_is_wider_than_its_layers_is_refused_before_it_takes_memory(choice):
    name = choice.partition(":")[0]
    method = choose(METHODS, choice)
    with pytest.raises(UsageError, match=rf"99999.*Give at most {name}:\d+"):
        method.add_adapters(build_classifier("vit"), seed=0)
