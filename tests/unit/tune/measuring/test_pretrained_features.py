import pickle

import pytest
import torch

from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.measuring.drift import PretrainedFeatures
from support.training import build_classifier, build_data


class Loader:
    """Counts how often the network is asked for."""

    def __init__(self, network="cnn"):
        self.network, self.calls = network, 0

    def __call__(self):
        self.calls += 1
        return None if self.network is None else build_classifier(self.network)

    def __reduce__(self):
        raise AssertionError("networks and loaders are not sent to other processes")


@pytest.fixture(scope="module")
def images():
    return build_data(10)[0]


def kept(images, loader, number_type=torch.float32):
    return PretrainedFeatures(images, loader, batch_size=4, device="cpu", number_type=number_type)


def test_the_network_is_run_once_when_it_is_first_needed(images):
    loader = Loader()
    features = kept(images, loader)
    assert loader.calls == 0
    expected = features_of(build_classifier(), images, batch_size=4, device="cpu")
    assert torch.equal(features(), expected)
    assert features() is features()
    assert loader.calls == 1


def test_other_processes_get_the_features_and_not_the_network(images):
    loader = Loader()
    features = kept(images, loader)
    sent = pickle.loads(pickle.dumps(features))
    assert torch.equal(sent(), features_of(build_classifier(), images, batch_size=4, device="cpu"))
    pickle.dumps(features)
    assert loader.calls == 1


def test_number_types_are_those_of_the_training(images):
    assert kept(images, Loader(), torch.float64)().dtype == torch.float64
    assert kept(images, Loader())().dtype == torch.float32


def test_without_a_network_there_are_no_features(images):
    loader = Loader(None)
    features = kept(images, loader)
    assert features() is None
    assert features() is None
    assert loader.calls == 1
