"""The engine: what it computes."""

import pytest
import torch
from torch import nn

from crossgraft.errors import UsageError
from crossgraft.tune.sim import RhoSim
from crossgraft.tune.sim.distances import DISTANCES, l2, standardised
from support.sim_blocks import images, network


def tokens_of(maps):
    return maps.flatten(2).transpose(1, 2)


def literal(model, sim, taken, *, distance, order="code", projected=True):
    """All tokens of both blocks by the equations, with the reconstructors of ``sim``."""
    maps = [model.stem(taken)]
    maps += [model.blocks[0](maps[0])]
    maps += [model.blocks[1](maps[1])]
    losses = []
    for number, part in enumerate(sim.reconstructors.by_block().values()):
        before, after = tokens_of(maps[number]), tokens_of(maps[number + 1])
        if not projected:  # equation 1
            losses.append(DISTANCES[distance](part.predictor(after), before.detach()))
            continue
        given, target = part.projector(part.adapt(after)), part.projector(before).detach()  # equation 2
        if order == "paper":
            losses.append(((part.predictor(standardised(given)) - standardised(target)) ** 2).mean())  # equations 3 and 4
        else:
            losses.append(l2(standardised(part.predictor(given)), standardised(target)))
    return torch.stack(losses)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"distance": "norm_l2"}),
        ({"order": "paper", "distance": "norm_mse", "K": 7}, {"distance": "mse", "order": "paper"}),
        ({"projected": False, "distance": "mse"}, {"distance": "mse", "projected": False}),
    ],
    ids=["released", "paper", "equation 1"],
)
@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_the_term_and_its_gradients_are_what_the_equations_say(options, expected, reduce):
    model, taken = network(), images()
    sim = RhoSim(model, rho=1.0, weight=0.3, reduce=reduce, example=taken, **options)
    model(taken)
    loss = sim.loss()
    losses = literal(model, sim, taken, **expected)
    wanted = 0.3 * (losses.sum() if reduce == "sum" else losses.mean())
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-12)
    assert torch.stack(list(sim.block_losses.values())).tolist() == pytest.approx(losses.tolist(), rel=1e-12)
    own = list(sim.parameters())
    found, asked = (torch.autograd.grad(each, [*model.parameters(), *own]) for each in (loss, wanted))
    for ours, theirs in zip(found, asked, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_the_target_has_no_gradient():
    """A block that gives something else than it took passes nothing on to what came before it."""

    class Apart(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(4, 4, 1, dtype=torch.float64)

        def forward(self, maps):
            return self.layer(torch.ones_like(maps))

    model, taken = nn.Sequential(nn.Conv2d(3, 4, 1, dtype=torch.float64), Apart()), images()
    sim = RhoSim(model, blocks="1", distance="mse", example=taken)
    model(taken)
    sim.loss().backward()
    assert model[0].weight.grad is None and bool(model[1].layer.weight.grad.any())


@pytest.mark.parametrize("sampling", ["v0", "v1", "v2"])
@pytest.mark.parametrize("stride", [1, 2])
def test_tokens_of_input_and_output_are_at_the_same_place(sampling, stride):
    """A block that hands its input on is told without error, once its reconstructor is the identity."""
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.AvgPool2d(stride))
    taken = images().float()
    sim = RhoSim(model, blocks="1", sampling=sampling, K=4, distance="mse", projected=False, example=taken)
    (part,) = sim.reconstructors.by_block().values()
    part.predictor = nn.Identity()
    part.register_parameter("none", nn.Parameter(torch.zeros(())))
    model(taken)
    assert sim.loss().item() == pytest.approx(0, abs=1e-12)
    placebo = RhoSim(model, blocks="1", sampling=sampling, K=4, distance="mse", projected=False, placebo=True, example=taken)
    (part,) = placebo.reconstructors.by_block().values()
    part.predictor = nn.Identity()
    part.register_parameter("none", nn.Parameter(torch.zeros(())))
    model(taken)
    assert placebo.loss().item() > 1e-4


def test_after_detach_the_message_says_so():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    sim.detach()
    model(taken)
    with pytest.raises(UsageError, match="was detached"):
        sim.loss()


def test_a_placebo_of_one_image_is_refused():
    model, taken = network(), images()
    sim = RhoSim(model, placebo=True, example=taken)
    model(taken[:1])
    with pytest.raises(UsageError, match="at least 2 images at a time"):
        sim.loss()
    model(taken)
    assert sim.loss() > 0


def test_a_placebo_costs_the_same_and_asks_for_another_image():
    model, taken = network(), images()
    sims = [RhoSim(model, rho=1.0, placebo=placebo, example=taken) for placebo in (False, True)]
    model(taken)
    plain, placebo = (sim.loss() for sim in sims)
    assert plain.item() != pytest.approx(placebo.item(), rel=1e-3)
    assert [p.shape for p in sims[0].parameters()] == [p.shape for p in sims[1].parameters()]
    alike = images(1).expand(3, -1, -1, -1)
    model(alike)
    plain, placebo = (sim.loss() for sim in sims)
    assert plain.item() == pytest.approx(placebo.item(), rel=1e-12)


def test_a_block_that_works_in_place_is_told_from_what_it_took():
    """In the first pass of a size the input is copied; later tokens of it are taken before the block runs."""
    losses = []
    for in_place in (False, True):
        model = network(in_place=in_place)
        sim = RhoSim(model, blocks="blocks.0", example=images())
        for count in (3, 4, 4):
            model(images(count, seed=count))
            losses.append(sim.loss().item())
    assert losses[:3] == losses[3:]


def test_a_block_that_runs_twice_counts_twice():
    model, taken = network(times=2), images()
    sim = RhoSim(model, blocks="blocks.1", rho=1.0, weight=1.0, reduce="sum", example=taken)
    first = model.blocks[0](model.stem(taken))
    second = model.blocks[1](first)
    third = model.blocks[1](second)
    (part,) = sim.reconstructors.by_block().values()
    wanted = 0
    for before, after in ((first, second), (second, third)):
        given, target = part.projector(tokens_of(after)), part.projector(tokens_of(before))
        wanted = wanted + l2(standardised(part.predictor(given)), standardised(target))
    model(taken)
    assert sim.loss().item() == pytest.approx(wanted.item(), rel=1e-12)


def test_lists_of_tensors_are_put_together_as_a_densenet_does():
    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layer = nn.Conv2d(width, 4, 3, padding=1)

        def forward(self, maps):
            return self.layer(torch.cat(maps, 1))

    class Dense(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Layer(3), Layer(7), Layer(11)])

        def forward(self, taken):
            maps = [taken]
            for layer in self.layers:
                maps.append(layer(maps))
            return maps[-1]

    model, taken = Dense(), images().float()
    sim = RhoSim(model, blocks="Layer", K=1, projected=False, example=taken)
    assert [part.predictor[-1].out_features for part in sim.reconstructors.by_block().values()] == [3, 7, 11]
    model(taken)
    assert sim.loss().item() > 0


def test_several_tensors_count_by_the_first_and_keywords_by_their_order():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 5)

        def forward(self, *, tokens, mask=None):
            return {"tokens": self.layer(tokens), "mask": mask}

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.pair = Pair()

        def forward(self, tokens):
            return self.pair(tokens=tokens, mask=torch.ones(2, 3))["tokens"]

    model = Outer()
    sim = RhoSim(model, blocks=Pair, K=1, projected=False, example={"tokens": torch.randn(2, 3, 4)})
    (part,) = sim.reconstructors.by_block().values()
    assert (part.predictor[0].in_features, part.predictor[-1].out_features) == (5, 4)


def test_the_former_name_of_the_distance_is_warned_of_and_means_the_same():
    model = torch.nn.Sequential(*(torch.nn.Conv2d(3, 3, 3, padding=1) for _ in range(2)))
    taken = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    terms = []
    with pytest.warns(DeprecationWarning, match="is called distance= now"):
        former = RhoSim(model, blocks="1", loss="l1", example=taken)
    for sim in (former, RhoSim(model, blocks="1", distance="l1", example=taken)):
        model(taken)
        terms.append(sim.loss().item())
        sim.detach()
    assert terms[0] == terms[1] > 0
