"""Which parameters decay, and how fast each layer learns: the same as timm where timm says it."""

import pytest
import timm
import torch
from timm.optim import param_groups_layer_decay
from torch import nn

from crossgraft.errors import UsageError
from crossgraft.tune.engine.optimizers import parameter_groups
from crossgraft.tune.methods import Full, Linear, Partial
from support.small_classifiers import small_classifier, wrap

NETWORKS = ["cnn", "vit", "convnext"]
SETTINGS = {"learning_rate": 1.0, "weight_decay": 0.05}


def by_name(groups, key):
    return {name: group[key] for group in groups for name in group["names"]}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("method", [Full(), Linear(), Partial(blocks=1)])
@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_every_trained_parameter_is_in_one_group(network, method, decay):
    classifier = small_classifier(network)
    selection = method.select(classifier)
    groups = parameter_groups(classifier, selection, **SETTINGS, layer_decay=decay)
    names = [name for group in groups for name in group["names"]]
    assert sorted(names) == sorted(selection.trained)
    parameters = dict(classifier.named_parameters())
    for group in groups:
        assert [id(parameter) for parameter in group["params"]] == [id(parameters[name]) for name in group["names"]]
    torch.optim.AdamW(groups)  # refuses a parameter in two groups


def test_vectors_and_what_the_author_excepts_do_not_decay():
    classifier = small_classifier("vit")
    decay = by_name(parameter_groups(classifier, Full().select(classifier), **SETTINGS), "weight_decay")
    parameters = dict(classifier.named_parameters())
    expected = {
        name: 0.0 if parameter.ndim <= 1 or name in ("body.cls_token", "body.pos_embed") else 0.05
        for name, parameter in parameters.items()
    }
    assert decay == expected
    assert parameters["body.pos_embed"].ndim == 3


class WithMatrixBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.bias = nn.Parameter(torch.zeros(2, 2))
        self.fc = nn.Linear(4, 3)

    def forward(self, images):
        return self.fc(self.conv(images).mean((2, 3)) + self.bias.reshape(4))


def test_a_bias_that_is_a_matrix_does_not_decay():
    classifier = wrap(WithMatrixBias())
    decay = by_name(parameter_groups(classifier, Full().select(classifier), **SETTINGS), "weight_decay")
    assert decay["body.bias"] == 0
    assert decay["body.conv.weight"] == 0.05


def test_rates_of_a_vit_are_those_of_timm():
    network = timm.create_model("vit_tiny_patch16_224", img_size=32, embed_dim=12, depth=4, num_heads=1, num_classes=3)
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    theirs = {
        names[id(parameter)]: (group["lr_scale"], group["weight_decay"])
        for group in param_groups_layer_decay(
            network, weight_decay=0.05, no_weight_decay_list=network.no_weight_decay(), layer_decay=0.7
        )
        for parameter in group["params"]
    }
    classifier = wrap(network, size=32)
    groups = parameter_groups(classifier, Full().select(classifier), **SETTINGS, layer_decay=0.7)
    rates, decays = by_name(groups, "lr"), by_name(groups, "weight_decay")
    assert len(rates) == len(theirs)
    for name, (scale, decay) in theirs.items():
        ours = name if name.startswith("head.") else f"body.{name}"
        assert rates[ours] == pytest.approx(scale, rel=1e-12), name
        assert decays[ours] == decay, name


def test_the_head_may_learn_at_another_rate():
    classifier = small_classifier("vit")
    options = {"learning_rate": 0.1, "weight_decay": 0.0, "head_learning_rate": 2.0}
    for decay in (1.0, 0.5):
        groups = parameter_groups(classifier, Full().select(classifier), **options, layer_decay=decay)
        rates = by_name(groups, "lr")
        assert rates["head.weight"] == rates["head.bias"] == 2.0
        assert rates["body.norm.weight"] == 0.1 * decay  # it goes with the last block
        assert rates["body.blocks.2.attn.qkv.weight"] == 0.1 * decay
        assert rates["body.patch_embed.proj.weight"] == 0.1 * decay**4
    assert by_name(parameter_groups(classifier, Full().select(classifier), **SETTINGS), "lr")["head.weight"] == 1.0


def test_groups_are_few_and_named_for_people():
    classifier = small_classifier("vit")
    selection = Full().select(classifier)
    names = [group["name"] for group in parameter_groups(classifier, selection, **SETTINGS)]
    assert names == ["body, no decay", "body", "head, no decay", "head"]
    names = [group["name"] for group in parameter_groups(classifier, selection, **SETTINGS, layer_decay=0.5)]
    assert names[0] == "depth 0, no decay"
    assert names[-1] == "head"
    assert len(names) == len(set(names))


@pytest.mark.parametrize("decay", [0.0, -0.5, 1.5, float("nan")])
def test_a_decay_outside_its_range_is_refused(decay):
    classifier = small_classifier("cnn")
    with pytest.raises(UsageError, match="layer decay must be above 0 and at most 1"):
        parameter_groups(classifier, Full().select(classifier), **SETTINGS, layer_decay=decay)
