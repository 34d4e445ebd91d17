"""Small networks and feeds for tests of the training engine; importable by name, so that processes can be sent them."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from timm.models import ConvNeXt, VisionTransformer
from torch import nn

from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.losses import CrossEntropy
from crossgraft.models.backbone import Backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.tasks import MultiClassTask
from crossgraft.tune.augmentations import NoAugmentation
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import without_moving_statistics
from crossgraft.tune.feed.batches import BatchMaker, BatchPlan
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.drift import PretrainedFeatures
from crossgraft.tune.measuring.selection_metrics import SelectionMetrics
from crossgraft.tune.methods.adaptformer import AdaptFormer
from crossgraft.tune.methods.lora import LoRA
from crossgraft.tune.planning.fold_networks import FoldNetworks
from crossgraft.tune.protocols import Selection
from crossgraft.types import Preprocessing

SIZE = 32
CLASSES = 3
PREPROCESSING = Preprocessing(SIZE, SIZE)


class SmallCnn(nn.Module):
    def __init__(self, *, norm=True, dropout=0.0):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, 2)
        self.norm = nn.BatchNorm2d(6) if norm else nn.GroupNorm(2, 6)
        self.block = nn.Conv2d(6, 8, 3, 2)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(8, 5)

    def forward(self, images):
        maps = torch.relu(self.block(torch.relu(self.norm(self.stem(images)))))
        return self.fc(self.drop(maps.mean((2, 3))))


def build_network(name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if name == "vit":
            return VisionTransformer(
                img_size=SIZE, patch_size=16, embed_dim=16, depth=3, num_heads=2, num_classes=5, drop_path_rate=0.1
            )
        if name == "convnext":
            return ConvNeXt(depths=(1, 1, 1, 1), dims=(8, 8, 16, 16), num_classes=5)
        return SmallCnn(norm=name != "plain", dropout=0.3 if name == "dropout" else 0.0)


def build_classifier(name="cnn"):
    backbone = Backbone(
        build_network(name), name=name, architecture=name, source="factory", preprocessing=PREPROCESSING, family=name
    )
    return make_classifier(backbone, CLASSES, seed=0)


def everything(classifier):
    trained = {name: "all" for name, _ in classifier.named_parameters() if name not in classifier.untrainable}
    return Selection(trained, dict(classifier.untrainable), ("",))


def only_head(classifier):
    names = [name for name, _ in classifier.named_parameters()]
    head = {name: "head" for name in names if name.startswith("head.")}
    return Selection(head, {name: "frozen" for name in names if name not in head}, ("head",))


def with_kept_statistics(classifier):
    """Everything, with the statistics of BatchNorm as they are."""
    return without_moving_statistics(classifier, everything(classifier))


def with_lora(classifier):
    return with_adapters(classifier, LoRA(r=2, dropout=0.2))


def with_adaptformer(classifier):
    return with_adapters(classifier, AdaptFormer(bottleneck=4, dropout=0.2))


def with_adapters(classifier, method):
    method.add_adapters(classifier, seed=0)
    return method.select(classifier)


def networks_of(build, images, *, adapts=False):
    """Trainings of a fold that start from what `build` gives, which is pretrained, too."""
    return FoldNetworks(build, build, images, "cpu", adapts)


def build_data(count=22):
    """Noise whose brightness tells the class."""
    labels = np.arange(count) % CLASSES
    noise = np.random.default_rng(0).integers(0, 120, (count, SIZE, SIZE, 3))
    pixels = (noise + 60 * labels[:, None, None, None]).astype(np.uint8)
    return TrainingImages(dataset_from_arrays(pixels, labels), PREPROCESSING), torch.eye(CLASSES)[torch.from_numpy(labels)]


def build_feed(*, count=22, batch_size=7, augmentation=None, transforms=(), num_domains=None):
    """With domains, which follow each other in the rows, batches have equally many images of each."""
    images, targets = build_data(count)
    by_domain = {} if num_domains is None else {"sampler": "domains", "domains": torch.arange(count) * num_domains // count}
    return BatchMaker(
        images,
        targets,
        BatchPlan(targets, batch_size=batch_size, seed=0, **by_domain),
        augmentation=augmentation or NoAugmentation(),
        batch_transforms=transforms,
    )


@dataclass
class FeedBatch:
    rows: torch.Tensor
    images: torch.Tensor
    targets: torch.Tensor
    domains: torch.Tensor | None = None


class DoubleFeed:
    """The same batches every epoch, all of float64; domains follow each other in a batch."""

    steps_per_epoch = 3

    def __init__(self, batch_size=7, num_domains=1):
        generator = torch.Generator().manual_seed(0)
        self.images = torch.randn(3 * batch_size, 3, SIZE, SIZE, generator=generator, dtype=torch.float64)
        self.targets = torch.eye(CLASSES, dtype=torch.float64)[torch.arange(3 * batch_size) % CLASSES]
        self.batch_size = batch_size
        self.domains = torch.arange(3 * batch_size) % batch_size * num_domains // batch_size

    def batches(self, epoch, *, start=0):
        for rows in torch.arange(len(self.images)).split(self.batch_size)[start:]:
            yield FeedBatch(rows, self.images[rows], self.targets[rows], self.domains[rows])


class LossOnFeed:
    """Mean cross-entropy over all images of a fixed set: what an evaluation may be."""

    def __init__(self, count=12):
        self.images, self.targets = build_data(count)
        self.calls = 0

    def __call__(self, classifier):
        self.calls += 1
        assert not classifier.training and not torch.is_grad_enabled()
        rows = torch.arange(len(self.images))
        weight = classifier.head.weight  # a trainer moves the network to its device, and an evaluation follows it
        logits = classifier(self.images.normalise(self.images.read(rows)).to(weight.device, weight.dtype)).cpu()
        right = (logits.argmax(1) == self.targets.argmax(1)).double().mean()
        return {"loss": float(CrossEntropy()(logits, self.targets.to(logits.dtype)).mean()), "accuracy": float(right)}


def similarity_evaluation(name, count=24):
    """Loss and similarity to the network that trainings begin with, on a fixed set."""
    images, targets = build_data(count)
    of_features = {"batch_size": 8, "device": "cpu"}
    pretrained = PretrainedFeatures(images, partial(build_classifier, name), **of_features, number_type=torch.float32)
    facts = (images, targets.argmax(1).numpy(), targets, CrossEntropy(), MultiClassTask())
    return SelectionMetrics(*facts, **of_features, pretrained=pretrained)


@dataclass
class PullToStart:
    """L2-SP of the whole network, and a learned factor of its own."""

    strength: float = 0.1
    name: ClassVar[str] = "pull"
    title: ClassVar[str] = "Pull"
    citation: ClassVar[str] = "test"
    task_weight: ClassVar[float] = 1.0

    def attach(self, classifier, training_set=None):
        self.start = {name: parameter.detach().clone() for name, parameter in classifier.named_parameters()}
        self.factor = nn.Linear(1, 1, bias=False, dtype=classifier.head.weight.dtype)
        nn.init.ones_(self.factor.weight)
        self.attached = True

    def loss(self, context):
        moved = sum(((p - self.start[n]) ** 2).sum() for n, p in context.classifier.named_parameters() if p.requires_grad)
        return {"distance": self.strength * moved, "factor": 0.01 * (self.factor.weight**2).sum()}

    def after_step(self, update):
        pass

    def detach(self):
        self.attached = False

    def parameter_groups(self):
        return [{"params": list(self.factor.parameters()), "weight_decay": 0.0}]

    def modules(self):
        return [self.factor]

    def state_dict(self):
        return {"factor": self.factor.weight.detach(), **{f"start/{n}": p for n, p in self.start.items()}}

    def load_state_dict(self, state):
        with torch.no_grad():
            self.factor.weight.copy_(state["factor"])
        self.start = {name.removeprefix("start/"): value for name, value in state.items() if name != "factor"}


@dataclass
class SpreadOfAll(PullToStart):
    """Two statistics of the whole batch: its covariance from all rows, and its second moment from sums."""

    def loss(self, context):
        rows = context.of_all_processes(context.features)
        assert len(rows) == context.num_images_of_all
        centred = rows - rows.mean(0)
        mine = context.features[: context.num_images]
        moment = context.sum_over_processes(mine.T @ mine) / context.num_images_of_all
        return {"covariance": (centred.T @ centred).square().sum(), "moment": moment.square().sum()}

    def parameter_groups(self):
        return []

    def modules(self):
        return []


def arguments(**changes):
    """What ``train`` needs besides network, feed and selection."""
    settings = {"epochs": 2, "batch_size": 7, "learning_rate": 1e-2, "warmup_epochs": 0.5, "device": "cpu"}
    said = {"loss": CrossEntropy(), "evaluate": LossOnFeed(), "rule": SelectionRule()}
    named = {name: changes.pop(name) for name in list(changes) if name in TrainerSettings.__dataclass_fields__}
    return {**said, "settings": TrainerSettings(**{**settings, **named}), **changes}


def train_one(name="cnn", *, feed=None, selection=everything, **changes):
    """Classifier and result after training from the same start."""
    from crossgraft.tune.engine.trainer import train

    classifier = build_classifier(name)
    result = train(classifier, feed or build_feed(), selection(classifier), **arguments(**changes))
    return classifier, result


def same_bits(first, second):
    states = first.state_dict(), second.state_dict()
    return states[0].keys() == states[1].keys() and all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def largest_difference(first, second):
    """Over all parameters."""
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return max(float((one.detach().double() - other.detach().double()).abs().max()) for one, other in pairs)


class BrokenInOneProcess(PullToStart):
    """Its term is nan in the second process only."""

    def loss(self, context):
        import os

        value = float("nan") if os.environ.get("RANK") == "1" else 0.0
        return {"broken": context.logits.sum() * value}


class VanishingProcess(PullToStart):
    """The second process is gone in the second step."""

    def loss(self, context):
        import os
        import signal

        if context.step == 1 and os.environ.get("RANK") == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().loss(context)
