"""The names of the paper, and what may not be written to a file."""

import copy
import pickle

import pytest
import torch
from torch import nn

from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.tune import RhoSim, forward_with_SIM, init_SIM, strip
from crossgraft.tune.sim import decorators
from crossgraft.tune.sim.decorators import carries_sim, refuse_unstripped


class Block(nn.Module):
    @init_SIM()
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.layer = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(out_channels)

    @forward_with_SIM()
    def forward(self, maps):
        """Convolution, norm, ReLU."""
        return self.norm(self.layer(maps)).relu()


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(3, 4), Block(4, 4)])
        self.plain = nn.Conv2d(4, 4, 1)
        self.fc = nn.Linear(4, 3)

    def forward(self, images):
        for block in self.blocks:
            images = block(images)
        return self.fc(self.plain(images).mean((2, 3)))


IMAGES = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Network()


def test_algorithm_1_trains_the_reconstructors_with_the_network():
    model = init_SIM(network(), example=IMAGES, rho=0.5)
    assert sorted({name.partition(".sim_reconstructor")[0] for name, _ in model.named_parameters() if "sim" in name}) == [
        "blocks.0",
        "blocks.1",
    ]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        task = nn.functional.cross_entropy(model(IMAGES), torch.tensor([0, 1, 2, 0]))
        sim_loss = model.sim_loss
        losses.append(sim_loss.item())
        (task + sim_loss).backward()
        optimizer.step()
    assert all(not torch.equal(p, before[name]) for name, p in model.named_parameters() if not name.endswith("layer.bias"))
    assert losses[-1] < losses[0]


def test_algorithm_1_runs_as_it_is_printed():
    """Nobody says init_SIM(model, …): the optimiser is made before anybody knows how wide the reconstructors are."""
    model, lambda_sim = network(), 0.005
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(IMAGES), torch.tensor([0, 1, 2, 0]))
        sim_loss = model.sim_loss
        (loss + lambda_sim * sim_loss).backward()
        if not step:
            first, weights = sim_loss.item(), {name: p.detach().clone() for name, p in model.named_parameters()}
            assert sum("sim_reconstructor" in name for name in weights) == 2 * 8 + 1  # one block has another width
        optimizer.step()
    assert all(not torch.equal(p, weights[name]) for name, p in model.named_parameters() if not name.endswith("layer.bias"))
    plain = strip(network())
    sim = RhoSim(plain, blocks=["blocks.0", "blocks.1"], weight=1, example=IMAGES)
    plain(IMAGES)
    assert first == sim.loss().item()
    assert list(strip(model).state_dict()) == list(plain.state_dict()) and not hasattr(model, "sim_loss")


def test_until_it_is_called_a_decorated_network_is_loaded_counted_and_copied_as_any_other():
    model = network()
    plain = strip(network())
    assert list(model.state_dict()) == list(plain.state_dict())
    model.load_state_dict(plain.state_dict())
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in plain.parameters())
    twin = copy.deepcopy(model)
    with torch.no_grad():
        assert torch.equal(twin.eval()(IMAGES), plain.eval()(IMAGES)) and not hasattr(twin, "sim_loss")
    twin.train()(IMAGES)
    assert twin.sim_loss > 0 and not hasattr(model, "sim_loss")
    model.double()
    model(IMAGES.double())
    assert model.sim_loss.dtype == torch.float64


def test_a_network_whose_call_shows_no_tensor_or_replicas_are_refused_with_what_to_say():
    class Named(Network):
        def forward(self, *, images):
            return super().forward(images)

    with pytest.raises(UsageError, match=r"Say model = init_SIM\(model, example=…\)"):
        Named()(images=IMAGES)
    with pytest.raises(UsageError, match="rho_sim does not see the replicas"):
        nn.DataParallel(network())(IMAGES)


@pytest.mark.parametrize(("weight", "factor", "is_said"), [(0.005, 0.005, True), (0.005, 0.007, False), (0.005, 1.0, False)])
@pytest.mark.parametrize("scale", [1.0, 65536.0])
def test_a_second_weight_is_noticed(recwarn, weight, factor, is_said, scale):
    model = init_SIM(network(), example=IMAGES, weight=weight)
    for _ in range(2):
        (scale * (model(IMAGES).mean() + factor * model.sim_loss)).backward()
    said = [str(each.message) for each in recwarn if "which is inside it already" in str(each.message)]
    assert len(said) == (factor == 0.005) == is_said
    assert not said or "by 0.005, which is inside it already: 2.5e-05 in all" in said[0]


def test_it_is_the_same_engine():
    model, plain = init_SIM(network(), example=IMAGES, seed=3), network()
    sim = RhoSim(plain, blocks=["blocks.0", "blocks.1"], seed=3, example=IMAGES)
    model(IMAGES)
    plain(IMAGES)
    assert model.sim_loss.item() == sim.loss().item()


def test_a_network_without_decorated_blocks_has_its_building_blocks_or_those_that_are_named():
    for options, expected in ({}, ["0", "1", "2"]), ({"blocks": ["0", "2"]}, ["0", "2"]):
        model = init_SIM(nn.Sequential(*(nn.Conv2d(3, 3, 1) for _ in range(3))), example=IMAGES, **options)
        assert sorted({name[0] for name, _ in model.named_modules() if "sim_reconstructor" in name}) == expected


