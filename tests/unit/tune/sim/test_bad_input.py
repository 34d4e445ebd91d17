"""What ρSIM refuses or leaves out, and what it says."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.errors import DivergedError, UnknownNameError, UsageError
from crossgraft.tune.sim import RhoSim, watching


class Odd(nn.Module):
    """Blocks of every kind that has nothing to reconstruct, and one that has."""

    def __init__(self):
        super().__init__()
        self.good = nn.Conv2d(3, 3, 1)
        self.idle = nn.Conv2d(3, 3, 1)
        self.small = nn.AdaptiveAvgPool2d(1)
        self.flat = nn.Linear(3, 3)
        self.counting = Counting()
        self.naming = Naming()

    def forward(self, images):
        maps = self.good(images)
        self.counting(maps)
        return self.flat(self.small(maps).flatten(1)) + self.naming("a name", maps)


class Counting(nn.Module):
    def forward(self, maps):
        return maps.shape[0]


class Naming(nn.Module):
    def forward(self, name, maps):
        return maps.mean((2, 3)) * len(name)


IMAGES = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
BLOCKS = ["good", "idle", "small", "flat", "counting", "naming"]


def test_blocks_with_nothing_to_reconstruct_are_left_out_by_name_and_reason():
    with pytest.warns(UserWarning, match="leaves out blocks") as said:
        sim = RhoSim(Odd(), blocks=BLOCKS, example=IMAGES)
    assert sim.blocks == ("good",)
    assert sim.skipped == {
        "idle": "it does not run",
        "small": "it has fewer than 2 positions",
        "flat": "it has fewer than 2 positions",
        "counting": "it gives no tensor",
        "naming": "it takes no tensor",
    }
    assert all(name in str(said[0].message) for name in sim.skipped)


def test_they_are_told_at_the_first_step_where_there_is_no_example():
    network = Odd()
    sim = RhoSim(network, blocks=BLOCKS)
    network(IMAGES)
    with pytest.warns(UserWarning, match="idle: it does not run"):
        sim.loss()
    network(IMAGES)
    sim.loss()  # once


def test_a_network_without_any_block_to_reconstruct_is_refused():
    with pytest.raises(UsageError, match=r"cannot reconstruct any block .*flat: it has fewer than 2 positions"):
        RhoSim(Odd(), blocks=["flat", "small"], example=IMAGES)
    with pytest.raises(UsageError, match="finds no block"):
        RhoSim(nn.Conv2d(3, 3, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rho": 0.0}, "rho of rho_sim must be a number above 0 and at most 1, found 0.0"),
        ({"rho": 1.2}, "rho of rho_sim"),
        ({"rho": float("nan")}, "rho of rho_sim"),
        ({"channels": 0.0}, "channels of rho_sim"),
        ({"K": 0}, "K of rho_sim must be auto or a whole number of at least 1, found 0"),
        ({"K": "8"}, "K of rho_sim must be auto or a whole number of at least 1, found '8'"),
        ({"rho": "0.2"}, "rho of rho_sim must be a number above 0 and at most 1, found '0.2'"),
        ({"rho": None}, "rho of rho_sim must be a number"),
        ({"channels": "0.5"}, "channels of rho_sim must be a number"),
        ({"weight": None}, "weight of rho_sim must be a number of at least 0, found None"),
        ({"seed": "a"}, "seed of rho_sim must be a whole number, found 'a'"),
        ({"blocks": None}, "blocks of rho_sim must be auto, names, modules or classes of modules, found None"),
        ({"blocks": [3]}, r"blocks of rho_sim must be auto, names, .*found \[3\]"),
        ({"K": True}, "K of rho_sim"),
        ({"weight": -1.0}, "weight of rho_sim must be a number of at least 0"),
        ({"weight": float("inf")}, "weight of rho_sim"),
        ({"order": "paper", "projected": False}, "equation 1, which standardises nothing"),
    ],
)
@pytest.mark.usefixtures("any_types")
def test_values_out_of_their_range(options, message):
    with pytest.raises(UsageError, match=message):
        RhoSim(Odd(), **{"blocks": "good", **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": "cosin"}, r"distance of rho_sim: cosin. Did you mean cosine"),
        ({"layout": "nhcw"}, "layout of rho_sim: nhcw. Did you mean nchw"),
        ({"sampling": "v3"}, "sampling of rho_sim: v3"),
        ({"order": "papers"}, "Did you mean paper"),
        ({"reduce": "max"}, "reduce of rho_sim: max"),
        ({"distance": ["l1"]}, r"distance of rho_sim: \['l1'\]"),
        ({"blocks": "god"}, "Unknown block: god. Did you mean good"),
        ({"blocks": ["good", "Conv2D"]}, "Did you mean Conv2d"),
        ({"blocks": nn.LSTM}, "Unknown class of blocks: LSTM"),
    ],
)
@pytest.mark.usefixtures("any_types")
def test_unknown_names_get_the_nearest(options, message):
    with pytest.raises(UnknownNameError, match=message):
        RhoSim(Odd(), **{"blocks": "good", **options})


@pytest.mark.usefixtures("any_types")
def test_what_is_no_network_and_a_batch_of_no_images():
    with pytest.raises(UsageError, match="takes a network"):
        RhoSim(None)
    model = Odd()
    sim = RhoSim(model, blocks="good", example=IMAGES)
    model(IMAGES[:0])
    with pytest.raises(UsageError, match="a batch of no images"):
        sim.loss()


def test_a_layout_that_does_not_fit_is_told_as_such():
    with pytest.raises(UsageError, match=r"good: nlc does not fit the shape \(2, 3, 4, 4\)"):
        RhoSim(Odd(), blocks="good", layout="nlc", example=IMAGES)


def test_a_network_that_can_have_no_hooks_or_has_no_values():
    plain = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1))
    with pytest.MonkeyPatch.context() as patch:  # torch.jit itself warns that it is on its way out
        patch.setattr(watching, "_is_script", lambda module: module is plain[1])
        with pytest.raises(UsageError, match=r"torch.jit has compiled 1, which cannot have hooks"):
            RhoSim(plain, example=IMAGES)
    with pytest.raises(UsageError, match="on the meta device, where tensors have no values"):
        RhoSim(plain.to("meta"), example=IMAGES.to("meta"))


def test_whole_numbers_of_numpy_are_whole_numbers():
    sim = RhoSim(nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)), K=np.int64(5), example=IMAGES)
    assert {part.predictor.in_features for part in sim.reconstructors.by_block().values()} == {5}


def test_few_positions_are_two_tokens():
    network = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1))
    sim = RhoSim(network, rho=0.01, example=IMAGES[..., :2, :2])
    network(IMAGES[..., :2, :2])
    assert bool(sim.loss().isfinite())


def test_a_term_that_is_no_number_names_its_block():
    network = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1))
    sim = RhoSim(network, example=IMAGES)
    with torch.no_grad():
        network[1].weight.fill_(float("nan"))
    network(IMAGES)
    with pytest.raises(DivergedError, match=r"not finite in 1, 2: "):
        sim.loss()


def test_a_loss_without_a_forward_pass():
    for example in (None, IMAGES):
        sim = RhoSim(nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)), example=example)
        with pytest.raises(UsageError, match="has seen no forward pass with gradients"):
            sim.loss()


def test_a_block_whose_output_changes_its_shape():
    class Fickle(nn.Module):
        stride = 1

        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(3, 3, 1)

        def forward(self, maps):
            return self.layer(maps)[..., :: self.stride]

    network = nn.Sequential(Fickle())
    sim = RhoSim(network, blocks="0", example=IMAGES)
    network(IMAGES)
    sim.loss()
    network[0].stride = 2
    with pytest.raises(UsageError, match=r"The block 0 turns an input of \(2, 3, 4, 4\) into \(4, 2\) positions"):
        network(IMAGES)


def test_the_checkpoint_of_another_network_is_refused():
    sims = [RhoSim(nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)), K=K, example=IMAGES) for K in (2, 3)]
    with pytest.raises(UsageError, match="another network, other blocks or other options"):
        sims[0].load_state_dict(sims[1].state_dict())


def test_a_watched_network_is_not_pickled(tmp_path):
    network = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1))
    sim = RhoSim(network, example=IMAGES)
    for write in (pickle.dumps, lambda each: torch.save(each, tmp_path / "network.pt")):
        with pytest.raises(UsageError, match="come closer to the training images"):
            write(network)
    sim.detach()
    assert len(pickle.dumps(network)) > 0
