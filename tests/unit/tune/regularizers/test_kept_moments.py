"""What is computed from a data set once is found again, by its key and only whole."""

import pytest
import torch

from crossgraft.errors import CrossgraftWarning
from crossgraft.tune.regularizers import RepSim
from crossgraft.tune.regularizers._moment_terms import Moments, kept_or_computed
from support.training import build_classifier, build_feed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path))
    return tmp_path / "moments"


class Counted:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        generator = torch.Generator().manual_seed(0)
        draw = torch.randn(8, 8, generator=generator, dtype=torch.float64)
        return Moments(draw[0].clone(), draw.T @ draw)


def same(first, second):
    return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_the_second_time_nothing_is_computed_and_no_bit_differs(folder):
    compute, classifier = Counted(), build_classifier("plain")
    found = [kept_or_computed(classifier, "images", compute) for _ in range(2)]
    assert compute.calls == 1 and same(*found)
    assert found[1].covariance.dtype == torch.float64
    (path,) = folder.iterdir()
    assert path.suffix == ".safetensors"


def test_images_weights_and_structure_are_told_apart(folder):
    compute, classifier = Counted(), build_classifier("plain")
    kept_or_computed(classifier, "images", compute)
    kept_or_computed(classifier, "other images", compute)
    assert compute.calls == 2
    kept_or_computed(build_classifier("cnn"), "images", compute)
    assert compute.calls == 3
    with torch.no_grad():
        classifier.head.weight.add_(1)  # features do not come from it
    kept_or_computed(classifier, "images", compute)
    assert compute.calls == 3
    with torch.no_grad():
        classifier.body.stem.weight[0, 0, 0, 0] += 1e-6
    kept_or_computed(classifier, "images", compute)
    assert compute.calls == 4
    classifier.body.drop.p = 0.5
    kept_or_computed(classifier, "images", compute)
    assert compute.calls == 5


def test_what_has_no_fingerprint_is_not_kept(folder):
    compute, classifier = Counted(), build_classifier("plain")
    for _ in range(2):
        kept_or_computed(classifier, None, compute)
    assert compute.calls == 2 and not folder.exists()


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "other"])
def test_a_damaged_file_is_computed_anew_and_replaced(folder, damage):
    compute, classifier = Counted(), build_classifier("plain")
    right = kept_or_computed(classifier, "images", compute)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    flipped = whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:]
    path.write_bytes({"cut": whole[:-9], "flipped": flipped, "emptied": b"", "other": b"words"}[damage])
    assert same(kept_or_computed(classifier, "images", compute), right)
    assert compute.calls == 2
    assert same(kept_or_computed(classifier, "images", compute), right)
    assert compute.calls == 2
    assert path.read_bytes() == whole and list(folder.iterdir()) == [path]


def test_on_a_full_disk_training_goes_on_with_what_was_computed(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("crossgraft.storage.atomic.os.fsync", full)
    compute = Counted()
    with pytest.warns(CrossgraftWarning, match=r"No space left.*CROSSGRAFT_CACHE"):
        moments = kept_or_computed(build_classifier("plain"), "images", compute)
    assert compute.calls == 1
    assert same(moments, kept_or_computed(build_classifier("plain"), None, Counted()))
    assert list(folder.iterdir()) == []


def test_repsim_looks_at_plain_images_once_and_at_augmented_ones_each_time(folder, monkeypatch):
    feed, classifier, seen = build_feed(), build_classifier("cnn"), []
    plain, augmented = type(feed).plain_batches, type(feed).training_batches
    monkeypatch.setattr(type(feed), "plain_batches", lambda self: seen.append("plain") or plain(self))
    monkeypatch.setattr(type(feed), "training_batches", lambda self, passes: seen.append(passes) or augmented(self, passes))
    for _ in range(2):
        RepSim(preset="paper").attach(classifier, feed)
    assert seen == ["plain"]
    adapted = build_classifier("cnn")
    adapted.body.norm.running_mean.add_(1)  # statistics of BatchNorm are part of what is compared with
    RepSim(preset="paper").attach(adapted, feed)
    assert seen == ["plain", "plain"]
    for _ in range(2):
        RepSim(reference="dataset_aug", passes=3).attach(classifier, feed)
    assert seen == ["plain", "plain", 3, 3]
