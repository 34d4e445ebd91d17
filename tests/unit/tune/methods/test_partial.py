"""The last blocks with what follows them, or exactly the parts that are named."""

import pytest

from crossgraft.choice import choose
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.tune.engine.step import apply_modes
from crossgraft.tune.methods import METHODS, Partial
from support.small_classifiers import small_classifier


def trained(classifier, **options):
    return set(Partial(**options).select(classifier).trained)


def below(classifier, *prefixes):
    return {name for name, _ in classifier.named_parameters() if name.startswith((*prefixes, "head."))}


def test_last_blocks_final_norm_and_head_of_a_vit():
    vit = small_classifier("vit")
    assert trained(vit, blocks=1) == below(vit, "body.blocks.2.", "body.norm.")
    assert trained(vit, blocks=2) == below(vit, "body.blocks.1.", "body.blocks.2.", "body.norm.")
    selection = Partial(blocks=2).select(vit)
    assert selection.trained["body.norm.weight"] == "in or behind the last 2 of 3 blocks"
    assert selection.frozen["body.pos_embed"] == "in front of the last 2 blocks"
    assert selection.train_mode[0] == "body.blocks.1"


def test_three_blocks_unless_said_otherwise():
    vit = small_classifier("vit")
    assert trained(vit) == trained(vit, blocks=3) == below(vit, "body.blocks.", "body.norm.")
    assert "body.patch_embed.proj.weight" not in trained(vit)


def test_the_final_convolution_and_its_norm_count_as_what_follows():
    backbone = load_backbone(ModelSpec("m", "mobilenetv2_035", "random"), image_size=32)
    net = make_classifier(backbone, 2, seed=0)
    last = "body.blocks.6.0."
    assert trained(net, blocks=1) == below(net, last, "body.conv_head.", "body.bn2.")
    modes = Partial(blocks=1).select(net).train_mode
    assert {"body.blocks.6", "body.conv_head", "body.bn2", "head"} <= set(modes)
    assert trained(net, names="-1") == below(net, last)


def test_the_step_between_two_trained_stages_is_trained():
    net = small_classifier("convnext")
    step = {name for name, _ in net.named_parameters() if name.startswith("body.stages.3.downsample.")}
    assert step
    assert not step & trained(net, blocks=1)
    assert step <= trained(net, blocks=2)


def test_dropout_behind_the_trained_part_drops_and_in_front_does_not():
    net = small_classifier("dropout")
    apply_modes(net, Partial(blocks=1).select(net))
    assert net.body.drop.training
    assert not net.body.norm.training
    apply_modes(net, Partial(names="stem").select(net))
    assert not net.body.drop.training


@pytest.mark.parametrize(
    ("names", "prefixes"),
    [
        ("blocks.1", ["body.blocks.1."]),
        ("body.blocks.1", ["body.blocks.1."]),
        ("body.blocks.[02].attn", ["body.blocks.0.attn.", "body.blocks.2.attn."]),
        ("body.blocks.*.norm1.weight", [f"body.blocks.{i}.norm1.weight" for i in range(3)]),
        ("0+-1", ["body.blocks.0.", "body.blocks.2."]),
        ("norm + pos_embed", ["body.norm.", "body.pos_embed"]),
        ("*", ["body."]),
        (-1, ["body.blocks.2."]),
    ],
)
def test_names_globs_and_numbers(names, prefixes):
    vit = small_classifier("vit")
    assert trained(vit, names=names) == below(vit, *prefixes)
    assert set(Partial(names=names).select(vit).frozen.values()) <= {"not named"}


def test_on_the_command_line():
    assert choose(METHODS, "partial") == Partial()
    assert choose(METHODS, "partial:2") == Partial(blocks=2)
    assert choose(METHODS, "partial:names=-1") == Partial(names=-1)
    assert choose(METHODS, "partial:names=layer4.*+1") == Partial(names="layer4.*+1")
    for wrong in ("partial:0", "partial:blocks=2,names=x", "partial:blocks=many"):
        with pytest.raises(UsageError):
            choose(METHODS, wrong)


def test_errors_name_the_parts_there_are():
    vit = small_classifier("vit")
    with pytest.raises(UsageError, match=r"3 blocks, asked for the last 4.*body\.blocks\.0, body\.blocks\.1"):
        Partial(blocks=4).select(vit)
    with pytest.raises(UsageError, match=r"no block 3\. Its blocks, 0 to 2: body\.blocks\.0"):
        Partial(names="3").select(vit)
    with pytest.raises(UnknownNameError, match=r"blocks\.7.*Did you mean .*blocks.*Its blocks, 0 to 2"):
        Partial(names="blocks.7").select(vit)
    with pytest.raises(UnknownNameError):
        Partial(names="blocks.1+").select(vit)


def test_a_part_that_can_not_be_trained_is_refused():
    backbone = load_backbone(ModelSpec("s", "torchvision:squeezenet1_1", "random"), image_size=32)
    net = make_classifier(backbone, 2, seed=0)
    with pytest.raises(UsageError, match=r"classifier of s cannot be trained: source head, not used"):
        Partial(names="classifier").select(net)
    assert not any(name.startswith("body.classifier") for name in trained(net, blocks=2))


def test_modules_in_train_mode_hold_only_trained_parameters():
    for network in ("cnn", "vit", "convnext"):
        net = small_classifier(network)
        selection = Partial(blocks=1).select(net)
        apply_modes(net, selection)
        for path, module in net.named_modules():
            names = {f"{path}.{name}" for name, _ in module.named_parameters(recurse=False)}
            if names:
                assert module.training == (names <= set(selection.trained)), path
