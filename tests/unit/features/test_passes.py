"""One pass of a network over images, and what layers take and give on the way."""

import threading
from collections import namedtuple

import pytest
import torch
from torch import nn

from crossgraft.data.transforms import prepare_resized
from crossgraft.errors import OutOfMemoryError, UnknownNameError, UsageError
from crossgraft.features.passes import BatchLoader, Tap, Taps, collect, gradients_on, run_pass, through_taps
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing
from support.small_classifiers import small_classifier

from .conftest import Images, make_backbone

IMAGES = torch.rand(11, 3, 32, 32, generator=torch.Generator().manual_seed(0))
BATCHES = IMAGES.split(4)
Pair = namedtuple("Pair", "first second")


class Parts(nn.Module):
    """Gives its input and twice that, in whatever ``kind`` says."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, images, scale=2):
        first, second = images, scale * images
        return {
            "tuple": (first, second),
            "list": [first, second],
            "dict": {"first": first, "second": second},
            "nested": (first, {"deep": second}),
        }[self.kind]


class Around(nn.Module):
    """A network around ``part``, which it calls as ``call`` says."""

    def __init__(self, part, call=lambda part, images: part(images)):
        super().__init__()
        self.part, self.call = part, call

    def forward(self, images):
        self.call(self.part, images)
        return images


def loader_of(*, batch_size, spans=(range(20),)):
    preprocessing = Preprocessing(height_pixels=6, width_pixels=6)
    return BatchLoader(Images(), preprocessing, spans, batch_size=batch_size, reporter=Reporter(quiet=True))


def taken(network, tap, images=IMAGES):
    with Taps(network, [tap]) as found:
        network(images)
    return found[tap]


def num_hooks(network):
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in network.modules())


def network_of_four():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 15 * 15, 2)).eval()


# what a pass gives


def test_a_pass_is_the_literal_loop_bit_for_bit():
    for name in ("cnn", "vit"):
        classifier = small_classifier(name).eval()
        found = collect(run_pass(classifier, BATCHES, read=classifier.features))
        with torch.no_grad():
            expected = torch.cat([classifier.features(images) for images in BATCHES])
        assert torch.equal(found, expected) and not found.requires_grad
        with torch.no_grad():
            assert torch.equal(collect(run_pass(classifier, BATCHES)), torch.cat([classifier(x) for x in BATCHES]))


def test_a_backbone_is_called_and_says_features_and_logits():
    backbone = make_backbone()
    loader = loader_of(batch_size=5, spans=[range(8), range(8, 20)])
    found = list(run_pass(backbone, loader))
    spans = [range(5), range(5, 8), range(8, 13), range(13, 18), range(18, 20)]
    for output, rows in zip(found, spans, strict=True):
        expected = backbone(loader.load(rows))
        assert torch.equal(output.features, expected.features)
        assert torch.equal(output.source_logits, expected.source_logits)


def test_batches_are_asked_for_one_by_one_in_order():
    asked = []

    def batches():
        for number, images in enumerate(BATCHES):
            asked.append(number)
            yield images

    for number, said in enumerate(run_pass(nn.Identity(), batches())):
        assert torch.equal(said, BATCHES[number]) and asked == [*range(number + 1)]
    assert asked == [0, 1, 2]


def test_no_batch_says_nothing():
    assert list(run_pass(nn.Identity(), [])) == []


def test_eval_mode_and_no_graph_are_of_the_forward_pass_only():
    classifier = small_classifier("dropout").train()
    classifier.body.norm.eval()
    before = {name: part.training for name, part in classifier.named_modules()}
    statistics = classifier.body.norm.running_mean.clone()
    for said in run_pass(classifier, BATCHES):
        assert torch.is_grad_enabled() and not said.requires_grad
        assert {name: part.training for name, part in classifier.named_modules()} == before
    assert torch.equal(classifier.body.norm.running_mean, statistics)
    assert torch.equal(collect(run_pass(classifier, BATCHES)), collect(run_pass(classifier.eval(), BATCHES)))


def test_modes_can_be_left_alone():
    classifier = small_classifier("cnn").train()
    statistics = classifier.body.norm.running_mean.clone()
    collect(run_pass(classifier, BATCHES, eval_mode=False))
    assert not torch.equal(classifier.body.norm.running_mean, statistics)


def test_modes_hooks_and_gradients_are_as_before_when_the_network_fails():
    classifier = small_classifier("dropout").train()
    look = through_taps(classifier, [Tap("body.stem"), Tap("head", of="input")], run=classifier.features)
    with pytest.raises(RuntimeError):
        list(run_pass(classifier, [IMAGES.double()], read=look))
    assert num_hooks(classifier) == 0 and torch.is_grad_enabled()
    assert all(part.training for part in classifier.modules())


def test_images_are_brought_to_the_type_of_a_weight():
    classifier = small_classifier("cnn").double()
    assert collect(run_pass(classifier, BATCHES, like=classifier.head.weight)).dtype == torch.float64


def test_full_precision_switches_an_autocast_off():
    network = network_of_four()
    with torch.autocast("cpu", torch.bfloat16):
        assert collect(run_pass(network, BATCHES)).dtype == torch.bfloat16
        found = collect(run_pass(network, BATCHES, full_precision=True))
        assert torch.is_autocast_enabled("cpu")
    assert found.dtype == torch.float32 and torch.equal(found, collect(run_pass(network, BATCHES)))


@pytest.mark.parametrize("around", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_gradients_are_on_by_some_parameters_and_not_by_others(around):
    network = network_of_four()
    weight, bias, last, other = network.parameters()
    weight.requires_grad_(False)

    @gradients_on(by=[weight, weight], not_by=iter([last]))
    def differentiate_and_fail():
        assert [each.requires_grad for each in (weight, bias, last, other)] == [True, True, False, True]
        (gradient,) = torch.autograd.grad(network(IMAGES * 1).sum(), weight)
        assert gradient.any()
        raise ZeroDivisionError

    with around():
        with pytest.raises(ZeroDivisionError):
            differentiate_and_fail()
        assert torch.is_grad_enabled() == (around is torch.enable_grad)
        assert torch.is_inference_mode_enabled() == (around is torch.inference_mode)
    assert [each.requires_grad for each in (weight, bias, last, other)] == [False, True, True, True]


def test_it_says_how_many_images_are_done():
    done = []
    collect(run_pass(nn.Identity(), BATCHES, on_images=done.append))
    assert done == [4, 4, 3]


def test_where_memory_runs_out_smaller_batches_give_the_same_rows_in_order():
    class SmallMemory(nn.Module):
        def forward(self, batch):
            if len(batch) > 3:
                raise RuntimeError("out of memory")
            return batch

    loader = loader_of(batch_size=16)
    found = list(run_pass(SmallMemory(), loader))
    assert max(map(len, found)) == 2 == loader.batch_size
    assert torch.equal(collect(found), loader.load(range(20)))


def test_a_single_image_that_does_not_fit_is_told():
    def read(batch):
        raise MemoryError

    loader = loader_of(batch_size=4)
    with pytest.raises(OutOfMemoryError, match="single image"):
        list(run_pass(nn.Identity(), loader, read=read))


def test_a_pass_that_is_left_ends_the_thread_of_its_batches():
    before = threading.active_count()
    loader = loader_of(batch_size=2)
    said = run_pass(nn.Identity(), loader)
    next(said)
    said.close()
    assert threading.active_count() == before


def test_a_pass_that_fails_ends_the_thread_of_its_batches_though_the_error_is_kept():
    def fail(batch):
        raise ValueError("a network that does not like these images")

    before = threading.active_count()
    with pytest.raises(ValueError, match="does not like") as caught:
        list(run_pass(nn.Identity(), loader_of(batch_size=2), read=fail))
    assert threading.active_count() <= before and caught.value.__traceback__ is not None


# what taps take


def test_an_output_and_an_input_are_what_the_layers_give_and_take():
    network = network_of_four()
    first, last = Tap("0"), Tap("3", of="input")
    with Taps(network, [first, last]) as found, torch.no_grad():
        network(IMAGES)
    maps = network[0](IMAGES)
    assert torch.equal(found[first], maps) and not found[first].requires_grad
    assert torch.equal(found[last], maps.relu().flatten(1))
    assert num_hooks(network) == 0


def test_a_copy_is_safe_from_what_works_in_place_and_a_tensor_with_a_graph_is_the_networks_own():
    network = nn.Sequential(nn.Conv2d(3, 2, 1), nn.ReLU(inplace=True))
    assert torch.equal(taken(network, Tap("0")), network[0](IMAGES))
    assert torch.equal(taken(network, Tap("0", with_graph=True)), network(IMAGES))


@pytest.mark.parametrize(
    ("kind", "select", "factor"),
    [("tuple", 1, 2), ("list", 0, 1), ("dict", "second", 2), ("nested", lambda output: output[1]["deep"], 2)],
)
def test_one_of_several_tensors_is_selected(kind, select, factor):
    found = taken(Around(Parts(kind)), Tap("part", select=select))
    assert torch.equal(found, factor * IMAGES)


def test_arguments_are_selected_by_place_and_keyword():
    def call(part, images):
        part(images, scale=3 * images)

    network = Around(Parts("tuple"), call)
    assert torch.equal(taken(network, Tap("part", of="input")), IMAGES)
    assert torch.equal(taken(network, Tap("part", of="input", select=0)), IMAGES)
    assert torch.equal(taken(network, Tap("part", of="input", select="scale")), 3 * IMAGES)
    by_keyword = Around(Parts("tuple"), lambda part, images: part(images=images))
    assert torch.equal(taken(by_keyword, Tap("part", of="input")), IMAGES)


@pytest.mark.parametrize(
    ("kind", "select", "message"),
    [
        ("dict", "secnd", "Unknown part of the output of part: secnd. Did you mean second"),
        ("tuple", 2, "Unknown part of the output of part: 2. Known: 0, 1"),
        ("tuple", None, "The layer part returns a tuple, not a tensor"),
        ("nested", 1, "The layer part returns a dict, not a tensor"),
    ],
)
def test_what_is_no_tensor_is_refused_by_name(kind, select, message):
    network = Around(Parts(kind))
    with pytest.raises(UsageError, match=message):
        taken(network, Tap("part", select=select))
    assert num_hooks(network) == 0


def test_a_tensor_has_no_parts():
    with pytest.raises(UnknownNameError, match="part of the output of 0: 0"):
        taken(network_of_four(), Tap("0", select=0))  # not the first image


def test_the_average_over_positions_leaves_out_the_class_token():
    maps = small_classifier("cnn").eval()
    found = taken(maps, Tap("body.block", pool="mean"))
    torch.testing.assert_close(found, taken(maps, Tap("body.block")).mean((2, 3)))
    vit = small_classifier("vit").eval()
    found = taken(vit, Tap("body.blocks.1", pool="mean"))
    torch.testing.assert_close(found, taken(vit, Tap("body.blocks.1"))[:, 1:].mean(1))
    rows = taken(maps, Tap("head", of="input"))
    assert torch.equal(taken(maps, Tap("head", of="input", pool="mean")), rows)


@pytest.mark.parametrize("pool", [None, "mean"])
def test_the_gradient_through_a_tap_is_that_of_the_formula(pool):
    network = network_of_four().double()
    found = taken(network, Tap("1", pool=pool, with_graph=True), IMAGES.double())
    found.square().sum().backward()
    through_tap = network[0].weight.grad.clone()
    network.zero_grad()
    maps = network[0](IMAGES.double()).relu()
    (maps if pool is None else maps.mean((2, 3))).square().sum().backward()
    assert torch.equal(through_tap, network[0].weight.grad) and network[3].weight.grad is None


def test_a_pass_with_a_graph_has_the_gradient_of_the_formula():
    network, tap = network_of_four().double(), Tap("0", with_graph=True)
    batches = IMAGES.double().split(4)
    with torch.no_grad():  # of whoever calls
        said = list(run_pass(network, batches, read=through_taps(network, [tap]), graph=True))
    torch.stack([each[tap].square().sum() for each in said]).sum().backward()
    expected = torch.autograd.grad(
        torch.stack([network[0](images).square().sum() for images in batches]).sum(), network[0].weight
    )
    assert torch.equal(network[0].weight.grad, *expected)


def test_taps_of_a_pass_give_each_batch_its_own():
    network, tap = network_of_four(), Tap("1")
    said = run_pass(network, BATCHES, read=through_taps(network, [tap, tap]))
    assert torch.equal(collect(each[tap] for each in said), torch.cat([network[:2](x) for x in BATCHES]).detach())


def test_a_layer_that_is_none_is_refused_with_near_names():
    classifier = small_classifier("cnn")
    for name in ("body.blok", "blok", "", "body.block.weight"):
        with pytest.raises(UnknownNameError, match="layer"):
            through_taps(classifier, [Tap("body.stem"), Tap(name)])
    with pytest.raises(UnknownNameError, match=r"Did you mean body\.block"):
        Taps(classifier, [Tap("body.blok")])
    assert num_hooks(classifier) == 0


def test_a_layer_that_does_not_run_is_refused():
    network = Around(nn.ReLU(), lambda part, images: None)
    with pytest.raises(UsageError, match="The layer part does not run in this forward pass"):
        list(run_pass(network, BATCHES, read=through_taps(network, [Tap("part")])))


def test_of_a_layer_that_runs_twice_one_has_to_be_chosen():
    def twice(part, images):
        part(images)
        part(2 * images)

    network = Around(nn.Identity(), twice)
    with pytest.raises(UsageError, match="The layer part runs 2 times in this forward pass"):
        taken(network, Tap("part"))
    assert torch.equal(taken(network, Tap("part", run="first")), IMAGES)
    assert torch.equal(taken(network, Tap("part", run="last")), 2 * IMAGES)


def test_taps_that_stay_take_only_when_they_are_told_to_and_each_step_once():
    network, tap = network_of_four(), Tap("0", with_graph=True, run="last")
    steps = Taps(network, [tap], when=torch.is_grad_enabled).__enter__()
    network(IMAGES)
    with torch.no_grad():
        network(2 * IMAGES)
    assert torch.equal(steps.pop(tap), network[0](IMAGES))
    steps.pop(tap)
    assert steps.runs(tap) == 0
    steps.__exit__()
    network(IMAGES)
    assert steps.runs(tap) == 0 == num_hooks(network)


# names inside of wrappers


class LikePeft(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.base_model = nn.ModuleDict({"model": model})

    def get_base_model(self):
        return self.base_model["model"]

    def forward(self, images):
        return self.base_model["model"](images)


@pytest.fixture
def parallel(tmp_path):
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield nn.parallel.DistributedDataParallel
    torch.distributed.destroy_process_group()


def compiled(network):
    return torch.compile(network, backend="eager")


def compiled_in_place(network):
    network.compile(backend="eager")
    return network


@pytest.mark.parametrize(
    "wrap", [LikePeft, compiled, compiled_in_place, lambda network: LikePeft(compiled(network)), nn.DataParallel]
)
def test_layers_have_the_names_of_the_network_inside(wrap):
    network, tap = network_of_four(), Tap("1")
    with torch.no_grad():
        expected = torch.cat([network[:2](images) for images in BATCHES])
    wrapped = wrap(network)
    collect(run_pass(wrapped, BATCHES))  # compiled code exists before the hooks
    said = run_pass(wrapped, BATCHES, read=through_taps(wrapped, [tap]))
    assert torch.equal(collect(each[tap] for each in said), expected)
    assert num_hooks(network) == 0


def test_layers_of_a_parallel_network_have_the_names_of_the_one_inside(parallel):
    network, tap = network_of_four(), Tap("1")
    wrapped = parallel(network)
    said = run_pass(wrapped, BATCHES, read=through_taps(wrapped, [tap]))
    assert torch.equal(collect(each[tap] for each in said), collect(network[:2](images).detach() for images in BATCHES))
    with pytest.raises(UnknownNameError, match="layer: module"):
        Taps(wrapped, [Tap("module.1")])


# beside an accelerator


def test_images_go_to_an_accelerator_as_8_bits_prepared_by_all_threads(monkeypatch):
    """A device without memory plays the accelerator: what happens on it has shapes and no numbers."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    names = []

    class Named(Images):
        def read(self, index):
            names.append(threading.current_thread().name)
            return super().read(index)

    preprocessing = Preprocessing(height_pixels=6, width_pixels=6)
    loader = BatchLoader(Named(), preprocessing, [range(20)], batch_size=8, reporter=Reporter(quiet=True), device="meta")
    batches = list(loader)
    assert [tuple(images.shape) for images in batches] == [(8, 3, 6, 6), (8, 3, 6, 6), (4, 3, 6, 6)]
    assert {(images.device.type, images.dtype) for images in batches} == {("meta", torch.float32)}
    assert len(names) == 20 and all(name.startswith("resize") for name in names)


def test_threads_and_place_do_not_change_a_bit(monkeypatch):
    plain = [images.clone() for images in loader_of(batch_size=8)]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    threaded = loader_of(batch_size=8)
    threaded.device = "CPU"  # any name but that of the CPU has all threads prepare
    monkeypatch.setattr("crossgraft.features.passes.prepare_resized", lambda images, how, device: prepare_resized(images, how))
    assert all(torch.equal(one, other) for one, other in zip(plain, threaded, strict=True))


class Drawing(nn.Module):
    """Draws in evaluation, as networks that mask patches do."""

    def forward(self, images):
        return images * torch.rand(len(images), 1, 1, 1)


def test_what_a_network_draws_depends_on_no_look_before_and_leaves_no_trace():
    before = torch.get_rng_state()
    whole = collect(run_pass(Drawing(), BATCHES))
    assert torch.equal(torch.get_rng_state(), before)
    (last,) = run_pass(Drawing(), BATCHES[2:])
    assert torch.equal(whole[8:], last) and not torch.equal(last, IMAGES[8:])
    (trained,) = run_pass(Drawing(), BATCHES[2:], eval_mode=False)
    assert not torch.equal(trained, last)
    assert not torch.equal(torch.get_rng_state(), before)
