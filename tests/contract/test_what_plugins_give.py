"""What plug-ins of other packages give in the place of what was asked for is refused by name, where torch and NumPy go on."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from crossgraft.data import open_dataset
from crossgraft.data.sources import SOURCES, DataSource, SourceRows
from crossgraft.edit.confounders import Gamma, Painted
from crossgraft.errors import UsageError
from crossgraft.fewshot.episodes import NWayKShot, sample_episode
from crossgraft.fewshot.evaluate import evaluate
from crossgraft.fewshot.heads import NccHead
from crossgraft.losses import CrossEntropy
from crossgraft.scores import score
from crossgraft.tune.augmentations import NoAugmentation
from crossgraft.tune.batch_transforms import Mixup
from crossgraft.tune.engine.optimizers import ScheduledRate
from crossgraft.tune.objectives import ERM
from crossgraft.tune.plugin_outputs import augmented, losses_of, scalar_terms, transformed
from crossgraft.tune.presets import PRESETS, SimCifar
from crossgraft.tune.schedules import Constant, Steps

IMAGES, TARGETS = torch.rand(4, 3, 8, 8), torch.eye(4)
GENERATOR = torch.Generator()


def giving(base, method, made, **options):
    """A plug-in that gives ``made``, whatever it is asked."""
    return type(base.__name__, (base,), {method: lambda self, *asked, **said: made})(**options)


@pytest.mark.parametrize("made", [torch.ones(()), torch.ones(4, 1), torch.ones(4, 4), torch.ones(2), 1.0, None])
def test_a_loss_is_one_number_for_each_image(made):
    with pytest.raises(UsageError, match=r"The loss cross_entropy gave .* for 4 images, not one number for each"):
        losses_of(giving(CrossEntropy, "__call__", made), TARGETS, TARGETS)
    assert losses_of(CrossEntropy(), TARGETS, TARGETS).shape == (4,)


@pytest.mark.parametrize("made", [torch.ones(()), {"a": 1.0}, {"a": torch.ones(4)}, {"a": None}, None])
def test_terms_are_tensors_of_one_number_by_name(made):
    with pytest.raises(UsageError, match=r"erm gave|The term a of erm is"):
        scalar_terms(ERM(), made)
    assert scalar_terms(ERM(), {"a": torch.ones(())}) == [("a", torch.ones(()))]


@pytest.mark.parametrize("made", [IMAGES[:1], IMAGES[:, :, :4], IMAGES.numpy(), None])
def test_images_keep_their_number_and_size(made):
    with pytest.raises(UsageError, match=r"The augmentation none made .* of a tensor of shape"):
        augmented(giving(NoAugmentation, "__call__", made), IMAGES, GENERATOR)
    with pytest.raises(UsageError, match=r"The batch transform mixup made .* of a tensor of shape"):
        transformed(giving(Mixup, "__call__", (made, TARGETS)), IMAGES, TARGETS, GENERATOR)
    with pytest.raises(UsageError, match=r"The batch transform mixup gave .* not images and targets"):
        transformed(giving(Mixup, "__call__", made), IMAGES, TARGETS, GENERATOR)


@pytest.mark.parametrize("made", [-0.5, 2.0, float("nan"), None, "half"])
def test_a_schedule_gives_a_share(made):
    with pytest.raises(UsageError, match=r"The schedule constant gave .* at step 0, not a share in"):
        ScheduledRate(giving(Constant, "share", made), Steps(total=2, warmup=0, per_epoch=2)).share(0)


@pytest.mark.parametrize("made", [np.ones(1), None, "high", 1j])
def test_a_score_gives_one_number(made):
    def odd(features, labels):
        return made

    with pytest.raises(UsageError, match=r"The score odd gave an object of type .*, not one number"):
        score(title="Odd", reference="none")(odd)(np.eye(4), np.arange(4) % 2)


@pytest.mark.parametrize(
    "made", [np.full((9, 9, 1), 0.5), Painted(np.full((9, 9, 1), np.nan)), Painted(np.zeros((3, 3, 1))), None]
)
def test_an_edit_gives_an_image_of_numbers(made):
    with pytest.raises(UsageError, match="The edit gamma gave"):
        giving(Gamma, "edit", made)(np.full((9, 9, 1), 100, dtype=np.uint8))


def test_an_edit_does_not_write_to_what_it_is_given():
    class Blackened(Gamma):
        def edit(self, pixels, rng):
            pixels[:] = 0
            return Painted(pixels)

    with pytest.raises(ValueError, match="read-only"):
        Blackened()(np.full((9, 9, 1), 100, dtype=np.uint8))


@pytest.mark.parametrize("shape", [(4, 1), (4,), (1, 2), (4, 3)])
def test_a_head_gives_logits_of_its_queries_and_classes(shape):
    head = giving(NccHead, "logits_of", torch.zeros(shape)).fit(np.eye(4), np.array([0, 0, 1, 1]))
    with pytest.raises(UsageError, match=r"ncc gave a tensor of shape .* as logits, not a tensor of shape \(4, 2\)"):
        head.predict(np.eye(4))


@pytest.mark.parametrize("drawn", [[0, 9], [0, 0], [1], [[0, 1]], [0.0, float("nan")], None])
def test_a_sampler_draws_classes_that_there_are(drawn):
    labels = np.repeat([0, 1], 8)
    sampler = giving(NWayKShot, "draw_classes", drawn, ways=2, shots=2)
    for groups in (None, np.arange(16)):
        with pytest.raises(UsageError, match=r"The sampler n_way_k_shot drew .* which are not two or more different classes"):
            sample_episode(labels, sampler, np.random.default_rng(0), groups=groups)


def test_a_classifier_names_one_class_for_each_query():
    class Odd(NccHead):
        def predict(self, X):
            return super().predict(X)[:1]

    with pytest.raises(UsageError, match=r"Head odd in episode 0 named .* classes for .* queries"):
        evaluate(np.eye(16), np.repeat([0, 1], 8), {"odd": Odd()}, sampler=NWayKShot(ways=2, shots=2), num_episodes=1, seed=0)


class Listed(DataSource):
    name, description = "listed", "what a test lists"

    def __init__(self, rows):
        self.rows = rows

    def accepts(self, location):
        return location == "listed:"

    def open(self, location, request):
        return self.rows


def rows_of(pixels):
    return SourceRows("listed", np.array(["a", "b"] * 2), [str(row) for row in range(4)], lambda row: pixels)


SOUND = rows_of(np.zeros((8, 8, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (None, "listed a NoneType, not SourceRows"),
        (replace(SOUND, labels=np.array(["a", "b"])), "gave 2 values as labels of 4 images"),
        (replace(SOUND, groups=np.arange(3)), "gave 3 values as groups of 4 images"),
        (rows_of(np.zeros((8, 8, 4), dtype=np.uint8)), "gave the image 0 as an object of shape .8, 8, 4. and type uint8"),
        (rows_of(np.zeros((8, 8), dtype=np.uint8)), "gave the image 0 as an object of shape .8, 8. and type uint8"),
        (rows_of(np.zeros((8, 8, 1), dtype=np.int64)), "gave the image 0 as an object of .* type int64"),
        (rows_of(None), "gave the image 0 as an object of type NoneType"),
    ],
)
def test_a_data_source_gives_rows_that_belong_together(rows, fault, monkeypatch):
    monkeypatch.setattr(SOURCES, "_plugins", {"listed": Listed(rows)})
    with pytest.raises(UsageError, match=f"The data source .*{fault}"):
        open_dataset("listed:")


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (["epochs"], "gives an object of type list, not options by name"),
        ({"no_such_option": 3}, "Unknown option that --preset sim_cifar stands for: no_such_option"),
        ({"learning_rate": "fast"}, "--preset sim_cifar stands for --learning-rate: learning_rate must be a number"),
    ],
)
def test_a_preset_stands_for_options(made, fault, monkeypatch):
    import crossgraft

    @dataclass(frozen=True)
    class Odd(SimCifar):
        settings = made

    monkeypatch.setattr(PRESETS, "_plugins", {"sim_cifar": Odd})
    with pytest.raises(UsageError, match=fault):
        crossgraft.fine_tune("digits", model="resnet18", preset="sim_cifar")
