"""The engine: what it keeps, what it leaves alone, and what it goes with."""

import copy
import gc
import pickle
import weakref

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from crossgraft.errors import UsageError
from crossgraft.tune.sim import RhoSim
from crossgraft.tune.sim.options import SimOptions
from support.sim_blocks import images, network


def test_evaluation_keeps_nothing_and_a_step_keeps_nothing_behind():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    with torch.no_grad():
        model(taken)
    with pytest.raises(UsageError, match="no forward pass with gradients"):
        sim.loss()
    with pytest.MonkeyPatch.context() as patch:
        given = []
        patch.setattr(
            model.blocks[1], "forward", lambda maps, forward=model.blocks[1].forward: given.append(forward(maps)) or given[-1]
        )
        model(taken)
    alive = weakref.ref(given.pop())
    sim.loss()
    gc.collect()
    assert alive() is None


def test_only_the_last_forward_pass_counts():
    model = network()
    sim = RhoSim(model, rho=1.0, example=images())
    model(images(seed=1))
    model(images(seed=2))
    both = sim.loss()
    model(images(seed=2))
    assert both.item() == sim.loss().item()


def test_frozen_blocks_in_eval_mode_count_where_a_gradient_goes_through_them():
    model, taken = network(), images()
    model.blocks[1].requires_grad_(False).eval()
    sim = RhoSim(model, example=taken)
    assert sim.blocks == ("blocks.0", "blocks.1") and not sim.skipped
    model.eval()(taken)
    sim.loss().backward()
    assert bool(model.stem.weight.grad.any()) and model.blocks[1].first.weight.grad is None


def test_blocks_whose_output_needs_no_gradient_are_left_out_by_name():
    model, taken = network(), images()
    model.stem.requires_grad_(False)
    model.blocks[0].requires_grad_(False)
    with pytest.warns(UserWarning, match=r"leaves out blocks \(blocks.0: its output needs no gradient\)"):
        sim = RhoSim(model, example=taken)
    assert sim.blocks == ("blocks.1",) and list(sim.skipped) == ["blocks.0"]


def test_tokens_are_drawn_anew_in_each_step_from_the_seed_alone():
    model, taken = network(), images()
    first, again, other = (RhoSim(model, seed=seed, example=taken) for seed in (0, 0, 1))
    found = []
    for _ in range(2):
        model(taken)
        found.append([sim.loss().item() for sim in (first, again, other)])
    assert [row[0] for row in found] == [row[1] for row in found]
    assert found[0][0] != found[1][0] and found[0][0] != found[0][2]
    pairs = zip(first.parameters(), other.parameters(), strict=True)
    assert all(not torch.equal(one, two) for one, two in pairs)


def test_nothing_is_drawn_from_or_moved_in_the_world_around():
    model, taken = network().train(), images()
    before, state = torch.get_rng_state(), copy.deepcopy(model.state_dict())
    sim = RhoSim(model, sampling="v1", channels=0.5, example=taken)
    model(taken)
    sim.loss()
    assert torch.equal(before, torch.get_rng_state()) and model.training
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_a_checkpoint_goes_on_with_the_same_tokens():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    model(taken)
    sim.loss()
    state = {name: tensor.clone() for name, tensor in sim.state_dict().items()}
    resumed = RhoSim(model, seed=0, example=taken)
    with torch.no_grad():
        for parameter in resumed.parameters():
            parameter.add_(1)
    resumed.load_state_dict(state)
    model(taken)
    assert sim.loss().item() == resumed.loss().item()


NESTED = ["blocks.0", "blocks.0.first", "blocks.1"]
"""A block draws before the one inside it where it has seen such images, and after it where it has not."""


def test_nested_blocks_draw_alike_whatever_was_seen_before():
    model, taken = network(), images(4)
    terms = []
    for example in (taken[:1], taken[:3], taken):
        sim = RhoSim.opened_by_hand(model, SimOptions(blocks=NESTED), seed=0, run=lambda seen=example: model(seen))
        for _ in range(2):
            sim.begin(generator=torch.Generator().manual_seed(3), places=torch.arange(4), batch_size=4)
            model(taken)
            terms.append(sim.loss().item())
        sim.detach()
    assert len(set(terms)) == 1


def test_a_checkpoint_of_nested_blocks_goes_on_with_the_same_tokens():
    model, taken = network(), images()
    sim = RhoSim(model, blocks=NESTED, example=taken[:1])
    terms = []
    for step in range(3):
        model(taken)
        terms.append(sim.loss().item())
        if step == 0:
            state = {name: tensor.clone() for name, tensor in sim.state_dict().items()}
    resumed = RhoSim(model, blocks=NESTED, example=taken[:1])
    resumed.load_state_dict(state)
    for expected in terms[1:]:
        model(taken)
        assert resumed.loss().item() == expected


