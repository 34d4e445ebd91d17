"""RepSim and ρSIM on networks of transformers: they see what the network's own call gives, and reach its weights."""

import pytest
import torch

from crossgraft.models import load_backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.models.layers import main_layers, observe_layers
from crossgraft.seeding import torch_generator
from crossgraft.similarity import linear_cka
from crossgraft.testing import check_regularizer
from crossgraft.tune.protocols import attach
from crossgraft.tune.regularizers import ForwardStart, RepSim, SelfIdentityMapping
from support.regularizing import context_of, moved
from support.transformers_folders import SIZE, write_folder

TOWERS = ["ViTModel", "Dinov2Model", "CLIPVisionModel", "SwinModel"]
IMAGES = torch.rand(6, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0)) * 2 - 1


@pytest.fixture(scope="module")
def tower(tmp_path_factory):
    """A new classifier on a small random network of this class."""
    folders = {}

    def make(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name)
            write_folder(folders[name], name)
        return make_classifier(load_backbone(f"transformers:{folders[name]}"), 3, seed=0).eval()

    return make


@pytest.mark.parametrize("regularizer", [RepSim, SelfIdentityMapping])
def test_all_promises_are_kept(regularizer, tower):
    check_regularizer(regularizer(), classifier=tower("ViTModel"))


@pytest.mark.parametrize("name", TOWERS)
def test_repsim_is_the_cka_of_the_networks_own_features(name, tower):
    classifier, regularizer = tower(name), RepSim(weight=1.0)
    body = classifier.body.model
    with torch.no_grad():
        before = own_features(body)
    attach(regularizer, classifier)
    moved(classifier, by=0.02)
    with torch.no_grad():
        after = own_features(body)
    (term,) = regularizer.loss(context_of(classifier, IMAGES)).values()
    expected = 1 - linear_cka(after.double().numpy(), before.double().numpy(), debiased=True)
    assert float(term.detach()) == pytest.approx(expected, abs=1e-4)
    term.backward()
    assert all(any(p.grad is not None and p.grad.any() for p in block.parameters()) for block in blocks_of(classifier))


def own_features(body):
    output = body(IMAGES)
    pooled = getattr(output, "pooler_output", None)
    return (output.last_hidden_state[:, 0] if pooled is None else pooled).flatten(1)


def blocks_of(classifier):
    return [classifier.get_submodule(name) for name in classifier.blocks]


@pytest.mark.parametrize("name", TOWERS)
def test_sim_predicts_what_each_block_took_from_what_it_gave(name, tower):
    """Equation 1 without projections, every token of every block, written out."""
    classifier = tower(name)
    regularizer = SelfIdentityMapping(weight=1.0, projected=False, distance="mse", rho=1.0, reduce="sum")
    attach(regularizer, classifier)
    assert regularizer.findings() == []
    seen = {}
    for block in classifier.blocks:
        classifier.get_submodule(block).register_forward_hook(
            lambda _, took, gave, block=block: seen.update({block: (took, gave)})
        )
    regularizer.before_forward(ForwardStart(torch_generator(0), torch.arange(len(IMAGES)), len(IMAGES)))
    (term,) = regularizer.loss(context_of(classifier, IMAGES)).values()
    state, expected = regularizer.state_dict(), 0.0
    for block, ((took, *_), gave) in seen.items():
        first, shift, second, end = (state[f"{block}.predictor.{part}"] for part in ("0.weight", "0.bias", "2.weight", "2.bias"))
        hidden = ((gave[0] if isinstance(gave, tuple) else gave) @ first.T + shift).relu()
        expected = expected + (hidden @ second.T + end - took).square().mean()
    assert set(seen) == set(classifier.blocks)
    torch.testing.assert_close(term, expected, check_dtype=False)
    term.backward()
    assert all(any(p.grad is not None and p.grad.any() for p in block.parameters()) for block in blocks_of(classifier))


def test_blocks_that_give_one_tensor_in_a_tuple_are_layers(tower):
    """Swin's windows are rows of their own inside a block, so that layers in it have no row an image."""
    body = tower("SwinModel").body
    with observe_layers(body) as gives_tensor, torch.no_grad():
        body(IMAGES)
    layers = main_layers(body, gives_tensor)
    assert "model.encoder.layers.0.blocks.0" in layers and not any("attention" in name for name in layers)
