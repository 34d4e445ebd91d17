"""ρSIM goes with networks of every kind as they are, by one call."""

import pytest
import torch

from crossgraft.tune.sim import RhoSim, init_SIM, strip
from support.sim_networks import BLOCKS, CASES, build

STEPS = 12


@pytest.fixture(autouse=True)
def same_dropout():
    with torch.random.fork_rng(devices=[]):
        yield


def train(name, *, steps=STEPS, weight=0.1, with_sim=True):
    """Network and the unweighted term of each step."""
    network, taken, wanted, loss = build(name)
    network.train()
    torch.manual_seed(0)
    terms = []
    sim = RhoSim(network, blocks=BLOCKS.get(name, "auto"), weight=weight, example=taken) if with_sim else None
    parameters = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam([*parameters, *(sim.parameters() if sim else [])], lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        total = loss(network(taken), wanted)
        if sim is not None:
            total = total + sim.loss()
            terms += [torch.stack(list(sim.block_losses.values())).mean().item()] if weight else []
        total.backward()
        optimizer.step()
    if sim is not None:
        sim.detach()
    return network, terms


@pytest.mark.parametrize("name", CASES)
def test_the_term_is_finite_and_falls(name):
    _, terms = train(name)
    assert all(0 < term < float("inf") for term in terms)
    assert sum(terms[-3:]) < sum(terms[:3])


@pytest.mark.parametrize("name", CASES)
def test_its_gradient_reaches_the_blocks(name):
    network, taken, _, _ = build(name)
    sim = RhoSim(network, blocks=BLOCKS.get(name, "auto"), example=taken)
    network(taken)
    sim.loss().backward()
    assert sim.blocks
    for block in sim.blocks:
        gradients = [p.grad for p in network.get_submodule(block).parameters() if p.grad is not None]
        assert any(bool(gradient.any()) for gradient in gradients), block


@pytest.mark.parametrize("name", CASES)
def test_weight_zero_changes_no_bit_and_what_is_left_is_the_plain_network(name):
    zero, _ = train(name, steps=2, weight=0.0)
    plain, _ = train(name, steps=2, with_sim=False)
    assert zero.state_dict().keys() == plain.state_dict().keys()
    assert all(torch.equal(value, plain.state_dict()[key]) for key, value in zero.state_dict().items())
    moved, _ = train(name, steps=2)
    assert any(not torch.equal(value, plain.state_dict()[key]) for key, value in moved.state_dict().items())


@pytest.mark.parametrize("name", CASES)
def test_a_stripped_network_is_the_pristine_one(name):
    pristine, taken, _, _ = build(name)
    dressed, _, _, _ = build(name)
    init_SIM(dressed, example=taken, **({"blocks": BLOCKS[name]} if name in BLOCKS else {}))
    assert len(list(dressed.parameters())) > len(list(pristine.parameters()))
    for network in (pristine, dressed):  # statistics of BatchNorm move
        torch.manual_seed(0)
        network(taken)
    assert dressed.sim_loss > 0
    assert strip(dressed, example=taken) is dressed and type(dressed) is type(pristine)
    assert dressed.state_dict().keys() == pristine.state_dict().keys()
    assert torch.equal(dressed.eval()(taken), pristine.eval()(taken))


def test_the_layouts_that_are_found():
    found = {}
    for name in CASES:
        network, taken, _, _ = build(name)
        sim = RhoSim(network, blocks=BLOCKS.get(name, "auto"), K=1, projected=False, example=taken)
        found[name] = [part.predictor[-1].out_features for part in sim.reconstructors.by_block().values()]
    assert found == {
        "resnet": [64, 8, 16, 16],
        "vit": [24, 24],
        "swin": [8, 8, 16, 16],
        "segmentation": [3, 8, 16, 16, 16],
        "translation": [8, 8],
        "sound": [12, 12],
        "series": [5, 8],
        "volumes": [1, 6],
        "few-shot": [12],
    }