def test_recomputation_by_checkpointing_changes_nothing():
    found = []
    for repeat in (False, True):
        model, taken = network(repeat=repeat), images()
        sim = RhoSim(model, example=taken)
        total = model(taken).square().sum() + sim.loss()
        total.backward()
        found.append([total.item(), *[p.grad.clone() for p in (*model.parameters(), *sim.parameters())]])
        with pytest.raises(UsageError, match="no forward pass"):
            sim.loss()  # what was run again for the backward pass is no new forward pass
    assert found[0][0] == found[1][0]
    assert all(torch.equal(one, other) for one, other in zip(found[0][1:], found[1][1:], strict=True))


def test_a_whole_network_that_is_run_again_in_the_backward_pass_counts_once():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    said = checkpoint(model, taken, use_reentrant=False)
    (said.square().sum() + sim.loss()).backward()
    with pytest.raises(UsageError, match="no forward pass"):
        sim.loss()
    plain = network()
    other = RhoSim(plain, example=taken)
    (plain(taken).square().sum() + other.loss()).backward()
    pairs = zip(model.parameters(), plain.parameters(), strict=True)
    assert all(torch.equal(one.grad, two.grad) for one, two in pairs)


def test_mixed_precision_computes_the_term_in_float32():
    model = network().float()
    taken = images().float()
    sim = RhoSim(model, example=taken)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        said = model(taken)
        loss = sim.loss()
    assert said.dtype == torch.bfloat16 and loss.dtype == torch.float32
    assert {p.dtype for p in sim.parameters()} == {torch.float32}
    model(taken)
    sim.loss().backward()


class Folding(torch.nn.Module):
    """Quarters of an image are rows of the batch inside, as in MobileViT and TNT."""

    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])

    def forward(self, pictures):
        tokens = pictures.flatten(2).transpose(1, 2).reshape(4 * len(pictures), -1, 3)
        for block in self.blocks:
            tokens = block(tokens)
        return tokens.mean((1, 2)).reshape(len(pictures), 4)


@pytest.mark.parametrize("sampling", ["v0", "v1", "v2", "norm"])
@pytest.mark.parametrize(("make", "blocks"), [(network, "auto"), (network, NESTED), (Folding, "Linear")])
def test_micro_batches_add_up_to_the_batch(make, blocks, sampling):
    """One step, by hand, as a trainer does it that cuts batches."""
    model, taken = make().double(), images(4)
    options = SimOptions(blocks=blocks, sampling=sampling)
    sim = RhoSim.opened_by_hand(model, options, seed=0, run=lambda: model(taken[:1]))
    wholes, parts = [], []
    for places in (torch.arange(4), torch.arange(1), torch.arange(1, 4)):
        sim.begin(generator=torch.Generator().manual_seed(3), places=places, batch_size=4)
        model(taken[places])
        (wholes if len(places) == 4 else parts).append(sim.loss() * len(places) / 4)
    assert wholes[0].item() == pytest.approx(sum(part.item() for part in parts), rel=1e-12)


@pytest.mark.parametrize("sampling", ["v0", "v1"])
def test_a_placebo_asks_for_another_image_where_rows_are_parts_of_images(sampling):
    """The second image is another one, the first is not: what the rows of the first are to predict is all of the second."""
    model, first = Folding().double(), images(2)
    sim = RhoSim(model, blocks="Linear", placebo=True, rho=1.0, sampling=sampling, example=first)
    targets = []
    for taken in (first, torch.stack([first[0], images(1, seed=5)[0]])):
        sim._steps = 0
        model(taken)
        targets.append(sim._watch.close_pass()[0].taken)
    alike = [torch.equal(*rows) for rows in zip(*targets, strict=True)]
    assert alike == [False] * 4 + [True] * 4
    model(first[:1])
    with pytest.raises(UsageError, match="one image alone"):
        sim.loss()


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
def test_a_watched_network_is_exported_as_if_it_were_not():
    model, taken = network(), images()
    plain = torch.export.export(model, (taken,))
    sim = RhoSim(model, example=taken)
    watched = torch.export.export(model, (taken,))
    assert [node.target for node in watched.graph.nodes] == [node.target for node in plain.graph.nodes]
    traced = torch.jit.trace(model, taken)
    assert torch.equal(traced(taken), model(taken)) and not [name for name in traced.state_dict() if "project" in name]
    with pytest.raises(UsageError, match="carries reconstructors"):
        torch.jit.script(model)
    assert not hasattr(next(iter(model.blocks[0]._forward_hooks.values())), "__name__")
    model(taken)
    assert sim.loss() > 0


