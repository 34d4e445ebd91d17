import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.errors import UnknownNameError
from crossgraft.models import ModelSpec
from crossgraft.rank.model_history import check_known_names, find_history, group_of_target, published_identity
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import published_results, results_at_hand, targets_of
from support.model_records import model_record


def own(model, target, value, *, weights, fingerprint=None):
    return KnownResult(
        model=model,
        weights=weights,
        source="s",
        target=target,
        target_fingerprint=fingerprint,
        protocol="p",
        metric="auc",
        value=value,
        origin="tune",
    )


@pytest.fixture(scope="module")
def published():
    return published_results()


def data(name):
    import numpy as np

    images = [np.full((4, 4, 1), i, np.uint8) for i in range(4)]
    return dataset_from_arrays(images, [0, 1, 0, 1], name=name)


def test_weights_of_torchvision_are_known_and_others_are_not():
    assert published_identity(ModelSpec("a", "torchvision:vgg11")) == "vgg/imagenet"
    assert published_identity(ModelSpec("a", "torchvision:mobilenet_v3_small", "pretrained")) == "mobilenet/imagenet"
    assert published_identity(ModelSpec("a", "densenet121.tv_in1k")) == "densenet/imagenet"
    for spec in (ModelSpec("a", "torchvision:vgg11", "mine.pth"), ModelSpec("a", "torchvision:vgg11", "random")):
        assert published_identity(spec) is None
    assert published_identity(ModelSpec("a", "resnet18")) is None  # timm's own recipe: other weights


def test_published_tables_are_found_by_the_name_of_the_weights_and_say_for_whom_they_speak(published):
    names = {"a": "resnet50.tv_in1k", "b": "torchvision:densenet121", "c": "resnet50", "d": "torchvision:resnet34"}
    specs = [ModelSpec(name, source) for name, source in names.items()]
    specs[3] = ModelSpec("d", "package.module:resnet34")
    found = find_history([model_record(name) for name in names], specs, data("flowers102"), results_at_hand(published))
    assert found.spoke[0] == ["SFDA, group 1", "Chaves et al. 2024", "Chaves et al. 2023"]
    assert found.spoke[1] == ["SFDA, group 1", "Chaves et al. 2024", "Chaves et al. 2023"]  # the thesis knows no other of these
    assert found.spoke[2] == found.spoke[3] == []  # timm's own recipe, and somebody's function
    assert "Flowers" not in found.targets and "Aircraft" in found.targets
    assert len(found.targets) == 10 + 10 + 3


def test_one_publication_with_two_metrics_counts_a_target_once(published):
    specs = [ModelSpec("a", "resnet18.a1_in1k"), ModelSpec("b", "densenet121.ra_in1k")]
    found = find_history([model_record("a"), model_record("b")], specs, data("mine"), results_at_hand(published))
    assert len(found.targets) == len(set(found.targets)) == 12


def test_targets_of_tables_are_known_by_the_names_of_their_publications(published):
    assert group_of_target("oxford_flowers102", targets_of(published)) == "Flowers"
    assert group_of_target("chestmnist_128", targets_of(published)) == "Chest"
    assert group_of_target("dsprites/dsprites_location", targets_of(published)) == "DSprites"
    assert group_of_target("cifar100", targets_of(published)) == "CIFAR100"


def test_results_on_the_target_at_hand_and_its_relatives_are_left_out(published):
    specs = [ModelSpec("r", "torchvision:resnet18"), ModelSpec("v", "torchvision:vgg11")]
    models = [model_record("r"), model_record("v")]
    everywhere = find_history(models, specs, data("my images"), results_at_hand(published))
    at_hand = find_history(models, specs, data("organamnist"), results_at_hand(published))
    assert len(everywhere.targets) == 11 and everywhere.origins == ["thesis, Table 6.5"]
    assert len(at_hand.targets) == 8 and "Organ" not in at_hand.groups


def test_own_results_are_found_by_the_weights_and_not_by_the_name():
    rows = [own("other name", "t", 0.5, weights="w1"), own("b", "t", 0.7, weights="w2")]
    models = [
        model_record("a").model_copy(update={"weights_fingerprint": "w1"}),
        model_record("b").model_copy(update={"weights_fingerprint": "w2"}),
    ]
    specs = [ModelSpec("a", "x:y"), ModelSpec("b", "x:y")]
    assert find_history(models, specs, data("d"), results_at_hand(rows)).results.tolist() == [[0.5, 0.7]]
    renamed = [models[0].model_copy(update={"weights_fingerprint": "w9"}), models[1]]
    assert find_history(renamed, specs, data("d"), results_at_hand(rows)).targets == []


def test_own_results_on_the_same_images_are_left_out():
    at_hand = data("d")
    rows = [own(m, "t", 0.5, weights=m, fingerprint=at_hand.fingerprint) for m in "ab"]
    models = [model_record(m).model_copy(update={"weights_fingerprint": m}) for m in "ab"]
    specs = [ModelSpec(m, "x:y") for m in "ab"]
    assert find_history(models, specs, at_hand, results_at_hand(rows)).targets == []
    assert find_history(models, specs, data("other").take([0, 1, 2], rows_used=""), results_at_hand(rows)).targets == ["t"]


def test_the_zoo_can_say_what_a_model_is_known_as(published):
    specs = [ModelSpec("r", "x:y", known_as="resnet/radimagenet"), ModelSpec("m", "x:y", known_as="resnet/medmnist")]
    check_known_names(specs, results_at_hand(published).identities)
    assert len(find_history([model_record("r"), model_record("m")], specs, data("d"), results_at_hand(published)).targets) == 11
    with pytest.raises(UnknownNameError, match="resnet/imagenet"):
        check_known_names([ModelSpec("r", "x:y", known_as="resnet/imagenett")], results_at_hand(published).identities)
