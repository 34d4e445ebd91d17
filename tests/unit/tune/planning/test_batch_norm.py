"""What BatchNorm normalises with: what is chosen where nobody asks, why, and what is said."""

import pytest

from crossgraft.errors import UsageError
from crossgraft.tasks import MultiClassTask
from crossgraft.tune.engine.step import training_batch_norms
from crossgraft.tune.methods import put_adapters_in
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.batch_norm import BatchNorm, choose_batch_norm, selection_with
from crossgraft.tune.planning.choices import choose_plugins
from crossgraft.tune.protocols import freezes_batch_norm, keeps_reference
from crossgraft.tune.regularizers import REGULARIZERS
from support.training import build_classifier

FREEZING = [name for name, regularizer in REGULARIZERS if freezes_batch_norm(regularizer)]
KEEPERS = [name for name, regularizer in REGULARIZERS if keeps_reference(regularizer)]


def chosen(asked=None, *, network="cnn", **slots):
    """The decision, what is said about it, and the layers whose statistics move then."""
    plugins = choose_plugins(TuneOptions(model="test_resnet", **slots), MultiClassTask())
    classifier = build_classifier(network)
    put_adapters_in(plugins.method, classifier, seed=0)
    selection = plugins.method.select(classifier)
    decided, said = choose_batch_norm(asked, plugins, classifier, selection)
    moving = training_batch_norms(classifier, selection_with(decided, classifier, selection))
    return decided, said, moving


def test_every_regularizer_says_whether_it_compares_with_the_start():
    assert {"repsim", "hcs", "l2_sp", "delta"} <= set(KEEPERS)
    assert "bss" not in KEEPERS
    assert FREEZING == ["hcs", "repsim"]


@pytest.mark.parametrize("regularizer", [name for name in KEEPERS if name not in FREEZING])
def test_beside_what_keeps_no_more_by_it_statistics_move_and_the_plan_says_why(regularizer):
    decided, said, moving = chosen(regularizer=regularizer)
    assert (decided.mode, decided.num_layers, said, moving) == ("train", 1, [], ["body.norm"])
    assert decided.in_words == f"train ({decided.reason})" and "as without a regulariser" in decided.reason


@pytest.mark.parametrize("regularizer", [*FREEZING, "repsim:preset=paper", "l2_sp,repsim:mode=procrustes"])
def test_beside_what_keeps_more_by_it_statistics_stay_and_the_plan_says_why(regularizer):
    decided, said, moving = chosen(regularizer=regularizer)
    assert (decided.mode, decided.num_layers, said, moving) == ("frozen", 1, [], [])
    name = next(name for name in FREEZING if name in regularizer)
    assert decided.in_words == f"frozen (the default beside {name}: statistics that move change what it keeps)"


@pytest.mark.parametrize("regularizer", FREEZING)
def test_statistics_are_held_that_would_move_beside_what_keeps_more_by_it_asked_for_or_not(regularizer):
    assert [chosen(asked, regularizer=regularizer)[0].is_held for asked in (None, "frozen")] == [True, True]
    assert [chosen(asked, regularizer=regularizer)[0].is_held for asked in ("train", "adapt")] == [False, False]
    assert not chosen("frozen", regularizer=f"{regularizer},l2_sp", method="lora:2")[0].is_held  # LoRA moves none anyway
    assert not chosen("frozen", regularizer="l2_sp")[0].is_held and not chosen("frozen")[0].is_held
    assert not chosen(regularizer=regularizer, network="plain")[0].is_held


def test_a_regularizer_that_pulls_at_nothing_changes_nothing():
    assert chosen(regularizer="repsim:0")[0].mode == chosen(regularizer="hcs:1")[0].mode == chosen()[0].mode == "train"


@pytest.mark.parametrize(
    "slots", [{}, {"regularizer": "bss"}, {"method": "linear"}, {"method": "scratch"}, {"method": "partial:1"}]
)
def test_otherwise_networks_are_trained_as_usual(slots):
    decided, said, moving = chosen(**slots)
    trains_none = slots.get("method") in ("linear", "partial:1")  # the last part of this network has no BatchNorm
    name = slots.get("method", "").partition(":")[0]
    assert (decided.mode, said) == ("train", [])
    assert decided.in_words == (f"frozen ({name} moves none)" if trains_none else "train")
    assert bool(moving) != trains_none


def test_where_nothing_moves_there_is_no_reason_to_keep_it():
    decided, *_ = chosen(method="lora:2", regularizer="repsim")
    assert decided == BatchNorm("train", "", 1, "lora")
    assert decided.in_words == "frozen (lora moves none)"


@pytest.mark.parametrize("asked", ["train", "frozen", "adapt"])
@pytest.mark.parametrize("regularizer", ["none", "repsim"])
def test_what_is_asked_for_counts(asked, regularizer):
    decided, said, moving = chosen(asked, regularizer=regularizer)
    assert (decided.in_words, said) == (asked, [])
    assert moving == ([] if asked == "frozen" else ["body.norm"])


@pytest.mark.parametrize("asked", ["frozen", "adapt"])
def test_random_weights_have_no_statistics_to_keep(asked):
    with pytest.raises(UsageError, match=f"--batch-norm {asked} is about .* but --method scratch replaces it"):
        chosen(asked, method="scratch")
    assert chosen("train", method="scratch")[0].mode == "train"


@pytest.mark.parametrize("asked", ["train", "frozen", "adapt"])
def test_without_batch_norm_it_is_said_and_ignored(asked):
    decided, said, moving = chosen(asked, network="plain", regularizer="repsim")
    assert (decided, moving) == (BatchNorm("train", "", 0), [])
    assert said == [f"The network has no BatchNorm layers with kept statistics, so --batch-norm {asked} does nothing."]
    assert chosen(network="plain", regularizer="repsim")[:2] == (BatchNorm("train", "", 0), [])
    assert decided.notes(10) == BatchNorm("adapt", "", 0).notes(10) == []


def test_a_method_that_moves_no_statistics_says_so():
    for asked in ("train", "frozen"):
        decided, said, _ = chosen(asked, method="linear")
        assert decided.mode == asked
        assert decided.in_words == ("frozen" if asked == "frozen" else "frozen (linear moves none)")
        assert said == ["--method linear keeps the statistics of BatchNorm as they are anyway."]
    assert chosen("adapt", method="linear")[:2] == (BatchNorm("adapt", "", 1, "linear"), [])  # of another start


def test_an_adapter_alone_has_no_statistics():
    decided, (said,), _ = chosen("adapt", method="lora:2", regularizer="repsim")
    assert decided.mode == "adapt"
    assert "not of an adapter alone (export --format peft" in said


def test_the_plan_says_where_estimated_statistics_come_from_and_that_few_images_say_little():
    (many,), (few,) = BatchNorm("adapt", "", 2).notes(96), BatchNorm("adapt", "", 1).notes(95)
    assert many.startswith("Mean and variance of 2 BatchNorm layers are estimated on the training images")
    assert "that network is start and reference" in many and "one batch" not in many
    assert few.endswith("They come from one batch of 95 images, and are noisy.")
    assert BatchNorm("frozen", "", 1).notes(3) == BatchNorm("train", "", 1).notes(3) == []