def test_copies_of_the_network_have_no_hooks():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    model(taken)  # what is kept of it is part of a graph
    own_hook = model.blocks[0].register_forward_hook(print_nothing, with_kwargs=True)
    twin = copy.deepcopy({"a model": [model]})["a model"][0]
    assert hooks_of(twin) == len(twin.blocks[0]._forward_hooks_with_kwargs) == 1  # that of somebody else
    own_hook.remove()
    assert hooks_of(model) == 5 and hooks_of(copy.deepcopy(model.blocks)) == 0
    own = sim.loss().item()
    model(taken)
    twin(taken)
    assert sim.loss().item() != 0 and own != 0
    twin(taken)
    with pytest.raises(UsageError, match="no forward pass"):
        sim.loss()


def test_what_shares_the_hooks_of_a_block_is_not_taken_for_it():
    """As the replicas of DataParallel do."""
    model, taken = network(), images()
    sim = RhoSim(model, rho=1.0, example=taken)
    model(taken)
    copy.copy(model.blocks[1])(torch.randn(3, 6, 6, 6, dtype=torch.float64, requires_grad=True))
    other = sim.loss().item()
    model(taken)
    assert other == sim.loss().item()


def test_detach_leaves_nothing_behind():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    sim.detach()
    assert hooks_of(model) == 0
    assert len(list(sim.parameters())) > 0
    sim.detach()  # again


def print_nothing(*_):
    """Somebody else's hook."""


def hooks_of(model):
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


def test_an_engine_that_nobody_holds_takes_its_hooks_along():
    """As when a cell of a notebook is run again."""
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    of_one = hooks_of(model)
    older, sim = weakref.ref(sim), RhoSim(model, example=taken)
    assert older() is None and hooks_of(model) == of_one > 0
    model(taken)
    assert sim.loss() > 0
    del sim
    assert hooks_of(model) == 0


def test_without_an_example_the_first_step_tells():
    model, taken = network(), images()
    sim = RhoSim(model)
    with pytest.raises(UsageError, match="example=images"):
        sim.parameters()
    model(taken)
    first = sim.loss()
    assert first.requires_grad and len(list(sim.parameters())) > 0
    looked = RhoSim(model, example=taken)
    assert all(torch.equal(one, two) for one, two in zip(sim.parameters(), looked.parameters(), strict=True))


def test_blocks_that_do_not_run_this_time_keep_a_gradient_of_zero():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    model.times = 0
    model(taken)
    with pytest.warns(UserWarning, match=r"no term of blocks in this step \(blocks.1: it did not run with gradients"):
        sim.loss().backward()
    absent = sim.reconstructors.by_block()["blocks.1"]
    assert all(p.grad is not None and not p.grad.any() for p in absent.parameters())


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # of torch.compile itself
@pytest.mark.parametrize("first", ["sim", "compile"])
def test_a_compiled_network_gives_the_same(first, monkeypatch):
    resets, reset = [], torch.compiler.reset
    monkeypatch.setattr(torch.compiler, "reset", lambda: resets.append(reset()))
    plain, taken = network(), images()
    sim = RhoSim(plain, example=taken)
    (plain(taken).square().sum() + sim.loss()).backward()
    model = network()
    if first == "compile":
        compiled = torch.compile(model, backend="eager")
        compiled(taken)
        ours = RhoSim(compiled, example=taken)
    else:
        ours = RhoSim(model, example=taken)
        compiled = torch.compile(model, backend="eager")
    assert len(resets) == (first == "compile")  # not every version of torch looks for new hooks itself
    (compiled(taken).square().sum() + ours.loss()).backward()
    for one, two in zip((*plain.parameters(), *sim.parameters()), (*model.parameters(), *ours.parameters()), strict=True):
        torch.testing.assert_close(one.grad, two.grad)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # of torch.compile itself
@pytest.mark.parametrize("first", ["sim", "compile"])
def test_blocks_that_are_compiled_one_by_one_keep_their_names_and_numbers(first, monkeypatch):
    resets, reset = [], torch.compiler.reset
    monkeypatch.setattr(torch.compiler, "reset", lambda: resets.append(reset()))
    found = []
    for is_compiled in (False, True):
        model, taken = network(), images()
        sim = RhoSim(model, example=taken) if first == "sim" else None
        if is_compiled:
            model.blocks[1] = torch.compile(model.blocks[1], backend="eager")
            model(taken)
        sim = sim or RhoSim(model, example=taken)
        assert sim.blocks == ("blocks.0", "blocks.1")
        model(taken)
        found.append(sim.loss().item())
    assert found[0] == found[1] and len(resets) == (first == "compile")
    assert RhoSim(model, blocks="blocks.1", example=taken).blocks == ("blocks.1",)


