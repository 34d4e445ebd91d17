"""Saved models that can be exported in no time."""

from functools import cache

import torch
from timm.models import VisionTransformer

from crossgraft.models.classifier import make_classifier
from crossgraft.models.load import load_backbone
from crossgraft.models.spec import ModelSpec
from crossgraft.tune.saving.save_model import describe_saved_model
from crossgraft.tune.saving.saved_model import SavedModel
from support.small_classifiers import SIZE, SmallCnn, wrap
from support.tuning_records import tuning_record

NAMES = ("benign", "malignant", "normal")


@cache
def library_classifier(name, num_outputs=3, size=SIZE, **kwargs):
    """Of timm or torchvision, with random weights and BatchNorm statistics that are not those of a fresh network."""
    spec = ModelSpec(name, name, weights="random", kwargs=kwargs)
    return in_use(make_classifier(load_backbone(spec, image_size=size), num_outputs, seed=0))


@cache
def own_classifier(num_outputs=3):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return in_use(wrap(SmallCnn(), num_outputs=num_outputs))


@cache
def vit_classifier(depth=1):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = VisionTransformer(img_size=SIZE, patch_size=16, embed_dim=16, depth=depth, num_heads=2, num_classes=5)
        return wrap(network)


def in_use(classifier):
    """As after some training: moved statistics, and logits of a natural size."""
    classifier.train()
    with torch.no_grad():
        classifier(torch.rand(4, 3, *_size(classifier), generator=torch.Generator().manual_seed(0)))
        classifier.head.weight.mul_(30)
        classifier.head.bias.add_(0.3)
    return classifier.eval()


def _size(classifier):
    return classifier.preprocessing.height_pixels, classifier.preprocessing.width_pixels


def saved(classifier, *, several_labels=False, temperature=1.7, **changes):
    """A loaded model, with the facts of a run that had as many classes."""
    facts = describe_saved_model(tuning_record(), classifier, seed=0)
    names = list(NAMES[: classifier.num_outputs])
    changes = {
        "task": "multi-label" if several_labels else "multi-class",
        "class_names": names,
        "thresholds": facts.thresholds if len(names) == 2 else [],
        "temperature": temperature,
        "weights_fingerprint": "ef" * 32,
        **changes,
    }
    return SavedModel(classifier, facts.model_copy(update=changes), "cpu")