def test_strip_gives_the_pristine_network():
    pristine, model = strip(network()), init_SIM(network(), example=IMAGES)
    for each in (pristine, model):
        each(IMAGES)
    assert strip(model, example=IMAGES) is model
    assert type(model) is Network and not hasattr(model, "sim_loss") and not carries_sim(model)
    assert list(model.state_dict()) == list(pristine.state_dict())
    assert all(not part._forward_hooks and not part._forward_pre_hooks for part in model.modules())
    assert torch.equal(model.eval()(IMAGES), pristine.eval()(IMAGES))
    assert torch.equal(pickle.loads(pickle.dumps(model))(IMAGES), pristine(IMAGES))
    init_SIM(model, example=IMAGES)  # once more


def test_strip_takes_a_watcher_off_as_well():
    model = network()
    sim = RhoSim(model, blocks=Block, example=IMAGES)
    assert carries_sim(model)
    assert not carries_sim(strip(model))
    sim.detach()  # finds nothing any more


def test_strip_says_so_where_the_outputs_differ(monkeypatch):
    model = init_SIM(network(), example=IMAGES)
    outputs = iter([[torch.zeros(1)], [torch.ones(1)]])
    monkeypatch.setattr(decorators, "_outputs", lambda *_: next(outputs))
    with pytest.raises(CrossgraftError, match="says something else"):
        strip(model, example=IMAGES)


def test_a_copy_can_be_made_after_a_forward_pass_and_has_no_term_of_its_own():
    model = init_SIM(network(), example=IMAGES)
    model(IMAGES)
    twin = copy.deepcopy(model)
    assert model.sim_loss > 0
    twin(IMAGES)
    with pytest.raises(UsageError, match="copy of a network"):
        _ = twin.sim_loss
    assert carries_sim(twin) and not carries_sim(strip(twin))
    model(IMAGES)
    assert model.sim_loss > 0


@pytest.mark.parametrize("door", ["decorated", "a copy", "watched"])
def test_it_is_neither_pickled_nor_saved(door, tmp_path):
    model = network()
    if door == "watched":
        sim = RhoSim(model, blocks=Block, example=IMAGES)
        assert sim.blocks  # nothing else holds it
    else:
        init_SIM(model, example=IMAGES)
        model = copy.deepcopy(model) if door == "a copy" else model
    for write in (pickle.dumps, lambda each: torch.save(each, tmp_path / "file"), lambda each: refuse_unstripped(each, "It")):
        with pytest.raises(UsageError, match="come closer to the training images"):
            write(model)


def test_what_cannot_be_decorated():
    with pytest.raises(UsageError, match="needs an example"):
        init_SIM(network())
    with pytest.raises(UsageError, match=r"go with the network: init_SIM\(model"):
        init_SIM(rho=0.5)
    model = init_SIM(network(), example=IMAGES)
    with pytest.raises(UsageError, match="has rho_sim already"):
        init_SIM(model, example=IMAGES)
    with pytest.raises(UsageError, match="The block 0 is a container"):
        init_SIM(nn.Sequential(nn.Sequential(nn.Conv2d(3, 3, 1))), blocks="0", example=IMAGES)


def test_blocks_are_decorated_or_named():
    with pytest.raises(UsageError, match=r"decorated already \(.*\)\. Leave blocks= out"):
        init_SIM(Network(), blocks="auto", example=IMAGES)


@pytest.mark.usefixtures("any_types")
def test_parentheses_are_not_forgotten():
    with pytest.raises(UsageError, match=r"has parentheses: @init_SIM\(\)"):
        init_SIM(Block.__init__)
    with pytest.raises(UsageError, match=r"has parentheses: @forward_with_SIM\(\)"):
        forward_with_SIM(Block.forward)
    with pytest.raises(UsageError, match="strip takes a network"):
        strip(None)


def test_step_2_is_not_forgotten():
    class Half(Block):
        def forward(self, maps):
            return self.layer(maps)

    with pytest.raises(UsageError, match="The block 0 lacks step 2"):
        init_SIM(nn.Sequential(Half(3, 4)), example=IMAGES)


def test_decorated_functions_keep_their_names():
    assert Block.forward.__name__ == "forward" and Block.forward.__doc__ == "Convolution, norm, ReLU."
    assert Block.__init__.__name__ == "__init__"


def test_the_term_may_be_read_more_than_once():
    model, taken = init_SIM(Network(), example=torch.randn(2, 3, 8, 8)), torch.randn(2, 3, 8, 8)
    first = model(taken).sum() * 0 + model.sim_loss
    assert model.sim_loss is model.sim_loss and model.sim_loss.item() == first.item()
    first.backward()
    model(taken)
    assert model.sim_loss.item() != first.item()  # other tokens are drawn


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
def test_an_exported_program_has_no_reconstructors():
    model, taken = Network().eval(), torch.randn(2, 3, 8, 8)
    init_SIM(model, example=taken)
    with pytest.raises(UsageError, match="carries reconstructors of rho_sim"):
        torch.export.export(model, (taken,), strict=False)
    model(taken)
    for trace in (torch.jit.trace, torch.jit.script):
        with torch.no_grad(), pytest.raises(UsageError, match="carries reconstructors of rho_sim"):
            trace(model, taken)
    torch.export.export(strip(model), (taken,), strict=False)


def test_a_wrapper_is_refused_before_anything_is_put_into_the_network():
    network = Network()
    with pytest.raises(UsageError, match="before the network is compiled or made parallel"):
        init_SIM(nn.DataParallel(network), example=torch.randn(2, 3, 8, 8))
    assert not carries_sim(network, waiting=False)


class Drawing(Network):
    def forward(self, images):
        """With noise in evaluation, too."""
        said = super().forward(images)
        return said + torch.randn_like(said)


def test_a_network_that_draws_in_evaluation_can_be_stripped():
    taken = torch.randn(2, 3, 8, 8)
    strip(init_SIM(Drawing(), example=taken), example=taken)