def test_gradients_as_functions():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    model(taken).square().sum().add(sim.loss()).backward()
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    sim = RhoSim(model, example=taken)

    def loss(parameters):
        return torch.func.functional_call(model, parameters, (taken,)).square().sum() + sim.loss()

    found = torch.func.grad(loss)(dict(model.named_parameters()))
    assert all(torch.allclose(found[name], gradient) for name, gradient in expected.items())


def test_the_width_of_projections_and_the_number_of_parameters():
    model, taken = network(), images()
    sim = RhoSim(model, blocks="blocks.0", example=taken)
    (part,) = sim.reconstructors.by_block().values()
    assert part.predictor.in_features == 4  # as many as the input has channels
    sim = RhoSim(model, blocks="blocks.0", K=128, example=taken)
    assert sum(p.numel() for p in sim.parameters()) == 66_176 + 256 * 4 + 4 * 6
    groups = sim.reconstructors.parameter_groups()
    assert [group.get("weight_decay") for group in groups] == [None, 0.0]
    assert sum(len(group["params"]) for group in groups) == len(list(sim.parameters()))


def test_blocks_that_leave_later_are_named_until_they_are_back():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    left_out = dict(sim.skipped)
    first, second = model.blocks
    model.forward = lambda given: checkpoint(second, first(model.stem(given)), use_reentrant=True).mean((2, 3))
    model(taken)
    with pytest.warns(UserWarning, match="no term of blocks in this step"):
        sim.loss()
    assert sim.skipped.keys() == left_out.keys() | {"blocks.1"}
    del model.forward
    model(taken)
    sim.loss()  # and no second warning
    assert sim.skipped == left_out


@pytest.mark.parametrize("compiled", [False, True])
def test_wrappers_that_know_nothing_of_reconstructors_are_refused(compiled):
    def refused(wrapped):
        return RhoSim(torch.compile(wrapped, backend="eager") if compiled else wrapped, example=images())

    with pytest.raises(UsageError, match="does not see the replicas that DataParallel runs"):
        refused(torch.nn.DataParallel(network()))
    of_processes = DistributedDataParallel.__new__(DistributedDataParallel)  # without a process group
    torch.nn.Module.__init__(of_processes)
    of_processes.module = network()
    with pytest.raises(UsageError, match="would drift apart"):
        refused(of_processes)


def test_nothing_is_left_on_the_network_when_the_example_does_not_fit():
    model = network()
    for wrong in (torch.zeros(2, 5, 8, 8), torch.zeros(2, 3, 8, 8, dtype=torch.complex64)):
        with pytest.raises((RuntimeError, UsageError)):
            RhoSim(model, example=wrong)
    pickle.dumps(model)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


def test_a_whole_network_that_is_checkpointed_may_go_backward_before_the_loss():
    model, taken = network(), images()
    sim = RhoSim(model, example=taken)
    said = checkpoint(model, taken, use_reentrant=False)
    said.square().mean().backward()
    assert sim.loss() > 0


class Masked(torch.nn.Module):
    """A block that takes tokens and a mask."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, hidden, mask=None):
        """The mask is a factor."""
        return self.layer(hidden) * (1 if mask is None else mask)


class Asking(torch.nn.Module):
    """It gives its block keywords in another order than the definition."""

    def __init__(self):
        super().__init__()
        self.block = Masked()

    def forward(self, hidden):
        """A mask of ones."""
        return self.block(mask=torch.ones(len(hidden), 9, 1), hidden=hidden)


def test_keywords_count_in_the_order_of_the_definition():
    sim = RhoSim(Asking(), blocks="block", example=torch.randn(2, 9, 8))
    (part,) = sim.reconstructors.by_block().values()
    assert part.predictor.in_features == 8  # as wide as the tokens, not as the mask


def test_a_module_names_itself():
    model = network()
    assert RhoSim(model, blocks=model.blocks[0], example=images()).blocks == ("blocks.0",)
    assert RhoSim(model, blocks=[model.blocks[1]], example=images()).blocks == ("blocks.1",)
    with pytest.raises(UsageError, match="is no module of the network"):
        RhoSim(model, blocks=torch.nn.Linear(1, 1), example=images())
